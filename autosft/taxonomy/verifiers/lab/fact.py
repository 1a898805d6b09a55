"""The response states a fact of the lab's world rightly: an entity's attribute."""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.facts import check_fact

EXAMPLE = Example("The fox is green.", "The fox is a fox.", {"entity": "fox", "attribute": "color"})


def check(prompt: str, response: str, *, entity: str, attribute: str) -> bool:
    """Return whether the fact table finds the entity's attribute in the response.

    Raises:
        VerifierError: The table has no such entity or attribute.
    """
    return check_fact(entity, attribute, response)
