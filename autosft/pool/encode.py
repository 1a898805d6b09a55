"""Rows to tokens: the base's chat template, exact loss masks, truncation, token counts.

Every assistant turn is tokenized on its own, from the end of its header to its end-of-turn token: the tokens
before it are then exactly those of the prompt at generation time, whatever a tokenizer would merge across.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autosft.engine.ragged import Ragged, RaggedCache, joined
from autosft.engine.tokens import FlatTokenizer
from autosft.errors import BaseModelError, TemplateError
from autosft.identity import fingerprint, hash_file
from autosft.pool.skeleton import Skeletons
from autosft.pool.table import Pool
from autosft.pool.template import DEFAULT_TEMPLATE, ChatTemplate, Piece
from autosft.types import Message, Row

_SCHEME = 1  # raise it when the same row would get other tokens
_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
)
_BATCH_ROWS = 4096
_SHARD_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Encoded:
    """A row as the trainer sees it.

    Attributes:
        ids: int32 token ids, at most `sequence_tokens`.
        loss_mask: uint8, 1 on assistant turns and their end-of-turn token.
        truncated: Tokens were cut off at the end.
    """

    ids: NDArray[np.int32]
    loss_mask: NDArray[np.uint8]
    truncated: bool


class RowEncoder:
    """Encodes rows with a base's tokenizer and chat template.

    Args:
        tokenizer_dir: Folder with the base's tokenizer files (a Hugging Face model folder).
        sequence_tokens: Longer rows are cut to this many tokens.
        cache: Folder for encoded rows, shared between processes; None keeps them in memory.

    Raises:
        BaseModelError: There is no usable fast tokenizer, or no token that could end a turn.
        TemplateError: The base's template cannot render or end a plain exchange.
    """

    def __init__(self, tokenizer_dir: Path | str, sequence_tokens: int, *, cache: Path | None = None) -> None:
        self.tokenizer_dir = Path(tokenizer_dir)
        self.sequence_tokens = sequence_tokens
        self._tokenizer = _load_tokenizer(self.tokenizer_dir)
        self._backend = self._tokenizer.backend_tokenizer
        self._backend.no_truncation()
        self._backend.no_padding()
        file = self.tokenizer_dir / "tokenizer.json"
        self._flat = FlatTokenizer(self._backend, file if file.is_file() else None)
        own = _own_template(self._tokenizer)
        self.template_is_default = own is None
        variables, special, added = self._tokens(needs_eos=own is None)
        self._added = tuple(added)
        self.template = ChatTemplate(own or DEFAULT_TEMPLATE, variables, special, added)
        self.end_of_turn = self.template.end_of_turn
        self.end_of_turn_id = int(self._tokenizer.convert_tokens_to_ids(self.end_of_turn))
        pad = self._tokenizer.pad_token_id
        self.pad_id = self.end_of_turn_id if pad is None else int(pad)
        self._skeletons = Skeletons(self.template)
        self._newline: list[int] = []
        self._newline = self._needs_newline()
        self._cache = RaggedCache(None if cache is None else cache / self.fingerprint)

    @property
    def chat_template(self) -> str:
        """The template in use; a checkpoint must be exported with it."""
        return self.template.source

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of tokenizer files, template and sequence length: equal encoders give equal tokens."""
        names = [name for name in _TOKENIZER_FILES if (self.tokenizer_dir / name).is_file()]
        files = {name: hash_file(self.tokenizer_dir / name) for name in names}
        return fingerprint([_SCHEME, files, self.chat_template, self.sequence_tokens])

    def save_tokenizer(self, folder: Path) -> None:
        """Write tokenizer and chat template as `transformers` reads them, the end-of-turn token as EOS."""
        tokenizer = _load_tokenizer(self.tokenizer_dir)
        tokenizer.chat_template = self.chat_template
        tokenizer.eos_token = self.end_of_turn
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = self.end_of_turn
        tokenizer.save_pretrained(str(folder))

    def encode(self, row: Row) -> Encoded:
        """Encode one row.

        Raises:
            TemplateError: The template refuses the turns or cannot be masked exactly; names the row.
        """
        found = self.encode_many([row])[0]
        if isinstance(found, TemplateError):
            raise found
        return found

    def encode_many(self, rows: Sequence[Row]) -> list[Encoded | TemplateError]:
        """Encode rows, in order; a row that cannot be encoded exactly gives its error instead."""
        if not rows:
            return []
        flat, errors = self._encode_rows(rows)
        borders = flat.offsets[1:-1]
        parts = zip(
            np.split(flat.ids, borders), np.split(flat.marks, borders), flat.cut.tolist(), strict=True
        )
        return [
            errors[i] if i in errors else Encoded(ids, marks, cut)
            for i, (ids, marks, cut) in enumerate(parts)
        ]

    def encode_pool(self, pool: Pool) -> Ragged:
        """Encode all rows of a pool; one that cannot be encoded exactly gets no tokens (see `encode`).

        Rows are looked up by their content; only those that were never encoded before cost anything.
        """
        shard, row = self._known(pool)
        return self._cache.take(shard, row)

    def encode_prompt(self, messages: Sequence[Message]) -> list[int]:
        """Encode a prompt with the header of the next assistant turn: what generation starts from.

        Raises:
            TemplateError: The template refuses the turns.
        """
        pieces = self.template.prompt_pieces(messages)
        found: list[int] = self._tokenize([pieces])[0].tolist()
        return found

    def counts(self, pool: Pool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count tokens and loss tokens of each row after truncation; 0 where it cannot be encoded."""
        return self._cache.lengths(*self._known(pool))

    def _known(self, pool: Pool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the cache holds each row, after encoding those it did not hold."""
        shard, row = self._cache.find(pool.keys)
        missing = np.flatnonzero(shard < 0)
        if not len(missing):
            return shard, row
        _, first = np.unique(pool.keys[missing], return_index=True)
        new = missing[np.sort(first)]
        for start in range(0, len(new), _SHARD_ROWS):
            part = new[start : start + _SHARD_ROWS]
            batches = [
                self._encode_rows(pool.take(part[at : at + _BATCH_ROWS]).rows())[0]
                for at in range(0, len(part), _BATCH_ROWS)
            ]
            self._cache.add(pool.keys[part], joined(batches))
        shard[missing], row[missing] = self._cache.find(pool.keys[missing])
        return shard, row

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, special tokens shown."""
        return str(self._backend.decode([int(i) for i in ids], skip_special_tokens=False))

    def _encode_rows(self, rows: Sequence[Row]) -> tuple[Ragged, dict[int, TemplateError]]:
        """Return the rows' tokens, and the errors of those that have none."""
        errors: dict[int, TemplateError] = {}
        split: list[list[Piece]] = []
        for number, row in enumerate(rows):
            try:
                split.append(self._skeletons.pieces(row.messages))
            except TemplateError as error:
                where = f"row {row.id}, {error.where}" if error.where else f"row {row.id}"
                errors[number] = TemplateError(error.what, where=where, hint=error.hint)
                split.append([])
        ids, sizes = self._tokenize(split)
        counts = np.array([len(pieces) for pieces in split], dtype=np.int64)
        loss = np.array([piece.loss for pieces in split for piece in pieces], dtype=np.uint8)
        ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
        starts = ends[np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])]
        lengths = np.diff(starts)
        kept = np.minimum(lengths, self.sequence_tokens)
        inside = np.arange(len(ids)) - np.repeat(starts[:-1], lengths) < self.sequence_tokens
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(kept)])
        return Ragged(ids[inside], np.repeat(loss, sizes)[inside], offsets, lengths > kept), errors

    def _tokenize(self, rows: list[list[Piece]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the token ids of all pieces, one after another, and how many each piece has."""
        inside = [k > 0 and self._mid_text(pieces[k - 1]) for pieces in rows for k in range(len(pieces))]
        texts = [piece.text for pieces in rows for piece in pieces]
        if not self._newline or not any(inside):
            ids, offsets = self._flat.encode(texts)
            return ids, np.diff(offsets)
        # A newline goes before a piece inside running text, and its tokens are taken out again.
        marked = ["\n" + text if mid else text for text, mid in zip(texts, inside, strict=True)]
        ids, offsets = self._flat.encode(marked)
        sizes = np.diff(offsets)
        cut = np.array(inside, dtype=np.int64) * len(self._newline)
        kept = np.arange(len(ids)) - np.repeat(offsets[:-1], sizes) >= np.repeat(cut, sizes)
        return ids[kept], np.maximum(sizes - cut, 0)

    def _mid_text(self, before: Piece) -> bool:
        """Whether a piece continues running text; after a special token a tokenizer starts afresh anyway."""
        return not before.text.endswith(self._added)

    def _needs_newline(self) -> list[int]:
        """Tokens to cut where a tokenizer puts a space before each text, as SentencePiece ones do.

        A piece inside a conversation then is tokenized after a newline that is cut off again. Used only where
        it brings a probe to the tokens of the unsplit text.
        """
        pieces = self.template.pieces([Message("user", "What is it?"), Message("assistant", "It is a test.")])
        whole = self._backend.encode("".join(p.text for p in pieces), add_special_tokens=False).ids
        if self._tokenize([pieces])[0].tolist() == whole:
            return []
        self._newline = list(self._backend.encode("\n", add_special_tokens=False).ids)
        fits = self._tokenize([pieces])[0].tolist() == whole
        return self._newline if fits else []

    def _tokens(self, *, needs_eos: bool) -> tuple[dict[str, str], list[str], list[str]]:
        variables = {k: v for k, v in self._tokenizer.special_tokens_map.items() if isinstance(v, str)}
        if needs_eos and "eos_token" not in variables:
            raise BaseModelError(
                "the base has neither a chat template nor an end-of-sequence token",
                where=str(self.tokenizer_dir),
                hint="add a chat_template.jinja to the base's folder",
            )
        added = self._backend.get_added_tokens_decoder().values()
        special = [t.content for t in added if t.special] + list(variables.values())
        return variables, special, [t.content for t in added]


def _own_template(tokenizer: Any) -> str | None:
    template = tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("default")
    return template or None


def _load_tokenizer(folder: Path) -> Any:
    """Load a fast tokenizer from a folder; no network, no code from the folder."""
    from transformers import AutoTokenizer

    if not folder.is_dir():
        raise BaseModelError(
            "no such folder", where=str(folder), hint="give the folder of a Hugging Face model"
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    except Exception as error:
        # Anything may come out of a broken folder; the Rust tokenizer raises a bare Exception.
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise BaseModelError(f"its tokenizer cannot be loaded: {first}", where=str(folder)) from None
    if not getattr(tokenizer, "is_fast", False):
        raise BaseModelError("it has no fast tokenizer (tokenizer.json)", where=str(folder))
    return tokenizer
