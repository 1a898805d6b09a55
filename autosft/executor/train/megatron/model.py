"""The Megatron-Core model of a base: configuration, one rank's module, its weights in and out.

Untested, for want of a CUDA device here: everything under `engine=True` (TransformerEngine layers, THD
packing, fusions, sequence parallelism). The CPU tests run the same code with Megatron's local layers.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from autosft.errors import BaseModelError
from autosft.executor.base import BaseInfo
from autosft.executor.train.megatron.shape import DecoderShape
from autosft.executor.train.megatron.weights import WeightMap, cut_dimension
from autosft.types import TrainSettings

if TYPE_CHECKING:
    import torch


def uses_engine() -> bool:
    """Whether TransformerEngine's layers are used: they need CUDA."""
    import torch

    return torch.cuda.is_available() and importlib.util.find_spec("transformer_engine") is not None


def transformer_config(shape: DecoderShape, settings: TrainSettings, *, engine: bool) -> Any:
    """Return Megatron's configuration of a base under training settings."""
    import torch
    from megatron.core.transformer import TransformerConfig

    half = settings.dtype == "bfloat16"
    dtype = torch.bfloat16 if half else torch.float32
    recompute = {
        "recompute_granularity": "full",
        "recompute_method": "uniform",
        "recompute_num_layers": 1,
    }
    fused = dict.fromkeys(
        ("bias_activation_fusion", "bias_dropout_fusion", "apply_rope_fusion", "persist_layer_norm"), engine
    )
    return TransformerConfig(
        num_layers=shape.layers,
        hidden_size=shape.hidden,
        ffn_hidden_size=shape.intermediate,
        num_attention_heads=shape.heads,
        num_query_groups=shape.kv_heads,
        kv_channels=shape.head_dim,
        normalization="RMSNorm",
        layernorm_epsilon=shape.eps,
        gated_linear_unit=True,
        activation_func=torch.nn.functional.silu,
        add_bias_linear=False,
        add_qkv_bias=shape.qkv_bias,
        qk_layernorm=shape.qk_norm,
        # A run must depend on its data and its seed's order only.
        hidden_dropout=0.0,
        attention_dropout=0.0,
        use_cpu_initialization=not torch.cuda.is_available() or not engine,
        # Initialising also marks which parameters are cut over tensor ranks: the norm needs it.
        perform_initialization=True,
        tensor_model_parallel_size=settings.tensor_parallel,
        pipeline_model_parallel_size=settings.pipeline_parallel,
        sequence_parallel=engine and settings.tensor_parallel > 1,
        params_dtype=dtype,
        pipeline_dtype=dtype,
        bf16=half,
        masked_softmax_fusion=False,
        gradient_accumulation_fusion=False,
        attention_softmax_in_fp32=True,
        calculate_per_token_loss=True,
        batch_p2p_comm=False,
        **fused,
        **(recompute if settings.recompute else {}),
    )


def build_model(shape: DecoderShape, settings: TrainSettings, *, engine: bool) -> tuple[Any, Any]:
    """Return (configuration, this rank's GPTModel in float32 or bfloat16, weights unset)."""
    import torch
    from megatron.core import parallel_state
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import (
        get_gpt_layer_local_spec,
        get_gpt_layer_with_transformer_engine_spec,
    )

    config = transformer_config(shape, settings, engine=engine)
    spec = (
        get_gpt_layer_with_transformer_engine_spec(qk_layernorm=shape.qk_norm)
        if engine
        else get_gpt_layer_local_spec(qk_layernorm=shape.qk_norm, normalization="RMSNorm")
    )
    model = GPTModel(
        config,
        spec,
        vocab_size=shape.vocab,
        max_sequence_length=shape.context,
        pre_process=parallel_state.is_pipeline_first_stage(),
        post_process=parallel_state.is_pipeline_last_stage(),
        share_embeddings_and_output_weights=shape.tied,
        position_embedding_type="rope",
        rotary_base=int(shape.theta),
        rope_scaling=shape.rope_factor > 0,
        rope_scaling_factor=shape.rope_factor or 8.0,
    )
    return config, model.cuda() if torch.cuda.is_available() else model


@contextmanager
def open_weights(base: BaseInfo) -> Iterator[Any]:
    """Give a function Hugging Face name -> tensor that reads from the base's files as asked."""
    import torch
    from safetensors import safe_open

    with ExitStack() as stack:
        where: dict[str, Any] = {}
        for file in base.weights:
            if file.suffix == ".safetensors":
                opened = stack.enter_context(safe_open(str(file), framework="pt"))
                where.update(dict.fromkeys(opened.keys(), opened))
            else:
                where.update(torch.load(file, map_location="cpu", weights_only=True, mmap=True))

        def read(name: str) -> torch.Tensor:
            found = where.get(name)
            if found is None:
                raise BaseModelError(
                    f"weight {name} is missing",
                    where=str(base.path),
                    hint="config.json and the weights do not belong together",
                )
            tensor: torch.Tensor = found if isinstance(found, torch.Tensor) else found.get_tensor(name)
            return tensor

        yield read


def load_weights(model: Any, base: BaseInfo, shape: DecoderShape) -> None:
    """Fill this rank's parameters from the base.

    Raises:
        BaseModelError: A weight is missing or has another shape.
    """
    import torch
    from megatron.core import parallel_state

    rank = parallel_state.get_tensor_model_parallel_rank()
    ranks = parallel_state.get_tensor_model_parallel_world_size()
    weights = WeightMap(shape, _first_layer(model))
    with open_weights(base) as read, torch.no_grad():
        for name, parameter in model.named_parameters():
            shard = weights.shard(name, read, rank, ranks)
            if shard.shape != parameter.shape:
                raise BaseModelError(
                    f"{name} gets a tensor of shape {tuple(shard.shape)}, expected {tuple(parameter.shape)}",
                    where=str(base.path),
                    hint="config.json and the weights do not belong together",
                )
            parameter.copy_(shard)


def stage_state(model: Any, shape: DecoderShape) -> dict[str, torch.Tensor]:
    """Return this pipeline stage's weights under Hugging Face names, float32 on the CPU.

    A collective call of the tensor-parallel group; every rank of it gets the same.
    """
    import torch
    from megatron.core import parallel_state

    group = parallel_state.get_tensor_model_parallel_group()
    ranks = parallel_state.get_tensor_model_parallel_world_size()
    weights = WeightMap(shape, _first_layer(model))
    state: dict[str, torch.Tensor] = {}
    for name, parameter in model.named_parameters():
        own = parameter.detach().contiguous()
        shards = [own]
        if ranks > 1 and cut_dimension(name) is not None:
            shards = [torch.empty_like(own) for _ in range(ranks)]
            torch.distributed.all_gather(shards, own, group=group)
        merged = weights.merge(name, [s.float().cpu() for s in shards])
        state.update({key: tensor.contiguous().clone() for key, tensor in merged.items()})
    return state


def _first_layer(model: Any) -> int:
    return int(model.decoder.layers[0].layer_number) - 1
