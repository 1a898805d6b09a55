#!/usr/bin/env bash
# Runs a campaign on one Slurm node, or goes on with it:
#
#   sbatch [--partition=NAME] [--time=HH:MM:SS] scripts/run_slurm.sh --out SHARED/DIR [KEY=VALUE...]
#
# Submit it from the repository's folder, with autosft on the path. A job that Slurm ends for its time or a failed
# node is requeued where the cluster allows it; otherwise submit the same line again. Either goes on after the last
# finished stage. Untested for want of a cluster: its syntax and its line of settings are checked, no node ran it.
#SBATCH --job-name=autosft
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=32
#SBATCH --mem=0
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --signal=B:TERM@120
#SBATCH --open-mode=append
#SBATCH --output=autosft-%j.log
set -euo pipefail

cd "${SLURM_SUBMIT_DIR:-.}"
scripts/run_node.sh "$@" &
campaign=$!
# Two minutes before the limit: stop at the last finished stage, then ask for another turn.
trap 'kill -TERM "$campaign"; wait "$campaign" || true; scontrol requeue "$SLURM_JOB_ID"; exit 0' TERM
wait "$campaign"
