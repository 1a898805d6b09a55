"""Which proposal becomes the next round: dry runs, ranking by calibrated expectation, bundling of disjoint
ones.

Every proposal is applied to the parent's pool before it is ranked. One that changes nothing, leaves too
little to train on or equals something tried before is rejected with its reason; the rest compete on
predicted gain times how well its analyst's predictions have held so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from autosft.actions import ActionContext, apply_recipe
from autosft.errors import AutosftError
from autosft.pool import Pool
from autosft.subagents.evidence import PastRound
from autosft.subagents.proposal import Proposal
from autosft.types import ActionCall, ActionDiff, Recipe

# A new analyst's predictions count in full; each measured round pulls towards what was measured.
CALIBRATION_PRIOR_ROUNDS = 2.0
CALIBRATION_RANGE = (0.2, 1.5)
RIVAL_ACTIONS = 3
# Analysts' proposals that may share a round; the synthesis component's request comes on top.
BUNDLED = 2
SYNTHESIS = "synthesis"


@dataclass(frozen=True, slots=True)
class Trial:
    """A proposal applied to the parent's pool, without training.

    Attributes:
        proposal: The proposal.
        recipe: The recipe it would make.
        effect: Fingerprint of the pool it would train on.
        diffs: What its actions did, in order.
        touched: (row id, aspect) pairs it changes; aspects are content, weight and order.
        gain: Predicted change of the campaign score (mean over leaves), uncalibrated.
        refusal: Why it cannot be run, or ''.
    """

    proposal: Proposal
    recipe: Recipe
    effect: str
    diffs: tuple[ActionDiff, ...]
    touched: frozenset[tuple[str, str]]
    gain: float
    refusal: str = ""


def extend(recipe: Recipe, calls: Iterable[ActionCall]) -> Recipe:
    """Return the recipe with actions appended."""
    return Recipe(recipe.pool, (*recipe.actions, *calls), recipe.budget_tokens, recipe.order, recipe.seed)


def touched_rows(before: Pool, after: Pool) -> frozenset[tuple[str, str]]:
    """Return which rows differ and in what: existence or text (content), weight, place (order)."""
    old, new = _by_id(before), _by_id(after)
    changed = {(row_id, "content") for row_id in old.keys() ^ new.keys()}
    for row_id in old.keys() & new.keys():
        was, now = old[row_id], new[row_id]
        if was[0] != now[0]:
            changed.add((row_id, "weight"))
        if was[1:] != now[1:]:
            changed.add((row_id, "order"))
    return frozenset(changed)


def _by_id(pool: Pool) -> dict[str, tuple[float, str, float]]:
    """Return row id -> (weight, order key as text, jitter); as text, a missing key (NaN) equals itself."""
    places = zip(pool.ids, pool.weights, pool.order_keys, pool.order_jitter, strict=True)
    return {
        row_id: (float(weight), repr(float(key)), float(jitter)) for row_id, weight, key, jitter in places
    }


def try_proposal(
    proposal: Proposal,
    parent: Recipe,
    pool: Pool,
    ctx: ActionContext,
    *,
    leaves: Sequence[str],
    tried: Mapping[str, int],
    families: Sequence[str] | None = None,
) -> Trial:
    """Apply a proposal to the parent's pool.

    Args:
        proposal: Checked against the catalogue already.
        parent: The parent round's recipe.
        pool: The parent's pool, its actions applied.
        ctx: Action context of the campaign.
        leaves: All leaves of the primary suites; the gain is the mean over them.
        tried: Effect fingerprint -> round, for everything trained so far.
        families: Action families the campaign allows; None for all.
    """
    gain = sum(proposal.predicted.get(leaf, 0.0) for leaf in leaves) / max(1, len(leaves))
    recipe = extend(parent, proposal.calls)
    named = _outside((call.family for call in proposal.calls), families)
    if named:
        return Trial(proposal, recipe, "", (), frozenset(), gain, f"uses {named}")
    step = Recipe(pool.fingerprint, proposal.calls, parent.budget_tokens, parent.order, parent.seed)
    try:
        after, diffs = apply_recipe(step, pool, ctx)
    except AutosftError as error:
        return Trial(proposal, recipe, "", (), frozenset(), gain, f"cannot be applied: {error}")
    effect = after.fingerprint
    refusal = ""
    if all(diff.family is None for diff in diffs):
        refusal = "changes nothing on the parent's pool"
    elif left_out := _outside((diff.family for diff in diffs), families):
        # A family is what an action does, not what it is called.
        refusal = f"amounts to {left_out}"
    elif effect in tried:
        refusal = f"equals round {tried[effect]}, which was measured"
    return Trial(proposal, recipe, effect, tuple(diffs), touched_rows(pool, after), gain, refusal)


def _outside(used: Iterable[str | None], families: Sequence[str] | None) -> str:
    """Name the families in use that the campaign leaves out, or ''."""
    if families is None:
        return ""
    left_out = sorted({family for family in used if family is not None and family not in families})
    return f"{', '.join(left_out)}, which campaign.families leaves out" if left_out else ""


def calibration(rounds: Sequence[PastRound], analyst: str) -> float:
    """Return how much of an analyst's predicted gain has come true, shrunk towards 1 while little is
    known."""
    predicted = actual = 0.0
    n = 0
    for past in rounds:
        if analyst in past.analysts and past.delta is not None and past.predicted:
            predicted += sum(past.predicted.values()) / max(1, len(past.leaf_scores))
            actual += past.delta
            n += 1
    if n == 0 or predicted <= 0:
        return 1.0
    low, high = CALIBRATION_RANGE
    ratio = min(high, max(low, actual / predicted))
    return (CALIBRATION_PRIOR_ROUNDS + n * ratio) / (CALIBRATION_PRIOR_ROUNDS + n)


@dataclass(frozen=True, slots=True)
class Choice:
    """The decision: trials accepted (two where bundled), and a reason for every other proposal."""

    accepted: tuple[Trial, ...]
    rejected: tuple[tuple[Trial, str], ...]

    @property
    def bundled(self) -> bool:
        """True where two proposals share the round, so that the effect belongs to neither alone."""
        return len(self.accepted) > 1

    def first_alone(self, why: str) -> Choice:
        """Return the choice without the proposals bundled to the first."""
        return Choice(self.accepted[:1], (*self.rejected, *((trial, why) for trial in self.accepted[1:])))


def choose(trials: Sequence[Trial], rounds: Sequence[PastRound], *, bundle: bool = True) -> Choice:
    """Rank trials and pick one, or two that touch disjoint rows; a request for new rows may join them.

    Ties are broken by analyst name and the proposal's canonical form, so the order of arrival never matters.
    """

    def expected(trial: Trial) -> float:
        return trial.gain * calibration(rounds, trial.proposal.analyst)

    rejected = [(t, t.refusal) for t in trials if t.refusal]
    able = sorted(
        (t for t in trials if not t.refusal),
        key=lambda t: (-expected(t), t.proposal.analyst, t.proposal.canonical),
    )
    if not able:
        return Choice((), tuple(rejected))
    best, *others = able
    accepted = [best]
    for trial in others:
        if trial.effect == best.effect:
            rejected.append((trial, f"the same rows as the proposal of {best.proposal.analyst}"))
        elif any(trial.touched & other.touched for other in accepted):
            rejected.append((trial, "touches the same rows as what was accepted"))
        elif trial.proposal.analyst == SYNTHESIS or (bundle and _analysts(accepted) < BUNDLED):
            accepted.append(trial)
        else:
            rejected.append((trial, f"ranks below what was accepted ({expected(trial):+.3f} expected)"))
    return Choice(tuple(accepted), tuple(rejected))


def _analysts(accepted: Sequence[Trial]) -> int:
    return sum(trial.proposal.analyst != SYNTHESIS for trial in accepted)


def choose_rival(trials: Sequence[Trial]) -> Choice:
    """Take the first plans that can be run and touch disjoint rows, up to three, in the given order."""
    accepted: list[Trial] = []
    rejected = [(t, t.refusal) for t in trials if t.refusal]
    for trial in (t for t in trials if not t.refusal):
        if len(accepted) < RIVAL_ACTIONS and not any(trial.touched & other.touched for other in accepted):
            accepted.append(trial)
        else:
            rejected.append((trial, "touches the same rows as a plan taken before it, or there are enough"))
    return Choice(tuple(accepted), tuple(rejected))
