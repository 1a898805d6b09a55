"""A campaign as MLflow runs: campaign -> round -> training seed, nested.

Written from the journal and the records, never read back: what was sent is noted in `tracking.json`, so a
tracker that was away is caught up by calling it again, and each thing is sent once. MLflow's own ids are all
that file holds; removing it starts new runs.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from autosft.artifacts import Artifact, ArtifactStore, write_atomic
from autosft.config import campaign_settings, config_from_json
from autosft.errors import AutosftError, CampaignError, ConfigError
from autosft.memory import Entry, read_journal
from autosft.memory.transcripts import read_exchanges
from autosft.meta.campaign import CONFIG, Facts, read_facts
from autosft.meta.history import History, RoundFacts
from autosft.types import SeedReceipt

STATE = "tracking.json"
_PARAMS = 100  # most that MLflow takes in one request
_METRICS = 1000
_TEXT = 5000


def default_uri(out: Path) -> str:
    """Return the local store that campaigns side by side share: SQLite beside their folders."""
    return f"sqlite:///{out.absolute().parent / 'mlflow.db'}"


def track(out: Path, uri: str | None = None, say: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Send what MLflow does not have yet.

    Args:
        out: Campaign folder, running or finished.
        uri: Tracking server or store; `default_uri` if None.
        say: Called with a line for each run that is written.

    Returns:
        `uri`, `experiment`, `runs` (how many exist now), `sent` (how many were written this time).

    Raises:
        CampaignError: There is no campaign, or the tracker cannot be reached or refuses.
        ConfigError: MLflow is not installed.
    """
    facts = read_facts(out)
    uri = uri or default_uri(out)
    try:
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
    except ImportError:
        raise ConfigError(
            "tracking needs the package mlflow", where="tracking", hint="pip install 'autosft[tracking]'"
        ) from None
    try:
        return _Sender(MlflowClient(tracking_uri=uri), out, facts, uri, say or (lambda line: None)).send()
    except AutosftError:
        raise
    except (MlflowException, OSError, ValueError) as error:
        raise CampaignError(
            f"the tracker failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
            where=uri,
            hint="the campaign is not affected; run `autosft track DIR` when it is back",
        ) from None
    except Exception as error:  # SQLAlchemy, urllib3 and requests raise kinds of their own.
        if type(error).__module__.split(".")[0] not in ("sqlalchemy", "requests", "urllib3", "alembic"):
            raise
        raise CampaignError(
            f"the tracker cannot be used ({type(error).__name__})",
            where=uri,
            hint="the campaign is not affected; run `autosft track DIR` when it is back",
        ) from None


class _Sender:
    """One pass over a campaign."""

    def __init__(self, client: Any, out: Path, facts: Facts, uri: str, say: Callable[[str], None]) -> None:
        self.client, self.out, self.facts, self.uri, self.say = client, out, facts, uri, say
        self.entries: list[Entry] = read_journal(out)
        self.store = ArtifactStore(out / "artifacts")
        self.history = History(self.entries, self.store)
        self.times = {(entry.kind, entry.key): int(entry.time * 1000) for entry in self.entries}
        self.state = self._read_state()
        self.sent = 0

    def send(self) -> dict[str, Any]:
        experiment = self._experiment()
        top = self._campaign_run(experiment)
        for facts in self.history.rounds:
            settled = facts.claim is not None or not facts.measured
            key = f"round {facts.round}"
            if self._done(key) and not settled:
                continue
            if self._done(key) == "settled":
                continue
            run = self._round_run(experiment, top, facts)
            for receipt in facts.receipts:
                self._seed_run(experiment, run, facts, receipt)
            self._remember(key, run, "settled" if settled else "open")
            self._points(top, facts)
        self._exchanges(experiment)
        if any(entry.kind == "campaign.stopped" for entry in self.entries):
            self._close(top)
        runs = len(self.state["runs"])
        return {"uri": self.uri, "experiment": self.facts.name, "runs": runs, "sent": self.sent}

    def _read_state(self) -> dict[str, Any]:
        try:
            state = orjson.loads((self.out / STATE).read_bytes())
            if state["uri"] == self.uri and state["campaign"] == self.facts.settings_fingerprint:
                return dict(state)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # none yet, damaged, or of another tracker: everything is sent anew
        return {"uri": self.uri, "campaign": self.facts.settings_fingerprint, "runs": {}, "done": {}}

    def _remember(self, key: str, run: str, how: str = "settled") -> None:
        self.state["runs"][key], self.state["done"][key] = run, how
        write_atomic(self.out / STATE, orjson.dumps(self.state, option=orjson.OPT_INDENT_2))

    def _flag(self, key: str) -> None:
        self.state["done"][key] = "settled"
        write_atomic(self.out / STATE, orjson.dumps(self.state, option=orjson.OPT_INDENT_2))

    def _done(self, key: str) -> str:
        return str(self.state["done"].get(key, ""))

    def _experiment(self) -> str:
        name = self.facts.name
        found = self.client.get_experiment_by_name(name)
        if found is not None:
            return str(found.experiment_id)
        place = None
        if self.uri.startswith("sqlite:"):
            place = (self.out.absolute().parent / "mlartifacts").as_uri()
        return str(self.client.create_experiment(name, artifact_location=place))

    def _run(self, experiment: str, key: str, name: str, parent: str | None, began: int | None) -> str:
        known = self.state["runs"].get(key)
        if known is not None:
            return str(known)
        tags = {"autosft.key": key, "autosft.campaign": str(self.out.absolute())}
        if parent is not None:
            tags["mlflow.parentRunId"] = parent
        run = self.client.create_run(experiment, start_time=began, tags=tags, run_name=name)
        self.sent += 1
        self.say(f"{key}: run {run.info.run_id}")
        self._remember(key, run.info.run_id, "open")
        return str(run.info.run_id)

    def _campaign_run(self, experiment: str) -> str:
        began = int(self.entries[0].time * 1000) if self.entries else None
        run = self._run(experiment, "campaign", self.facts.name, None, began)
        if self._done("campaign") == "open" and not self._done("campaign params"):
            config = config_from_json(orjson.loads((self.out / CONFIG).read_bytes()))
            params = {key: str(value)[:_TEXT] for key, value in campaign_settings(config).items()}
            self._params(run, {**params, "budget_tokens": str(self.facts.budget_tokens),
                               "optimizer_steps": str(self.facts.optimizer_steps),
                               "base_fingerprint": self.facts.base_fingerprint,
                               "settings_fingerprint": self.facts.settings_fingerprint})  # fmt: skip
            self._dataset(run, "pool", self.facts.pool, {"rows": self.facts.pool_rows})
            self._flag("campaign params")
        return run

    def _round_run(self, experiment: str, top: str, facts: RoundFacts) -> str:
        number = str(facts.round)
        key = f"round {number}"
        run = self._run(experiment, key, key, top, self.times.get(("hypothesis.submitted", number)))
        data = facts.data
        metrics = {
            "score": facts.score,
            "ci_low": data["ci_low"],
            "ci_high": data["ci_high"],
            "delta_parent": data.get("delta_parent"),
            "train_tokens": data["train_tokens"],
            "loss_tokens": data["loss_tokens"],
            "passes": data["passes"],
            "rows": data.get("rows"),
            **{f"leaf/{leaf}": score for leaf, score in (data.get("leaf_scores") or {}).items()},
            **{f"predicted/{leaf}": delta for leaf, delta in (data.get("predicted") or {}).items()},
        }
        self._log(run, metrics, 0)
        if not self._done(f"{key} params"):
            self._params(run, {
                "parent": str(facts.parent), "hypothesis": str(data["hypothesis_id"]),
                "recipe": facts.recipe.fingerprint, "build": facts.build,
                "kinds": ", ".join(data["kinds"])[:_TEXT], "families": ", ".join(data["families"]),
            })  # fmt: skip
            self._dataset(run, f"build of round {number}", facts.build, {"rows": data.get("rows")})
            self.client.log_text(
                run, orjson.dumps(facts.recipe.to_json(), option=orjson.OPT_INDENT_2).decode(), "recipe.json"
            )
            self.client.log_text(
                run, orjson.dumps(dict(data), option=orjson.OPT_INDENT_2).decode(), "round.json"
            )
            self._flag(f"{key} params")
        verdict = facts.claim["verdict"] if facts.claim and facts.claim["attempted"] else data["verdict"]
        self.client.set_tag(run, "verdict", str(verdict)[:_TEXT])
        self.client.set_tag(run, "mlflow.note.content", str(data.get("headline", ""))[:_TEXT])
        ended = self.times.get(("claim.decided", number)) or self.times.get(("round.recorded", number))
        self.client.set_terminated(run, "FINISHED" if facts.measured else "FAILED", ended)
        return run

    def _seed_run(self, experiment: str, parent: str, facts: RoundFacts, receipt: SeedReceipt) -> None:
        key = f"round {facts.round} seed {receipt.seed}"
        if self._done(key) == "settled":
            return
        run = self._run(experiment, key, key, parent, None)
        try:
            train = self.store.load("train", receipt.train) if receipt.train else None
        except AutosftError:
            train = None  # pruned or damaged: the receipt still says what happened
        if train is not None:
            self._curves(run, train)
            self._params(run, {f"train/{k}": str(v) for k, v in train.data.items()})
            self._log(run, {f"measured/{k}": v for k, v in train.measured.items()}, 0)
        seeds = facts.data.get("seed_scores") or []
        own = [r.seed for r in facts.seeds]
        if receipt.seed in own and len(seeds) == len(own):
            self._log(run, {"score": seeds[own.index(receipt.seed)]}, 0)
        self.client.set_tag(run, "fresh", str(receipt.seed not in own).lower())
        self.client.set_terminated(run, "FINISHED" if receipt.status == "ok" else "FAILED")
        self._remember(key, run)

    def _curves(self, run: str, train: Artifact) -> None:
        """Loss over all sources and by source, learning rate and gradient norm, by optimiser step."""
        import pyarrow.parquet as pq

        table = pq.read_table(train.file("loss_curve.parquet")).to_pylist()
        steps: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
        for row in table:
            steps[int(row["step"])].append(row)
        points: list[tuple[str, float, int]] = []
        for step, rows in steps.items():
            tokens = sum(r["loss_tokens"] for r in rows) or 1
            points.append(
                ("loss", sum(r["loss"] * r["loss_tokens"] for r in rows if r["loss_tokens"]) / tokens, step)
            )
            points += [("lr", rows[0]["lr"], step), ("grad_norm", rows[0]["grad_norm"], step)]
            points += [(f"loss/{r['source']}", r["loss"], step) for r in rows if r["source"]]
        self._send(run, points)

    def _points(self, top: str, facts: RoundFacts) -> None:
        best = self.history.incumbent
        self._log(top, {
            "score": facts.score, "ci_low": facts.data["ci_low"], "ci_high": facts.data["ci_high"],
            "incumbent": None if best is None else best.score,
            **{f"leaf/{leaf}": score for leaf, score in (facts.data.get("leaf_scores") or {}).items()},
        }, facts.round)  # fmt: skip

    def _exchanges(self, experiment: str) -> None:
        """One trace an exchange with a language model."""
        exchanges = [e for e in read_exchanges(self.out) if not self._done(f"trace {e.fingerprint}")]
        if not exchanges:
            return
        import mlflow

        mlflow.set_tracking_uri(self.uri)
        mlflow.set_experiment(experiment_id=experiment)
        for exchange in exchanges:
            request = exchange.data["request"]
            span = mlflow.start_span_no_context(
                name=str(request.get("role", "exchange")),
                inputs=request,
                attributes={str(k): v for k, v in exchange.measured.items()},
            )
            span.end(outputs=exchange.data["outcome"])
            self.state["done"][f"trace {exchange.fingerprint}"] = "settled"
        mlflow.flush_trace_async_logging()
        write_atomic(self.out / STATE, orjson.dumps(self.state, option=orjson.OPT_INDENT_2))

    def _close(self, top: str) -> None:
        stops = [entry for entry in self.entries if entry.kind == "campaign.stopped"]
        last = stops[-1]
        if self._done("campaign") == f"stopped {last.key}":
            return
        claimed = last.data.get("claimed_best")
        self.client.set_tag(top, "stop", str(last.data.get("stop", "")))
        self.client.set_tag(top, "claimed_best", str(claimed))
        self.client.set_terminated(top, "FINISHED", int(last.time * 1000))
        self._remember("campaign", top, f"stopped {last.key}")

    def _dataset(self, run: str, name: str, digest: str, profile: Mapping[str, Any]) -> None:
        from mlflow.entities import Dataset, DatasetInput, InputTag

        found = Dataset(
            name=name,
            digest=digest,
            source_type="autosft",
            source=orjson.dumps({"campaign": self.out.name}).decode(),
            profile=orjson.dumps(dict(profile)).decode(),
        )
        self.client.log_inputs(run, [DatasetInput(found, [InputTag("mlflow.data.context", "training")])])

    def _params(self, run: str, params: Mapping[str, str]) -> None:
        from mlflow.entities import Param

        pairs = [Param(key, value) for key, value in params.items()]
        for start in range(0, len(pairs), _PARAMS):
            self.client.log_batch(run, params=pairs[start : start + _PARAMS])

    def _log(self, run: str, metrics: Mapping[str, Any], step: int) -> None:
        self._send(run, ((k, v, step) for k, v in metrics.items() if isinstance(v, (int, float))))

    def _send(self, run: str, points: Iterable[tuple[str, Any, int]]) -> None:
        from mlflow.entities import Metric

        now = int(self.entries[-1].time * 1000)
        known = [Metric(_name(k), float(v), now, step) for k, v, step in points if v is not None]
        for start in range(0, len(known), _METRICS):
            self.client.log_batch(run, metrics=known[start : start + _METRICS])


def _name(text: str) -> str:
    """Return a metric name as MLflow allows it."""
    return "".join(c if c.isalnum() or c in "_-. /" else "_" for c in text)[:250]
