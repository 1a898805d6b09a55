"""Evaluation prompts as token ids, and the tokenizer as checkpoints carry it; made once per base and items.

Workers read this artifact instead of the encoder, so that they start without transformers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from autosft.artifacts import Artifact, ArtifactStore
from autosft.errors import ArtifactError, SuiteError
from autosft.identity import fingerprint, hash_file

_SCHEME = 1


@dataclass(frozen=True)
class Prompts:
    """Encoded prompts.

    Attributes:
        ids: Item ids, in suite order.
        tokens: Token ids of each prompt, up to and with the header of the assistant's turn.
        end_of_turn_id: Where an answer stops.
        pad_id: Filler token.
        tokenizer: Folder with the tokenizer files of a checkpoint.
    """

    ids: list[str]
    tokens: list[list[int]]
    end_of_turn_id: int
    pad_id: int
    tokenizer: Path


def make_prompts(base: Path, items_path: Path, sequence_tokens: int, store: ArtifactStore) -> Artifact:
    """Encode the prompts of an items file; returns the existing artifact where there is one.

    Raises:
        SuiteError: The items cannot be read, or there are none.
        BaseModelError: The base has no usable tokenizer.
        TemplateError: The base's template refuses a prompt.
    """
    from autosft.evals import read_items
    from autosft.pool import RowEncoder

    encoder = RowEncoder(base, sequence_tokens)
    key = fingerprint(["prompts", _SCHEME, encoder.fingerprint, items_sha(items_path)])
    found = store.find("prompts", key)
    if found is not None:
        return found
    items = list(read_items(items_path))
    if not items:
        raise SuiteError("there are no items to evaluate", where=str(items_path))
    encoded = [encoder.encode_prompt(item.messages) for item in items]
    with store.create(
        "prompts", key, {"encoder": encoder.fingerprint, "items": items_sha(items_path)}
    ) as step:
        encoder.save_tokenizer(step.path / "tokenizer")
        lengths = np.array([len(ids) for ids in encoded], dtype=np.int64)
        flat = np.array([token for ids in encoded for token in ids], dtype=np.int32)
        np.savez(step.path / "prompts.npz", tokens=flat, lengths=lengths)
        step.data = {
            "ids": [item.id for item in items],
            "end_of_turn_id": encoder.end_of_turn_id,
            "end_of_turn": encoder.end_of_turn,
            "pad_id": encoder.pad_id,
            "template_is_default": encoder.template_is_default,
        }
    return store.load("prompts", key)


def read_prompts(artifact: Artifact) -> Prompts:
    """Read what `make_prompts` wrote.

    Raises:
        ArtifactError: A file is missing.
    """
    with np.load(artifact.file("prompts.npz")) as arrays:
        flat, lengths = arrays["tokens"], arrays["lengths"]
    ends = np.cumsum(lengths)
    tokens = [
        flat[end - length : end].tolist() for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)
    ]
    if len(tokens) != len(artifact.data["ids"]):
        raise ArtifactError(
            "prompts and ids differ in number", where=str(artifact.path), hint="delete it and run again"
        )
    return Prompts(
        ids=list(artifact.data["ids"]),
        tokens=tokens,
        end_of_turn_id=int(artifact.data["end_of_turn_id"]),
        pad_id=int(artifact.data["pad_id"]),
        tokenizer=artifact.path / "tokenizer",
    )


def items_sha(items_path: Path) -> str:
    """Return the hash of an items file.

    Raises:
        SuiteError: It cannot be read.
    """
    try:
        return hash_file(items_path)
    except OSError as error:
        raise SuiteError(f"the items cannot be read: {error.strerror}", where=str(items_path)) from None
