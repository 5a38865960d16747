"""Grades responses by a rubric with a language model, as a term of a training's reward.

    grade = load_grader(GraderConfig(rubric="Every step is explained.", model=...), replies)
    grade([Item("48/2 = 24, because half ... so 72.", "72", "math", "{}", "Natalia sold ...")])
        [Verdict(0.8, partial, evidence={"judge": "gpt", "reply": "... SCORE: 8"})]

    a reply without a grade, or cut off     Verdict(None, declined): the completion leaves its group
    a response without a letter or digit    Verdict(0.0, no_answer), without asking the model

A policy that is trained with a grader learns to address the grader. So the response is put between random marks,
without tags, control characters (`truegold.verifiers.model_judge`) and thinking. Only the last line of a reply counts.
No rule can tell whether a model's grades are a good reward. Read the responses with high grades, and set `gate:
correct`, so that the term counts only for right answers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from truegold.pipeline.config.stages import GRADED, GraderConfig
from truegold.pipeline.engines import build_engine
from truegold.pipeline.engines.base import Engine, sample_seed
from truegold.pipeline.engines.chat import PromptEncoder, ask_model
from truegold.pipeline.engines.chat_engine import report_costs
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import REPLIES
from truegold.verifiers import Item, Reason, Term, Verdict, verifier
from truegold.verifiers.extract import final_part
from truegold.verifiers.model_judge import MAX_PROBLEM_CHARS, last_line, neutralise

PROMPT = files(__package__).joinpath("grading_prompt.txt").read_text(encoding="utf-8")
MAX_RESPONSE_CHARS = 16_000
"""The number of characters shown of a response. The middle of a longer response is left out."""
SHOWN_CHARS = 500
"""The number of characters of a reply that the evidence keeps. They are from the end, which has the grade."""
NONCE_CHARS = 12
_GRADE = re.compile(r"(?:SCORE\s*[:=]\s*)?(\d{1,3}(?:\.\d{1,4})?)(?:\s*/\s*(\d{1,3}))?\.?", re.IGNORECASE)
"""A grade: `SCORE: 7`, `7/10`."""


@verifier(name="graded")
def graded(response: str, gold: str | None) -> None:
    """Register the name of graded terms. The grades come from `Grader`, which asks the model in batches."""


@dataclass(frozen=True)
class Grader:
    """A language model, with its engine, that grades responses."""

    engine: Engine
    encoder: PromptEncoder
    config: GraderConfig

    def __call__(self, asked: Sequence[Item]) -> list[Verdict]:
        """Return a verdict for each response."""
        model = self.config.model
        questions = [make_question(item, self.config) for item in asked]
        encoded = {n: self.encoder.encode(text) for n, text in enumerate(questions) if text is not None}
        fitting = {n: prompt for n, prompt in encoded.items() if len(prompt) < self.engine.max_model_len}
        seeds = [sample_seed(model.seed, "grade", questions[n]) for n in fitting]
        replies = ask_model(list(fitting.values()), seeds, self.engine, self.encoder, model) if fitting else []
        by_question = dict(zip(fitting, replies, strict=True))
        return [
            Verdict(0.0, Reason.NO_ANSWER) if question is None else self._read(by_question.get(n))
            for n, question in enumerate(questions)
        ]

    def report_costs(self, progress: Progress) -> list[Mapping[str, Any]]:
        """Return the requests and their costs, and print them."""
        return report_costs([self.engine.facts()], progress)

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()

    def _read(self, reply: str | None) -> Verdict:
        """Return the verdict of a reply. None stands for a reply that was cut off or is missing."""
        evidence = {"judge": self.config.model.name, "reply": reply and reply[-SHOWN_CHARS:]}
        score = None if reply is None else read_grade(reply, self.config.scale)
        if score is None:
            return Verdict(None, Reason.DECLINED, None, evidence)
        reason = {1.0: Reason.MATCH, 0.0: Reason.MISMATCH}.get(score, Reason.PARTIAL)
        return Verdict(score, reason, None, evidence)


def load_grader(config: GraderConfig, replies: Path | None = None) -> Grader:
    """Start the engine of a grader; `replies` is the folder for its stored replies."""
    return Grader(*build_engine(config.model.engine, config.model.chat, None, replies), config)


def make_question(item: Item, config: GraderConfig) -> str | None:
    """Return the prompt about a response, or None if the response has no letter or digit."""
    response = final_part(item.response)
    if len(response) > MAX_RESPONSE_CHARS:
        half = MAX_RESPONSE_CHARS // 2
        response = f"{response[:half]}\n[...]\n{response[-half:]}"
    shown = _neutral_lines(response)
    if not any(character.isalnum() for character in shown):
        return None
    gold = item.gold if config.shows_gold else None
    asked = [item.problem, gold, item.response, config.rubric]
    # A hash of the question's texts is the same in every run. A response cannot contain its own hash.
    nonce = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:NONCE_CHARS].upper()
    problem = _neutral_lines((item.problem or "(not given)")[:MAX_PROBLEM_CHARS])
    reference = f"Reference answer:\nBEGIN {nonce}\n{_neutral_lines(gold)}\nEND {nonce}\n\n" if gold else ""
    return PROMPT.format(
        nonce=nonce, problem=problem, reference=reference, response=shown, rubric=config.rubric, scale=config.scale
    )


def _neutral_lines(text: str) -> str:
    return "\n".join(map(neutralise, text.splitlines()))


def read_grade(reply: str, scale: int) -> float | None:
    """Return the grade in a reply's last line, divided by the scale: `SCORE: 7`, `7/10`.

    Returns None if the last line is not a grade, or the grade exceeds the scale.
    """
    match = _GRADE.fullmatch(last_line(reply) or "")
    if match is None or (match[2] is not None and int(match[2]) != scale):
        return None
    grade = float(match[1])
    return grade / scale if grade <= scale else None


UNASKED = Verdict(None, Reason.DECLINED, None, {"unasked": "the term's gate is closed"})
"""The verdict of a term on a response that does not pass the term's gate."""


class GradedTerms:
    """The models that grade terms of a reward. They are asked after the rules, about responses that pass a term's
    gate."""

    def __init__(self, configs: Mapping[str, GraderConfig], folder: Path | None) -> None:
        """Start a grader for each term; `configs` is by the term's name.

        `folder` keeps the replies, so that a resumed training does not ask again.
        """
        self._graders: dict[str, Grader] = {}
        for index, (name, config) in enumerate(configs.items()):
            self._graders[name] = load_grader(config, None if folder is None else folder / f"{REPLIES}-{index}")

    def add(self, terms: Sequence[Term], asked: Sequence[Item], known: Sequence[dict[str, Verdict]]) -> None:
        """Add the verdicts of the graded terms to the other verdicts on each response.

        `asked` has each response with its problem and gold, `known` its verdicts by term.
        """
        for term in terms:
            if term.verifier != GRADED:
                continue
            open_ones = [n for n, verdicts in enumerate(known) if _is_open(term, verdicts)]
            grades = self._graders[term.name]([asked[n] for n in open_ones]) if open_ones else []
            graded = dict(zip(open_ones, grades, strict=True))
            for n, verdicts in enumerate(known):
                verdicts[term.name] = graded.get(n, UNASKED)

    def report_costs(self, progress: Progress) -> list[Mapping[str, Any]]:
        """Return the requests and their costs, and print them."""
        return [cost for grader in self._graders.values() for cost in grader.report_costs(progress)]

    def close(self) -> None:
        """Close connections and files."""
        for grader in self._graders.values():
            grader.close()


def _is_open(term: Term, verdicts: Mapping[str, Verdict]) -> bool:
    """Return True if the term's gate is open or has not been judged yet."""
    gate = verdicts.get(term.gate) if term.gate is not None else None
    return gate is None or gate.passed
