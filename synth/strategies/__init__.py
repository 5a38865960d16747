"""Strategies: each a small file with its prompts in English and Chinese. Yours is an import string."""

from collections.abc import Mapping

from truegold.synth.strategies.approaches import APPROACHES
from truegold.synth.strategies.base import Strategy
from truegold.synth.strategies.hotter import HOTTER, RESAMPLE
from truegold.synth.strategies.rationalize import RATIONALIZE
from truegold.synth.strategies.reflect import REFLECT
from truegold.synth.strategies.repair import REPAIR
from truegold.synth.strategies.retry import RETRY
from truegold.verifiers import ConfigError
from truegold.verifiers.user_code import did_you_mean, load_object, source_digest, split_spelling

__all__ = ["BUILT_IN", "Strategy", "load_strategy", "strategy_fingerprint"]

BUILT_IN: Mapping[str, Strategy] = {
    strategy.name: strategy for strategy in (RETRY, REFLECT, APPROACHES, HOTTER, RESAMPLE, RATIONALIZE, REPAIR)
}


def load_strategy(spelling: str) -> Strategy:
    """Return the strategy of a name or an import string. Raises ConfigError where there is none."""
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
    """Return a text that changes with the strategy: its version, and the digest of your own file."""
    strategy, parts = load_strategy(spelling), split_spelling(spelling)
    digest = source_digest(parts[0], f"strategy {spelling!r}") if parts is not None else ""
    return f"{strategy.version} {digest}".strip()
