"""What can be set: one frozen dataclass a group. The values live in `conf/`.

Every field's type is checked on load, every number against `BOUNDS`. Words and units are DESIGN's: tokens,
fractions, seconds, dollars.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from autosft.types import GenerateSettings, TrainSettings


@dataclass(frozen=True, slots=True)
class CampaignSettings:
    """Goal and length of a campaign.

    Attributes:
        name: Campaign name; the default folder is `runs/<name>`.
        out: Campaign folder, or None for `runs/<name>`.
        rounds: Rounds after round 0 (the untouched pool).
        seeds: Training seeds; every round trains once a seed.
        budget_tokens: Training tokens of a run, or None for `epochs` times the initial pool's tokens.
        epochs: Passes over the initial pool that fix the budget when `budget_tokens` is None.
        max_passes: A build that would pass over its rows more often is refused (I2).
        guard_margin: A guard suite's score may fall by at most this much, in [0, 1] (I13).
        alpha: Chance of a false claim over the whole campaign (I12).
        claim_seeds: Fresh training seeds that re-measure an incumbent before it is claimed; 0 claims nothing.
        patience: Stop after this many rounds without a new incumbent, or None to run all rounds.
        approve: Every decision waits for an operator's word before its hypothesis is registered.
        target_score: Stop once the incumbent reaches this score, or None.
        families: Action families that proposals may use, or None for all six.
    """

    name: str
    out: str | None
    rounds: int
    seeds: tuple[int, ...]
    budget_tokens: int | None
    epochs: float
    max_passes: float
    guard_margin: float
    alpha: float
    claim_seeds: int
    patience: int | None
    approve: bool
    target_score: float | None
    families: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The base that every round trains from: `path` is a Hugging Face folder, None the lab's base."""

    path: str | None


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """The training rows.

    Attributes:
        path: A file or folder of rows, a URL of an object store, or None for the lab's generated pool.
        bad_rows: What to do with a row that cannot be read: stop, or skip it and count it.
        bad_files: The same for a file that is damaged.
        order: Order of rows without an order key; `auto` in `conf/` becomes `file` for the lab's pool and
            `shuffle` for any other, so a loaded configuration never holds `auto`.
        sources: Only rows of these sources, or None for all.
        infer_requirements: Give rows without requirements those that their prompt states in IFEval's
            phrasings.
    """

    path: str | None
    bad_rows: Literal["refuse", "skip"]
    bad_files: Literal["refuse", "skip"]
    order: Literal["file", "shuffle"]
    sources: tuple[str, ...] | None
    infer_requirements: bool


@dataclass(frozen=True, slots=True)
class LabSettings:
    """The embedded lab: `rows` in its pool, `seed` of its defects, `prompts_per_leaf` of its suite."""

    rows: int
    seed: int
    prompts_per_leaf: int


@dataclass(frozen=True, slots=True)
class ExecutorSettings:
    """How training jobs run on this machine; never changes a result.

    Attributes:
        slots: Devices (on a CPU: shares of the cores) that runs may hold together, or None for what the cores
            allow. A run takes one a rank.
        threads_per_worker: Compute threads of a worker.
        retries: Extra attempts after a killed or failed worker.
        shared_cache: Keep encoded rows where all campaigns find them, not in the campaign's folder.
        backend: `direct`: runs are children of the campaign and end with it. Otherwise they are jobs of a
            durable queue and go on without it, on this machine (`local`), `slurm` or `ray`.
        options: Of the backend, `key=value`.
    """

    slots: int | None
    threads_per_worker: int
    retries: int
    shared_cache: bool
    backend: Literal["direct", "local", "slurm", "ray"]
    options: tuple[str, ...]

    def worker_slots(self, jobs: int, ranks: int = 1) -> int:
        """Return how many of `jobs` workers run side by side.

        Args:
            jobs: Workers that wait.
            ranks: Slots each of them takes, at least 1 (`TrainSettings.ranks`).

        Returns:
            As many as fit into `slots`, or into usable cores over threads; at least 1, so that a run with
            more ranks than slots runs alone rather than never.
        """
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        slots = self.slots or cores // self.threads_per_worker
        return max(1, min(jobs, slots // ranks))


@dataclass(frozen=True, slots=True)
class SuiteSettings:
    """Evaluation suites.

    Attributes:
        names: Primary suites; their leaves make the campaign's score.
        path: JSONL file of evaluation items, for the suite `jsonl`.
        guard: Suites that are watched, not targeted.
    """

    names: tuple[str, ...]
    path: str | None
    guard: tuple[str, ...]


# `random` and `mix-only` are baselines; only `llm` talks to language models.
POLICIES = ("rules", "random", "mix-only", "llm", "seed-only")


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Who plays the agents' roles: `name` of a policy, and the `seed` of one that draws at random."""

    name: str
    seed: int


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """Language models of the policy `llm`; other policies read none of it.

    Attributes:
        vendor: Wire format: `openai` (chat completions; any compatible server) or `anthropic` (messages).
        model: Model name as the vendor spells it.
        base_url: Server, or None for the vendor's own.
        api_key_env: Environment variable that holds the key, or None where the server wants none.
        temperature: Sampling temperature, or None for the server's default (always so for `anthropic`).
        max_output_tokens: Most tokens of one reply.
        window_tokens: Context window of the model; a request that would not fit is never sent (I8).
        native_tools: Offer tools through the API, or, for servers without tool calls, in the prompt.
        roles: Other settings for single roles, e.g. `review.model=NAME` or `review.vendor=anthropic`.
        tool_calls: Most tool calls of a role in one conversation.
        retries: Further attempts after a rate limit, a server error, a time-out or a lost connection.
        timeout_s: Of one attempt.
        programs: Let agents write small programs over rows, run in the sandbox.
        synthesis_rows: Most rows written for one request; `teacher_rows`: most rows answered anew for one.
        taxonomy_rounds: The meta agent may revise the tree of leaves every so many rounds; 0 for never.
        replay: Campaign folder whose recorded replies answer every request; nothing is sent then.
    """

    vendor: Literal["openai", "anthropic"]
    model: str
    base_url: str | None
    api_key_env: str | None
    temperature: float | None
    max_output_tokens: int
    window_tokens: int
    native_tools: bool
    roles: tuple[str, ...]
    tool_calls: int
    retries: int
    timeout_s: float
    programs: bool
    synthesis_rows: int
    teacher_rows: int
    taxonomy_rounds: int
    replay: str | None


@dataclass(frozen=True, slots=True)
class ComponentSettings:
    """The parts of the additive ablation; `base` is always on."""

    base: bool
    executor: bool
    analysis: bool
    synthesis: bool
    revision: bool


@dataclass(frozen=True, slots=True)
class HoldoutSettings:
    """Held-out suites: whether one is sealed and scored at the end; the seed that draws it, or None."""

    enabled: bool
    seed: int | None


@dataclass(frozen=True, slots=True)
class SpendSettings:
    """Caps of a campaign (I9); None means no cap. Dollars, LLM tokens, device-hours, seconds of wall time.

    Attributes:
        usd, llm_tokens, device_hours, wall_s: Caps of the campaign.
        round_usd, round_llm_tokens: Caps of one round.
        role_usd, role_llm_tokens: Caps of one role over the campaign.
        input_usd_per_mtok, output_usd_per_mtok: Price of models that the price table does not list, dollars a
            million tokens; 0 for a server of one's own. None refuses such a model.
        device_hour_usd: Price of a device-hour, counted towards `usd`; None counts hours only.
    """

    usd: float | None
    llm_tokens: int | None
    device_hours: float | None
    wall_s: float | None
    round_usd: float | None
    round_llm_tokens: int | None
    role_usd: float | None
    role_llm_tokens: int | None
    input_usd_per_mtok: float | None
    output_usd_per_mtok: float | None
    device_hour_usd: float | None


@dataclass(frozen=True, slots=True)
class TrackingSettings:
    """Where finished rounds are shown besides the campaign's own records; never read back.

    Attributes:
        backend: `none`, or `mlflow`.
        uri: MLflow's tracking server or store; None for `mlflow.db` (SQLite) beside the campaign's folder.
    """

    backend: Literal["none", "mlflow"]
    uri: str | None


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a campaign is started with."""

    campaign: CampaignSettings
    model: ModelSettings
    pool: PoolSettings
    lab: LabSettings
    trainer: TrainSettings
    generate: GenerateSettings
    executor: ExecutorSettings
    suite: SuiteSettings
    policy: PolicySettings
    llm: LlmSettings
    components: ComponentSettings
    holdout: HoldoutSettings
    spend: SpendSettings
    tracking: TrackingSettings
    programs: tuple[str, ...] = field(default=())

    @property
    def offered_programs(self) -> tuple[str, ...]:
        """Programs that agents are told of: the lab's knows nothing of other rows and other leaves."""
        of_the_lab = self.pool.path is None or "lab" in self.suite.names
        return tuple(name for name in self.programs if of_the_lab or name != "lab")

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data; `config_from_json` reads it back."""
        plain = asdict(self)
        return {key: _lists(value) for key, value in plain.items()}


def _lists(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _lists(item) for key, item in value.items()}
    return [_lists(item) for item in value] if isinstance(value, (list, tuple)) else value


@dataclass(frozen=True, slots=True)
class Bounds:
    """Allowed numbers: `low <= x <= high`; `above` means `low < x`."""

    low: float
    high: float = float("inf")
    above: bool = False

    def allows(self, number: float) -> bool:
        """Say whether a number is inside (NaN never is)."""
        return (number > self.low if self.above else number >= self.low) and number <= self.high

    def __str__(self) -> str:
        low = f"{'more than' if self.above else 'at least'} {self.low:.12g}"
        return low if self.high == float("inf") else f"{low} and at most {self.high:.12g}"


_SEED = Bounds(0, 2**31 - 1)
_POSITIVE = Bounds(0, 1e12, above=True)
_COUNT = Bounds(1, 10**12)
_FRACTION = Bounds(0, 1)

BOUNDS: dict[str, Bounds] = {
    "campaign.rounds": Bounds(0, 10_000),
    "campaign.seeds": _SEED,
    "campaign.budget_tokens": _COUNT,
    "campaign.epochs": Bounds(0, 1000, above=True),
    "campaign.max_passes": Bounds(1, 10_000),
    "campaign.guard_margin": _FRACTION,
    "campaign.alpha": Bounds(0, 0.5, above=True),
    "campaign.claim_seeds": Bounds(0, 100),
    "campaign.patience": Bounds(1, 10_000),
    "campaign.target_score": _FRACTION,
    "lab.rows": Bounds(100, 264_000),
    "lab.seed": _SEED,
    "lab.prompts_per_leaf": Bounds(2, 10_000),
    "trainer.lr": Bounds(0, 1, above=True),
    "trainer.min_lr": _FRACTION,
    "trainer.warmup_frac": _FRACTION,
    "trainer.weight_decay": Bounds(0, 10),
    "trainer.beta1": Bounds(0, 0.999999),
    "trainer.beta2": Bounds(0, 0.999999),
    "trainer.clip_norm": _POSITIVE,
    "trainer.batch_tokens": _COUNT,
    "trainer.sequence_tokens": Bounds(8, 1_048_576),
    "trainer.log_every_steps": _COUNT,
    "trainer.timeout_s": _POSITIVE,
    "trainer.data_parallel": Bounds(1, 4096),
    "trainer.tensor_parallel": Bounds(1, 1024),
    "trainer.pipeline_parallel": Bounds(1, 1024),
    "trainer.micro_batch_tokens": Bounds(0, 10**9),
    "generate.max_new_tokens": Bounds(1, 1_048_576),
    "generate.batch_size": Bounds(1, 100_000),
    "generate.temperature": Bounds(0, 10),
    "generate.samples_per_item": Bounds(1, 1000),
    "executor.slots": Bounds(1, 4096),
    "executor.threads_per_worker": Bounds(1, 4096),
    "executor.retries": Bounds(0, 100),
    "policy.seed": _SEED,
    "holdout.seed": _SEED,
    "spend.usd": Bounds(0),
    "spend.llm_tokens": Bounds(0),
    "spend.device_hours": Bounds(0),
    "spend.wall_s": Bounds(0),
    "spend.round_usd": Bounds(0),
    "spend.round_llm_tokens": Bounds(0),
    "spend.role_usd": Bounds(0),
    "spend.role_llm_tokens": Bounds(0),
    "spend.input_usd_per_mtok": Bounds(0, 1e6),
    "spend.output_usd_per_mtok": Bounds(0, 1e6),
    "spend.device_hour_usd": Bounds(0, 1e6),
    "llm.temperature": Bounds(0, 2),
    "llm.max_output_tokens": Bounds(16, 1_000_000),
    "llm.window_tokens": Bounds(2_000, 10_000_000),
    "llm.tool_calls": Bounds(0, 200),
    "llm.retries": Bounds(0, 20),
    "llm.timeout_s": Bounds(0, 36_000, above=True),
    "llm.synthesis_rows": Bounds(1, 20_000),
    "llm.teacher_rows": Bounds(1, 20_000),
    "llm.taxonomy_rounds": Bounds(0, 10_000),
}
