"""Asks a language model of each row, step by step, whether its problem can be answered.

    three rows; PROBLEM: yes, yes, undecided; DEFINED: yes, no, yes; CONSISTENT is asked of the first and the third only

A row that fails a step is not asked further, as its later answers would be about a problem that has none; one on which
a step is undecided goes on. Rows that are too long for the model are not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from truegold.pipeline.config.stages import Step, WellPosedConfig
from truegold.pipeline.engines.asking import ask_model
from truegold.pipeline.engines.base import Engine, sample_seed
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.flag.well_posed.questions import decide, make_prompts, read_answer

SHOWN_CHARS = 500
"""What the evidence keeps of a reply: its end, where the answer stands."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is asked about."""

    key: str
    """What its seeds come from."""
    prompt: str
    gold: str | None = None


@dataclass(slots=True)
class Answers:
    """What the model said of one problem."""

    passed: dict[Step, bool | None] = field(default_factory=dict)
    """Of each step that was asked whether the problem passes it; None where the model did not decide."""
    replies: dict[Step, tuple[str | None, str | None]] = field(default_factory=dict)
    """The ends of the replies in both senses; None for one that was cut off."""

    @property
    def failed(self) -> Step | None:
        """The step that the problem fails, if any."""
        return next((step for step, passed in self.passed.items() if passed is False), None)


def check_problems(
    problems: Sequence[Problem], engine: Engine, encoder: PromptEncoder, config: WellPosedConfig
) -> Iterator[Answers]:
    """Yield the answers on each problem, in order; a batch of problems is asked at a time."""
    for start in range(0, len(problems), config.batch_size):
        batch = problems[start : start + config.batch_size]
        answers = [Answers() for _ in batch]
        for step in config.steps:
            open_problems = {index: batch[index] for index, answer in enumerate(answers) if answer.failed is None}
            _ask_step(step, open_problems, answers, engine, encoder, config)
        yield from answers


def _ask_step(
    step: Step,
    problems: Mapping[int, Problem],
    answers: Sequence[Answers],
    engine: Engine,
    encoder: PromptEncoder,
    config: WellPosedConfig,
) -> None:
    """Ask one step of the problems, which are given by their places among `answers`."""
    asked: list[int] = []
    prompts: list[list[int]] = []
    for index, problem in problems.items():
        senses = make_prompts(step, problem.prompt, problem.gold)
        encoded = [encoder.encode(text) for text in senses or ()]
        if encoded and max(map(len, encoded)) < engine.max_model_len:
            asked.append(index)
            prompts += encoded
    seeds = [sample_seed(config.seed, step, problems[index].key, sense) for index in asked for sense in range(2)]
    replies = ask_model(prompts, seeds, engine, encoder, config) if prompts else []
    for index, sound, faulty in zip(asked, replies[::2], replies[1::2], strict=True):
        answers[index].passed[step] = decide(read_answer(sound), read_answer(faulty))
        answers[index].replies[step] = (_end_of(sound), _end_of(faulty))


def _end_of(reply: str | None) -> str | None:
    return None if reply is None else reply[-SHOWN_CHARS:]
