"""The base model on disk: what makes it usable, and what it *is* (its fingerprint, I1)."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autosft.errors import BaseFingerprintError, BaseModelError
from autosft.identity import fingerprint, hash_file

_FILES = (
    "config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "pytorch_model*.bin",
    "pytorch_model*.bin.index.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
)
_DTYPES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16", "F64": "float64"}


@dataclass(frozen=True, slots=True)
class BaseInfo:
    """A usable base.

    Attributes:
        path: Its folder.
        model_type: Hugging Face model type, such as `qwen3`.
        native: Trained by this package's own decoder; otherwise by transformers.
        vocab: Rows of the embedding.
        context: Longest sequence in tokens; 0 if the configuration does not say.
        dtype: Type the weights are stored in, and the checkpoints are exported in.
        weights: Files that hold the weights.
        config: The parsed `config.json`.
    """

    path: Path
    model_type: str
    native: bool
    vocab: int
    context: int
    dtype: str
    weights: tuple[Path, ...]
    config: Mapping[str, Any] = field(repr=False)


def base_fingerprint(path: Path | str) -> str:
    """Return a fingerprint over weights, configuration and tokenizer files; 24 hex digits.

    Raises:
        BaseModelError: There is no such folder, or it holds no configuration or no weights.
    """
    folder = Path(path)
    _read_config(folder)
    _weight_files(folder)
    files = {file for pattern in _FILES for file in folder.glob(pattern) if file.is_file()}
    return fingerprint(sorted((file.name, hash_file(file)) for file in files))


def verify_fingerprint(path: Path | str, expected: str) -> None:
    """Refuse a base that is not the campaign's (I1).

    Raises:
        BaseFingerprintError: The fingerprint differs.
        BaseModelError: The folder is unusable.
    """
    found = base_fingerprint(path)
    if found != expected:
        raise BaseFingerprintError(
            f"the base has fingerprint {found}, the campaign trains from {expected}",
            where=str(path),
            hint="restore the base's files, or start a new campaign with this base",
        )


def check_base(path: Path | str) -> BaseInfo:
    """Look at a base folder without loading it.

    Raises:
        BaseModelError: No folder, no or broken configuration, no or truncated weights, no tokenizer, or
            not a causal language model.
    """
    folder = Path(path)
    config = _read_config(folder)
    native = _is_native(folder, config)
    if not native:
        _require_causal(folder, config)
    weights = _weight_files(folder)
    if not any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        raise BaseModelError(
            "the base has no tokenizer",
            where=str(folder),
            hint="save it beside the weights: tokenizer.save_pretrained(DIR)",
        )
    text = config.get("text_config") or config
    vocab = text.get("vocab_size")
    if not isinstance(vocab, int) or vocab < 1:
        raise BaseModelError("config.json has no vocab_size", where=str(folder / "config.json"))
    context = next(
        (int(text[k]) for k in ("max_position_embeddings", "n_positions", "n_ctx") if text.get(k)), 0
    )
    return BaseInfo(
        path=folder,
        model_type=str(config["model_type"]),
        native=native and all(file.suffix == ".safetensors" for file in weights),
        vocab=vocab,
        context=context,
        dtype=_stored_dtype(weights, config),
        weights=tuple(weights),
        config=config,
    )


def _read_config(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise BaseModelError(
            "no such folder", where=str(folder), hint="give the folder of a Hugging Face model"
        )
    file = folder / "config.json"
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BaseModelError(
            "the base has no config.json", where=str(folder), hint="give the folder of a Hugging Face model"
        ) from None
    except (OSError, ValueError) as error:
        raise BaseModelError(f"config.json cannot be read: {error}", where=str(file)) from None
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise BaseModelError("config.json names no model_type", where=str(file))
    return config


def _is_native(folder: Path, config: Mapping[str, Any]) -> bool:
    if config["model_type"] != "qwen3":
        return False
    from autosft.executor.models.shape import Qwen3Shape

    try:
        return Qwen3Shape.from_config(config) is not None
    except (KeyError, TypeError, ValueError) as error:
        raise BaseModelError(
            f"config.json is incomplete: {error!r}", where=str(folder / "config.json")
        ) from None


def _require_causal(folder: Path, config: Mapping[str, Any]) -> None:
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CAUSAL

    model_type = config["model_type"]
    if model_type not in CAUSAL:
        raise BaseModelError(
            f"model type {model_type!r} is not a causal language model of the installed transformers",
            where=str(folder / "config.json"),
            hint="give a decoder-only model, or update transformers",
        )
    named = config.get("architectures") or []
    known = CAUSAL[model_type]
    if named and known not in named:
        raise BaseModelError(
            f"the weights are of a {named[0]}, not of a causal language model",
            where=str(folder / "config.json"),
            hint=f"for this model type give a {known}",
        )
    if config.get("is_encoder_decoder"):
        raise BaseModelError(
            "the base is an encoder-decoder model", where=str(folder), hint="give a decoder-only model"
        )


def _weight_files(folder: Path) -> list[Path]:
    for single, index in (
        ("model.safetensors", "model.safetensors.index.json"),
        ("pytorch_model.bin", "pytorch_model.bin.index.json"),
    ):
        if (folder / single).is_file():
            files = [folder / single]
        elif (folder / index).is_file():
            try:
                names = sorted(
                    set(json.loads((folder / index).read_text(encoding="utf-8"))["weight_map"].values())
                )
            except (ValueError, KeyError, AttributeError) as error:
                raise BaseModelError(
                    f"the weight index cannot be read: {error}", where=str(folder / index)
                ) from None
            files = [folder / name for name in names]
        else:
            continue
        for file in files:
            if not file.is_file():
                raise BaseModelError("a weight file of the index is missing", where=str(file))
            if file.suffix == ".safetensors":
                read_header(file)
        return files
    raise BaseModelError(
        "the base has no weights",
        where=str(folder),
        hint="model.safetensors (or its index) must lie beside config.json",
    )


def read_header(file: Path) -> dict[str, Any]:
    """Read a safetensors header and check that the file is as long as it says.

    Source: the safetensors format, https://github.com/huggingface/safetensors#format.

    Returns:
        Tensor name -> {dtype, shape, data_offsets}.

    Raises:
        BaseModelError: The file is truncated or is not safetensors.
    """
    size = file.stat().st_size
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > size:
                raise ValueError("header longer than the file")
            header = json.loads(stream.read(length))
        header.pop("__metadata__", None)
        end = max((tensor["data_offsets"][1] for tensor in header.values()), default=0)
    except (struct.error, ValueError, KeyError, TypeError, AttributeError):
        raise BaseModelError(
            "not a readable safetensors file", where=str(file), hint="copy it again"
        ) from None
    if 8 + length + end != size:
        raise BaseModelError(
            f"the weight file is {size} bytes long, its header says {8 + length + end}",
            where=str(file),
            hint="copy it again",
        )
    return dict(header)


def _stored_dtype(weights: list[Path], config: Mapping[str, Any]) -> str:
    if weights[0].suffix == ".safetensors":
        largest = max(
            read_header(weights[0]).values(), key=lambda t: t["data_offsets"][1] - t["data_offsets"][0]
        )
        if largest["dtype"] in _DTYPES:
            return _DTYPES[largest["dtype"]]
        raise BaseModelError(
            f"weights of type {largest['dtype']} cannot be trained",
            where=str(weights[0]),
            hint="give an unquantised base",
        )
    return str(config.get("dtype") or config.get("torch_dtype") or "float32")
