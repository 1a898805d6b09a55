#!/usr/bin/env bash
# Runs a campaign on the devices of this machine, or goes on with it: ranks are started by torchrun.
#
#   scripts/run_node.sh --out DIR [KEY=VALUE...]         e.g. model=FOLDER pool=rows.jsonl suite=ifeval
#
# The trainer's preset follows from the devices that nvidia-smi lists: eight or more train one run together,
# fewer train one run each (seeds side by side), none means the lab's base on two CPU ranks. A trainer=PRESET
# among the arguments wins. AUTOSFT names another command than the one on the path. The CUDA paths are untested.
set -euo pipefail

devices=0
if command -v nvidia-smi >/dev/null; then
  devices=$(nvidia-smi --list-gpus | wc -l)
fi
if [ "$devices" -ge 8 ]; then
  settings=(trainer=qwen3-1.7b-8x80gb executor=queue executor.slots=8)
elif [ "$devices" -ge 1 ]; then
  settings=(trainer=qwen3-1.7b-1x80gb executor=queue "executor.slots=$devices")
else
  settings=(trainer=megatron-cpu)
fi
echo "$devices CUDA devices: ${settings[*]}" >&2
exec ${AUTOSFT:-autosft} run "${settings[@]}" "$@"
