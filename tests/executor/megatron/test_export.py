"""A checkpoint that Megatron trained, in several files, answered by a real vLLM and by the native decoder.

`AUTOSFT_VLLM_PYTHON=... pytest --live tests/executor/megatron/test_export.py`
"""

from __future__ import annotations

import os

import pytest

from autosft.artifacts import ArtifactStore
from autosft.evals import load_suite
from autosft.executor.base import check_base
from autosft.executor.convert import convert
from autosft.executor.generate import GenerateJob, load_generator
from autosft.executor.prompts import Prompts
from autosft.lab import base_dir
from autosft.pool import RowEncoder
from autosft.types import GenerateSettings
from tests.executor.megatron.test_parity import run
from tests.executor.worlds import write_build

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        not os.environ.get("AUTOSFT_VLLM_PYTHON"),
        reason="AUTOSFT_VLLM_PYTHON names no environment with vLLM",
    ),
]


def test_vllm_answers_as_the_native_decoder_does(tmp_path, monkeypatch):
    pytest.importorskip("megatron.core", reason="needs the extra `megatron`")
    build = write_build(ArtifactStore(tmp_path / "store"), base_dir(), rows=60, steps=6)
    run(base_dir(), build, tmp_path / "run", "megatron", data_parallel=2)
    encoder = RowEncoder(base_dir(), 256)
    (tmp_path / "tokenizer").mkdir()
    encoder.save_tokenizer(tmp_path / "tokenizer")
    items = load_suite("lab", seed=0, prompts_per_leaf=4).items
    prompts = Prompts(
        [item.id for item in items],
        [encoder.encode_prompt(item.messages) for item in items],
        encoder.end_of_turn_id,
        encoder.pad_id,
        tmp_path / "tokenizer",
    )
    monkeypatch.setattr("autosft.executor.convert.SHARD_BYTES", 1_000_000)
    folder = tmp_path / "checkpoint"
    convert(check_base(base_dir()), tmp_path / "run/model.safetensors", prompts, folder)
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    answers = [
        load_generator(backend).generate(
            GenerateJob(folder, prompts, GenerateSettings(32, 64, 0.0, 1, backend), 0, 64), lambda line: None
        )
        for backend in ("vllm-offline", "transformers")
    ]
    same = sum(a.text == b.text for a, b in zip(*answers, strict=True))
    # Two float32 kernels may part where two tokens are as good as equal.
    assert same >= 0.97 * len(items), f"{same} of {len(items)} equal"
