"""A table of student grades, tab-separated, with a header and three rows, every field in double quotes.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

EXAMPLE = Example(
    '"StudentID"\t"Subject"\t"Grade"\t"Semester"\t"Score"\n"1"\t"Art"\t"A"\t"1"\t"9"\n"2"\t"Art"\t"B"\t"1"\t"8"\n"3"\t"Art"\t"A"\t"2"\t"9"',
    "StudentID\tSubject\tGrade\tSemester\tScore\n1\tArt\tA\t1\t9",
)
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether header, rows and quotes are right."""
    return decide("custom:csv_quotes", response)
