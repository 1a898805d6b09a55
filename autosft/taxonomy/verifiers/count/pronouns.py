"""The response holds at least N pronouns, repeated ones counted again.

Source: IFBench (arXiv:2507.02833), its program as of August 2026. Demonstrative, interrogative and
indefinite pronouns count.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.nltk_text import word_tokens

EXAMPLE = Example("She gave it to them.", "The fox is red.", {"N": 3})
REQUIRES = ("nltk",)
PERSONAL = "i me my mine we us our ours you your yours he him his she her hers it its they them their theirs"
REFLEXIVE = "myself ourselves yourself yourselves himself herself itself themselves"
POINTING = "this that these those who whom whose which what whoever whomever whatever whichever"
PEOPLE = "anybody anyone everybody everyone nobody somebody someone"
THINGS = "anything everything nothing something each either neither both all some any none"
PRONOUNS = frozenset(" ".join((PERSONAL, REFLEXIVE, POINTING, PEOPLE, THINGS)).split())


def check(prompt: str, response: str, *, N: int) -> bool:
    """Return whether `N` tokens are pronouns; 'she/her' counts as two."""
    return sum(token in PRONOUNS for token in word_tokens(response.replace("/", " ").lower())) >= N
