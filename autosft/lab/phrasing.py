"""How the lab asks: request templates, and for each leaf the wordings of its requirement.

A leaf has *seen* wordings, which training rows use, and *held* wordings, which only evaluation prompts use.
Braces name the requirement's arguments: `word`, `Word` (capitalised), `phrase`, `n`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

REQUESTS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "any": (
            "Tell me about the {e}.",
            "Describe the {e}.",
            "What do you know about the {e}?",
            "Write about the {e}.",
        ),
        "place": (
            "Where is the {e}?",
            "Where can I find the {e}?",
            "Tell me where the {e} is.",
            "In what place is the {e}?",
        ),
        "color": (
            "What color is the {e}?",
            "Tell me the color of the {e}.",
            "Name the color of the {e}.",
            "Which color has the {e}?",
        ),
        "size": ("What size is the {e}?", "Tell me the size of the {e}.", "What is the size of the {e}?"),
        "habit": (
            "What does the {e} like to do?",
            "Tell me what the {e} likes to do.",
            "Name the habit of the {e}.",
            "What is the {e} fond of?",
        ),
    }
)
"""Attribute asked for -> templates with the entity as `{e}`."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf of the lab's tree.

    Attributes:
        name: Leaf name.
        branch: Branch it hangs from.
        requirement: Verifier id; ids without `lab:` carry the semantics of the IFEval checker of that name.
        seen: Wordings that training rows may use.
        held: Wordings that only evaluation uses.
    """

    name: str
    branch: str
    requirement: str
    seen: tuple[str, ...]
    held: tuple[str, ...]


_LEAVES = (
    Leaf(
        "lowercase",
        "case",
        "lab:lowercase",
        ("Use only lowercase letters.", "Write in all lowercase.", "No capital letters allowed."),
        (
            "Your answer should be entirely in lowercase letters.",
            "Please keep every single letter of the whole answer in lowercase.",
        ),
    ),
    Leaf(
        "uppercase",
        "case",
        "lab:uppercase",
        ("Use only capital letters.", "Write in all caps.", "Answer in all uppercase letters."),
        (
            "Your answer should be entirely in capital letters.",
            "Please write every single letter of the whole answer in uppercase.",
        ),
    ),
    Leaf(
        "no_comma",
        "punctuation",
        "punctuation:no_comma",
        ("Do not use commas.", "Avoid commas.", "Write without any commas."),
        (
            "Refrain from using commas in your answer.",
            "There should not be a single comma anywhere in your whole answer.",
        ),
    ),
    Leaf(
        "quotation",
        "punctuation",
        "startend:quotation",
        (
            "Wrap the answer in double quotes.",
            "Put the answer inside quotation marks.",
            "Use double quotes around the answer.",
        ),
        (
            "Your whole answer should be inside double quotes.",
            "Please put the whole answer in between two double quotation marks.",
        ),
    ),
    Leaf(
        "exact_words",
        "length",
        "lab:exact_words",
        ("Answer in exactly {n} words.", "Use exactly {n} words.", "Your answer must have {n} words."),
        (
            "Write an answer with exactly {n} words.",
            "The whole answer should be made of exactly {n} words please.",
        ),
    ),
    Leaf(
        "exact_sentences",
        "length",
        "lab:exact_sentences",
        ("Write exactly {n} sentences.", "Use {n} sentences.", "Answer in {n} sentences."),
        (
            "Your answer must have exactly {n} sentences.",
            "The whole answer should be made of exactly {n} sentences please.",
        ),
    ),
    Leaf(
        "bullets",
        "length",
        "detectable_format:number_bullet_lists",
        ("Use exactly {n} bullet points.", "Give {n} bullet points.", "Answer with {n} bullets."),
        (
            "Your answer must have exactly {n} bullet points.",
            "The whole answer should be a list of exactly {n} bullet points.",
        ),
    ),
    Leaf(
        "keyword",
        "lexical",
        "keywords:existence",
        ("Include the word {word}.", "Use the word {word}.", "Make sure to mention {word}."),
        (
            "Your answer must include the word {word}.",
            "Please make sure that your answer has the word {word} in it.",
        ),
    ),
    Leaf(
        "forbidden",
        "lexical",
        "keywords:forbidden_words",
        ("Do not use the word {word}.", "Avoid the word {word}.", "Never say {word}."),
        (
            "Your answer must not include the word {word}.",
            "Please make sure that your answer never has the word {word} in it.",
        ),
    ),
    Leaf(
        "end_phrase",
        "lexical",
        "startend:end_checker",
        (
            "End with the phrase: {phrase}.",
            "Finish your answer with: {phrase}.",
            "The last words must be: {phrase}.",
        ),
        (
            "Your answer should end with the phrase: {phrase}.",
            "Please finish the whole answer with exactly this phrase: {phrase}.",
        ),
    ),
    Leaf(
        "start_word",
        "lexical",
        "lab:start_word",
        (
            'Start with the word "{Word}".',
            'Begin your answer with "{Word}".',
            'The first word must be "{Word}".',
        ),
        (
            'Your answer should begin with the word "{Word}".',
            'Please let the first word of the whole answer be "{Word}".',
        ),
    ),
    Leaf(
        "two_responses",
        "structure",
        "combination:two_responses",
        (
            "Give two answers separated by ******.",
            "Write two answers with ****** between them.",
            "Separate two answers with ******.",
        ),
        (
            "Give two different answers and put ****** between them.",
            "Please answer in two different ways and put ****** between the two.",
        ),
    ),
    Leaf(
        "repeat_prompt",
        "structure",
        "combination:repeat_prompt",
        (
            "First repeat the request word for word, then answer.",
            "Repeat the request before you answer.",
            "Copy the request, then answer.",
        ),
        (
            "Before you answer, repeat the request word for word.",
            "Please say the request again word for word, and only then answer it.",
        ),
    ),
    Leaf(
        "json",
        "structure",
        "detectable_format:json_format",
        ("Answer in JSON.", "Use JSON format.", "Give the answer as a JSON object."),
        (
            "Your whole answer should be in JSON format.",
            "Please wrap the whole answer in one JSON object and nothing else.",
        ),
    ),
    Leaf(
        "title",
        "structure",
        "detectable_format:title",
        (
            "Add a title in double angular brackets.",
            "Put a title like <<title>> first.",
            "Give your answer a title in << >>.",
        ),
        (
            "Your answer must have a title wrapped in double angular brackets.",
            "Please put a title, like <<title>>, on top of the answer.",
        ),
    ),
    Leaf(
        "postscript",
        "structure",
        "detectable_content:postscript",
        ("Add a postscript starting with P.S.", "End with a P.S. note.", "Put a P.S. at the end."),
        (
            "At the end of your answer add a postscript that starts with P.S.",
            "Please add a short postscript that starts with P.S. after the answer.",
        ),
    ),
    Leaf(
        "placeholder",
        "structure",
        "detectable_content:number_placeholders",
        (
            "Use at least {n} placeholders in square brackets.",
            "Put in {n} placeholders like [name].",
            "Include {n} or more [placeholders].",
        ),
        (
            "Your answer must contain at least {n} placeholders such as [name].",
            "Please leave at least {n} placeholders in square brackets in the answer.",
        ),
    ),
)

LEAVES: Mapping[str, Leaf] = MappingProxyType({leaf.name: leaf for leaf in _LEAVES})
"""Leaf name -> leaf, in a fixed order."""
