"""One tree of errors; every message says what was wrong, where, and what to do.

AutosftError
├── ConfigError             an override, setting or file of settings is unusable
├── PoolError               a pool cannot be read or holds no usable row
├── BaseModelError          a base model folder cannot be loaded or used
├── TemplateError           a chat template renders turns that cannot be masked
├── ActionError
│   ├── UnknownActionError  a kind outside the closed catalogue
│   ├── ActionParamsError   parameters that do not match the action's schema
│   └── EmptyPoolError      an action or a recipe leaves no rows
├── VerifierError           an unknown requirement or bad requirement arguments
├── TaxonomyError           a leaf that its verifier cannot decide
├── SuiteError              an evaluation suite cannot be loaded
├── GuardError              an invariant would be broken; nothing was started
│   ├── BaseFingerprintError    I1  the base is not the campaign's base
│   ├── BudgetError             I2  token budget, passes or steps differ
│   ├── FrozenSettingsError     I3  settings differ from the campaign's
│   ├── HypothesisError         I4  no hypothesis, or an edit after submission
│   ├── ContaminationError      I5  evaluation text would be trained on
│   ├── HoldoutError            I6  a sealed suite would be read or scored twice
│   ├── LineageError            I7  a made row lacks its parent or verdicts
│   ├── ContextCapError         I8  an agent's context would exceed its cap
│   └── SpendCapError           I9  a cap would be exceeded, or a price is unknown
│       └── ScopeCapError       I9  a cap of one round or role would be exceeded
├── ProposalError           a proposal is malformed or repeats an earlier one
├── LanguageModelError      a language model was not reached, refused, or gave no usable reply
│   └── ReplayError             a request that the recording does not hold
├── ExecutorError           training, conversion, generation or scoring failed
├── ArtifactError
│   └── CorruptRecordError  a stored record does not match its own hash
└── CampaignError           a campaign folder cannot be used
    └── CampaignLockedError     another process is working on it
"""

from __future__ import annotations


class AutosftError(Exception):
    """Base of every error this package raises on purpose.

    Args:
        what: What was wrong, one sentence.
        where: File, row id, round or setting; empty if the sentence says it.
        hint: What the reader can do about it.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, where, hint
        super().__init__("".join([f"{where}: " if where else "", what, f" ({hint})" if hint else ""]))


class ConfigError(AutosftError):
    """An override, a setting or a settings file is unusable."""


class PoolError(AutosftError):
    """A pool cannot be read or holds no usable row."""


class BaseModelError(AutosftError):
    """A base model folder cannot be loaded or used."""


class TemplateError(AutosftError):
    """A chat template renders turns that cannot be masked exactly."""


class ActionError(AutosftError):
    """A data action cannot be applied."""


class UnknownActionError(ActionError):
    """The action kind is not in the closed catalogue."""


class ActionParamsError(ActionError):
    """Parameters do not match the action's schema."""


class EmptyPoolError(ActionError):
    """An action or a recipe leaves no rows to train on."""


class VerifierError(AutosftError):
    """A requirement is unknown or its arguments are unusable."""


class TaxonomyError(AutosftError):
    """A leaf cannot be decided by its verifier."""


class SuiteError(AutosftError):
    """An evaluation suite cannot be loaded."""


class GuardError(AutosftError):
    """An invariant would be broken; nothing was started."""


class BaseFingerprintError(GuardError):
    """I1: the base's weights are not the campaign's base."""


class BudgetError(GuardError):
    """I2: the token budget, the number of passes or the number of steps differ."""


class FrozenSettingsError(GuardError):
    """I3: trainer, evaluation or suite settings differ from the campaign's."""


class HypothesisError(GuardError):
    """I4: a round has no registered hypothesis, or one was edited after submission."""


class ContaminationError(GuardError):
    """I5: a training set holds evaluation text."""


class HoldoutError(GuardError):
    """I6: a sealed suite would be read, or scored a second time."""


class LineageError(GuardError):
    """I7: a made row lacks its parent row or the verdicts that admitted it."""


class ContextCapError(GuardError):
    """I8: an agent's context would exceed its token cap."""


class SpendCapError(GuardError):
    """I9: a spend cap would be exceeded, or a price is unknown."""


class ScopeCapError(SpendCapError):
    """I9: the cap of a round or a role would be exceeded; the campaign itself may go on."""


class ProposalError(AutosftError):
    """A proposal is malformed or equals an earlier one."""


class LanguageModelError(AutosftError):
    """A language model was not reached, refused, or gave no usable reply."""


class ReplayError(LanguageModelError):
    """A replayed campaign makes a request that the recording does not hold."""


class ExecutorError(AutosftError):
    """Training, conversion, generation or scoring failed for good."""


class JobError(AutosftError):
    """A job cannot be submitted, found or run."""


class ArtifactError(AutosftError):
    """An artifact is missing or unusable."""


class CorruptRecordError(ArtifactError):
    """A stored record does not match its own hash."""


class CampaignError(AutosftError):
    """A campaign folder cannot be used."""


class CampaignLockedError(CampaignError):
    """Another process is working on this campaign."""
