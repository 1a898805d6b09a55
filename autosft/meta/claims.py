"""The claimed best (I12): a new incumbent is measured again with fresh training seeds before anything is
claimed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from autosft.evals import Claim, ClaimRule, ScoreTable, campaign_score, estimate, seed_noise_floor
from autosft.meta.campaign import Campaign
from autosft.meta.history import History, RoundFacts
from autosft.meta.record import verdict_text
from autosft.meta.runs import stored_receipt
from autosft.meta.scores import load_table
from autosft.types import Event, SeedReceipt

# Fresh seeds lie apart from any a user would list; the same ones serve every claim, never a selection.
FIRST_FRESH_SEED = 1_000_000

RunSeeds = Callable[[int, str, str, tuple[int, ...]], list[SeedReceipt]]


def fresh_seeds(campaign: Campaign) -> tuple[int, ...]:
    """Return the training seeds that re-measure candidates; none of them ever takes part in a selection."""
    n = campaign.config.campaign.claim_seeds
    first = max(FIRST_FRESH_SEED, max(campaign.seeds) + 1)
    return tuple(range(first, first + n))


def decide_claim(
    campaign: Campaign,
    number: int,
    history: History,
    run_seeds: RunSeeds,
    emit: Callable[[Event], None],
) -> str:
    """Decide whether round `number` becomes the claimed best, and journal it; return a line for people.

    Args:
        campaign: The campaign.
        number: A recorded round.
        history: The record up to and including it.
        run_seeds: Trains and scores seeds of a submitted build.
        emit: Receives progress.
    """
    if campaign.journal.find("claim.decided", str(number)) is not None:
        return ""
    facts = history.rounds[number]
    why_not = _not_worth(campaign, facts, history)
    if why_not is not None:
        campaign.journal.append("claim.decided", str(number), _untested(facts, why_not))
        return ""
    emit(Event("stage", "re-measuring the new incumbent with fresh seeds", number))
    receipts = run_seeds(number, facts.recipe.fingerprint, facts.build, fresh_seeds(campaign))
    failed = [r for r in receipts if r.status != "ok"]
    if failed:
        causes = "; ".join(f"seed {r.seed}: {r.cause}" for r in failed)
        campaign.journal.append(
            "claim.decided", str(number), _untested(facts, f"fresh seeds failed: {causes}")
        )
        return f"not claimed: fresh seeds failed ({causes})"
    data = _test(campaign, facts, history, receipts)
    campaign.journal.append("claim.decided", str(number), data)
    return str(data["verdict"])


def _rule(campaign: Campaign) -> ClaimRule:
    settings = campaign.config.campaign
    return ClaimRule(campaign.facts.planned_claims, settings.alpha, max(1, settings.claim_seeds))


def _attempts(history: History) -> int:
    return sum(1 for r in history.rounds if r.claim is not None and r.claim["attempted"])


def _table(campaign: Campaign, receipts: tuple[SeedReceipt, ...] | list[SeedReceipt]) -> ScoreTable:
    return load_table(campaign.store, receipts, campaign.items, list(campaign.facts.primary))


def _reference(campaign: Campaign, history: History) -> tuple[int, ScoreTable]:
    """Return the claimed best and a measurement of it that no selection touched."""
    number = history.claimed_best
    assert number is not None
    facts = history.rounds[number]
    return number, _table(campaign, facts.fresh or facts.seeds)


def _not_worth(campaign: Campaign, facts: RoundFacts, history: History) -> str | None:
    if facts.round == 0:
        return "reference"
    if not facts.measured:
        return "not measured"
    best = history.incumbent
    if best is None or best.round != facts.round:
        return "not the incumbent"
    if campaign.config.campaign.claim_seeds == 0:
        return "claims are switched off (campaign.claim_seeds=0)"
    attempt = _attempts(history)
    if _rule(campaign).level(attempt) == 0.0:
        return f"the {campaign.facts.planned_claims} planned tests are used up"
    _, claimed = _reference(campaign, history)
    noise = seed_noise_floor([_table(campaign, r.seeds) for r in history.rounds if r.measured])
    if not _rule(campaign).worth_testing(_table(campaign, facts.seeds), claimed, noise, attempt=attempt):
        return "the gain over the claimed best is too small to pass a test"
    return None


def _untested(facts: RoundFacts, why: str) -> dict[str, Any]:
    granted = facts.round == 0 and facts.measured
    verdict = "reference" if granted else f"not tested: {why}"
    return {"attempted": False, "granted": granted, "verdict": verdict, "fresh": [], "score_all": None}


def _test(
    campaign: Campaign, facts: RoundFacts, history: History, receipts: list[SeedReceipt]
) -> dict[str, Any]:
    against, claimed = _reference(campaign, history)
    fresh = _table(campaign, receipts)
    tables = [_table(campaign, r.seeds) for r in history.rounds if r.measured]
    noise = seed_noise_floor([*tables, fresh])
    attempt = _attempts(history)
    claim: Claim = _rule(campaign).test(
        fresh, claimed, attempt=attempt, selection_seeds=campaign.seeds, noise=noise
    )
    everything = estimate(_table(campaign, [*facts.seeds, *receipts]), noise)
    return {
        "attempted": True,
        "granted": claim.granted,
        "against": against,
        "attempt": attempt,
        "alpha": claim.alpha,
        "comparison": asdict(claim.comparison),
        "verdict": f"{'claimed' if claim.granted else 'not claimed'}: fresh seeds "
        + verdict_text(claim.comparison, f"round {against}"),
        "fresh": [stored_receipt(r, campaign) for r in receipts],
        "fresh_score": campaign_score(fresh),
        "first_seeds_score": facts.data["score"],
        "score_all": everything.score,
        "ci_low_all": everything.ci_low,
        "ci_high_all": everything.ci_high,
    }
