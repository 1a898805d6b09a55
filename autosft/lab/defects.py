"""Which defects a pool is planted with: drawn from the seed, so that no seed's cure fits another."""

from __future__ import annotations

import random
from dataclasses import dataclass

from autosft.lab.phrasing import LEAVES
from autosft.lab.world import ATTRIBUTES, FACTS, KIND_OF, KINDS, VALUES

# A corrupted response of these leaves is one mechanical edit away from a right one.
REPAIRABLE = ("lowercase", "uppercase", "no_comma", "quotation", "repeat_prompt")
# Forms that nobody produces unasked, so that a pool without them teaches nothing of them.
ABSENTABLE = ("json", "title", "postscript", "two_responses", "placeholder")
# Forms that a few examples do not teach and an ordinary supply does, so that a short one shows.
SCARCE = ("keyword", "end_phrase", "exact_sentences", "title", "postscript", "two_responses", "placeholder")

CHAT_SOURCE = "helpdesk_logs"
MACRO_SOURCE = "support_macros"
TASK_SOURCES = ("annotation_batch_1", "annotation_batch_2", "web_forms", "partner_feed")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is wrong with one pool.

    Attributes:
        corrupted: Leaves whose form is broken in every row (repair).
        absent: Leaves without a row (synthesize).
        scarce: Leaves with few rows (mix).
        spoilt: Leaf -> share of rows that violate, stray or break off (prune).
        wrong_kinds: The two kinds of entities about which every row states a wrong fact (resupervise).
        wrong: Attribute -> the value those rows state.
        sources: Task sources from best to worst, with the factor on `spoilt`; the worst stands last (order).
    """

    corrupted: tuple[str, ...]
    absent: tuple[str, ...]
    scarce: tuple[str, ...]
    spoilt: dict[str, float]
    wrong_kinds: tuple[str, ...]
    wrong: dict[str, str]
    sources: tuple[tuple[str, float], ...]

    def values(self, entity: str) -> dict[str, str]:
        """Return what the pool's writers state of an entity."""
        facts = FACTS[entity]
        if KIND_OF[entity] not in self.wrong_kinds:
            return dict(facts)
        return {
            a: self.wrong[a] if self.wrong[a] != facts[a] else _next_value(a, facts[a]) for a in ATTRIBUTES
        }


def _next_value(attribute: str, value: str) -> str:
    options = VALUES[attribute]
    return options[(options.index(value) + 1) % len(options)]


HEAVY, LIGHT = 0.45, 0.15
SCARCE_WEIGHT = 0.2
SOURCE_FACTORS = (0.4, 0.9, 1.2, 1.4)


def draw_plan(seed: int) -> Plan:
    """Draw the defects of a seed: pairs of leaves and kinds, spoilt shares, an order of sources."""
    rng = random.Random(f"lab-plan-{seed}")
    corrupted = tuple(rng.sample(REPAIRABLE, 2))
    absent = tuple(rng.sample(ABSENTABLE, 2))
    scarce = tuple(rng.sample([name for name in SCARCE if name not in absent], 2))
    rest = [name for name in LEAVES if name not in {*corrupted, *absent, *scarce}]
    rng.shuffle(rest)
    spoilt = {name: HEAVY if i < len(rest) // 2 else LIGHT for i, name in enumerate(rest)}
    spoilt |= dict.fromkeys(scarce, LIGHT)
    kinds = tuple(rng.sample(tuple(KINDS), 2))
    wrong = {attribute: rng.choice(VALUES[attribute]) for attribute in ATTRIBUTES}
    names = rng.sample(TASK_SOURCES, len(TASK_SOURCES))
    return Plan(
        corrupted, absent, scarce, spoilt, kinds, wrong, tuple(zip(names, SOURCE_FACTORS, strict=True))
    )
