"""The environment's verbs for agents and people: train a build, evaluate a checkpoint, import data, keep
artifacts.

Each answers at once with an id; the work is a job of the environment's queue (`autosft jobs`). Guards are
those of the campaign: its base, its token budget, its frozen settings. Sealed suites cannot be named.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import Artifact, ArtifactStore
from autosft.config import Config, config_from_json
from autosft.errors import ArtifactError, CampaignError, ConfigError, HoldoutError, SuiteError
from autosft.evals.suites.sealed import SEAL
from autosft.executor.builds import plan_sha
from autosft.executor.jobs import JobQueue, RunnerSettings
from autosft.executor.jobs.worker import submit_run
from autosft.executor.prompts import items_sha, make_prompts
from autosft.executor.stages import Job, log_stem
from autosft.identity import fingerprint, hash_file
from autosft.meta.campaign import CAMPAIGN, CONFIG, Facts, read_facts
from autosft.meta.jobs import JOBS, job_queue
from autosft.meta.sealed import is_sealed, refuse_held_out, sealed_folder

KIND = "stored"
SUBMISSIONS = "submissions.jsonl"
#: What a caller may add to the commands behind `evaluate` and `import_data`; a second `--suite` would
#: pass the guards by.
_EVAL_OPTIONS = frozenset({"--samples", "--temperature", "--max-new-tokens", "--limit", "--seed", "--batch"})
_DATA_OPTIONS = frozenset({"--rule"})
#: Variables that a job needs as its submitter has them; a runner may be older than they are.
_PASSED = ("AUTOSFT_DATA", "AUTOSFT_CACHE", "NLTK_DATA", "HF_HOME", "AUTOSFT_VLLM_PYTHON")


class Environment:
    """A campaign's folder, or any folder, as the place where jobs run and artifacts lie.

    Args:
        root: The folder; made when something is put there.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(root).expanduser().absolute()
        self.store = ArtifactStore(self.root / "artifacts")
        queue = job_queue(self.root, self._config()) if (self.root / CAMPAIGN).exists() else None
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.queue = queue or JobQueue(self.root / JOBS, RunnerSettings(slots=cores))

    def train(self, build: str, seed: int) -> str:
        """Train, convert, generate and score a build of the campaign with one of its plans' seeds.

        Raises:
            CampaignError: There is no campaign here, or the build's tokens are not its budget (I2).
            ArtifactError: There is no such build, or it has no plan for the seed.
        """
        facts, config = self._facts(), self._config()
        built = self._artifact("build", build)
        if built.data["train_tokens"] != facts.budget_tokens:
            raise CampaignError(
                f"the build has {built.data['train_tokens']:,} tokens, the campaign's budget is"
                f" {facts.budget_tokens:,}", where=str(built.path), hint="runs are compared at equal tokens",
            )  # fmt: skip
        items = self.store.load("items", facts.items).file("items.jsonl")
        prompts = make_prompts(Path(facts.base), items, config.trainer.sequence_tokens, self.store)
        job = Job(
            store=str(self.store.root),
            base=facts.base,
            base_fingerprint=facts.base_fingerprint,
            build=built.fingerprint,
            plan=plan_sha(built, seed),
            items_path=str(items),
            items=items_sha(items),
            prompts=prompts.fingerprint,
            seed=seed,
            train=config.trainer,
            generate=config.generate,
        )
        logs = self.root / "logs"
        logs.mkdir(exist_ok=True)
        executor = config.executor
        name, _, _ = submit_run(
            job, logs / log_stem(job), executor.threads_per_worker, 1, self.queue, executor.retries
        )
        return name

    def evaluate(self, checkpoint: Path, suites: Sequence[str], options: Sequence[str] = ()) -> str:
        """Evaluate a checkpoint on suites, as the command `evaluate` does; results lie in `evals/`.

        Args:
            checkpoint: Hugging Face model folder.
            suites: Names, or JSONL files of items.
            options: Further options of the command and their values: `--samples`, `--temperature`,
                `--max-new-tokens`, `--limit`, `--seed`, `--batch`.

        Raises:
            CampaignError: There is no such folder.
            ConfigError: An option is none of these.
            HoldoutError: A suite is sealed, or shares prompts with the campaign's sealed one.
        """
        _check_options(options, _EVAL_OPTIONS)
        if not (checkpoint / "config.json").exists():
            raise CampaignError(
                "no model folder", where=str(checkpoint), hint="name a Hugging Face model folder"
            )
        names = self._open_suites(suites)
        key = ["eval", str(checkpoint.absolute()), names, list(options)]
        out = self.root / "evals" / fingerprint(key)[:12]
        command = [
            "evaluate",
            str(checkpoint.absolute()),
            "--suite",
            ",".join(names),
            "--out",
            str(out),
            *options,
        ]
        return self._command("eval", command, key, f"{checkpoint.name} on {', '.join(names)}")

    def import_data(self, files: Sequence[Path], against: Sequence[str], options: Sequence[str] = ()) -> str:
        """Read rows, drop those that hold evaluation text, and write the rest into `data/`.

        The campaign's dev suites can be named; its sealed one is compared with whenever there is one.

        Raises:
            CampaignError: A file is missing.
            ConfigError: An option is not `--rule`.
            HoldoutError: A suite or file is sealed, or shares prompts with the campaign's sealed one.
            SuiteError: There is nothing to compare with.
        """
        _check_options(options, _DATA_OPTIONS)
        for file in files:
            if not file.exists():
                raise CampaignError("no such file", where=str(file), hint="name files or folders of rows")
            _refuse_sealed(file)
        names = self._open_suites(against)
        sealed = [str(folder) for folder in self._sealed()]
        if not names and not sealed:
            raise SuiteError(
                "nothing to compare with", where="--against", hint="e.g. --against ifeval,mbpp_plus"
            )
        paths = [str(file.absolute()) for file in files]
        hashes = [hash_file(f) if f.is_file() else f.stat().st_mtime for f in files]
        key = ["data", paths, hashes, names, sealed, list(options)]
        out = self.root / "data" / fingerprint(key)[:12]
        command = ["decontaminate", *paths, "--out", str(out), *options]
        command += ["--against", ",".join(names)] if names else []
        command += [part for folder in sealed for part in ("--sealed", folder)]
        return self._command(
            "data", command, key, f"{len(paths)} files against {', '.join(names) or 'the sealed'}"
        )

    def keep(self, path: Path) -> str:
        """Store a file or folder by its content; return its id. Storing it again returns the same one.

        Raises:
            ArtifactError: There is nothing at the path.
            HoldoutError: It is sealed.
        """
        _refuse_sealed(path)
        files = _files(path)
        key = fingerprint(sorted((str(name), hash_file(file)) for name, file in files))
        if self.store.find(KIND, key) is None:
            with self.store.create(KIND, key) as step:
                for name, file in files:
                    (step.path / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, step.path / name)
                step.data = {"name": path.name, "files": len(files), "stored": time.time()}
        return key

    def fetch(self, name: str, out: Path) -> Path:
        """Copy a stored artifact to a new folder; its files are checked against their hashes.

        Raises:
            ArtifactError: There is no such artifact, or `out` exists.
        """
        found = self._artifact(KIND, name)
        if out.exists():
            raise ArtifactError("exists", where=str(out), hint="choose a new folder")
        self.store.load(KIND, found.fingerprint, check_files=True)
        for file in found.files:
            (out / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found.path / file, out / file)
        return out

    def submit(self, name: str, note: str = "") -> str:
        """Hand in a stored checkpoint: the last one handed in is the environment's answer.

        Raises:
            ArtifactError: There is no such artifact, or it is no model folder.
        """
        found = self._artifact(KIND, name)
        if "config.json" not in found.files:
            raise ArtifactError(
                "is no model folder", where=str(found.path), hint="store the checkpoint's folder"
            )
        line = {"artifact": found.fingerprint, "note": note, "time": time.time()}
        with (self.root / SUBMISSIONS).open("ab") as stream:
            stream.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        return found.fingerprint

    def artifacts(self) -> list[dict[str, Any]]:
        """Return what is stored: `id`, `name`, `files`, `stored`, `submitted`; oldest first."""
        handed = set()
        if (self.root / SUBMISSIONS).exists():
            lines = (self.root / SUBMISSIONS).read_bytes().splitlines()
            handed = {orjson.loads(line)["artifact"] for line in lines}
        found = [self.store.load(KIND, folder.name) for folder in (self.store.root / KIND).glob("*")]
        rows = [{"id": a.fingerprint, **a.data, "submitted": a.fingerprint in handed} for a in found]
        return sorted(rows, key=lambda row: float(row["stored"]))

    # --- shared

    def _command(self, kind: str, command: Sequence[str], key: Any, label: str) -> str:
        passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
        return self.queue.submit(
            kind,
            [sys.executable, "-P", "-m", "autosft", *command],
            key=key,
            label=label,
            environment={**passed, "NO_COLOR": "1", "HF_HUB_OFFLINE": os.environ.get("HF_HUB_OFFLINE", "0")},
        )

    def _artifact(self, kind: str, name: str) -> Artifact:
        found = sorted(p.name for p in (self.store.root / kind).glob(f"{name}*")) if name else []
        if len(found) != 1:
            what = f"no {kind} {name!r}" if not found else f"{len(found)} begin with {name!r}"
            raise ArtifactError(what, where=str(self.store.root / kind), hint="give more of its id")
        return self.store.load(kind, found[0])

    def _facts(self) -> Facts:
        return read_facts(self.root)

    def _config(self) -> Config:
        try:
            return config_from_json(orjson.loads((self.root / CONFIG).read_bytes()))
        except FileNotFoundError:
            raise CampaignError("no campaign here", where=str(self.root)) from None

    def _open_suites(self, names: Sequence[str]) -> list[str]:
        opened = [_open_suite(name) for name in names]
        refuse_held_out(self.root, opened)
        return opened

    def _sealed(self) -> Iterator[Path]:
        return (seal.parent for seal in sorted(sealed_folder(self.root).glob(f"*/{SEAL}")))


def _open_suite(name: str) -> str:
    """Return a suite's name or absolute file; a sealed one is refused before anything is submitted."""
    if "," in name:  # the command behind takes them separated by commas
        raise SuiteError("a suite's name or file has no comma", where=name, hint="name suites one by one")
    if not name.endswith(".jsonl"):
        return name
    path = Path(name).absolute()
    _refuse_sealed(path)
    if not path.exists():
        raise SuiteError("no such file", where=str(path))
    return str(path)


def _refuse_sealed(path: Path) -> None:
    if is_sealed(path):
        raise HoldoutError("this is sealed", where=str(path), hint="`autosft holdout score`, after the end")


def _check_options(options: Sequence[str], known: frozenset[str]) -> None:
    """Refuse what is no `--option value` of the known ones."""
    odd = [name for name in options[::2] if name not in known] or list(options[-1:]) * (len(options) % 2)
    if odd:
        raise ConfigError(
            f"no option {odd[0]!r} with a value here",
            where="options",
            hint=f"known: {', '.join(sorted(known))}",
        )


def _files(path: Path) -> list[tuple[Path, Path]]:
    """Return (name inside, file) of a file or of everything in a folder."""
    if path.is_file():
        return [(Path(path.name), path)]
    found = [(file.relative_to(path), file) for file in sorted(path.rglob("*")) if file.is_file()]
    if not found:
        raise ArtifactError(
            "there is nothing to store", where=str(path), hint="name a file or a folder with files"
        )
    return found
