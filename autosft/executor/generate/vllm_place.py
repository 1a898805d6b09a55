"""Where vLLM lives: an environment of its own, named by the path of its Python.

vLLM pins its own torch and transformers, so it is never imported here: `AUTOSFT_VLLM_PYTHON` names the
interpreter that has it, and answers come over HTTP (`vllm`) or from a script it runs (`vllm-offline`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from autosft.errors import ConfigError

PYTHON = "AUTOSFT_VLLM_PYTHON"
#: Most seconds from its start until a server answers, and until it answers one request.
START_S, REQUEST_S = "AUTOSFT_VLLM_START_S", "AUTOSFT_VLLM_REQUEST_S"
_HINT = "scripts/set_up_vllm.sh FOLDER makes one; then set it to FOLDER/bin/python"


def vllm_python() -> str:
    """Return the interpreter that has vLLM.

    Raises:
        ConfigError: The variable is not set, or names no program.
    """
    given = os.environ.get(PYTHON, "")
    if not given:
        raise ConfigError("vLLM needs an environment of its own", where=PYTHON, hint=_HINT)
    found = shutil.which(given)
    if found is None:
        raise ConfigError(f"{given} cannot be run", where=PYTHON, hint=_HINT)
    return str(Path(found).absolute())


def seconds(name: str, default: float) -> float:
    """Return a time limit from the environment.

    Raises:
        ConfigError: It is no positive number.
    """
    given = os.environ.get(name)
    try:
        value = default if given is None else float(given)
    except ValueError:
        value = -1.0
    if value <= 0:
        raise ConfigError(f"{given!r} is no number of seconds", where=name)
    return value


def vllm_environment() -> Mapping[str, str]:
    """Return what a vLLM process gets: this process's, without what points Python at our packages."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    fixed = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    # Of use on CPUs alone; on a GPU vLLM does not read them.
    cpu = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    return {**cpu, **kept, **fixed}
