"""Defines strategies: ways to get a right completion for a problem that the model hardly ever solves.

    Strategy("retry", "1", answer={"en": "{problem}\\n\\nNot right:\\n{attempt}\\n\\n{feedback}", "zh": ...})

A strategy consists of prompts in English and Chinese, with these placeholders:

    {problem}       the problem
    {attempt}       an earlier, failed attempt
    {feedback}      a description of the verdict on that attempt
    {reflection}    the reply of the model, or of a stronger one, to the prompt `reflection`
    {gold}          the gold, only with `uses_gold`

The built-in strategies are in `strategies.toml`. A strategy of your own is named by its import string.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from truegold.verifiers import ConfigError
from truegold.verifiers.user_code import did_you_mean, load_object, source_digest, split_spelling

PLACEHOLDERS = ("problem", "attempt", "feedback", "reflection", "gold")
_PLACEHOLDER = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")
LANGUAGES = ("en", "zh")


@dataclass(frozen=True)
class Strategy:
    """A way to get a right completion for a problem that the model hardly ever solves."""

    name: str
    version: str
    """A text that changes with every change of a prompt."""
    answer: Mapping[str, str] = field(default_factory=dict)
    """The text that replaces the problem, by language. If there is none, the prompt is the problem."""
    reflection: Mapping[str, str] = field(default_factory=dict)
    """The prompt that asks for a reflection on the failed attempt, by language. Empty for no reflection."""
    uses_gold: bool = False
    """Whether the model sees the gold. Such a strategy is tried last, and its positives are marked."""
    for_programs: bool | None = None
    """True: only for programs. False: only for other answers. None: for all rows."""
    hot: bool = False
    """Whether attempts are sampled at `hot_temperature`."""
    trust: float = 1.0
    """The weight of the strategy's positives in training, compared with other positives. At most 1."""

    def __post_init__(self) -> None:
        for kind, templates in (("answer", self.answer), ("reflection", self.reflection)):
            if templates and set(templates) != set(LANGUAGES):
                raise ConfigError(f"strategy {self.name}: `{kind}` needs a template for {' and '.join(LANGUAGES)}.")
        if self.reflection and not self.answer:
            raise ConfigError(f"strategy {self.name}: no prompt shows its reflection to the model: set `answer`.")
        if "gold" in self.placeholders and not self.uses_gold:
            raise ConfigError(f"strategy {self.name} shows the gold: set uses_gold=True.")

    @property
    def placeholders(self) -> set[str]:
        """The placeholders of the strategy's templates."""
        texts = [*self.answer.values(), *self.reflection.values()]
        return {name for text in texts for name in _PLACEHOLDER.findall(text)}

    @property
    def needs_failure(self) -> bool:
        """Whether the strategy continues a failed attempt."""
        return bool(self.placeholders & {"attempt", "feedback"})


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a template with its placeholders replaced. Braces in the values are kept."""
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


BUILT_IN: Mapping[str, Strategy] = {
    entry["name"]: Strategy(**entry)
    for entry in tomllib.loads(files("truegold.synth").joinpath("strategies.toml").read_text("utf-8"))["strategy"]
}
"""The built-in strategies by name."""


def load_strategy(spelling: str) -> Strategy:
    """Return the strategy with this name or import string. Raises ConfigError if there is no such strategy."""
    if spelling in BUILT_IN:
        return BUILT_IN[spelling]
    parts = split_spelling(spelling)
    if parts is None:
        hint = did_you_mean(spelling, BUILT_IN) or "Or path/to/mine.py:STRATEGY."
        raise ConfigError(f"There is no strategy {spelling!r}; there are {', '.join(BUILT_IN)}.", hint)
    label = f"strategy {spelling!r}"
    loaded = load_object(*parts, label)
    if not isinstance(loaded, Strategy):
        raise ConfigError(f"{label} is a {type(loaded).__name__}, not a truegold.synth.strategies.Strategy.")
    return loaded


def strategy_fingerprint(spelling: str) -> str:
    """Return a text that changes when the strategy changes: its version, and the digest of its file if it has one."""
    strategy, parts = load_strategy(spelling), split_spelling(spelling)
    digest = source_digest(parts[0], f"strategy {spelling!r}") if parts is not None else ""
    return f"{strategy.version} {digest}".strip()
