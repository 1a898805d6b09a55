"""What a verifier file says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Example:
    """A passing and a failing response to one prompt.

    Attributes:
        passes: A response that meets the requirement.
        fails: A response that does not.
        kwargs: The requirement's arguments.
        prompt: The prompt both responses answer.
    """

    passes: str
    fails: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = "Tell me about the fox."
