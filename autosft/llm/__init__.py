"""Language models: one small chat protocol over the vendors' SDKs, metered, priced, recorded, replayable."""

from __future__ import annotations

from autosft.llm.caller import Caller, Memory, Recording
from autosft.llm.chat import (
    KINDS,
    PURPOSES,
    Kind,
    Part,
    Purpose,
    Reply,
    Request,
    ToolCall,
    ToolSpec,
    Turn,
    Usage,
)
from autosft.llm.endpoints import Endpoint, endpoint_for
from autosft.llm.prices import Prices, load_prices
from autosft.llm.prompts import render
from autosft.llm.text import shown

__all__ = [
    "KINDS",
    "PURPOSES",
    "Caller",
    "Endpoint",
    "Kind",
    "Memory",
    "Part",
    "Prices",
    "Purpose",
    "Recording",
    "Reply",
    "Request",
    "ToolCall",
    "ToolSpec",
    "Turn",
    "Usage",
    "endpoint_for",
    "load_prices",
    "render",
    "shown",
]
