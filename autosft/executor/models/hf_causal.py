"""Any Hugging Face causal language model behind `CausalModel`.

Packed rows are one sequence with a block-diagonal 4-D mask and position ids that restart at each row. Whether
that isolates rows in this architecture is measured once on load; where it does not (recurrent layers, say),
each row gets its own forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from autosft.errors import BaseModelError
from autosft.executor.base import BaseInfo
from autosft.executor.generate.answers import Answer, DecodePlan
from autosft.executor.packing import IGNORED, PackedBatch, pack_rows

_PROBE_TOLERANCE = 1e-3
_BLOCKED = torch.finfo(torch.float32).min


class HfCausal:
    """A transformers model; parameters are float32, `compute` is the type of autocast."""

    forward_tokens = 1024

    def __init__(self, model: Any, compute: torch.dtype, vocab: int) -> None:
        # Dropout stays off: a run must depend on its data and its seed's order only.
        self.model = model.eval()
        self.compute, self.vocab = compute, vocab
        self.device = next(model.parameters()).device
        self.isolates = True
        self.isolates = self._probe_isolation()

    def token_losses(self, batch: PackedBatch) -> torch.Tensor:
        """Return the loss of each supervised token, float32, shape (S,), 0 on padding."""
        if not self.isolates:
            return self._separate_losses(batch)
        n, total = batch.n_tokens, len(batch.ids_T)
        part = np.full(total, len(batch.lengths_P), dtype=np.int64)
        part[:n] = np.repeat(np.arange(len(batch.lengths_P)), batch.lengths_P)
        part_T = torch.from_numpy(part)
        allowed = (part_T[:, None] == part_T[None, :]).tril_()
        mask = torch.zeros(1, 1, total, total).masked_fill_(~allowed, _BLOCKED).to(self.device)
        with self._autocast():
            logits = self.model(
                input_ids=batch.ids_T[None].to(self.device),
                attention_mask=mask,
                position_ids=batch.positions_T[None].to(self.device),
                use_cache=False,
                logits_to_keep=batch.predict_S.to(self.device),
            ).logits[0]
        targets = batch.targets_S.to(self.device)
        return F.cross_entropy(logits.float(), targets, ignore_index=IGNORED, reduction="none")

    def _separate_losses(self, batch: PackedBatch) -> torch.Tensor:
        """One forward pass a row, for architectures whose rows cannot share one."""
        losses: list[torch.Tensor] = []
        for start, length in zip(batch.starts_P.tolist(), batch.lengths_P.tolist(), strict=True):
            inside = (
                (batch.predict_S >= start) & (batch.predict_S < start + length) & (batch.targets_S != IGNORED)
            )
            if not bool(inside.any()):
                continue
            with self._autocast():
                ids = batch.ids_T[None, start : start + length].to(self.device)
                logits = self.model(input_ids=ids, use_cache=False).logits[0]
            chosen = logits[(batch.predict_S[inside] - start).to(self.device)]
            targets = batch.targets_S[inside].to(self.device)
            losses.append(F.cross_entropy(chosen.float(), targets, reduction="none"))
        padding = len(batch.targets_S) - batch.n_targets
        return torch.cat([*losses, torch.zeros(padding, device=self.device)])

    def _probe_isolation(self) -> bool:
        """Compare two packed rows with the same rows alone; False where the model mixes or refuses them."""
        rng = np.random.default_rng(0)
        rows = [rng.integers(0, self.vocab, n).astype(np.int32) for n in (7, 9)]
        batch = pack_rows(rows, [np.ones(len(r), dtype=np.uint8) for r in rows], align=1)
        with torch.no_grad():
            alone = self._separate_losses(batch)
            try:
                packed = self.token_losses(batch)
            except (TypeError, ValueError, RuntimeError, NotImplementedError):
                return False
        # Wider in bfloat16, whose rounding alone exceeds the float32 band.
        tolerance = _PROBE_TOLERANCE if self.compute == torch.float32 else 0.1
        return packed.shape == alone.shape and bool((packed - alone).abs().max() < tolerance)

    def optimiser_groups(self) -> tuple[list[torch.nn.Parameter], list[torch.nn.Parameter]]:
        """Return (matrices, vectors): norms and biases are not decayed."""
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        return [p for p in parameters if p.dim() >= 2], [p for p in parameters if p.dim() < 2]

    def state(self) -> dict[str, torch.Tensor]:
        """Return name -> tensor; tied parameters once."""
        return {name: p.detach() for name, p in self.model.named_parameters()}

    def load_state(self, state: Mapping[str, torch.Tensor], where: str = "") -> None:
        """Copy weights in.

        Raises:
            BaseModelError: Names or shapes do not match the model.
        """
        own = dict(self.model.named_parameters())
        if set(own) != set(state):
            odd = sorted(set(own) ^ set(state))[:3]
            raise BaseModelError(
                f"weights do not belong to this model (first differences: {odd})", where=where
            )
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.copy_(state[name])

    def answer(
        self, prompts: Sequence[Sequence[int]], plan: DecodePlan, progress: Callable[[int], None]
    ) -> list[Answer]:
        """Continue each prompt through `transformers.generate`; in the order given."""
        from autosft.executor.generate.hf_decode import decode_hf

        return decode_hf(self.model, self._autocast, prompts, plan, progress)

    def _autocast(self) -> AbstractContextManager[Any]:
        if self.compute == torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, self.compute)


def load_hf(base: BaseInfo, compute: torch.dtype, device: str) -> HfCausal:
    """Load a causal language model from a folder; no network, no code from the folder.

    Raises:
        BaseModelError: transformers cannot load it, or weights are missing.
    """
    return HfCausal(open_hf(base, torch.float32).to(device), compute, base.vocab)


def open_hf(base: BaseInfo, dtype: torch.dtype) -> Any:
    """Return the bare transformers model of a folder, in a type.

    Raises:
        BaseModelError: transformers cannot load it, or weights are missing.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        model, info = AutoModelForCausalLM.from_pretrained(
            str(base.path),
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    except Exception as error:
        # transformers raises anything from OSError to KeyError on a broken folder.
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise BaseModelError(f"transformers cannot load it: {first}", where=str(base.path)) from error
    missing = sorted(info.get("missing_keys", ()))
    if missing:
        raise BaseModelError(
            f"{len(missing)} weights are missing, the first is {missing[0]}",
            where=str(base.path),
            hint="config.json and the weights do not belong together",
        )
    return model
