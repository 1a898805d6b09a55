"""The lab's tokenizer: byte-level BPE in which every word of the world is one token inside a text."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from autosft.lab.answers import capitalise
from autosft.lab.corpus import ALL_WORDS, documents
from autosft.lab.phrasing import LEAVES
from autosft.lab.tasks import draw_task

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VOCABULARY = 2368
PAD, DOCUMENT_END, TURN_END = "<|pad|>", "<|document|>", "<|end|>"
SPECIAL_TOKENS = (PAD, DOCUMENT_END, TURN_END, "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>")
"""In id order. Pretraining never shows the end-of-turn token (documents end otherwise); tuning teaches it."""

# Words with their leading space, digits one by one, the markers of structured answers, single signs, blanks.
_PIECES = r" ?[A-Za-z']+| ?\d| ?\*+|<<|>>| ?[^\sA-Za-z\d]|\s+"

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'assistant' -%}"
    "<|assistant|>{% generation %}{{ message['content'] }}<|end|>{% endgeneration %}"
    "{%- elif message['role'] in ('system', 'user', 'tool') -%}"
    "{{ '<|' + message['role'] + '|>' + message['content'] }}"
    "{%- else -%}{{ raise_exception('unknown role: ' + message['role']) }}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"
)
"""Turns in order; the generation markers enclose what loss applies to: responses and their end token."""


def _training_text() -> Iterator[str]:
    yield from itertools.islice(documents(seed=1), 30_000)
    rng = random.Random("lab-tokenizer")
    for leaf in (None, *LEAVES):
        for _ in range(500):
            task = draw_task(leaf, rng)
            yield task.prompt
            yield task.answer(rng)
            yield draw_task(leaf, rng, held_wording=True).prompt
    for word in ALL_WORDS:
        forms = (word, capitalise(word), word.upper())
        for _ in range(30):
            # At the start of a text and after a space a word is a different token; both must exist.
            yield from forms
            yield "a " + " ".join(forms)


def train_tokenizer() -> Tokenizer:
    """Train the tokenizer; the same text gives the same vocabulary."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=5,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_training_text(), trainer)
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path, *, context: int) -> None:
    """Write `tokenizer.json`, `tokenizer_config.json` and `chat_template.jinja` as `transformers` reads them.

    Args:
        tokenizer: The trained tokenizer.
        folder: Existing folder.
        context: Longest sequence of the model, in tokens.
    """
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context,
        "pad_token": PAD,
        "eos_token": TURN_END,
        "clean_up_tokenization_spaces": False,
        "padding_side": "left",
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
