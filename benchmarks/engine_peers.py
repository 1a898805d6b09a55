"""The peers' side of benchmarks/engine.py: run by a Python that has them, on the rows that lie there."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def say(step: str, tool: str, seconds: float, note: str = "") -> None:
    print(json.dumps({"step": step, "tool": tool, "s": seconds, "note": note}), flush=True)


def main(place: str, tokenizer: str) -> None:
    rows = [json.loads(line) for line in (Path(place) / "peer.jsonl").open(encoding="utf-8")]
    benchmark = json.loads((Path(place) / "benchmark.json").read_text())
    for step in (datatrove_ngrams, aho, datasketch_lsh, rensa_lsh, datatrove_minhash):
        try:
            step(rows, benchmark)
        except Exception as error:
            print(f"{step.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
    with contextlib.suppress(ImportError):
        map_tokens(rows, tokenizer)


def normal(text: str) -> list[str]:
    import string

    return text.lower().translate(str.maketrans("", "", string.punctuation)).split()


def datatrove_ngrams(rows: list[dict[str, str]], benchmark: list[str]) -> None:
    """datatrove's own n-gram functions over the same rule: half of an item's 13-word sequences."""
    from datatrove.utils.text import TextNormConfig, ngrams, simplify_text

    config = TextNormConfig()

    def grams(text: str) -> set[tuple[str, ...]]:
        return set(ngrams(simplify_text(text, config).split(), 13))

    start = time.perf_counter()
    owner: dict[tuple[str, ...], list[int]] = {}
    needed = []
    for number, item in enumerate(benchmark):
        found = grams(item)
        needed.append(-(-len(found) // 2))
        for gram in found:
            owner.setdefault(gram, []).append(number)
    hits = 0
    for row in rows:
        shared: dict[int, int] = {}
        for gram in grams(row["prompt"]) | grams(row["response"]):
            for item in owner.get(gram, ()):
                shared[item] = shared.get(item, 0) + 1
        hits += any(count >= needed[item] for item, count in shared.items())
    say("decontaminate, 13 words", "datatrove functions", time.perf_counter() - start, f"{hits} rows")


def aho(rows: list[dict[str, str]], benchmark: list[str]) -> None:
    """ahocorasick_rs over normalised text: every 13-word sequence as a pattern."""
    import ahocorasick_rs

    start = time.perf_counter()
    patterns: dict[str, list[int]] = {}
    needed = []
    for number, item in enumerate(benchmark):
        words = normal(item)
        found = {" ".join(words[k : k + 13]) for k in range(len(words) - 12)}
        needed.append(-(-len(found) // 2))
        for gram in found:
            patterns.setdefault(gram, []).append(number)
    names = list(patterns)
    automaton = ahocorasick_rs.AhoCorasick(names)
    hits = 0
    for row in rows:
        shared: dict[int, set[int]] = {}
        for text in (row["prompt"], row["response"]):
            for match in automaton.find_matches_as_indexes(" ".join(normal(text)), overlapping=True):
                for item in patterns[names[match[0]]]:
                    shared.setdefault(item, set()).add(match[0])
        hits += any(len(found) >= needed[item] for item, found in shared.items())
    say("decontaminate, 13 words", "ahocorasick_rs", time.perf_counter() - start, f"{hits} rows")


def turns(rows: list[dict[str, str]]) -> list[list[str]]:
    texts = [text for row in rows for text in (row["prompt"], row["response"])]
    return [
        [" ".join(words[k : k + 3]) for k in range(max(1, len(words) - 2))] for words in map(normal, texts)
    ]


def datasketch_lsh(rows: list[dict[str, str]], benchmark: list[str]) -> None:
    from datasketch import MinHash, MinHashLSH

    start = time.perf_counter()
    index = MinHashLSH(params=(28, 4), num_perm=112)
    near = 0
    for number, shingles in enumerate(turns(rows)):
        signature = MinHash(num_perm=112, seed=1)
        signature.update_batch([s.encode() for s in shingles])
        near += bool(index.query(signature))
        index.insert(number, signature)
    say(
        "near-duplicates, Jaccard .8",
        "datasketch",
        time.perf_counter() - start,
        f"{near:,} with a candidate, not verified",
    )


def rensa_lsh(rows: list[dict[str, str]], benchmark: list[str]) -> None:
    from rensa import RMinHash, RMinHashLSH

    start = time.perf_counter()
    index = RMinHashLSH(threshold=0.8, num_perm=112, num_bands=28)
    near = 0
    for number, shingles in enumerate(turns(rows)):
        signature = RMinHash(num_perm=112, seed=1)
        signature.update(shingles)
        near += bool(index.query(signature))
        index.insert(number, signature)
    say(
        "near-duplicates, Jaccard .8",
        "rensa",
        time.perf_counter() - start,
        f"{near:,} with a candidate, not verified",
    )


def datatrove_minhash(rows: list[dict[str, str]], benchmark: list[str]) -> None:
    """datatrove's MinHash pipeline as its users run it: signatures, buckets, clusters, filter."""
    from datatrove.data import Document
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.minhash import MinhashConfig

    def documents(*_: Any, **__: Any) -> Any:
        for row in rows:
            for kind in ("prompt", "response"):
                yield Document(text=row[kind], id=f"{row['id']}-{kind}")

    config = MinhashConfig(n_grams=3, num_buckets=28, hashes_per_bucket=4)
    with tempfile.TemporaryDirectory() as work:
        start = time.perf_counter()
        for number, steps in enumerate(
            (
                [
                    documents,
                    MinhashDedupSignature(
                        output_folder=f"{work}/sig", config=config, skip_existing_sigs=False
                    ),
                ]
                if "skip_existing_sigs" in MinhashDedupSignature.__init__.__code__.co_varnames
                else [documents, MinhashDedupSignature(output_folder=f"{work}/sig", config=config)],
                [
                    MinhashDedupBuckets(
                        input_folder=f"{work}/sig", output_folder=f"{work}/buckets", config=config
                    )
                ],
                [
                    MinhashDedupCluster(
                        input_folder=f"{work}/buckets", output_folder=f"{work}/remove", config=config
                    )
                ],
                [documents, MinhashDedupFilter(input_folder=f"{work}/remove")],
            )
        ):
            with contextlib.redirect_stdout(sys.stderr):
                LocalPipelineExecutor(
                    pipeline=steps,
                    tasks=config.num_buckets if number == 1 else 1,
                    workers=1,
                    logging_dir=f"{work}/log{number}",
                ).run()
        seconds = time.perf_counter() - start
    say("near-duplicates, Jaccard .8", "datatrove", seconds, "not verified")


def map_tokens(rows: list[dict[str, str]], tokenizer: str) -> None:
    import datasets
    from tokenizers import Tokenizer

    datasets.disable_progress_bars()
    model = Tokenizer.from_file(tokenizer)
    table = datasets.Dataset.from_list(rows)

    def count(batch: dict[str, list[str]]) -> dict[str, list[int]]:
        texts = [f"{a}\n{b}" for a, b in zip(batch["prompt"], batch["response"])]  # noqa: B905
        return {"tokens": [len(e.ids) for e in model.encode_batch(texts, add_special_tokens=False)]}

    start = time.perf_counter()
    total = sum(table.map(count, batched=True, num_proc=2, load_from_cache_file=False)["tokens"])
    say(
        "token counts",
        "datasets.map, 2 processes",
        time.perf_counter() - start,
        f"{total:,} tokens without a template",
    )


if __name__ == "__main__":
    main(*sys.argv[1:3])
