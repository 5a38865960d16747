"""Loads detectors by name: a built-in one, `package.module:object`, or `path/file.py:object`.

`load_detectors(("proof", "checks.py:shouting"))` returns the two in that order; `load_detectors(None)` returns the
built-in ones that are on by default (`pipeline.tables.measured_flags`). One ConfigError lists every name that cannot
be loaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, cast

from truegold.pipeline.flag.rules.answer_kinds import unit_mismatch
from truegold.pipeline.flag.rules.arithmetic import arithmetic_error, number_from_nowhere
from truegold.pipeline.flag.rules.detector import Detector
from truegold.pipeline.flag.rules.encoding import foreign_fragment, mojibake
from truegold.pipeline.flag.rules.gaps import gap_in_text
from truegold.pipeline.flag.rules.garbled import garbled_number, lost_number
from truegold.pipeline.flag.rules.guessable import choice_remnant, yes_no_answer
from truegold.pipeline.flag.rules.leaks import answer_in_prompt, solution_in_prompt
from truegold.pipeline.flag.rules.own_solution import gold_slip, lost_unit, solution_of_another_problem
from truegold.pipeline.flag.rules.premises import negative_count, no_question
from truegold.pipeline.flag.rules.quantities import fractional_count, missing_quantity
from truegold.pipeline.flag.rules.questions import multi_part, proof
from truegold.pipeline.flag.rules.residue import foreign_instruction, generator_talk, repeated_text
from truegold.pipeline.flag.rules.wholeness import missing_figure, truncated_text
from truegold.pipeline.tables.measured_flags import is_on
from truegold.verifiers import ConfigError
from truegold.verifiers.user_code import did_you_mean, load_object, source_digest, split_spelling

BUILT_IN: dict[str, Detector] = {
    rule.name: rule
    for rule in (
        truncated_text,
        multi_part,
        proof,
        missing_figure,
        choice_remnant,
        yes_no_answer,
        answer_in_prompt,
        solution_in_prompt,
        mojibake,
        foreign_fragment,
        garbled_number,
        lost_number,
        gap_in_text,
        lost_unit,
        solution_of_another_problem,
        gold_slip,
        fractional_count,
        missing_quantity,
        generator_talk,
        repeated_text,
        foreign_instruction,
        no_question,
        negative_count,
        number_from_nowhere,
        arithmetic_error,
        unit_mismatch,
    )
}


def load_detectors(names: Iterable[str] | None) -> list[Detector]:
    """Return the detectors of these names, in their order; for None the built-in ones that are on by default.

    ConfigError where a name cannot be loaded, or two detectors have one name.
    """
    if names is None:
        return [rule for name, rule in BUILT_IN.items() if is_on(name)]
    detectors: list[Detector] = []
    problems: list[ConfigError] = []
    for name in names:
        try:
            detectors.append(_load(name))
        except ConfigError as problem:
            problems.append(problem)
    if problems:
        hint = " ".join(dict.fromkeys(problem.hint for problem in problems if problem.hint))
        raise ConfigError(" ".join(problem.message for problem in problems), hint or None)
    counts = Counter(detector.name for detector in detectors)
    repeated = sorted(name for name, count in counts.items() if count > 1)
    if repeated:
        raise ConfigError(f"flag.detectors: more than one detector is called {', '.join(repeated)}.")
    return detectors


def detector_versions(names: Iterable[str] | None) -> dict[str, str]:
    """Return name and version of each detector: what a cache of flags depends on besides the rows.

    The version of one that is imported holds a digest of its source file too, so that an edit is noticed.
    """
    spellings = [name for name in BUILT_IN if is_on(name)] if names is None else list(names)
    return {
        detector.name: detector.version + _source_digest(spelling)
        for spelling, detector in zip(spellings, load_detectors(spellings), strict=True)
    }


def _source_digest(spelling: str) -> str:
    parts = split_spelling(spelling)
    return "+" + source_digest(parts[0], _label(spelling)) if parts else ""


def _load(spelling: str) -> Detector:
    if spelling in BUILT_IN:
        return BUILT_IN[spelling]
    if (parts := split_spelling(spelling)) is None:
        hint = did_you_mean(spelling, BUILT_IN) or f"There are: {', '.join(BUILT_IN)}."
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
