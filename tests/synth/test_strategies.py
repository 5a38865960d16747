"""Strategies: data whose templates fit together, found by name or in a file of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from truegold.synth.strategies import (
    BUILT_IN,
    LANGUAGES,
    PLACEHOLDERS,
    Strategy,
    fill,
    load_strategy,
    strategy_fingerprint,
)
from truegold.verifiers import ConfigError


@pytest.mark.parametrize("strategy", BUILT_IN.values(), ids=list(BUILT_IN))
def test_prompts_of_both_languages_ask_for_the_same(strategy: Strategy) -> None:
    for templates in (strategy.answer, strategy.reflection):
        asked = [
            {name for name in PLACEHOLDERS if f"{{{name}}}" in templates[language]}
            for language in LANGUAGES
            if templates
        ]
        assert all(names == asked[0] for names in asked)
        assert all("problem" in names for names in asked)
    assert ("gold" in strategy.placeholders) == strategy.uses_gold


def test_only_the_reflection_gets_from_the_first_prompt_to_the_second() -> None:
    # What the model reads when it answers is the problem and the reflection: the failed attempt is not in the prompt.
    reflect = BUILT_IN["reflect"]
    assert all("{attempt}" not in text and "{feedback}" not in text for text in reflect.answer.values())
    assert reflect.needs_failure


def test_braces_of_the_texts_stay() -> None:
    assert (
        fill("{problem} {gold}", {"problem": "\\boxed{gold} {x}", "gold": "{problem}"}) == "\\boxed{gold} {x} {problem}"
    )


def test_a_strategy_that_shows_the_gold_has_to_say_so() -> None:
    with pytest.raises(ConfigError, match="uses_gold"):
        Strategy("mine", "1", answer={"en": "{problem} {gold}", "zh": "{problem} {gold}"})
    with pytest.raises(ConfigError, match="en and zh"):
        Strategy("mine", "1", answer={"en": "{problem}"})


def test_a_strategy_of_ones_own_is_found_in_its_file_and_changes_with_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    text = (
        "from truegold.synth.strategies import Strategy\n"
        "STRATEGY = Strategy('mine', '1', answer={'en': '{problem} Again.', 'zh': '{problem} 再来。'})\n"
    )
    file.write_text(text)
    spelling = f"{file}:STRATEGY"
    assert load_strategy(spelling).name == "mine"
    before = strategy_fingerprint(spelling)
    file.write_text(text.replace("Again", "Anew"))
    assert strategy_fingerprint(spelling) != before


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ("retri", "Did you mean 'retry'"),
        ("truegold.synth.strategies:BUILT_IN", "is a dict"),
        ("nothing.py:X", "no file"),
    ],
)
def test_what_is_no_strategy_is_one_line_that_helps(spelling: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_strategy(spelling)
