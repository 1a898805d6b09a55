"""What a campaign starts from."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from autosft.config import load_config
from autosft.meta.inputs import initial_pool
from autosft.types import Requirement


@pytest.mark.parametrize("infer", [False, True])
def test_requirements_that_prompts_state_are_read_off_when_asked_for(tmp_path: Path, infer: bool) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [
        ("Describe a cat. Do not use any commas.", "A cat is soft"),
        ("Describe a dog.", "A dog is loyal"),
    ]
    path.write_bytes(b"\n".join(orjson.dumps({"prompt": p, "response": r}) for p, r in rows))
    config = load_config([f"pool={path}", f"pool.infer_requirements={str(infer).lower()}"])
    pool, manifest = initial_pool(config)
    wanted = (Requirement("punctuation:no_comma"),) if infer else ()
    assert [row.requirements for row in pool.rows()] == [wanted, ()] and manifest is None
