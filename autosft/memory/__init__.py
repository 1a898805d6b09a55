"""What a campaign remembers: journal, hypotheses, lineage, transcripts. One truth beside the artifacts."""

from autosft.memory.hypotheses import Hypotheses, Hypothesis
from autosft.memory.journal import Entry, Journal, read_journal
from autosft.memory.lock import CampaignLock

__all__ = ["CampaignLock", "Entry", "Hypotheses", "Hypothesis", "Journal", "read_journal"]
