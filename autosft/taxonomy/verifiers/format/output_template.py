"""The response has the parts 'My Answer:', 'My Conclusion:' and 'Future Outlook:'.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example("My Answer: red My Conclusion: small Future Outlook: quick", "My Answer: red")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether all three labels are found."""
    return decide("format:output_template", response)
