"""Loads detectors by name: a built-in name, `package.module:object`, or `path/file.py:object`.

`load_detectors(("proof", "checks.py:shouting"))` returns these two detectors in order. The name `default` stands for
all default detectors, and `all` for every built-in one. A single ConfigError lists all names that cannot be loaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, cast

from truegold.pipeline.flag.rules import (
    answer_leaks,
    gold_and_solution,
    incomplete_prompts,
    missing_quantities,
    quantities,
    question_kinds,
    stray_text,
)
from truegold.pipeline.flag.rules.detector import Detector
from truegold.pipeline.tables.measured_flags import MEASURED
from truegold.verifiers import ConfigError
from truegold.verifiers.user_code import did_you_mean, load_object, source_digest, split_spelling

BUILT_IN: dict[str, Detector] = {
    rule.name: rule
    for rule in (
        incomplete_prompts.truncated_text,
        question_kinds.multi_part,
        question_kinds.proof,
        incomplete_prompts.missing_figure,
        question_kinds.choice_remnant,
        question_kinds.yes_no_answer,
        answer_leaks.answer_in_prompt,
        answer_leaks.solution_in_prompt,
        stray_text.mojibake,
        stray_text.garbled_number,
        stray_text.garbled_word,
        gold_and_solution.gold_wrapped,
        question_kinds.spoilt_options,
        quantities.fractional_count,
        missing_quantities.missing_quantity,
        missing_quantities.foreign_question,
        stray_text.generator_talk,
        stray_text.repeated_text,
        stray_text.foreign_instruction,
        incomplete_prompts.no_question,
        quantities.negative_count,
        quantities.impossible_quantity,
        gold_and_solution.arithmetic_error,
    )
}
GROUPS: dict[str, tuple[str, ...]] = {
    "default": tuple(name for name in BUILT_IN if name not in MEASURED or MEASURED[name].is_on),
    "all": tuple(BUILT_IN),
}
"""Names that stand for several detectors."""


def load_detectors(names: Iterable[str]) -> list[Detector]:
    """Return the detectors with these names, in order.

    Raises ConfigError if a name cannot be loaded, or two detectors have the same name.
    """
    detectors: list[Detector] = []
    problems: list[ConfigError] = []
    for name in _spelled_out(names):
        try:
            detectors.append(_load(name))
        except ConfigError as problem:
            problems.append(problem)
    if problems:
        hint = " ".join(dict.fromkeys(problem.hint for problem in problems if problem.hint))
        raise ConfigError(" ".join(problem.message for problem in problems), hint or None)
    names_in_use = Counter(detector.name for detector in detectors)
    if repeated := sorted((names_in_use - Counter(set(names_in_use))).keys()):
        raise ConfigError(f"flag.detectors: more than one detector is called {', '.join(repeated)}.")
    return detectors


def detector_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the name and version of each detector, for the cache key of flags.

    An imported detector's version includes a digest of its source file, so that edits invalidate the cache.
    """
    spellings = _spelled_out(names)
    return {
        detector.name: detector.version + _source_digest(spelling)
        for spelling, detector in zip(spellings, load_detectors(spellings), strict=True)
    }


def _spelled_out(names: Iterable[str]) -> list[str]:
    """Return the names with groups expanded; a name that is also in a group occurs once."""
    names = list(names)
    spelled = [member for name in names for member in GROUPS.get(name, (name,))]
    return list(dict.fromkeys(spelled)) if GROUPS.keys() & names else spelled


def _source_digest(spelling: str) -> str:
    parts = split_spelling(spelling)
    return "+" + source_digest(parts[0], _label(spelling)) if parts else ""


def _load(spelling: str) -> Detector:
    if spelling in BUILT_IN:
        return BUILT_IN[spelling]
    if (parts := split_spelling(spelling)) is None:
        hint = did_you_mean(spelling, [*GROUPS, *BUILT_IN]) or f"There are: {', '.join([*GROUPS, *BUILT_IN])}."
        raise ConfigError(f"flag.detectors: there is no detector {spelling!r}.", hint)
    return _as_detector(load_object(*parts, _label(spelling)), spelling)


def _label(spelling: str) -> str:
    return f"flag.detectors: detector {spelling!r}"


def _as_detector(loaded: Any, spelling: str) -> Detector:
    if isinstance(loaded, type):
        loaded = loaded()
    named = isinstance(getattr(loaded, "name", None), str) and isinstance(getattr(loaded, "version", None), str)
    if not named or not callable(getattr(loaded, "detect", None)):
        raise ConfigError(
            f"flag.detectors: {spelling} is not a detector: it needs a name, a version and detect(row).",
            "Put @detector('name', version='1') from truegold.pipeline.rules above a plain function.",
        )
    return cast("Detector", loaded)
