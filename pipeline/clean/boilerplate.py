r"""Boilerplate: what a data set or a chat puts around the problem and is no part of it.

    "Question 3: How many apples?"                                                     "How many apples?"
    "Find x. Please reason step by step, and put your final answer within \boxed{}."   "Find x."

Patterns are the configuration's (`clean.boilerplate`, `clean.boilerplate_end`). They are cut as often as they fit
and as long as enough of a prompt remains.
"""

from __future__ import annotations

import re

from truegold.pipeline.config.stages import CleanConfig
from truegold.verifiers import ConfigError

END_SPAN = 200
"""How far from the end boilerplate is looked for: a user's pattern must not be tried all through a long text."""


class Boilerplate:
    """Cuts configured phrases off a prompt's ends."""

    def __init__(self, config: CleanConfig) -> None:
        self._minimum = config.min_prompt_chars
        self._starts = [_compile(pattern, "boilerplate", "(?:{})") for pattern in config.boilerplate]
        self._ends = [_compile(pattern, "boilerplate_end", r"(?:{})\s*\Z") for pattern in config.boilerplate_end]

    def cut(self, text: str) -> str:
        """Return `text` without boilerplate, which is cut as long as there is some and enough of a prompt remains."""
        while (shorter := self._cut_phrase(text)) is not None:
            text = shorter
        return text

    def _cut_phrase(self, text: str) -> str | None:
        """Return `text` without the first phrase that fits, None where none does."""
        for pattern in self._starts:
            match = pattern.match(text)
            if match and match.end() and len(rest := text[match.end() :].lstrip(" \t\n")) >= self._minimum:
                return rest
        for pattern in self._ends:
            match = pattern.search(text, max(0, len(text) - END_SPAN))
            if match and match[0] and len(rest := text[: match.start()].rstrip(" \t\n")) >= self._minimum:
                return rest
        return None


def _compile(pattern: str, field: str, frame: str) -> re.Pattern[str]:
    try:
        re.compile(pattern)
        return re.compile(frame.replace("{}", pattern), re.IGNORECASE)
    except re.error as error:
        raise ConfigError(f"clean.{field}: the pattern {pattern!r} is invalid: {error}.") from None
