"""The records that stages hand to one another. Frozen, JSON-ready, no behaviour beyond reading themselves.

Words are DESIGN's: a row is one conversation, a pool an immutable view over sources, a recipe an ordered list
of actions with a budget and a seed, a build a materialised recipe, a run one training job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from autosft.identity import fingerprint

Family = Literal["mix", "prune", "repair", "resupervise", "synthesize", "order"]
FAMILIES: tuple[Family, ...] = ("mix", "prune", "repair", "resupervise", "synthesize", "order")
Method = Literal["edit", "replace", "new"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. Roles: system, user, assistant, tool."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """A program-decidable demand on a response: a verifier's id and its arguments."""

    id: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One conversation of a pool.

    Attributes:
        id: Content hash of the messages, with `.k` for the k-th copy (k >= 2) in the same pool.
        source: Provenance label; mixture weights and evidence group by it.
        messages: The turns, in order.
        requirements: What the response must satisfy, each decidable by a verifier; may be empty.
        leaf: Taxonomy leaf the row exercises, or None.
        parent: Id of the row this one was made from, or None for rows of the initial pool.
        made_by: Kind of the action that made it, or None.
        method: How: `edit` (minimal change), `replace` (new response), `new` (new row), or None.
        verdicts: Verdicts that admitted a made row: requirement id -> passed.
        weight: Expected copies relative to a weight of 1 (mixture weights compile into it).
        order_key: Wanted position as a fraction of the budget in [0, 1], or None for anywhere.
    """

    id: str
    source: str
    messages: tuple[Message, ...]
    requirements: tuple[Requirement, ...] = ()
    leaf: str | None = None
    parent: str | None = None
    made_by: str | None = None
    method: Method | None = None
    verdicts: Mapping[str, bool] = field(default_factory=dict)
    weight: float = 1.0
    order_key: float | None = None

    @property
    def prompt(self) -> str:
        """Text of the last user turn ('' if there is none)."""
        return next((m.content for m in reversed(self.messages) if m.role == "user"), "")

    @property
    def response(self) -> str:
        """Text of the last assistant turn ('' if there is none)."""
        return next((m.content for m in reversed(self.messages) if m.role == "assistant"), "")


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action as it stands in a recipe: its kind (`family/name`) and its parameters."""

    kind: str
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """The family the kind belongs to."""
        return self.kind.split("/", 1)[0]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Ordered actions on a pool, plus what the build needs: budget, base order and seed.

    Attributes:
        pool: Fingerprint of the pool the actions apply to.
        actions: Applied in order.
        budget_tokens: Training tokens (non-pad, after template and truncation).
        order: How rows without an order key are placed: `file` (the pool's order) or `shuffle`.
        seed: Seed of every random choice of the actions and the build.
    """

    pool: str
    actions: tuple[ActionCall, ...]
    budget_tokens: int
    order: Literal["file", "shuffle"] = "shuffle"
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data; `Recipe.from_json` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Recipe:
        """Read what `to_json` wrote."""
        calls = tuple(ActionCall(a["kind"], a["params"]) for a in data["actions"])
        return cls(data["pool"], calls, data["budget_tokens"], data["order"], data["seed"])

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the recipe's JSON."""
        return fingerprint(self.to_json())


@dataclass(frozen=True, slots=True)
class ActionDiff:
    """What one action did, counted from the pools before and after it, never from its label.

    Attributes:
        kind: The action's kind.
        family: Family the *effect* belongs to; None where nothing changed.
        rows_added: Rows without a counterpart before.
        rows_removed: Rows without a counterpart after.
        rows_changed: Rows whose messages changed (a removed row and a made row that names it as parent).
        rows_reweighted: Surviving rows whose weight changed.
        rows_moved: Surviving rows whose order key changed.
        tokens_delta: Change of the pool's tokens (unique rows, unweighted).
        reasons: Reason -> number of rows.
        samples: A few (row id before, row id after, reason), for people to look at.
    """

    kind: str
    family: Family | None
    rows_added: int
    rows_removed: int
    rows_changed: int
    rows_reweighted: int
    rows_moved: int
    tokens_delta: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    samples: tuple[tuple[str | None, str | None, str], ...] = ()


@dataclass(frozen=True, slots=True)
class EvalItem:
    """One evaluation prompt.

    Attributes:
        id: Unique inside the suite.
        suite: Suite name.
        messages: Prompt turns; generation continues them.
        requirements: All must hold for a strict pass. Ids in `CONTENT_PREFIXES` judge content, others form.
        leaf: Taxonomy leaf.
        tags: Grouping labels such as `phrasing: seen|held`.
        reference: Reference answer; decontaminated against, never shown to the model.
    """

    id: str
    suite: str
    messages: tuple[Message, ...]
    requirements: tuple[Requirement, ...]
    leaf: str
    tags: Mapping[str, str] = field(default_factory=dict)
    reference: str | None = None


CONTENT_PREFIXES = ("lab:fact", "answer:", "code:")


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """How a run trains; frozen for a campaign (I3). Units: tokens, fractions of the steps, seconds.

    The last seven belong to the `megatron` backend: ranks (data x tensor x pipeline) of one run, most tokens
    of a micro-batch (0: the model's own), recomputed activations, optimiser state cut over data ranks,
    and communication beside computation. None changes a batch; results differ by rounding only.
    """

    lr: float = 2e-3
    min_lr: float = 2e-5
    warmup_frac: float = 0.03
    weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.95
    clip_norm: float = 1.0
    batch_tokens: int = 512
    sequence_tokens: int = 256
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    backend: str = "torch"
    log_every_steps: int = 5
    timeout_s: float = 7200.0
    data_parallel: int = 1
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    micro_batch_tokens: int = 0
    recompute: bool = False
    distributed_optimizer: bool = False
    overlap: bool = False

    @property
    def ranks(self) -> int:
        """Processes of one run."""
        return self.data_parallel * self.tensor_parallel * self.pipeline_parallel


@dataclass(frozen=True, slots=True)
class GenerateSettings:
    """How a checkpoint answers; frozen for a campaign (I3)."""

    max_new_tokens: int = 64
    batch_size: int = 128
    temperature: float = 0.0
    samples_per_item: int = 1
    backend: str = "transformers"


@dataclass(frozen=True, slots=True)
class SeedReceipt:
    """What one seed's worker returns: paths and status, nothing else.

    Attributes:
        seed: Training seed.
        status: `ok` or `failed`.
        cause: '' or one of non_finite_loss, out_of_memory, killed, timeout, bad_model, error.
        detail: One line for people.
        attempts: Processes started.
        train: Fingerprint of the `train` artifact (loss curve, per-row loss, weights); '' if not reached.
        checkpoint: Path of the Hugging Face folder; '' if not reached.
        outputs: Fingerprint of the `generate` artifact (model answers).
        scores: Fingerprint of the `score` artifact (per-item verdicts).
        summary: train_tokens, optimizer_steps, final_loss, score and the like.
    """

    seed: int
    status: Literal["ok", "failed"]
    cause: str
    detail: str
    attempts: int
    train: str
    checkpoint: str
    outputs: str
    scores: str
    summary: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """Something a person following a campaign wants to see; never stored, never decides anything.

    Attributes:
        kind: campaign_start, round_start, stage, progress, seed_done, note, round_done, claim, campaign_done.
        text: One line for people.
        round: Round number, or None outside rounds.
        data: For `progress`: seed, stage, step, steps, loss, tokens_per_s. Else what the line reports.
    """

    kind: str
    text: str
    round: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
