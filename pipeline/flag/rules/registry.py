"""Finding detectors by name: a built-in one, `package.module:object`, or `path/file.py:object`.

`load_detectors(("proof", "checks.py:shouting"))` gives the two in that order; `load_detectors(None)` gives all built-in
ones. Every name that cannot be loaded is told in one ConfigError.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from truegold.pipeline.flag.rules.answers import several_solutions, unit_mismatch
from truegold.pipeline.flag.rules.arithmetic import arithmetic_error, number_from_nowhere, precision_not_stated
from truegold.pipeline.flag.rules.asking import multi_part, proof
from truegold.pipeline.flag.rules.detector import Detector
from truegold.pipeline.flag.rules.golds import empty_or_placeholder_gold, solution_contradicts_gold
from truegold.pipeline.flag.rules.leaks import answer_in_prompt, solution_in_prompt
from truegold.pipeline.flag.rules.premises import (
    dangling_reference,
    money_without_amount,
    negative_count,
    no_question,
    question_off_topic,
    too_few_quantities,
)
from truegold.pipeline.flag.rules.quantities import fractional_count, missing_quantity
from truegold.pipeline.flag.rules.reach import gold_out_of_reach
from truegold.pipeline.flag.rules.residue import foreign_instruction, generator_talk, repeated_text
from truegold.pipeline.flag.rules.routing import choice_remnant, yes_no_answer
from truegold.pipeline.flag.rules.wholeness import missing_figure, truncated_text
from truegold.verifiers import ConfigError

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
        fractional_count,
        missing_quantity,
        solution_contradicts_gold,
        empty_or_placeholder_gold,
        generator_talk,
        repeated_text,
        foreign_instruction,
        no_question,
        dangling_reference,
        question_off_topic,
        too_few_quantities,
        money_without_amount,
        negative_count,
        number_from_nowhere,
        gold_out_of_reach,
        arithmetic_error,
        precision_not_stated,
        unit_mismatch,
        several_solutions,
    )
}


def load_detectors(names: Iterable[str] | None) -> list[Detector]:
    """The detectors of these names, in their order; all built-in ones for None."""
    if names is None:
        return list(BUILT_IN.values())
    found: list[Detector] = []
    problems: list[ConfigError] = []
    for name in names:
        try:
            found.append(_load(name))
        except ConfigError as problem:
            problems.append(problem)
    if problems:
        hint = " ".join(dict.fromkeys(problem.hint for problem in problems if problem.hint))
        raise ConfigError(" ".join(problem.message for problem in problems), hint or None)
    twice = sorted({d.name for d in found if sum(d.name == other.name for other in found) > 1})
    if twice:
        raise ConfigError(f"flag.detectors: more than one detector is called {', '.join(twice)}.")
    return found


def detector_versions(names: Iterable[str] | None) -> dict[str, str]:
    """Name and version of each detector: what a cache of flags depends on besides the rows.

    The version of one that is loaded from a file holds a digest of that file too, so that an edit is noticed.
    """
    given = list(BUILT_IN) if names is None else list(names)
    return {
        found.name: found.version + _file_digest(spec) for spec, found in zip(given, load_detectors(given), strict=True)
    }


def _file_digest(spec: str) -> str:
    place, colon, _ = spec.rpartition(":")
    if not colon or not place.endswith(".py"):
        return ""
    return "+" + hashlib.sha256(Path(place).read_bytes()).hexdigest()[:12]


def _load(spec: str) -> Detector:
    module_name, colon, attribute = spec.rpartition(":")
    if not colon:
        if spec not in BUILT_IN:
            raise ConfigError(f"flag.detectors: there is no detector {spec!r}.", _did_you_mean(spec, BUILT_IN))
        return BUILT_IN[spec]
    module = _load_file(Path(module_name)) if module_name.endswith(".py") else _import(module_name)
    if not hasattr(module, attribute):
        public = [name for name in vars(module) if not name.startswith("_")]
        raise ConfigError(f"flag.detectors: {module_name} has no {attribute!r}.", _did_you_mean(attribute, public))
    return _as_detector(getattr(module, attribute), spec)


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(known) or 'none'}."


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"flag.detectors: cannot import {name!r} ({error}).", "Install it, or give a file: path/checks.py:name."
        ) from error


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"flag.detectors: there is no file {path}.", "Paths are relative to the working directory.")
    # A name of its own keeps two files called checks.py apart.
    name = f"truegold_detectors_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"flag.detectors: {path} cannot be loaded as Python.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _as_detector(thing: Any, spec: str) -> Detector:
    if isinstance(thing, type):
        thing = thing()
    named = isinstance(getattr(thing, "name", None), str) and isinstance(getattr(thing, "version", None), str)
    if not named or not callable(getattr(thing, "detect", None)):
        raise ConfigError(
            f"flag.detectors: {spec} is not a detector: it needs a name, a version and detect(row).",
            "Put @detector('name', version='1') from truegold.pipeline.flag.rules above a plain function.",
        )
    return cast(Detector, thing)
