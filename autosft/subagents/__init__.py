"""Agents: they read one kind of evidence and return executable proposals; they never touch the disk or a
device."""

from autosft.subagents.analyst import ANALYSTS, Analyst, analysts_for
from autosft.subagents.proposal import Abstention, Proposal, parse_reply

__all__ = ["ANALYSTS", "Abstention", "Analyst", "Proposal", "analysts_for", "parse_reply"]
