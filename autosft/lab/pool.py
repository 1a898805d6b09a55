"""The lab's pool: rows a small team might really have collected, with one planted defect per action family.

What is wrong with each row, and what the row should have been, goes into the manifest. The manifest is the
examiner's copy: the caller keeps it outside everything an agent can read.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from autosft.errors import PoolError
from autosft.lab.answers import solve
from autosft.lab.defects import CHAT_SOURCE, MACRO_SOURCE, SCARCE_WEIGHT, Plan, draw_plan
from autosft.lab.items import evaluation_tasks
from autosft.lab.phrasing import LEAVES
from autosft.lab.tasks import Task, draw_task
from autosft.lab.world import ENTITIES, FACTS
from autosft.pool import Pool, content_id
from autosft.taxonomy import verify
from autosft.types import Message, Row

MIN_ROWS, MAX_ROWS = 100, 264_000
CHAT_FRAC, MACRO_FRAC, LEAK_FRAC = 0.27, 0.09, 0.006
# Beyond this many rows the closed world would repeat itself; a ticket number keeps honest rows distinct.
TICKETS_FROM_ROWS = 12_000
_MACROS = 12


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was planted, for the examiner only.

    Attributes:
        seed: The pool's seed.
        plan: The drawn defects.
        defects: Row id -> names of its defects: `violating`, `off_topic`, `truncated`, `duplicate` (prune),
            `corrupted` (repair), `wrong_fact` (resupervise), `leak`. Sound rows are not listed.
        mended: Row id -> the row as it should have been, or None where it should go.
        formed: Row id of a `corrupted` row -> the row in the right form, stating what it states.
    """

    seed: int
    plan: Plan
    defects: Mapping[str, tuple[str, ...]] = field(repr=False)
    mended: Mapping[str, Row | None] = field(repr=False)
    formed: Mapping[str, Row] = field(repr=False)

    def counts(self) -> dict[str, int]:
        """Return defect -> number of rows."""
        return dict(Counter(name for names in self.defects.values() for name in names))


@dataclass(frozen=True, slots=True)
class _Draft:
    """A row before it gets its id.

    Attributes:
        task: What is asked.
        response: What the row answers.
        source: Provenance label.
        defects: Names of what is wrong with it.
        right: What it should answer, where a mend exists.
        formed: The same in the right form, with the facts the row states, where the form is corrupted.
    """

    task: Task
    response: str
    source: str
    defects: tuple[str, ...] = ()
    right: str | None = None
    formed: str | None = None


def make_pool(rows: int = 3000, seed: int = 0, *, suite_seed: int | None = None) -> tuple[Pool, Manifest]:
    """Generate a pool and its manifest; equal arguments give equal bytes.

    Args:
        rows: Number of rows, 100 to 264,000.
        seed: Draws the rows and the defects: which leaves are corrupted, absent, scarce or spoilt, which kind
            of entities has wrong facts, which source is worst.
        suite_seed: Seed of the dev suite whose prompts are leaked into the pool; default: `seed`.

    Raises:
        PoolError: The number of rows is out of range.
    """
    if not MIN_ROWS <= rows <= MAX_ROWS:
        raise PoolError(
            f"cannot make a lab pool of {rows} rows", where="lab.rows", hint=f"give {MIN_ROWS} to {MAX_ROWS}"
        )
    plan = draw_plan(seed)
    rng = random.Random(f"lab-pool-{seed}-{rows}")
    drafts = (
        _chat(rows, plan, rng)
        + _macros(rows, plan, rng)
        + _leaks(rows, seed if suite_seed is None else suite_seed, rng)
    )
    drafts += _leaf_drafts(rows - len(drafts), plan, rng)
    if rows >= TICKETS_FROM_ROWS:
        drafts = [_with_ticket(draft, rng) for draft in drafts]
    return _assemble(_file_order(drafts, plan, rng), plan, seed)


def _chat(rows: int, plan: Plan, rng: random.Random) -> list[_Draft]:
    drafts = []
    for _ in range(round(rows * CHAT_FRAC)):
        drafts.append(_stated(draw_task(None, rng), CHAT_SOURCE, plan, rng))
    return drafts


def _stated(task: Task, source: str, plan: Plan, rng: random.Random) -> _Draft:
    """Draft a row in the right form; what it states of the wrong kind is wrong."""
    values = plan.values(task.entity)
    if values == FACTS[task.entity]:
        return _Draft(task, task.answer(rng), source)
    state = rng.getstate()
    wrong = task.answer(rng, values)
    rng.setstate(state)
    right = task.answer(rng)
    if _passes(task, wrong):  # the wrong value may be true of this entity
        return _Draft(task, right, source)
    return _Draft(task, wrong, source, ("wrong_fact",), right)


def _macros(rows: int, plan: Plan, rng: random.Random) -> list[_Draft]:
    """A few canned answers, logged again and again: exact copies and copies with small changes."""
    masters = [_stated(draw_task(None, rng), MACRO_SOURCE, plan, rng) for _ in range(_MACROS)]
    drafts = list(masters)
    changes: tuple[Callable[[str], str], ...] = (
        str,
        str,
        lambda t: t.replace(".", "!"),
        lambda t: f"{t} Thanks.",
        str.strip,
    )
    while len(drafts) < round(rows * MACRO_FRAC):
        master, change = rng.choice(masters), rng.choice(changes)
        right = None if master.right is None else change(master.right)
        drafts.append(
            replace(
                master, response=change(master.response), right=right, defects=(*master.defects, "duplicate")
            )
        )
    return drafts


def _leaks(rows: int, suite_seed: int, rng: random.Random) -> list[_Draft]:
    """Rows whose prompts are dev evaluation prompts, word for word: half short, half of 13 words or more."""
    wanted = max(4, round(rows * LEAK_FRAC))
    tasks = [task for _, task in evaluation_tasks(suite_seed, 8, "dev")]
    rng.shuffle(tasks)
    long = [t for t in tasks if len(t.prompt.split()) >= 13]
    short = [t for t in tasks if len(t.prompt.split()) < 13]
    chosen = short[: wanted - wanted // 2] + long[: wanted // 2]
    return [
        _Draft(t, t.answer(rng), MACRO_SOURCE if i % 2 else CHAT_SOURCE, ("leak",))
        for i, t in enumerate(chosen)
    ]


def _leaf_drafts(rows: int, plan: Plan, rng: random.Random) -> list[_Draft]:
    weights = {
        name: SCARCE_WEIGHT if name in plan.scarce else 1.0 for name in LEAVES if name not in plan.absent
    }
    names = _apportion(rows, weights)
    rng.shuffle(names)
    sources = [source for source, _ in plan.sources]
    factors = dict(plan.sources)
    drafts = []
    for name in names:
        source = rng.choice(sources)
        task = draw_task(name, rng)
        if name in plan.corrupted:
            drafts.append(_corrupted(task, source, plan, rng))
        elif rng.random() < min(0.9, plan.spoilt[name] * factors[source]):
            drafts.append(_spoilt(task, source, plan, rng))
        else:
            drafts.append(_stated(task, source, plan, rng))
    return drafts


def _apportion(rows: int, weights: Mapping[str, float]) -> list[str]:
    """Return `rows` names in proportion to the weights, largest remainders first."""
    total = sum(weights.values())
    exact = {name: rows * weight / total for name, weight in weights.items()}
    counts = {name: int(share) for name, share in exact.items()}
    for name in sorted(exact, key=lambda n: (counts[n] - exact[n], n))[: rows - sum(counts.values())]:
        counts[name] += 1
    return [name for name, count in counts.items() for _ in range(count)]


def _corrupted(task: Task, source: str, plan: Plan, rng: random.Random) -> _Draft:
    """Break the form of a response in a way one edit mends."""
    sound = _stated(task, source, plan, rng)
    breaks: dict[str, Callable[[str], str]] = {"quotation": lambda text: text[:-1]}
    values = plan.values(task.entity) if sound.defects else FACTS[task.entity]
    # Other leaves lose their form altogether: the writer answered as if nothing had been required.
    broken = breaks[task.leaf](sound.response) if task.leaf in breaks else task.ignoring_answer(rng, values)
    if _form_holds(task, broken):
        return sound
    names = (*sound.defects, "corrupted")
    return replace(
        sound, response=broken, defects=names, right=sound.right or sound.response, formed=sound.response
    )


def _spoilt(task: Task, source: str, plan: Plan, rng: random.Random) -> _Draft:
    """Draft a row that ignores its requirement, answers about something else, or breaks off."""
    kind = rng.choices(("violating", "off_topic", "truncated"), (0.6, 0.2, 0.2))[0]
    for _ in range(8):
        if kind == "violating":
            response = task.ignoring_answer(rng, plan.values(task.entity))
        elif kind == "off_topic":
            other = rng.choice([e for e in ENTITIES if e != task.entity])
            response = solve(
                task.leaf, other, task.attribute, plan.values(other), task.args, task.request, rng
            )
        else:
            words = task.answer(rng, plan.values(task.entity)).split(" ")
            response = " ".join(words[: max(1, len(words) // 3)])
        if not _passes(task, response) and (kind != "violating" or not _form_holds(task, response)):
            return _Draft(task, response, source, (kind,))
    return _stated(task, source, plan, rng)


def _with_ticket(draft: _Draft, rng: random.Random) -> _Draft:
    if "leak" in draft.defects or "duplicate" in draft.defects or draft.task.leaf == "repeat_prompt":
        return draft
    return replace(
        draft, task=replace(draft.task, prompt=f"Ticket {rng.randrange(100_000)}. {draft.task.prompt}")
    )


def _file_order(drafts: list[_Draft], plan: Plan, rng: random.Random) -> list[_Draft]:
    """Sort by source, the worst task source last; inside a source, rows stand in random order."""
    good, *middle, worst = (source for source, _ in plan.sources)
    order = [good, *middle, CHAT_SOURCE, MACRO_SOURCE, worst]
    rng.shuffle(drafts)
    return sorted(drafts, key=lambda draft: order.index(draft.source))


def _assemble(drafts: list[_Draft], plan: Plan, seed: int) -> tuple[Pool, Manifest]:
    pool = Pool.from_rows(_row(draft, draft.response) for draft in drafts)
    defects: dict[str, tuple[str, ...]] = {}
    mended: dict[str, Row | None] = {}
    formed: dict[str, Row] = {}
    for row_id, draft in zip(pool.ids, drafts, strict=True):
        if not draft.defects:
            continue
        defects[row_id] = draft.defects
        # A row that only has a wrong form or a wrong fact has a right version; the others should go.
        mendable = draft.right is not None and set(draft.defects) <= {"corrupted", "wrong_fact"}
        mended[row_id] = _row(draft, draft.right) if mendable and draft.right is not None else None
        if draft.formed is not None:
            formed[row_id] = _row(draft, draft.formed)
    return pool, Manifest(seed, plan, defects, mended, formed)


def _row(draft: _Draft, response: str) -> Row:
    messages = (Message("user", draft.task.prompt), Message("assistant", response))
    return Row(content_id(messages), draft.source, messages, draft.task.requirements(), draft.task.leaf)


def _form_holds(task: Task, response: str) -> bool:
    return verify(task.requirements()[0], task.prompt, response)


def _passes(task: Task, response: str) -> bool:
    return all(verify(requirement, task.prompt, response) for requirement in task.requirements())
