r"""Stage `well_posed`: asks a language model whether each problem can be answered, and flags those that cannot.

The row `{"prompt": "A square has sides 3 and 4 ...", ...}` gets a row in `flags.parquet`, beside those of `flag`

    {"reason": "model_contradiction", "detector": "well_posed", "confidence": null, "blocks": false,
     "evidence": "{\"model\": \"Qwen3-8B\", \"measured\": null, \"quotation\": \"sides 3 and 4\", ...}", ...}

One call a row asks for faults, each with words of the problem as evidence. A second call is made only where there are
some: it defends the problem, and a fault counts where the defence fails.

    first reply                              second reply     outcome
    NONE                                                      sound
    contradiction: "sides 3 and 4" | ...     SOUND: 12        refuted
    contradiction: "sides 3 and 4" | ...     FAULTY           faulty: flagged model_contradiction
    contradiction: "sides 5 and 6" | ...                      undecided: that does not stand in the problem
    ":" or "I cannot help with that."                         undecided: it cannot be read
    (the row is too long, a file of replies has none)         not asked

The steps of MathQ-Verify (arXiv 2505.13903) are among the kinds of faults, and the kind of gold, as in Big-Math (arXiv
2502.17387). Models that say the same to everything (arXiv 2507.08794) find nothing: they quote nothing that stands there.

What a model's word is worth differs, so that flags have a confidence only where it was measured (`fault_likelihood`),
and hold rows back only then. Rows are neither changed nor dropped. Held-out rows are asked about like others. One batch
of rows is held in memory; a killed stage begins again.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from truegold.pipeline.config.stages import Fault, WellPosedConfig
from truegold.pipeline.engines import build_engine
from truegold.pipeline.engines.base import Engine, SamplingParams, sample_seed
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.flag.fault_questions import (
    FaultReply,
    QuotedFault,
    defence_prompt,
    find_prompt,
    read_defence,
    read_faults,
)

SHOWN_CHARS = 500
"""The evidence keeps the end of a reply, where the findings stand."""
DETECTOR = "well_posed"
NOT_ASKED = "abort"
"""The end of a completion that there is none of: a prompt without a stored reply, or one that a server refuses."""


class Outcome(StrEnum):
    """What asking about a problem has come to."""

    FAULTY = "faulty"
    REFUTED = "refuted"
    """Faults were found, and the problem was defended."""
    SOUND = "sound"
    UNDECIDED = "undecided"
    NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True)
class AskedProblem:
    """A problem that the model is asked about."""

    key: str
    """Seeds are made from it."""
    prompt: str
    gold: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What the model says of one problem."""

    outcome: Outcome
    faults: tuple[QuotedFault, ...] = ()
    """The faults found in the first call."""
    answer: str | None = None
    """The model's own answer, of the second call where that was made."""
    replies: tuple[str, ...] = ()
    """The ends of its replies."""

    @property
    def verdict(self) -> str:
        """The outcome; of a faulty problem the reason of the first fault, which is the one that was put first."""
        return str(self.faults[0].kind if self.outcome is Outcome.FAULTY else self.outcome)


def check_problems(
    problems: Sequence[AskedProblem], engine: Engine, encoder: PromptEncoder, config: WellPosedConfig
) -> Iterator[Asked]:
    """Yield what the model says of each problem, in order; a batch of problems is asked at a time."""
    for start in range(0, len(problems), config.batch_size):
        batch = problems[start : start + config.batch_size]
        prompts = {n: find_prompt(asked.prompt, asked.gold, config.kinds) for n, asked in enumerate(batch)}
        first = _ask("find", prompts, batch, engine, encoder, config)
        found = {n: read_faults(reply, batch[n].prompt) for n, reply in first.items()}
        defended = {
            n: defence_prompt(batch[n].prompt, batch[n].gold, reply.faults) for n, reply in found.items() if reply and reply.faults
        }
        second = _ask("defend", defended, batch, engine, encoder, config)
        for n in range(len(batch)):
            yield _conclude(n, found, first, second)


def _ask(
    question: str,
    prompts: Mapping[int, str | None],
    problems: Sequence[AskedProblem],
    engine: Engine,
    encoder: PromptEncoder,
    config: WellPosedConfig,
) -> dict[int, str | None]:
    """Return the replies by the places of the problems: None for one that was cut off, nothing for a prompt that was not
    answered, or that leaves no room."""
    encoded = {n: encoder.encode(text) for n, text in prompts.items() if text is not None}
    fitting = {n: prompt for n, prompt in encoded.items() if len(prompt) < engine.max_model_len}
    if not fitting:
        return {}
    sampling = SamplingParams(config.temperature, 1.0, config.max_tokens, encoder.stop_token_ids)
    seeds = [sample_seed(config.seed, question, problems[n].key) for n in fitting]
    completions = zip(fitting, engine.generate(list(fitting.values()), sampling, seeds), strict=True)
    return {
        n: encoder.decode(done.token_ids) if done.finish_reason == "stop" else None
        for n, done in completions
        if done.finish_reason != NOT_ASKED
    }


def _conclude(
    n: int,
    found: Mapping[int, FaultReply | None],
    first: Mapping[int, str | None],
    second: Mapping[int, str | None],
) -> Asked:
    """Return what both calls say of the problem at this place."""
    if n not in first:
        return Asked(Outcome.NOT_ASKED)
    replies = tuple((by_place[n] or "")[-SHOWN_CHARS:] for by_place in (first, second) if n in by_place)
    reply = found[n]
    if reply is None or (reply.unquoted and not reply.faults):
        return Asked(Outcome.UNDECIDED, (), reply and reply.answer, replies)
    if not reply.faults:
        return Asked(Outcome.SOUND, (), reply.answer, replies)
    if n not in second:
        return Asked(Outcome.NOT_ASKED, reply.faults, reply.answer, replies)
    defence = read_defence(second[n])
    outcomes = {None: Outcome.UNDECIDED, "": Outcome.FAULTY}
    return Asked(outcomes.get(defence, Outcome.REFUTED), reply.faults, defence or reply.answer, replies)
