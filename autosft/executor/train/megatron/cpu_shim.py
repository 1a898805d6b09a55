"""Lets Megatron-Core run where there is no CUDA: what it asks of `torch.cuda` is answered by the CPU.

Megatron-Core puts buffers on `torch.cuda.current_device()`, keeps CUDA streams, events and random states, and
compares tensor types with the names of CUDA. Nothing here changes a computation. Install it in a rank's
own process, before `megatron` is imported; where CUDA is available it does nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_FACTORIES = (
    "tensor",
    "zeros",
    "ones",
    "empty",
    "full",
    "arange",
    "rand",
    "randn",
    "zeros_like",
    "ones_like",
    "empty_like",
)


class _Idle:
    """Stands for a stream, an event or a context: every method does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __getattr__(self, name: str) -> Callable[..., _Idle]:
        return lambda *args, **kwargs: _Idle()

    def __enter__(self) -> _Idle:
        return self

    def __exit__(self, *error: object) -> None: ...


class _Generators(tuple[Any, ...]):
    """CUDA's generators by device number; there is one, the CPU's."""

    def __getitem__(self, index: Any) -> Any:
        import torch

        return torch.default_generator


def install() -> bool:
    """Replace CUDA's entry points in this process; True if they were (now or before)."""
    import torch

    cuda: Any = torch.cuda
    if torch.cuda.is_available():
        return False
    if getattr(cuda, "autosft_cpu_shim", False):
        return True
    cuda.autosft_cpu_shim = True
    _replace_devices(torch)
    _replace_random_state(torch)
    _replace_factories(torch)
    return True


def _replace_devices(torch: Any) -> None:
    cuda, cpu = torch.cuda, torch.device("cpu")
    cuda.current_device = lambda: cpu
    for name in ("synchronize", "empty_cache", "set_device", "_lazy_init"):
        setattr(cuda, name, lambda *args, **kwargs: None)
    cuda._lazy_call = lambda call, **kwargs: call()
    cuda.nvtx.range_push = cuda.nvtx.range_pop = lambda *args, **kwargs: None
    cuda.Stream = cuda.Event = _Idle
    cuda.current_stream = cuda.default_stream = cuda.stream = lambda *args, **kwargs: _Idle()
    torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *args, **kwargs: self
    plain_type = torch.Tensor.type

    def named_type(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = plain_type(self, *args, **kwargs)
        cast = isinstance(found, str) and not found.startswith("torch.cuda.")
        return found.replace("torch.", "torch.cuda.", 1) if cast else found

    torch.Tensor.type = named_type


def _replace_random_state(torch: Any) -> None:
    cuda = torch.cuda
    cuda.manual_seed = torch.manual_seed
    cuda.get_rng_state = cuda.random.get_rng_state = lambda device="cuda": torch.get_rng_state()
    cuda.set_rng_state = cuda.random.set_rng_state = lambda state, device="cuda": torch.set_rng_state(state)
    cuda.default_generators = _Generators()


def _replace_factories(torch: Any) -> None:
    from torch.utils import _device

    # Its cache must hold the factories as they were: `with torch.device(...)` looks them up by identity.
    _device._device_constructors()
    for name in _FACTORIES:
        setattr(torch, name, _on_cpu(getattr(torch, name), torch.device("cpu")))


def _on_cpu(factory: Callable[..., Any], cpu: Any) -> Callable[..., Any]:
    @functools.wraps(factory)
    def made(*args: Any, **kwargs: Any) -> Any:
        if str(kwargs.get("device", "")).startswith("cuda"):
            kwargs["device"] = cpu
        return factory(*args, **kwargs)

    return made
