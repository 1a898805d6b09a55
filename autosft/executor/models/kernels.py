"""Differentiable building blocks with hand-written gradients.

A small model's step is dominated by the number of operations. Each class here replaces a chain of recorded
operations by one node whose backward pass writes straight into its result. Everything is computed in
float32; inputs and outputs may be bfloat16.

Shapes: T tokens, D hidden size, H query heads, N key/value heads, E head size, F intermediate size,
K attention slots.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    """Return (-second half, first half) of the last dimension."""
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def _rotate_half_back(x: torch.Tensor) -> torch.Tensor:
    """Transpose of `rotate_half`."""
    half = x.shape[-1] // 2
    return torch.cat((x[..., half:], -x[..., :half]), dim=-1)


class RmsNorm(torch.autograd.Function):
    """Root-mean-square norm over the last dimension; (T, D) float32 -> (T, D) of the wanted type."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, eps: float, dtype: torch.dtype
    ) -> torch.Tensor:
        """Normalise, scale, cast."""
        inverse = x.square().mean(-1, keepdim=True).add_(eps).rsqrt_()
        hat = x * inverse
        ctx.save_for_backward(hat, inverse, weight)
        return (hat * weight).to(dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, None]:
        """Return gradients of the input and the weight."""
        hat, inverse, weight = ctx.saved_tensors
        grad = grad.float()
        product = grad * hat
        grad_hat = grad * weight
        mean = torch.mv(product, weight).div_(hat.shape[-1]).unsqueeze(-1)
        return grad_hat.addcmul_(hat, mean, value=-1).mul_(inverse), product.sum(0), None, None


class HeadNormRope(torch.autograd.Function):
    """Norm of each query and key head, then rotary embedding; values pass.

    (T, (H + 2N) * E) -> (T, H + 2N, E) float32.
    """

    @staticmethod
    def forward(
        ctx: Any,
        qkv: torch.Tensor,
        norms: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        heads: int,
        kv_heads: int,
        eps: float,
    ) -> torch.Tensor:
        """Apply; `norms` is (2, E): query norm, key norm; `cos` and `sin` are (T, E)."""
        tokens, size = qkv.shape[0], norms.shape[-1]
        rotated = heads + kv_heads
        out = torch.empty(tokens, rotated + kv_heads, size, dtype=torch.float32, device=qkv.device)
        out.copy_(qkv.view(tokens, -1, size))
        hat = out[:, :rotated]
        inverse = hat.square().mean(-1, keepdim=True).add_(eps).rsqrt_()
        hat = hat * inverse
        scale = torch.cat((norms[0].expand(heads, size), norms[1].expand(kv_heads, size)))
        scaled = hat * scale
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        torch.mul(scaled, cos, out=out[:, :rotated])
        out[:, :rotated].addcmul_(rotate_half(scaled), sin)
        ctx.save_for_backward(hat, inverse, scale, cos, sin)
        ctx.heads, ctx.dtype = heads, qkv.dtype
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return gradients of the projections and of the two norm weights."""
        hat, inverse, scale, cos, sin = ctx.saved_tensors
        rotated = hat.shape[1]
        part = grad[:, :rotated]
        grad_scaled = (part * cos).add_(_rotate_half_back(part * sin))
        product = grad_scaled * hat
        per_head = product.sum(0)
        grad_norms = torch.stack((per_head[: ctx.heads].sum(0), per_head[ctx.heads :].sum(0)))
        mean = product.mul_(scale).mean(-1, keepdim=True)
        grad_qkv = torch.empty(grad.shape, dtype=ctx.dtype, device=grad.device)
        grad_qkv[:, :rotated] = grad_scaled.mul_(scale).addcmul_(hat, mean, value=-1).mul_(inverse)
        grad_qkv[:, rotated:] = grad[:, rotated:]
        return grad_qkv.view(grad.shape[0], -1), grad_norms, None, None, None, None, None


class SwiGlu(torch.autograd.Function):
    """silu(gate) * up; (T, 2F) -> (T, F), gate first."""

    @staticmethod
    def forward(ctx: Any, gate_up: torch.Tensor) -> torch.Tensor:
        """Apply."""
        ctx.save_for_backward(gate_up)
        gate, up = gate_up.chunk(2, dim=-1)
        return torch.nn.functional.silu(gate) * up

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        """Return the gradient of gate and up."""
        (gate_up,) = ctx.saved_tensors
        gate, up = gate_up.chunk(2, dim=-1)
        result = torch.empty_like(gate_up)
        grad_gate, grad_up = result.chunk(2, dim=-1)
        torch.mul(grad, torch.nn.functional.silu(gate), out=grad_up)
        grad_gate.copy_(torch.ops.aten.silu_backward(grad * up, gate))
        return result


class SlotsFromTokens(torch.autograd.Function):
    """Copy tokens into right-padded attention slots; (T, ...) -> (K, ...)."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, token_of_slot: torch.Tensor, slot_of_token: torch.Tensor
    ) -> torch.Tensor:
        """Gather."""
        ctx.save_for_backward(slot_of_token)
        ctx.tokens = x.shape[0]
        return x.index_select(0, token_of_slot)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Gather back: only a token's own slot carries gradient, padding slots never do."""
        (slot_of_token,) = ctx.saved_tensors
        result = grad.new_zeros(ctx.tokens, *grad.shape[1:])
        result[: slot_of_token.shape[0]] = grad.index_select(0, slot_of_token)
        return result, None, None


class TokensFromSlots(torch.autograd.Function):
    """Copy attention results back to their tokens; (K, ...) -> (T, ...), zero on padding tokens."""

    @staticmethod
    def forward(ctx: Any, slots: torch.Tensor, slot_of_token: torch.Tensor, tokens: int) -> torch.Tensor:
        """Gather."""
        ctx.save_for_backward(slot_of_token)
        ctx.slots = slots.shape[0]
        result = slots.new_zeros(tokens, *slots.shape[1:])
        result[: slot_of_token.shape[0]] = slots.index_select(0, slot_of_token)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Scatter to each token's slot; padding slots get zero."""
        (slot_of_token,) = ctx.saved_tensors
        result = grad.new_zeros(ctx.slots, *grad.shape[1:])
        result.index_copy_(0, slot_of_token, grad[: slot_of_token.shape[0]])
        return result, None, None
