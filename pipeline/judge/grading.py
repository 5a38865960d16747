"""A language model that grades responses by a rubric, as a term of a training's reward.

    grade = load_grader(GraderConfig(rubric="Every step is explained.", model=...), replies)
    grade([Item("48/2 = 24, because half ... so 72.", "72", "math", "{}", "Natalia sold ...")])
        [Verdict(0.8, partial, evidence={"judge": "gpt", "reply": "... SCORE: 8"})]

    a reply without a grade, or cut off     Verdict(None, declined): the completion leaves its group
    a response without a letter or digit    Verdict(0.0, no_answer), unasked

A policy that is trained against a model learns to speak to it. What it wrote stands between marks that it cannot know,
without tags and control characters (`truegold.verifiers.model_judge`), and its thinking is not shown. Only the last
line of a reply counts. No rule can tell whether a model's grades are a good reward. Read the responses that it grades
highly, and set `gate: correct`, so that the term counts for right answers only.
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
"""Characters of a response that are shown; of a longer one the middle is left out."""
SHOWN_CHARS = 500
"""The evidence keeps the end of a reply, where the grade stands."""
NONCE_CHARS = 12
_GRADE = re.compile(r"(?:SCORE\s*[:=]\s*)?(\d{1,3}(?:\.\d{1,4})?)(?:\s*/\s*(\d{1,3}))?\.?", re.IGNORECASE)


@verifier(name="graded")
def graded(response: str, gold: str | None) -> None:
    """Stand in for the model in the registry: grades come from `Grader`, which asks the model in batches."""


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
        """Return what the engine was asked and what that cost, and note it."""
        return report_costs([self.engine.facts()], progress)

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()

    def _read(self, reply: str | None) -> Verdict:
        """Return the verdict that a reply is; None was cut off, or not given."""
        evidence = {"judge": self.config.model.name, "reply": reply and reply[-SHOWN_CHARS:]}
        score = None if reply is None else read_grade(reply, self.config.scale)
        if score is None:
            return Verdict(None, Reason.DECLINED, None, evidence)
        reason = {1.0: Reason.MATCH, 0.0: Reason.MISMATCH}.get(score, Reason.PARTIAL)
        return Verdict(score, reason, None, evidence)


def load_grader(config: GraderConfig, replies: Path | None = None) -> Grader:
    """Start the engine of a grader. replies: the folder in which it keeps its replies."""
    return Grader(*build_engine(config.model.engine, config.model.chat, None, replies), config)


def make_question(item: Item, config: GraderConfig) -> str | None:
    """Return the prompt about a response, or None if it says nothing."""
    response = final_part(item.response)
    if len(response) > MAX_RESPONSE_CHARS:
        half = MAX_RESPONSE_CHARS // 2
        response = f"{response[:half]}\n[...]\n{response[-half:]}"
    shown = _neutral_lines(response)
    if not any(character.isalnum() for character in shown):
        return None
    gold = item.gold if config.shows_gold else None
    asked = [item.problem, gold, item.response, config.rubric]
    # A hash over all that is asked repeats from run to run, and no response can hold the hash of itself.
    nonce = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:NONCE_CHARS].upper()
    problem = _neutral_lines((item.problem or "(not given)")[:MAX_PROBLEM_CHARS])
    reference = f"Reference answer:\nBEGIN {nonce}\n{_neutral_lines(gold)}\nEND {nonce}\n\n" if gold else ""
    return PROMPT.format(
        nonce=nonce, problem=problem, reference=reference, response=shown, rubric=config.rubric, scale=config.scale
    )


def _neutral_lines(text: str) -> str:
    return "\n".join(map(neutralise, text.splitlines()))


def read_grade(reply: str, scale: int) -> float | None:
    """Return the grade of a reply's last line as a share of the scale: `SCORE: 7`, `7/10`, or None if none stands there
    plainly, or one beyond the scale."""
    match = _GRADE.fullmatch(last_line(reply) or "")
    if match is None or (match[2] is not None and int(match[2]) != scale):
        return None
    grade = float(match[1])
    return grade / scale if grade <= scale else None


UNASKED = Verdict(None, Reason.DECLINED, None, {"unasked": "the gate of the term is shut"})
"""The verdict on a response whose term does not count."""


class GradedTerms:
    """The models behind the terms of a reward, asked once the rules have judged: of what passed the term's gate."""

    def __init__(self, configs: Mapping[str, GraderConfig], folder: Path | None) -> None:
        """configs: by the name of the term. folder: where replies are kept, so that a training that goes on asks
        nothing twice."""
        self._graders: dict[str, Grader] = {}
        for index, (name, config) in enumerate(configs.items()):
            self._graders[name] = load_grader(config, None if folder is None else folder / f"{REPLIES}-{index}")

    def add(self, terms: Sequence[Term], asked: Sequence[Item], known: Sequence[dict[str, Verdict]]) -> None:
        """Add to the verdicts of each response, by term, those of the terms that models grade, in their order.

        asked: each response with its problem and gold.
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
        """Return what the models were asked and what that cost, and note it."""
        return [cost for grader in self._graders.values() for cost in grader.report_costs(progress)]

    def close(self) -> None:
        """Close connections and files."""
        for grader in self._graders.values():
            grader.close()


def _is_open(term: Term, verdicts: Mapping[str, Verdict]) -> bool:
    """Say whether a term counts, as far as its own gate tells: one that is graded later is not known yet."""
    gate = verdicts.get(term.gate) if term.gate is not None else None
    return gate is None or gate.passed
