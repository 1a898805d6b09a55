"""torchrun for one run on this machine: `python -m autosft.executor.train.megatron.launch JOB.json`.

torchrun puts each rank into a session of its own, out of reach of a signal to the worker's process group. So
this process ends with the worker, and each rank ends with this process, however that happens.
"""

from __future__ import annotations

import sys
from pathlib import Path

from autosft.executor.train.megatron.job import read_job
from autosft.executor.worker import die_with


def main(arguments: list[str]) -> None:
    """Start the ranks and wait for them; exits with their state."""
    job = read_job(Path(arguments[0]))
    die_with(job.parent)
    from torch.distributed.run import main as torchrun

    torchrun(
        [
            "--nnodes=1",
            f"--nproc-per-node={job.settings.ranks}",
            "--rdzv-backend=c10d",
            "--rdzv-endpoint=127.0.0.1:0",
            "--local-addr=127.0.0.1",
            "--max-restarts=0",
            "-m",
            "autosft.executor.train.megatron.rank",
            arguments[0],
        ]
    )


if __name__ == "__main__":
    main(sys.argv[1:])
