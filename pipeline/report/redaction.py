"""Takes out of a text what names somebody or opens something: e-mail addresses, URLs, IP addresses, keys, names.

    "Write to ann@example.org, key sk-a1B2..."    ->  "Write to [e-mail], key [key]"
    "Tom buys 3 pens. How many has Tom?"          ->  "[name 1] buys 3 pens. How many has [name 1]?"

Names are told by their capitals and by what they do (`dedup.near.reading.names`); places and makers are taken for some,
too. Names in scripts without capitals, and those that only ever begin a sentence and do nothing in it, are not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from truegold.pipeline.text.persons import NO_PERSONS, find_persons

_SECRETS = "|".join(
    (
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
        r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",  # JSON web tokens.
        r"\b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[A-Za-z0-9]{12,}",
        r"\b(?:hf|gh[pousr]|glpat|npm|pypi|dop_v1)[-_][A-Za-z0-9_-]{12,}",
        r"\bgithub_pat_\w{12,}",
        r"\bxox[a-z]-[\w-]{10,}",
        r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}",
        r"\bAIza[\w-]{20,}",
        r"(?<=[Bb]earer )[\w.~+/-]{12,}=*",
        r"(?i:\b(?:password|passwd|secret|token|api[_-]?key)\b[\"']?\s?[:=]\s?)[\"']?[^\s&'\",;]{6,}",
    )
)
_PATTERNS = (
    ("[key]", re.compile(_SECRETS, re.DOTALL)),
    ("[URL]", re.compile(r"\b(?:[a-z][a-z0-9+.-]*://|www\.)[^\s<>\"'\\]*[^\s<>\"'\\.,;:!?)\]]", re.IGNORECASE)),
    ("[e-mail]", re.compile(r"\b[\w.%+-]+@[\w-]+(?:\.[\w-]+)+\b|\b[\w.%+-]+ ?(?:\[at\]|\(at\)) ?[\w-]+(?:\.[\w-]+)+")),
    ("[IP]", re.compile(r"\b(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)\b(?!\.\d)")),
    ("[IP]", re.compile(r"(?<![\w:])(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}(?![\w:])", re.IGNORECASE)),
    (
        "[IP]",
        re.compile(r"(?<![\w:])(?=[0-9:]*[a-f])(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6}(?![\w:])", re.IGNORECASE),
    ),
    ("[home]", re.compile(r"(?:/home|/Users|[A-Z]:\\Users)[/\\][^\s/\\\"']+")),
)
_PRONOUNS = ("I", "He", "She", "It", "They", "We", "You", "His", "Her", "Their", "Mr", "Mrs", "Ms", "Miss", "Dr")
_LOWER = re.compile(r"\b[a-z]+\b")
_INSIDE = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+(?![\w$])")
_CAPITALISED = re.compile(r"(?<![\w\\$])[A-Z][a-z]+(?![\w$])")


class Redactor:
    """Redacts texts; a name has the same number in all of them."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {name: f"[name {position}]" for position, name in enumerate(dict.fromkeys(names), 1)}

    @classmethod
    def for_texts(cls, texts: Iterable[str]) -> Redactor:
        """Return one that knows the names in these texts.

        A word is one where it stands inside of a sentence with a capital, or acts as a person does; unless the texts
        have it without a capital as well ("He begins", "he begins") and it does not do both.
        """
        persons: dict[str, None] = {}
        inside: dict[str, None] = {}
        lower: set[str] = set()
        for text in texts:
            persons |= dict.fromkeys(find_persons(text))
            inside |= dict.fromkeys(_INSIDE.findall(text))
            lower.update(_LOWER.findall(text))
        known = {name: None for name in (*persons, *inside) if name not in NO_PERSONS and name not in _PRONOUNS}
        both = persons.keys() & inside.keys()
        return cls(name for name in known if name.lower() not in lower or name in both)

    def __call__(self, text: str) -> str:
        """Return a text without what names somebody or opens something."""
        for replacement, pattern in _PATTERNS:
            text = pattern.sub(replacement, text)
        return _CAPITALISED.sub(lambda match: self._names.get(match[0], match[0]), text) if self._names else text
