"""A bound on what a rank may allocate while it trains.

It leaves room on shared machines, and shows in small what happens where memory ends: an allocation above it
fails as any lack of memory does. `AUTOSFT_RANK_MEMORY_MIB` counts from the moment model and optimiser stand.
On CUDA the allocator enforces it (untested here), on Linux's CPUs the kernel (RLIMIT_DATA: writable private
pages, used or not).
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from autosft.errors import ConfigError

if TYPE_CHECKING:
    import torch

VARIABLE = "AUTOSFT_RANK_MEMORY_MIB"


def limit_memory(device: torch.device) -> None:
    """Bound this process's further allocations, if the environment asks for it.

    Args:
        device: Where the rank computes.

    Raises:
        ConfigError: The variable is no positive number.
    """
    asked = os.environ.get(VARIABLE)
    if not asked:
        return
    if not asked.isdecimal() or int(asked) == 0:
        raise ConfigError(
            f"{asked!r} is no positive number of MiB", where=VARIABLE, hint="unset it, or e.g. 4096"
        )
    more = int(asked) * 2**20
    if device.type == "cuda":
        import torch

        total = torch.cuda.get_device_properties(device).total_memory
        share = (torch.cuda.memory_reserved(device) + more) / total
        torch.cuda.set_per_process_memory_fraction(min(1.0, share), device)
    elif sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
        limit = pages * resource.getpagesize() + more
        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))
