"""The countries of Africa in reverse alphabetical order, one a line.

Source: IFBench (arXiv:2507.02833); decided by the package if_verifiable. The names themselves are not
compared, as in IFBench's program.
"""

from __future__ import annotations

from autosft.taxonomy.verifiers.example import Example
from autosft.taxonomy.verifiers.library import decide

COUNTRIES = (
    "Zimbabwe, Zambia, Uganda, Tunisia, Togo, Tanzania, Sudan, South Sudan, South Africa, Somalia, Sierra "
    "Leone, Seychelles, Senegal, Sao Tome and Principe, Rwanda, Nigeria, Niger, Namibia, Mozambique, "
    "Morocco, Mauritius, Mauritania, Mali, Malawi, Madagascar, Libya, Liberia, Lesotho, Kenya, Ivory "
    "Coast, Guinea-Bissau, Guinea, Ghana, Gambia, Gabon, Ethiopia, Eswatini, Eritrea, Equatorial Guinea, "
    "Egypt, Djibouti, DR Congo, Congo, Comoros, Chad, Central African Republic, Cameroon, Cabo Verde, "
    "Burundi, Burkina Faso, Botswana, Benin, Angola, Algeria"
)
EXAMPLE = Example(COUNTRIES.replace(", ", "\n"), "Zimbabwe\nZambia\nUganda")
REQUIRES = ("if_verifiable",)


def check(prompt: str, response: str) -> bool:
    """Return whether 52 lines or more, from Zimbabwe on, are in reverse order."""
    return decide("custom:reverse_newline", response)
