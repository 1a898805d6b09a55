"""Run by vLLM's own Python, with nothing of autosft's: prompts from a JSON file, answers into another."""

from __future__ import annotations

import json
import os
import sys


def main(asked: str, answered: str) -> None:
    """Answer the prompts of `asked` into `answered`."""
    from vllm import LLM, SamplingParams
    from vllm.inputs import TokensPrompt

    with open(asked, encoding="utf-8") as stream:
        job = json.load(stream)
    extra = {"max_model_len": job["context"]} if job["context"] else {}
    model = LLM(
        model=job["model"],
        dtype=os.environ.get("AUTOSFT_VLLM_DTYPE", "float32"),
        enforce_eager=True,
        max_num_seqs=job["batch"],
        seed=job["seed"],
        **extra,
    )
    results: list[list[dict[str, object]]] = [[] for _ in job["prompts"]]
    places, prompts, params = [], [], []
    for place, tokens in enumerate(job["prompts"]):
        room = job["context"] - len(tokens) if job["context"] else job["max_new_tokens"]
        if room < 1 or not tokens:
            results[place] = [{"text": "", "truncated": True, "tokens": 0}] * job["n"]
            continue
        places.append(place)
        prompts.append(TokensPrompt(prompt_token_ids=tokens))
        params.append(
            SamplingParams(
                n=job["n"],
                temperature=job["temperature"],
                max_tokens=min(job["max_new_tokens"], room),
                stop_token_ids=[job["stop_id"]],
                seed=(job["seed"] * 1_000_003 + place) % 2**31,
            )
        )
    for place, output in zip(places, model.generate(prompts, params, use_tqdm=False)):  # noqa: B905
        for sample in sorted(output.outputs, key=lambda s: s.index):
            ids = list(sample.token_ids)
            ended = bool(ids) and ids[-1] == job["stop_id"]
            results[place].append(
                {
                    "text": sample.text,
                    "truncated": sample.finish_reason == "length",
                    "tokens": len(ids) - ended,
                }
            )
    with open(answered, "w", encoding="utf-8") as stream:
        json.dump(results, stream)


if __name__ == "__main__":
    main(*sys.argv[1:3])
