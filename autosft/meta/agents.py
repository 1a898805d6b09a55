"""The policy `llm` at the nodes: the meta agent's choice, requests fulfilled, the tree revised.

Everything here is asked for through the office and recorded; a node that runs again gets the same replies.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from autosft.artifacts import ArtifactStore
from autosft.errors import AutosftError, ProposalError, ReplayError, SpendCapError
from autosft.llm import Caller, Part, load_prices, render, shown
from autosft.llm.endpoints import ROLES, endpoint_for
from autosft.llm.text import as_json, table
from autosft.memory.transcripts import Transcripts
from autosft.meta.campaign import Campaign
from autosft.meta.decide import Choice, Trial, calibration, try_proposal
from autosft.meta.history import History, RoundFacts
from autosft.meta.sources import gather_sources
from autosft.meta.trees import TreeKeeper
from autosft.pool import Pool
from autosft.subagents import Proposal, answering, programs, writing
from autosft.subagents.conversation import Abstained, Question
from autosft.subagents.evidence import Sources
from autosft.subagents.menu import requests
from autosft.subagents.office import Office
from autosft.subagents.proposal import ProposedAction
from autosft.subagents.tools import read_args
from autosft.subagents.triage import triage
from autosft.subagents.workshop import Workshop
from autosft.types import ActionCall, Recipe, SeedReceipt

#: Forward passes of a run that the executor role starts again with less memory, in tokens.
MICRO_BATCH_TOKENS = 256
FULFIL: Mapping[str, Callable[[ActionCall, Workshop], ActionCall]] = {
    "synthesize/written": writing.write,
    "resupervise/teacher": answering.teach,
    "resupervise/sampled": answering.sample,
    **programs.FULFIL,
}


class _Chosen(BaseModel):
    model_config = ConfigDict(extra="forbid")
    choose: Annotated[list[str], Field(min_length=1, max_length=2)]
    why: Annotated[str, Field(max_length=600)] = ""


class Agents:
    """The language-model agents of a campaign.

    Args:
        campaign: The open campaign.

    Raises:
        ConfigError: A role's settings or key are missing.
        SpendCapError: The price of a model is unknown (I9).
    """

    def __init__(self, campaign: Campaign) -> None:
        self._c = campaign
        settings, recorded = campaign.config.llm, campaign.config.llm.replay
        prices = load_prices(campaign.config.spend)
        for role in ROLES:
            endpoint = endpoint_for(settings, role)
            if recorded is None:
                # Before anything is trained: a missing key or price would only show rounds later.
                prices.of(endpoint.model)
                endpoint.key()
        source = None if recorded is None else ArtifactStore(Path(recorded) / "artifacts")
        caller = Caller(
            settings,
            campaign.spend,
            prices,
            Transcripts(campaign.store, source),
            offline=recorded is not None,
        )
        self.office = Office(caller, campaign.store, campaign.config)
        self.trees = TreeKeeper(campaign, self.office)
        self._lock = threading.Lock()
        self._sources: tuple[str, Sources] | None = None

    def sources(self, number: int, parent: RoundFacts, history: History) -> Sources:
        """Return what a round is planned from, with the newest tree; gathered once."""
        from dataclasses import replace

        with self._lock:
            key = f"{number} {history.digest}"
            if self._sources is None or self._sources[0] != key:
                found = replace(
                    gather_sources(self._c, number, parent, history), taxonomy=self.trees.newest()
                )
                self._sources = (key, found)
            return self._sources[1]

    # --- the decision

    def choose(
        self, number: int, parent: RoundFacts, pool: Pool, proposals: Sequence[Proposal], history: History
    ) -> Choice:
        """Try the proposals, let the meta agent rank them, fulfil what the chosen ones request.

        Raises:
            SpendCapError: The campaign's cap is used up.
            ReplayError: A replayed campaign lacks the recording.
        """
        ordered = sorted(proposals, key=lambda p: p.analyst)
        previews = {
            p.analyst: self._try(_without_requests(p, self._offered), parent.recipe, pool, history)
            for p in ordered
        }
        names, why = self._rank(number, ordered, previews, history)
        shop = self._workshop(number, parent, pool, history)
        by_name = {p.analyst: p for p in ordered}
        accepted: list[Trial] = []
        rejected: list[tuple[Trial, str]] = []
        most = 2 if self._c.config.components.analysis else 1
        for place, name in enumerate(names):
            wanted = place < len(why.chosen) or not accepted
            if len(accepted) >= most or not wanted:
                rejected.append((self._plain(by_name[name], previews[name]), f"not chosen: {why.text}"[:400]))
                continue
            trial = self._fulfilled(by_name[name], shop, parent.recipe, pool, history)
            if trial.refusal:
                rejected.append((trial, trial.refusal))
            elif accepted and trial.touched & accepted[0].touched:
                rejected.append((trial, "touches the same rows as the chosen proposal"))
            else:
                accepted.append(trial)
        return Choice(tuple(accepted), tuple(rejected))

    @property
    def _offered(self) -> set[str]:
        return set(requests(self._c.config.llm))

    def _try(self, proposal: Proposal | None, recipe: Recipe, pool: Pool, history: History) -> Trial | None:
        if proposal is None:
            return None
        c = self._c
        return try_proposal(
            proposal,
            recipe,
            pool,
            c.ctx,
            leaves=c.leaves,
            tried=history.effects,
            families=c.config.campaign.families,
        )

    def _plain(self, proposal: Proposal, preview: Trial | None) -> Trial:
        if preview is not None and preview.proposal.canonical == proposal.canonical:
            return preview
        return Trial(proposal, Recipe("", (), 1), "", (), frozenset(), self._gain(proposal))

    def _gain(self, proposal: Proposal) -> float:
        leaves = self._c.leaves
        return sum(proposal.predicted.get(leaf, 0.0) for leaf in leaves) / max(1, len(leaves))

    def _fulfilled(
        self, proposal: Proposal, shop: Workshop, recipe: Recipe, pool: Pool, history: History
    ) -> Trial:
        """Replace requests by actions on what was made for them, and try the result."""
        actions, failures = [], []
        for action in proposal.actions:
            if action.kind not in self._offered:
                actions.append(action)
                continue
            try:
                call = FULFIL[action.kind](action.call, shop)
            except (SpendCapError, ReplayError):
                raise
            except AutosftError as error:
                failures.append(str(error))
            else:
                actions.append(ProposedAction(kind=call.kind, params=dict(call.params)))
        if not actions:
            refusal = f"nothing came of its requests: {'; '.join(failures)}"[:400]
            return Trial(proposal, recipe, "", (), frozenset(), self._gain(proposal), refusal)
        trial = self._try(proposal.model_copy(update={"actions": actions}), recipe, pool, history)
        assert trial is not None
        return trial

    def _workshop(self, number: int, parent: RoundFacts, pool: Pool, history: History) -> Workshop:
        c = self._c
        first = next((r.checkpoint for r in parent.seeds if r.checkpoint), "")
        checkpoint = c.folder / first if first else None
        return Workshop(
            self.office, number, pool, c.ctx, self.trees.newest(), c.benchmarks, c.store, checkpoint
        )

    def _rank(
        self,
        number: int,
        proposals: Sequence[Proposal],
        previews: Mapping[str, Trial | None],
        history: History,
    ) -> tuple[list[str], _Why]:
        past = history.past()
        expected = {p.analyst: self._gain(p) * calibration(past, p.analyst) for p in proposals}
        names = sorted(expected, key=lambda name: (-expected[name], name))
        able = [name for name in names if not (previews[name] is not None and previews[name].refusal)]  # type: ignore[union-attr]
        if len(able) < 2:
            return [*able, *(n for n in names if n not in able)], _Why(able, "it ranks below by expectation")
        try:
            answer = self._ask_meta(number, proposals, previews, expected, able, past)
            chosen, text = list(dict.fromkeys(answer.choose)), shown(answer.why, 300)
        except Abstained as error:
            # The code's own ranking decides where the meta agent cannot.
            chosen, text = able[:1], f"ranked by calibrated expectation ({error})"
        rest = [name for name in names if name not in chosen]
        return [*chosen, *rest], _Why(chosen, text)

    def _ask_meta(
        self,
        number: int,
        proposals: Sequence[Proposal],
        previews: Mapping[str, Trial | None],
        expected: Mapping[str, float],
        able: Sequence[str],
        past: Sequence[Any],
    ) -> _Chosen:
        def parse(data: Mapping[str, Any]) -> _Chosen:
            answer: _Chosen = read_args(_Chosen, data)
            strange = [name for name in answer.choose if name not in able]
            if strange:
                raise ProposalError(
                    f"{strange[0][:60]!r} cannot be chosen", where="choose", hint=f"one of {list(able)}"
                )
            return answer

        listed = [self._shown(p, previews[p.analyst], expected) for p in proposals]
        parts = [Part("data_actions", f"Proposals (data):\n{as_json(listed)}")]
        rounds = [
            {
                "round": r.round,
                "kinds": " ".join(r.kinds),
                "score": r.score,
                "delta": r.delta,
                "outcome": r.outcome,
            }
            for r in past
        ]
        parts.append(Part("records", f"Rounds so far:\n{table(rounds[-40:])}"))
        question = Question(
            role="meta",
            round=number,
            purpose="deciding",
            instructions=render(
                "meta",
                setting=render("setting"),
                data_rule=render("data_rule"),
                names=", ".join(sorted(able)),
            ),
            parts=tuple(parts),
            schema=_Chosen.model_json_schema(),
            parse=parse,
        )
        return self.office.ask(question, "decide")

    def _shown(
        self, proposal: Proposal, preview: Trial | None, expected: Mapping[str, float]
    ) -> dict[str, Any]:
        diffs = [] if preview is None else preview.diffs
        quota = self._c.config.llm.synthesis_rows
        return {
            "analyst": proposal.analyst,
            "claim": shown(proposal.claim, 600),
            "actions": [
                {"kind": a.kind, "params": shown(as_json(dict(a.params)), 300)} for a in proposal.actions
            ],
            "predicted_gain": self._gain(proposal),
            "calibrated_gain": expected[proposal.analyst],
            "predicted": dict(list(proposal.predicted.items())[:12]),
            "refused": "" if preview is None else preview.refusal,
            "effects": [
                {
                    "kind": d.kind,
                    "added": d.rows_added,
                    "removed": d.rows_removed,
                    "changed": d.rows_changed,
                    "reweighted": d.rows_reweighted,
                    "moved": d.rows_moved,
                    "tokens_delta": d.tokens_delta,
                }
                for d in diffs
            ],
            "requests": [
                writing.estimate(a.call, quota) for a in proposal.actions if a.kind in self._offered
            ],
        }

    # --- training runs

    def look_after(
        self,
        number: int,
        receipts: list[SeedReceipt],
        again: Callable[[int], list[SeedReceipt]],
    ) -> tuple[list[SeedReceipt], str]:
        """Let the executor role read the runs' output and act on failed seeds, once.

        Args:
            number: Round.
            receipts: What the runs returned.
            again: Runs the failed seeds again; takes the most tokens of a forward pass, 0 for the usual.

        Returns:
            The receipts, and the role's note.
        """
        failed = [r.seed for r in receipts if r.status != "ok"]
        choices, note = triage(self.office, number, [self._output(r) for r in receipts], failed)
        if any(choice != "abandon" for choice in choices.values()):
            less = "micro_batch" in choices.values()
            receipts = again(MICRO_BATCH_TOKENS if less else 0)
        return receipts, note

    def _output(self, receipt: SeedReceipt) -> dict[str, Any]:
        """Return a run's output without wall times or paths, so that equal runs read the same."""
        data: dict[str, Any] = {"seed": receipt.seed, "status": receipt.status, "cause": receipt.cause}
        data["detail"] = shown(receipt.detail.split("; log:")[0], 300)
        data["summary"] = {
            name: receipt.summary[name]
            for name in ("train_tokens", "loss_tokens", "optimizer_steps", "final_loss", "truncated")
            if name in receipt.summary
        }
        if receipt.train:
            import pyarrow.parquet as pq

            points = 12 if self.office.player("executor") == "executor" else 200
            path = self._c.store.load("train", receipt.train).file("loss_curve.parquet")
            found = pq.read_table(path, columns=["step", "source", "loss"]).to_pylist()
            curve = [(line["step"], line["loss"]) for line in found if line["source"] == ""]
            data["loss"] = [
                f"step {s} loss {v:.3f}" for s, v in curve[:: max(1, len(curve) // points)] if v is not None
            ]
        return data


class _Why:
    """What the ranking rests on: the names chosen, and why."""

    def __init__(self, chosen: Sequence[str], text: str) -> None:
        self.chosen, self.text = list(chosen), text


def _without_requests(proposal: Proposal, offered: set[str]) -> Proposal | None:
    real = [action for action in proposal.actions if action.kind not in offered]
    return proposal.model_copy(update={"actions": real}) if real else None
