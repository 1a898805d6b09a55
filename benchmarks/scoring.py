"""Speed of scoring 541 x 10 IFEval responses, beside lm-evaluation-harness where its Python is given.

    python benchmarks/scoring.py [--peer PYTHON_WITH_LM_EVAL] [--samples 10]

Both score the same responses in one process, one after the other; processor time is compared, so that load
does not count; imports and the loading of language tables are left out of both. Needs AUTOSFT_DATA (IFEval's
prompts and GPT-4's published responses) and NLTK_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PEER = """
import json, sys, time
start = time.process_time()
from lm_eval.tasks.ifeval.utils import process_results
loaded = time.process_time() - start
rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
import langdetect
langdetect.detect("Some words to load the tables.")
import nltk
nltk.sent_tokenize("One. Two.")
process_results(rows[0]["doc"], [rows[0]["response"]])
start = time.process_time()
found = [process_results(row["doc"], [row["response"]]) for row in rows]
spent = time.process_time() - start
print(json.dumps({"import_s": loaded, "cpu_s": spent,
                  "prompt_strict": sum(f["prompt_level_strict_acc"] for f in found) / len(found),
                  "prompt_loose": sum(f["prompt_level_loose_acc"] for f in found) / len(found)}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="Python interpreter that has lm_eval")
    parser.add_argument("--samples", type=int, default=10)
    given = parser.parse_args()
    root = os.environ.get("AUTOSFT_DATA")
    folder = Path(root or ".") / "ifeval"
    responses = folder / "input_response_data_gpt4_20231107_145030.jsonl"
    if not root or not responses.exists():
        print("skipped: set AUTOSFT_DATA to a folder with ifeval/ and its published responses")
        return 0
    rows = work(folder / "input_data.jsonl", responses, given.samples)
    own = score_own(rows, folder)
    say("autosft", len(rows), own)
    if not given.peer:
        print("lm_eval   not measured: give --peer")
        return 0
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        done = subprocess.run([given.peer, "-c", PEER, str(path)], check=True, capture_output=True, text=True)
    peer = json.loads(done.stdout.splitlines()[-1])
    say("lm_eval", len(rows), peer)
    print(f"ratio     {peer['cpu_s'] / own['cpu_s']:.1f}")
    return 0


def say(name: str, n: int, found: dict[str, float]) -> None:
    seconds = f"{found['cpu_s']:.2f} s of processor time"
    print(f"{name:9} {n:6,} responses in {seconds}, prompt strict {found['prompt_strict']:.4f}")


def work(prompts: Path, responses: Path, samples: int) -> list[dict[str, object]]:
    """Return one row a response; the k-th sample of an item differs from the others by a last word."""
    given = {}
    for line in responses.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        given[row["prompt"]] = row["response"]
    rows: list[dict[str, object]] = []
    for line in prompts.read_text(encoding="utf-8").splitlines():
        doc = json.loads(line)
        text = given.get(doc["prompt"], "Sure.")
        rows += [{"doc": doc, "response": text + (f" {k}" if k else ""), "sample": k} for k in range(samples)]
    return rows


def score_own(rows: list[dict[str, object]], folder: Path) -> dict[str, float]:
    from autosft.evals import Output, load_suite, score_outputs, summarise
    from autosft.taxonomy.verifiers.languages import is_language
    from autosft.taxonomy.verifiers.nltk_text import sentences

    is_language("Some words to load the tables.", "en")
    sentences("One. Two.")

    suite = load_suite("ifeval", path=folder)
    outputs = [
        Output(str(row["doc"]["key"]), str(row["response"]), sample=int(str(row["sample"])))  # type: ignore[index]
        for row in rows
    ]
    score_outputs(suite.items[:20], [o for o in outputs if o.item in {i.id for i in suite.items[:20]}])
    start = time.process_time()
    scores = score_outputs(suite.items, outputs)
    spent = time.process_time() - start
    found = summarise(scores)
    return {"cpu_s": spent, "prompt_strict": found["strict"], "prompt_loose": found["loose"]}


if __name__ == "__main__":
    sys.exit(main())
