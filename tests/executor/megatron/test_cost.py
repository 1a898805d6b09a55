"""The command `estimate`: figures by hand, refusals, and the presets' memory as the docs give it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from autosft.config import load_config
from autosft.errors import BaseModelError, ConfigError
from autosft.executor.train.megatron.cost import ASSUMED_MFU, H800_FLOPS, plan_cost, token_operations
from autosft.executor.train.megatron.memory import OVERHEAD_BYTES
from tests.campaigns import run_cli

QWEN3_1_7B = {
    "model_type": "qwen3",
    "vocab_size": 151936,
    "hidden_size": 2048,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 6144,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000,
    "max_position_embeddings": 32768,
    "tie_word_embeddings": True,
}
DOCS = Path(__file__).parents[3] / "docs" / "cluster.md"


@pytest.fixture
def config_file(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(QWEN3_1_7B))
    return file


def trainer(name):
    return load_config([f"trainer={name}"]).trainer


def test_weights_gradients_and_optimizer_are_counted_exactly(config_file):
    cost = plan_cost(config_file, trainer("qwen3-1.7b-8x80gb"), 8_000_000)
    n = 1_720_574_976
    assert cost.shape.parameters == n
    memory = cost.memory
    assert (memory.weights, memory.gradients, memory.optimizer) == (2 * n, 4 * n, 12 * n // 8)
    assert memory.logits == 8192 * 151936 * 10
    assert cost.micro_batches == 2
    assert cost.hours == pytest.approx(8_000_000 / cost.tokens_per_s / 3600)


def test_operations_follow_the_formula(config_file):
    settings = trainer("qwen3-1.7b-1x80gb")
    cost = plan_cost(config_file, settings)
    by_hand = 8 * 1_720_574_976 + 16 * 28 * 16 * 128 * settings.sequence_tokens / 2
    assert token_operations(cost.shape, settings) == by_hand
    assert cost.tokens_per_s == pytest.approx(H800_FLOPS * ASSUMED_MFU / by_hand)
    assert cost.hours is None


@pytest.mark.parametrize("preset", ["qwen3-1.7b-8x80gb", "qwen3-1.7b-1x80gb"])
def test_the_docs_name_the_computed_figures(config_file, preset):
    cost = plan_cost(config_file, trainer(preset))
    line = next(line for line in DOCS.read_text().splitlines() if f"`trainer={preset}`" in line)
    memory, rate = re.findall(r"([\d.,]+) (?:GiB|tokens/s)", line)
    total = (cost.memory.per_rank_bytes + OVERHEAD_BYTES) / 2**30
    assert memory == f"{total:.1f}"
    assert rate == f"{cost.tokens_per_s:,.0f}"
    assert total < 75


def test_what_has_no_estimate_is_refused(config_file, tmp_path):
    with pytest.raises(ConfigError, match="megatron, not torch"):
        plan_cost(config_file, trainer("lab"))
    with pytest.raises(BaseModelError, match="cannot be read"):
        plan_cost(tmp_path / "none.json", trainer("megatron-cpu"))
    config_file.write_text(json.dumps({**QWEN3_1_7B, "model_type": "mamba"}))
    with pytest.raises(BaseModelError, match="'mamba'"):
        plan_cost(config_file, trainer("megatron-cpu"))


def test_the_command_says_that_nothing_was_measured(config_file):
    command = ["estimate", str(config_file.parent), "trainer=qwen3-1.7b-8x80gb", "--tokens", "1000000"]
    done = run_cli(*command).stdout
    assert "8 ranks" in done and "Nothing here is measured." in done
    data = json.loads(run_cli(*command, "--json").stdout)
    assert data["measured"] is False and data["parameters"] == 1_720_574_976
    wrong = run_cli("estimate", "trainer=lab")
    assert wrong.returncode == 2 and "first argument is the base's folder" in wrong.stderr


def test_launch_scripts_are_sound_and_name_presets_that_exist():
    scripts = Path(__file__).parents[3] / "scripts"
    for name in ("run_node.sh", "run_slurm.sh"):
        subprocess.run(["bash", "-n", str(scripts / name)], check=True)
    text = (scripts / "run_node.sh").read_text()
    lines = re.findall(r"settings=\(([^)]*)\)", text)
    assert len(lines) == 3
    for line in lines:
        config = load_config(line.replace('"', "").replace("$devices", "2").split())
        assert config.trainer.backend == "megatron"
    assert "scripts/run_node.sh" in (scripts / "run_slurm.sh").read_text()
