"""A campaign against a real model on an OpenAI-compatible server: `pytest --live tests/llm/test_live.py`.

AUTOSFT_LIVE_URL names the server (http://127.0.0.1:8000/v1), AUTOSFT_LIVE_MODEL the model as served, and
AUTOSFT_LIVE_WINDOW its context in tokens (default 8000). Poor answers leave a sound, finished campaign.
"""

from __future__ import annotations

import os

import pytest

from autosft.config import load_config
from autosft.memory import Journal
from autosft.memory.transcripts import read_exchanges
from autosft.meta import run_campaign, views
from autosft.meta.doctor import doctor
from tests.campaigns import TINY

pytestmark = pytest.mark.live


def test_a_weak_models_answers_leave_a_sound_finished_campaign(tmp_path):
    url, model = os.environ.get("AUTOSFT_LIVE_URL"), os.environ.get("AUTOSFT_LIVE_MODEL")
    if not url or not model:
        pytest.fail("set AUTOSFT_LIVE_URL and AUTOSFT_LIVE_MODEL")
    config = load_config(
        [
            *TINY,
            "campaign.rounds=1",
            "policy=llm",
            "llm=server",
            f"llm.base_url={url}",
            f"llm.model={model}",
            f"llm.window_tokens={os.environ.get('AUTOSFT_LIVE_WINDOW', '8000')}",
            "llm.max_output_tokens=400",
            "llm.tool_calls=2",
            "llm.timeout_s=900",
            "spend.input_usd_per_mtok=0",
            "spend.output_usd_per_mtok=0",
        ]
    )
    out = tmp_path / "live"
    run_campaign(config, out)
    status = views.status(out)
    assert status["state"] == "stopped" and status["rounds_recorded"] >= 1
    answered = [x for x in read_exchanges(out) if "reply" in x.data["outcome"]]
    assert answered, "the model was reached"
    assert Journal(out).damage is None
    assert not [check for check in doctor(out) if check["state"] == "fail"]
