"""What happens at each node of the meta graph: functions from records to a record.

Every node is idempotent: it names its result by its inputs, returns the record that is there, and writes
its own last. A node that runs again after a crash therefore repeats nothing that was finished.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from autosft.actions import build as build_recipe
from autosft.errors import (
    ActionError,
    AutosftError,
    BudgetError,
    ExecutorError,
    ReplayError,
    SpendCapError,
)
from autosft.executor import execute
from autosft.identity import fingerprint
from autosft.meta.aa import SEED_ONLY, write_reseed
from autosft.meta.agents import Agents
from autosft.meta.approval import await_word, record_word, wait_while_held, word_of
from autosft.meta.campaign import Campaign
from autosft.meta.claims import decide_claim, fresh_seeds
from autosft.meta.deciding import decision_entry, rejected_analysts, write_decision
from autosft.meta.decision import baseline_hypothesis, decided_hypothesis, decision_headline
from autosft.meta.history import History
from autosft.meta.jobs import job_queue
from autosft.meta.record import write_round
from autosft.meta.revise import close_fork, open_fork
from autosft.meta.runs import find_receipts, store_receipts
from autosft.meta.sources import gather_sources
from autosft.meta.state import State
from autosft.meta.submit import check_submission
from autosft.subagents import Abstention, Analyst, Proposal, analysts_for, parse_reply
from autosft.subagents.evidence import Sources
from autosft.subagents.menu import requests
from autosft.types import Event, Recipe, SeedReceipt

Emit = Callable[[Event], None]
# A first guess of a run's device time for the spend cap, before any run was measured.
FIRST_RUN_DEVICE_S = 60.0


class Nodes:
    """The nodes, bound to an open campaign.

    Args:
        campaign: The open campaign.
        emit: Receives events for people; must not raise.
    """

    def __init__(self, campaign: Campaign, emit: Emit) -> None:
        self._c = campaign
        self._emit = emit
        # Under the policy `llm`, agents answer through an office; None for every other policy.
        self._agents = Agents(campaign) if campaign.config.policy.name == "llm" else None
        office = self._agents.office if self._agents is not None else None
        self._analysts: dict[str, Analyst] = {a.name: a for a in analysts_for(campaign.config, office)}
        self._requests = requests(campaign.config.llm) if self._agents is not None else {}

    @property
    def analysts(self) -> tuple[str, ...]:
        """Names of the analysts at work."""
        return tuple(self._analysts)

    def analysts_of(self, number: int) -> tuple[str, ...]:
        """Names of the analysts that plan a round; none for a rival, whose plan is the revision's."""
        fork = self.history().open_fork
        rival = fork is not None and fork.rival == number
        return () if rival or self._c.config.policy.name == SEED_ONLY else self.analysts

    @property
    def last_round(self) -> int:
        """Number of the last planned round."""
        return self._c.config.campaign.rounds

    def history(self) -> History:
        """Return what is recorded so far."""
        return History(self._c.journal, self._c.store)

    def next_round(self) -> int:
        """Return the first round that is not recorded."""
        return self.history().next_round

    def pending_claim(self) -> int | None:
        """Return the round that is recorded but whose claim is not decided, if any."""
        return self.history().pending_claim

    # --- one round, in order

    def observe(self, state: State) -> dict[str, Any]:
        """Open the round: say where it starts from, and collect every analyst's evidence on the parent."""
        number, history = state["round"], self.history()
        self._heed(number)
        parent = history.parent_for(number)
        assert parent is not None
        text = f"from round {parent.round} (score {parent.score:.3f})"
        self._emit(Event("round_start", text, number, {"parent": parent.round, "rounds": self.last_round}))
        sources = None
        if self._agents is not None and self.analysts_of(number):
            agents = self._agents
            line = agents.trees.revise(number, lambda: agents.sources(number, parent, history))
            if line:
                self._emit(Event("note", line, number))
        for analyst in (self._analysts[name] for name in self.analysts_of(number)):
            key = self._evidence_key(number, analyst.name, history)
            if self._c.store.find("evidence", key) is None:
                sources = sources or gather_sources(self._c, number, parent, history)
                evidence = analyst.collect(sources, history.attempts(analyst.name, parent.round))
                with self._c.store.create(
                    "evidence", key, {"analyst": analyst.name, "round": number}
                ) as step:
                    step.data = evidence.to_json()
        return {"replies": None, "decision": "", "recipe": "", "build": "", "status": "ok"}

    def analyst(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Let one analyst turn its evidence into a proposal or an abstention."""
        number, analyst = task["round"], self._analysts[task["name"]]
        evidence_key = self._evidence_key(number, analyst.name, self.history())
        key = fingerprint([evidence_key, self._c.config.to_json()["policy"]])
        history = self.history()
        if self._c.store.find("reply", key) is None:
            evidence = analyst.read(self._c.store.load("evidence", evidence_key).data)
            try:
                answer = analyst.propose(evidence, lambda: self._sources(number, history))
                reply: Proposal | Abstention = parse_reply(answer, self._requests)
            except (SpendCapError, ReplayError):
                raise
            except AutosftError as error:
                reply = Abstention(analyst=analyst.name, reason=f"unusable reply: {error}"[:600])
            with self._c.store.create("reply", key, {"analyst": analyst.name, "round": number}) as step:
                step.data = reply.model_dump(mode="json")
        return {"replies": [key]}

    def decide(self, state: State) -> dict[str, Any]:
        """Try every proposal on the parent's pool and choose; nothing to choose ends the campaign."""
        number, history = state["round"], self.history()
        rejected = rejected_analysts(self._c.journal, number)
        key = fingerprint([state["replies"], history.digest, *([rejected] if rejected else [])])
        if self._c.store.find("decision", key) is None:
            if self._c.config.policy.name == SEED_ONLY:
                write_reseed(self._c, key, number, history)
            else:
                write_decision(
                    self._c, self._agents, self._requests, key, number, state["replies"], history, rejected
                )
        decision = self._c.store.load("decision", key)
        entry = decision_entry(self._c.journal, number, key)
        self._c.journal.append("decision.taken", entry, {"decision": key, **decision_headline(decision)})
        for line in decision.data["lines"]:
            self._emit(Event("note", line, number))
        if not decision.data["accepted"]:
            why = "every proposal was rejected" if rejected else "no analyst has a new proposal"
            return {"decision": key, "stop": why}
        return {"decision": key, "recipe": decision.data["recipe_fingerprint"], "stop": ""}

    def approve(self, state: State) -> dict[str, Any]:
        """Wait for the operator's word where `campaign.approve` asks for it.

        A rejected decision is taken anew among the proposals that are left.
        """
        key, number = state["decision"], state["round"]
        word = word_of(self._c.journal, key)
        if word is None:
            if not self._c.config.campaign.approve:
                return {"recipe": state["recipe"]}
            from langgraph.types import interrupt

            given = interrupt({"round": number, "decision": key})
            record_word(self._c.folder, self._c.journal, key, given)
            word = given
        text = "approved" if word["approved"] else f"rejected: {word['reason']}"
        self._emit(Event("note", f"decision {text} ({word['by']})", number))
        return {"recipe": state["recipe"] if word["approved"] else ""}

    def await_word(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the operator's word on a decision, when it comes."""
        number = int(question["round"])
        return await_word(self._c.folder, question, lambda text: self._emit(Event("note", text, number)))

    def _heed(self, number: int) -> None:
        wait_while_held(self._c.folder, lambda text: self._emit(Event("note", text, number)))

    def register(self, state: State) -> dict[str, Any]:
        """Write the round's hypothesis down before anything is built or trained (I4)."""
        number = max(0, state["round"])
        self._heed(number)
        if number == 0:
            self._emit(Event("round_start", "the untouched pool", 0, {"rounds": self.last_round}))
            hypothesis = baseline_hypothesis(self._base_recipe())
        else:
            hypothesis = decided_hypothesis(number, self._c.store.load("decision", state["decision"]))
        self._c.hypotheses.register(hypothesis)
        if number > 0:
            self._emit(Event("stage", f"hypothesis {hypothesis.id}: {hypothesis.claim}", number))
        return {"round": number, "recipe": hypothesis.recipe, "status": "ok"}

    def build(self, state: State) -> dict[str, Any]:
        """Materialise the recipe; a refusal abandons the round, not the campaign."""
        number, recipe = state["round"], self._recipe(state)
        self._heed(number)
        try:
            built = build_recipe(
                recipe,
                self._c.pool,
                self._c.ctx,
                benchmarks=self._c.benchmarks,
                store=self._c.store,
                train=self._c.config.trainer,
                seeds=(*self._c.seeds, *fresh_seeds(self._c)),
                guard=self._c.guard,
            )
        except (ActionError, BudgetError) as error:
            self._emit(Event("note", f"not built: {error}", number))
            if number == 0:
                raise
            return {"build": "", "status": f"refused: {error}"}
        facts = built.data
        text = (
            f"built {facts['rows']:,} rows, {facts['train_tokens']:,} tokens, {facts['passes']:.2f} passes, "
            f"{sum(facts['contaminated'].values())} contaminated rows dropped"
        )
        self._emit(Event("stage", text, number))
        for warning in facts["warnings"]:
            self._emit(Event("note", f"warning: {warning}", number))
        return {"build": built.fingerprint, "status": "ok"}

    def guard(self, state: State) -> dict[str, Any]:
        """Check what must hold before a run may start (I1, I2, I3, I5), then freeze the hypothesis (I4)."""
        check_submission(self._c, state["round"], state["recipe"], state["build"])
        return {"status": "ok"}

    def execute(self, state: State) -> dict[str, Any]:
        """Train, convert, generate and score, once a seed."""
        number = state["round"]
        self._heed(number)
        run = functools.partial(self.run_seeds, number, state["recipe"], state["build"], self._c.seeds)
        receipts = run()
        if self._agents is not None:
            receipts, note = self._agents.look_after(number, receipts, run)
            self._emit(Event("note", f"executor: {note}", number))
        failed = [r for r in receipts if r.status != "ok"]
        if not failed:
            return {"status": "ok"}
        details = "; ".join(f"seed {r.seed}: {r.cause} ({r.detail})" for r in failed)
        self._emit(Event("note", f"abandoned: {details}", number))
        if number == 0:
            raise ExecutorError(
                f"the untouched pool could not be measured: {details}",
                where="round 0",
                hint="without it there is nothing to compare with; see the campaign's `logs` folder",
            )
        # Paths and wall times stay out of the record: equal campaigns have equal records.
        causes = sorted({r.cause for r in failed})
        return {"status": f"{', '.join(causes)} in seeds {', '.join(str(r.seed) for r in failed)}"}

    def record(self, state: State) -> dict[str, Any]:
        """Write the round down: scores, leaf scores, diffs, the hypothesis resolved."""
        number = state["round"]
        facts = write_round(self._c, state, self._recipe(state), self.history())
        self._emit(Event("round_done", facts["headline"], number, facts))
        return {"stop": ""}

    def claim(self, state: State) -> dict[str, Any]:
        """Re-measure a new incumbent with fresh seeds and claim it if the interval allows (I12)."""
        number = state["round"]
        self._heed(number)
        text = decide_claim(self._c, number, self.history(), self.run_seeds, self._emit)
        if text:
            self._emit(Event("claim", text, number))
        return {"round": number}

    def revise(self, state: State) -> dict[str, Any]:
        """Close and open forks (see `revise.py`), then go on to the next round or stop."""
        number, c = state["round"], self._c
        if c.config.components.revision:
            closed = close_fork(c.journal, self.history())
            trigger = open_fork(c.journal, self.history(), self.last_round)
            if closed:
                self._emit(Event("note", closed, number))
            if trigger is not None:
                text = f"revision ({trigger.name}): {trigger.text}; a rival plan runs beside the continuation"
                self._emit(Event("note", text, number))
        return {"round": number + 1, "stop": self.stop_reason(number)}

    # --- shared by nodes

    def run_seeds(
        self, number: int, recipe: str, build: str, seeds: tuple[int, ...], forward_tokens: int = 0
    ) -> list[SeedReceipt]:
        """Execute training seeds of a submitted build under the spend caps; finished stages are reused.

        `forward_tokens` bounds a forward pass where memory is short; results stay the same.
        """
        c = self._c
        c.hypotheses.require_submitted(number, recipe)
        known = find_receipts(c, build, seeds)
        if known is not None:
            return known
        need = FIRST_RUN_DEVICE_S if not c.spend.spent.get("device_s") else self._mean_run_s()
        key = c.spend.reserve(f"round{number}", "device_s", need * len(seeds), where=f"round {number}")
        receipts = execute(
            c.facts.base,
            c.facts.base_fingerprint,
            c.store.load("build", build),
            c.items_path,
            seeds,
            c.config.trainer,
            c.config.generate,
            c.store,
            c.config.executor.worker_slots(len(seeds), c.config.trainer.ranks),
            lambda event: self._emit(replace(event, round=number)),
            retries=c.config.executor.retries,
            threads=c.config.executor.threads_per_worker,
            logs=c.folder / "logs",
            forward_tokens=forward_tokens,
            queue=job_queue(c.folder, c.config),
        )
        c.spend.settle(key, sum(float(r.summary.get("device_s", 0.0)) for r in receipts))
        store_receipts(c, build, receipts)
        return receipts

    def _mean_run_s(self) -> float:
        done = [a for a in self.history().rounds if a.status == "ok"]
        runs = max(1, sum(len(a.seeds) for a in done))
        return self._c.spend.spent["device_s"] / runs

    def _base_recipe(self) -> Recipe:
        c = self._c
        return Recipe(c.facts.pool, (), c.facts.budget_tokens, c.config.pool.order, 0)

    def _recipe(self, state: State) -> Recipe:
        if state["round"] == 0:
            return self._base_recipe()
        return Recipe.from_json(self._c.store.load("decision", state["decision"]).data["recipe"])

    def _sources(self, number: int, history: History) -> Sources:
        """Return what an analyst that asks a language model may look into."""
        parent = history.parent_for(number)
        assert parent is not None and self._agents is not None
        return self._agents.sources(number, parent, history)

    def _evidence_key(self, number: int, analyst: str, history: History) -> str:
        return fingerprint([number, analyst, history.digest, self._c.facts.settings_fingerprint])

    def stop_reason(self, number: int) -> str:
        """Return why the campaign ends after round `number`, or ''; before round 0 (-1) it never does."""
        if number < 0:
            return ""
        c, history = self._c, self.history()
        settings, best = c.config.campaign, history.incumbent
        if number >= self.last_round:
            return f"all {self.last_round} rounds are done"
        target, reached = settings.target_score, best.score if best is not None else None
        if target is not None and reached is not None and reached >= target:
            return f"the incumbent reached the target score {target:g}"
        if settings.patience is not None and best is not None and number - best.round >= settings.patience:
            return f"no new incumbent for {settings.patience} rounds"
        return ""
