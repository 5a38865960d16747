"""Asks a language model whether an answer and the gold mean the same (`truegold.verifiers.model_judge`).

    verdict of rules               the model's replies        verdict after them
    Verdict(None, gold_unparsed)   SAME in both orders    ->  Verdict(1.0, match), evidence {"judge": "Qwen3-8B", ...}
    Verdict(None, gold_unparsed)   SAME, then DIFFERENT   ->  Verdict(None, gold_unparsed), with the replies as evidence
    Verdict(0.0, mismatch)                                ->  unchanged: verdicts of rules are never sent

Only verdicts without a score are sent, if their reason is in `reasons`, and gold and answer are known. All other
verdicts are unchanged. Any engine works. The evidence marks verdicts of the judge, so that a report can count them
separately.

The judge never raises a score of 0. Otherwise a policy learns to please the judge. (`judge.opinions` asks about such
verdicts without changing them.) Measure your judge on labelled rows before you use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from truegold.pipeline.config.stages import AskedModelConfig, JudgeConfig
from truegold.pipeline.engines import build_engine
from truegold.pipeline.engines.base import Engine, sample_seed
from truegold.pipeline.engines.chat import PromptEncoder, ask_pairs
from truegold.pipeline.engines.chat_engine import report_costs
from truegold.pipeline.running.progress import Progress
from truegold.verifiers import Item, Reason, Verdict, committed_answer
from truegold.verifiers.extract import final_part
from truegold.verifiers.model_judge import MAX_ANSWER_CHARS, decide, make_question, read_reply

SHOWN_CHARS = 500
"""The number of characters of a reply that the evidence keeps. They are from the end, which has the verdict."""


class ModelComparison(NamedTuple):
    """A model's comparison of an answer with its gold."""

    same: bool | None
    """None if the replies for the two orders differ."""
    replies: tuple[str | None, str | None]
    """The ends of both replies. None for a reply that was cut off."""


@dataclass(frozen=True)
class Judge:
    """A language model, with its engine, that compares answers."""

    engine: Engine
    encoder: PromptEncoder
    config: AskedModelConfig

    def __call__(self, items_to_judge: Sequence[Item], verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Return a verdict for each item, in order; the model judges items without a score."""
        assert isinstance(self.config, JudgeConfig)
        reasons, judged = self.config.reasons, list(verdicts)
        asked = [n for n, verdict in enumerate(verdicts) if verdict.score is None and verdict.reason in reasons]
        comparisons = self.compare([items_to_judge[n] for n in asked], [verdicts[n] for n in asked])
        for n, comparison in zip(asked, comparisons, strict=True):
            if comparison is not None:
                judged[n] = _judged(judged[n], comparison, self.config.name)
        return judged

    def compare(self, asked: Sequence[Item], verdicts: Sequence[Verdict]) -> list[ModelComparison | None]:
        """Return for each item the comparison of its answer with its gold, or None if it cannot be asked about."""
        questions = [_question(item, verdict) for item, verdict in zip(asked, verdicts, strict=True)]
        seeds = [
            (sample_seed(self.config.seed, "judge", question), sample_seed(self.config.seed, "judge", question, 1))
            for question in questions
        ]
        comparisons: list[ModelComparison | None] = []
        for start in range(0, len(questions), self.config.batch_size):
            batch = slice(start, start + self.config.batch_size)
            pairs = ask_pairs(questions[batch], seeds[batch], self.engine, self.encoder, self.config)
            comparisons += [None if pair is None else _read(*pair) for pair in pairs]
        return comparisons

    def report_costs(self, progress: Progress) -> list[Mapping[str, Any]]:
        """Return the requests and their costs, and print them."""
        return report_costs([self.engine.facts()], progress)

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()


def load_judge(config: AskedModelConfig, replies: Path | None = None) -> Judge:
    """Start the judge's engine; `replies` is the folder for stored replies of an engine of type `chat`."""
    model = Path(config.model) if config.model else None
    return Judge(*build_engine(config.engine, config.chat, model, replies), config)


def _question(item: Item, verdict: Verdict) -> tuple[str, str] | None:
    """Return both prompts about an item's answer, or None if answer or gold is missing."""
    answer = _answer(item.response, verdict)
    question = None if answer is None or item.gold is None else make_question(item.problem, item.gold, answer)
    return None if question is None else (question.gold_first, question.answer_first)


def _read(gold_first: str | None, answer_first: str | None) -> ModelComparison:
    """Return the comparison that two replies give. None stands for a reply that was cut off."""
    replies = (gold_first, answer_first)
    same = decide(*(None if reply is None else read_reply(reply) for reply in replies))
    first, second = (reply and reply[-SHOWN_CHARS:] for reply in replies)
    return ModelComparison(same, (first, second))


def _answer(response: str, verdict: Verdict) -> str | None:
    """Return the verdict's answer, or the answer that the response commits to. For an unread response, return the last
    whole lines after the thinking, up to the length of the longest allowed answer."""
    if verdict.reason is not Reason.UNREAD:
        committed = committed_answer(response) if verdict.extracted is None else None
        return committed.text if committed else verdict.extracted
    end = ""
    for line in reversed(final_part(response).strip().splitlines()):
        longer = f"{line}\n{end}".strip()
        if len(longer) > MAX_ANSWER_CHARS:
            break
        end = longer
    return end or None


def _judged(verdict: Verdict, comparison: ModelComparison, name: str) -> Verdict:
    same, replies = comparison
    evidence = {
        **verdict.evidence,
        "judge": name,
        "unjudged_because": str(verdict.reason),
        "replies": list(replies),
    }
    if same is None:
        return replace(verdict, evidence=evidence)
    return Verdict(float(same), Reason.MATCH if same else Reason.MISMATCH, verdict.extracted, evidence)
