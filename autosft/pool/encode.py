"""Rows to tokens: the base's chat template, exact loss masks, truncation, token counts.

Every assistant turn is tokenized on its own, from the end of its header to its end-of-turn token: the tokens
before it are then exactly those of the prompt at generation time, whatever a tokenizer would merge across.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autosft.errors import BaseModelError, TemplateError
from autosft.identity import fingerprint, hash_file
from autosft.pool.counts import CountCache
from autosft.pool.rows import base_id
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
_BATCH_ROWS = 2048
_KEEP_TOKENS = 60_000_000


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
        cache: Folder for token counts, shared between processes; None keeps them in memory.

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
        own = _own_template(self._tokenizer)
        self.template_is_default = own is None
        variables, special, added = self._tokens(needs_eos=own is None)
        self._added = tuple(added)
        self.template = ChatTemplate(own or DEFAULT_TEMPLATE, variables, special, added)
        self.end_of_turn = self.template.end_of_turn
        self.end_of_turn_id = int(self._tokenizer.convert_tokens_to_ids(self.end_of_turn))
        pad = self._tokenizer.pad_token_id
        self.pad_id = self.end_of_turn_id if pad is None else int(pad)
        self._newline: list[int] = []
        self._newline = self._needs_newline()
        self._counts = CountCache(None if cache is None else cache / self.fingerprint)
        self._encoded: OrderedDict[str, Encoded] = OrderedDict()
        self._kept_tokens = 0

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
        results: list[Encoded | TemplateError | None] = [self._encoded.get(base_id(row.id)) for row in rows]
        missing = [i for i, result in enumerate(results) if result is None]
        for start in range(0, len(missing), _BATCH_ROWS):
            part = missing[start : start + _BATCH_ROWS]
            for index, result in zip(part, self._encode_batch([rows[i] for i in part]), strict=True):
                results[index] = result
        return [result for result in results if result is not None]

    def encode_prompt(self, messages: Sequence[Message]) -> list[int]:
        """Encode a prompt with the header of the next assistant turn: what generation starts from.

        Raises:
            TemplateError: The template refuses the turns.
        """
        pieces = self.template.prompt_pieces(messages)
        return [token for ids in self._tokenize([pieces])[0] for token in ids]

    def counts(self, pool: Pool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count tokens and loss tokens of each row after truncation; 0 where it cannot be encoded."""
        keys = [int(base_id(row_id), 16) for row_id in pool.ids]
        known = self._counts.known
        missing = [i for i, key in enumerate(keys) if key not in known]
        made: dict[int, tuple[int, int]] = {}
        for start in range(0, len(missing), _BATCH_ROWS):
            part = missing[start : start + _BATCH_ROWS]
            for i, found in zip(part, self.encode_many(pool.take(part).rows()), strict=True):
                if isinstance(found, TemplateError):
                    made[keys[i]] = (0, 0)
                else:
                    made[keys[i]] = (len(found.ids), int(found.loss_mask.sum()))
        self._counts.add(made)
        pairs = np.array([known[key] for key in keys], dtype=np.int64).reshape(len(keys), 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, special tokens shown."""
        return str(self._backend.decode([int(i) for i in ids], skip_special_tokens=False))

    def _encode_batch(self, rows: Sequence[Row]) -> list[Encoded | TemplateError]:
        split: list[list[Piece] | TemplateError] = []
        for row in rows:
            try:
                split.append(self.template.pieces(row.messages))
            except TemplateError as error:
                where = f"row {row.id}, {error.where}" if error.where else f"row {row.id}"
                split.append(TemplateError(error.what, where=where, hint=error.hint))
        tokens = iter(self._tokenize([pieces for pieces in split if not isinstance(pieces, TemplateError)]))
        results: list[Encoded | TemplateError] = []
        for row, pieces in zip(rows, split, strict=True):
            if isinstance(pieces, TemplateError):
                results.append(pieces)
                continue
            encoded = self._join(pieces, next(tokens))
            self._remember(base_id(row.id), encoded)
            results.append(encoded)
        return results

    def _join(self, pieces: list[Piece], tokens: list[list[int]]) -> Encoded:
        flat = [token for ids in tokens for token in ids]
        lengths = [len(ids) for ids in tokens]
        mask = np.repeat(np.array([piece.loss for piece in pieces], dtype=np.uint8), lengths)
        ids = np.array(flat[: self.sequence_tokens], dtype=np.int32)
        return Encoded(ids, mask[: self.sequence_tokens].copy(), len(flat) > self.sequence_tokens)

    def _tokenize(self, rows: list[list[Piece]]) -> list[list[list[int]]]:
        """Token ids of each piece of each row."""
        inside = [[k > 0 and self._mid_text(pieces[k - 1]) for k in range(len(pieces))] for pieces in rows]
        texts = [
            "\n" + piece.text if self._newline and mid else piece.text
            for pieces, middles in zip(rows, inside, strict=True)
            for piece, mid in zip(pieces, middles, strict=True)
        ]
        encodings = iter(self._backend.encode_batch_fast(texts, add_special_tokens=False))
        skip = len(self._newline)
        return [[next(encodings).ids[skip if mid else 0 :] for mid in middles] for middles in inside]

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
        if [t for ids in self._tokenize([pieces])[0] for t in ids] == whole:
            return []
        self._newline = list(self._backend.encode("\n", add_special_tokens=False).ids)
        fits = [t for ids in self._tokenize([pieces])[0] for t in ids] == whole
        return self._newline if fits else []

    def _remember(self, key: str, encoded: Encoded) -> None:
        if key in self._encoded:
            return
        self._encoded[key] = encoded
        self._kept_tokens += len(encoded.ids)
        while self._kept_tokens > _KEEP_TOKENS:
            _, oldest = self._encoded.popitem(last=False)
            self._kept_tokens -= len(oldest.ids)

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
