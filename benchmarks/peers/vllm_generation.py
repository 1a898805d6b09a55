"""vLLM's part of benchmarks/generation.py: run by vLLM's own Python, with nothing of autosft's."""

from __future__ import annotations

import json
import sys
import time


def main(asked: str, answered: str) -> None:
    """Answer the prompts of `asked` twice; write the seconds and texts of the second time."""
    from vllm import LLM, SamplingParams
    from vllm.inputs import TokensPrompt

    with open(asked, encoding="utf-8") as stream:
        job = json.load(stream)
    model = LLM(model=job["model"], dtype="float32", enforce_eager=True, max_num_seqs=job["batch"])
    params = SamplingParams(temperature=0.0, max_tokens=job["new_tokens"], stop_token_ids=[job["stop_id"]])
    prompts = [TokensPrompt(prompt_token_ids=tokens) for tokens in job["prompts"]]
    model.generate(prompts, params, use_tqdm=False)
    start = time.perf_counter()
    outputs = model.generate(prompts, params, use_tqdm=False)
    seconds = time.perf_counter() - start
    with open(answered, "w", encoding="utf-8") as stream:
        json.dump({"seconds": seconds, "texts": [output.outputs[0].text for output in outputs]}, stream)


if __name__ == "__main__":
    main(*sys.argv[1:3])
