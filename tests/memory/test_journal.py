"""The journal: durable, chained, idempotent, one writer."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from autosft.errors import CampaignError, CampaignLockedError, CorruptRecordError, HypothesisError
from autosft.memory import CampaignLock, Hypotheses, Hypothesis, Journal, read_journal
from autosft.memory.journal import JOURNAL


def _lines(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]


def test_equal_append_is_idempotent_and_different_is_refused(tmp_path):
    journal = Journal(tmp_path)
    first = journal.append("round.recorded", "1", {"score": 0.5})
    assert journal.append("round.recorded", "1", {"score": 0.5}) == first
    assert len(_lines(tmp_path)) == 1
    with pytest.raises(CampaignError, match=r"different round\.recorded for '1'"):
        journal.append("round.recorded", "1", {"score": 0.9})


def test_equal_campaigns_have_equal_chains_whatever_the_time(tmp_path):
    shas = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        journal = Journal(tmp_path / name)
        journal.append("x", "1", {"n": 1})
        shas.append(journal.append("x", "2", {"n": 2}).sha)
    assert shas[0] == shas[1]


def test_a_torn_last_line_never_happened(tmp_path):
    Journal(tmp_path).append("x", "1", {})
    whole = (tmp_path / JOURNAL).read_bytes()
    for cut in range(1, len(whole)):
        (tmp_path / JOURNAL).write_bytes(whole + whole[:cut])
        assert len(read_journal(tmp_path)) == 1
        journal = Journal(tmp_path)
        assert journal.damage is None
        assert (tmp_path / JOURNAL).read_bytes() == whole


@pytest.mark.parametrize("edit", [b'"score":0.5', b'"round.recorded"'])
def test_an_edited_line_is_named_and_set_aside(tmp_path, edit):
    journal = Journal(tmp_path)
    journal.append("campaign.opened", "c", {})
    journal.append("round.recorded", "1", {"score": 0.5})
    journal.append("round.recorded", "2", {"score": 0.6})
    path = tmp_path / JOURNAL
    path.write_bytes(
        path.read_bytes().replace(edit, edit.replace(b"5", b"9").replace(b"round.r", b"r0und.r"), 1)
    )
    with pytest.raises(CorruptRecordError, match=r"journal\.jsonl:2"):
        read_journal(tmp_path)
    repaired = Journal(tmp_path)
    assert repaired.damage is not None and "journal.jsonl:2" in repaired.damage.where
    assert [e.key for e in repaired] == ["c"]
    kept = list((tmp_path / "quarantine").glob("journal-*.jsonl"))
    assert len(kept) == 1 and len(kept[0].read_bytes().splitlines()) == 2


def test_a_removed_line_breaks_the_chain(tmp_path):
    journal = Journal(tmp_path)
    for n in range(3):
        journal.append("x", str(n), {})
    lines = (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True)
    (tmp_path / JOURNAL).write_bytes(lines[0] + lines[2])
    with pytest.raises(CorruptRecordError, match="hash chain"):
        read_journal(tmp_path)


def test_a_second_process_is_refused_and_a_dead_one_leaves_no_lock(tmp_path):
    code = (
        "import sys,time\nfrom pathlib import Path\nfrom autosft.memory import CampaignLock\n"
        "with CampaignLock(Path(sys.argv[1])):\n print('held',flush=True)\n time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline().strip() == "held"
        with (
            pytest.raises(CampaignLockedError, match=f"process {holder.pid} is working"),
            CampaignLock(tmp_path),
        ):
            pass
    finally:
        holder.kill()
        holder.wait()
    with CampaignLock(tmp_path):
        pass


def _hypothesis(**changes) -> Hypothesis:
    facts = {
        "round": 1,
        "recipe": "r1",
        "claim": "Pruning helps.",
        "predicted": {"title": 0.1},
        "predicted_score": 0.1,
        "success": {"metric": "score", "above_parent_by": 0.0},
        "abort": {"metric": "score", "below_parent_by": 0.05},
    }
    return Hypothesis(**{**facts, **changes})


def test_no_submission_without_a_registered_hypothesis(tmp_path):
    registry = Hypotheses(Journal(tmp_path))
    with pytest.raises(HypothesisError, match="no hypothesis is registered"):
        registry.submit(1, "r1")
    registry.register(_hypothesis())
    with pytest.raises(HypothesisError, match="about recipe r1, not r2"):
        registry.submit(1, "r2")
    with pytest.raises(HypothesisError, match="was not submitted"):
        registry.require_submitted(1, "r1")
    assert registry.submit(1, "r1") == registry.require_submitted(1, "r1")


@pytest.mark.parametrize(
    "changes", [{"claim": "Other."}, {"predicted": {"title": 0.9}}, {"abort": {"metric": "x"}}]
)
def test_a_registered_hypothesis_cannot_be_edited(tmp_path, changes):
    registry = Hypotheses(Journal(tmp_path))
    registry.register(_hypothesis())
    registry.submit(1, "r1")
    with pytest.raises(HypothesisError, match="cannot be edited"):
        registry.register(_hypothesis(**changes))
    registry.register(_hypothesis())


@pytest.mark.parametrize("changes", [{"claim": " "}, {"success": {}}, {"abort": {}}, {"predicted": {}}])
def test_an_incomplete_hypothesis_is_refused(tmp_path, changes):
    with pytest.raises(HypothesisError):
        Hypotheses(Journal(tmp_path)).register(_hypothesis(**changes))


def test_only_a_submitted_hypothesis_is_resolved_and_once(tmp_path):
    registry = Hypotheses(Journal(tmp_path))
    registry.register(_hypothesis())
    with pytest.raises(HypothesisError, match="only a submitted"):
        registry.resolve(1, "supported", {})
    registry.submit(1, "r1")
    with pytest.raises(HypothesisError, match="unknown outcome"):
        registry.resolve(1, "great", {})
    registry.resolve(1, "supported", {"score": 0.5})
    with pytest.raises(CampaignError):
        registry.resolve(1, "refuted", {"score": 0.5})
