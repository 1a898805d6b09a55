"""Differentiable building blocks with hand-written gradients.

A small model's step is dominated by the number of operations. Each class here replaces a chain of recorded
operations by one node whose backward pass writes straight into its result. Everything is computed in
float32; inputs and outputs may be bfloat16.

Shapes: T tokens, D hidden size, H query heads, N key/value heads, E head size, F intermediate size,
K attention slots, S supervised positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch.autograd.function import once_differentiable

from autosft.executor.packing import IGNORED


class RmsNorm(torch.autograd.Function):
    """Root-mean-square norm over the last dimension; (T, D) float32 -> (T, D) of the wanted type."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, eps: float, dtype: torch.dtype
    ) -> torch.Tensor:
        """Normalise, scale, cast."""
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        inverse = norm.square_().div_(x.shape[-1]).add_(eps).rsqrt_()
        hat = x * inverse
        ctx.save_for_backward(hat, inverse, weight)
        result: torch.Tensor = (hat * weight).to(dtype)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, None]:
        """Return gradients of the input and the weight."""
        hat, inverse, weight = ctx.saved_tensors
        grad = grad.float()
        product = grad * hat
        grad_hat = grad * weight
        mean = torch.mv(product, weight).div_(-hat.shape[-1]).unsqueeze(-1)
        return grad_hat.addcmul_(hat, mean).mul_(inverse), product.sum(0), None, None


class HeadNormRope(torch.autograd.Function):
    """Norm of each query and key head, then rotary embedding; values pass.

    (T, (H + 2N) * E) -> (T, H + 2N, E) float32. The two coordinates of a rotated pair are neighbours:
    a rotation is one complex product.
    """

    @staticmethod
    def forward(
        ctx: Any, qkv: torch.Tensor, norms: torch.Tensor, turn: torch.Tensor, heads: int, eps: float
    ) -> torch.Tensor:
        """Apply; `norms` is (2, E): query norm, key norm; `turn` is (T, H + N, E / 2) complex."""
        tokens, rotated, half = turn.shape
        size = 2 * half
        parts = qkv.view(tokens, -1, size)
        out = torch.empty(parts.shape, dtype=torch.float32, device=qkv.device)
        out[:, rotated:] = parts[:, rotated:]
        x = parts[:, :rotated].float()
        inverse = x.square().mean(-1, keepdim=True).add_(eps).rsqrt_()
        hat = x * inverse
        scale = torch.cat((norms[:1].expand(heads, size), norms[1:].expand(rotated - heads, size)))
        pairs = torch.view_as_complex((hat * scale).view(tokens, rotated, half, 2))
        target = torch.view_as_complex(out.view(tokens, -1, half, 2))[:, :rotated]
        torch.mul(pairs, turn, out=target)
        ctx.save_for_backward(hat, inverse, scale, turn)
        ctx.heads, ctx.dtype = heads, qkv.dtype
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return gradients of the projections and of the two norm weights."""
        hat, inverse, scale, turn = ctx.saved_tensors
        tokens, rotated, size = hat.shape
        grad = grad.contiguous()
        pairs = torch.view_as_complex(grad.view(tokens, -1, size // 2, 2))[:, :rotated]
        grad_scaled = torch.view_as_real(pairs * turn.conj()).view(tokens, rotated, size)
        product = grad_scaled * hat
        per_head = product.sum(0)
        grad_norms = torch.stack((per_head[: ctx.heads].sum(0), per_head[ctx.heads :].sum(0)))
        mean = product.mul_(scale).mean(-1, keepdim=True).neg_()
        grad_qkv = torch.empty(grad.shape, dtype=ctx.dtype, device=grad.device)
        grad_qkv[:, :rotated] = grad_scaled.mul_(scale).addcmul_(hat, mean).mul_(inverse)
        grad_qkv[:, rotated:] = grad[:, rotated:]
        return grad_qkv.view(tokens, -1), grad_norms, None, None, None


class SwiGlu(torch.autograd.Function):
    """silu(gate) * up; (T, 2F) -> (T, F), gate first."""

    @staticmethod
    def forward(ctx: Any, gate_up: torch.Tensor) -> torch.Tensor:
        """Apply."""
        gate, up = gate_up.chunk(2, dim=-1)
        active = torch.nn.functional.silu(gate)
        ctx.save_for_backward(gate_up, active)
        return active * up

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        """Return the gradient of gate and up."""
        gate_up, active = ctx.saved_tensors
        gate, up = gate_up.chunk(2, dim=-1)
        result = torch.empty_like(gate_up)
        grad_gate, grad_up = result.chunk(2, dim=-1)
        torch.mul(grad, active, out=grad_up)
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
        return _padded_select(grad, slot_of_token, ctx.tokens), None, None


class TokensFromSlots(torch.autograd.Function):
    """Copy attention results back to their tokens; (K, ...) -> (T, ...), zero on padding tokens."""

    @staticmethod
    def forward(ctx: Any, slots: torch.Tensor, slot_of_token: torch.Tensor, tokens: int) -> torch.Tensor:
        """Gather."""
        ctx.save_for_backward(slot_of_token)
        ctx.slots = slots.shape[0]
        return _padded_select(slots, slot_of_token, tokens)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Scatter to each token's slot; padding slots get zero."""
        (slot_of_token,) = ctx.saved_tensors
        return _scatter(grad, slot_of_token, ctx.slots), None, None


class SelectRows(torch.autograd.Function):
    """Pick rows; the first `count` of the index are distinct, the gradient of the rest is dropped."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, index: torch.Tensor, count: int) -> torch.Tensor:
        """Gather."""
        ctx.save_for_backward(index)
        ctx.rows, ctx.count = x.shape[0], count
        return x.index_select(0, index)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Scatter."""
        (index,) = ctx.saved_tensors
        return _scatter(grad, index[: ctx.count], ctx.rows), None, None


class TokenLoss(torch.autograd.Function):
    """Cross-entropy of each row of logits; (S, V) -> (S,) float32, 0 where the target is `IGNORED`."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Compute losses, keeping the probabilities for the backward pass."""
        known = targets != IGNORED
        index = targets.clamp(min=0).unsqueeze(-1)
        highest = logits.amax(-1, keepdim=True)
        probability = torch.softmax(logits, dim=-1, dtype=torch.float32)
        # From the largest probability, which never underflows, rather than from the target's, which may.
        below = highest.float() - logits.gather(1, index).float()
        losses = (below - probability.amax(-1, keepdim=True).log_()).squeeze(-1)
        ctx.probability, ctx.dtype = probability, logits.dtype
        ctx.save_for_backward(index, known)
        return torch.where(known, losses, losses.new_zeros(()))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return probabilities minus targets; uses up the saved probabilities."""
        index, known = ctx.saved_tensors
        grad = torch.where(known, grad, grad.new_zeros(())).unsqueeze(-1)
        result, ctx.probability = ctx.probability.mul_(grad), None
        return result.scatter_add_(1, index, grad.neg()).to(ctx.dtype), None


def _applied(function: type[torch.autograd.Function]) -> Callable[..., torch.Tensor]:
    """Give a function's `apply` the type torch leaves out."""
    return cast(Callable[..., torch.Tensor], function.apply)


rms_norm = _applied(RmsNorm)
head_norm_rope = _applied(HeadNormRope)
swiglu = _applied(SwiGlu)
slots_from_tokens = _applied(SlotsFromTokens)
tokens_from_slots = _applied(TokensFromSlots)
select_rows = _applied(SelectRows)
token_loss = _applied(TokenLoss)


def _padded_select(source: torch.Tensor, index: torch.Tensor, rows: int) -> torch.Tensor:
    """Return rows of `source` by index, then zeros up to `rows`."""
    result = source.new_empty(rows, *source.shape[1:])
    torch.index_select(source, 0, index, out=result[: index.shape[0]])
    result[index.shape[0] :].zero_()
    return result


def _scatter(source: torch.Tensor, index: torch.Tensor, rows: int) -> torch.Tensor:
    """Return zeros with the first rows of `source` put at distinct places."""
    result = source.new_zeros(rows, *source.shape[1:])
    return result.index_copy_(0, index, source[: index.shape[0]])
