"""Lists currencies with their signs, codes and names (`currencies.toml`): `CHF 5`, `R$5`, `5 rupees`."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

CURRENCIES: dict[str, list[str]] = {
    name: spellings.split()
    for name, spellings in tomllib.loads(
        files(__package__).joinpath("currencies.toml").read_text(encoding="utf-8")
    ).items()
}
"""Maps the base unit of a currency to its spellings."""
MONEY_SIGNS = {
    spelling: name
    for name, spellings in CURRENCIES.items()
    for spelling in spellings
    if spelling.isupper() or spelling.startswith(("R", "$")) or not spelling[0].isalnum()
}
"""Maps each sign or code that stands before an amount to its currency: `$`, `A$`, `CHF`, `Rs.`."""
DOLLARS = frozenset(name for sign, name in MONEY_SIGNS.items() if sign.endswith("$"))
"""The currencies that `$` alone may mean."""
LONE_SIGNS = "".join(sign for sign in MONEY_SIGNS if len(sign) == 1)
"""All signs of one character: `$`, `€`, `£`."""
CODES = "|".join(re.escape(sign) for sign in sorted(MONEY_SIGNS, key=len, reverse=True) if sign[-1] not in LONE_SIGNS)
"""A regular expression for one code: `USD`, `Rs.`."""
PREFIXED = "|".join(
    re.escape(sign[:-1]) + (" ?" if len(sign) > 2 else "")
    for sign in sorted(MONEY_SIGNS, key=len, reverse=True)
    if sign.endswith("$") and len(sign) > 1
)
"""A regular expression for the letters before a dollar sign: `US`, `A`."""
