"""Checks for mix-ups in a step: rows on wrong ranks, and golds, verdicts or rewards of wrong completions.

`count_apart` finds rows on wrong ranks. For the other mix-ups, some completions of each step are read from the files in
`completions/` and judged again in a separate process. A few completions of the first step, the canaries, are judged
again at every step. A different verdict is a fault:

    "\\boxed{3}" with gold 8 was scored 1, and is now scored 0

To find the kind of the fault, more completions of the step are judged again:

    finding                                                                           metric
    verdicts are those that are stored for neighbouring completions                   verdicts_moved 1
    verdicts with the golds of neighbouring groups are the stored ones                golds_moved 1

For a verifier that is not deterministic, such as one that asks a model, the share of different verdicts is checked.
"""

from __future__ import annotations

import json
import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby, permutations
from pathlib import Path

import polars as pl

from truegold.pipeline.tables.rows import Row, problem_of
from truegold.train.config.grpo import GrpoConfig
from truegold.train.grpo.groups import CompletionScorer, completions_path
from truegold.train.model.distributed import from_first_rank, gathered, rank, world_size
from truegold.verifiers import Item, Reason, Verdict, compose, resolve
from truegold.verifiers.rates import wilson_interval

CANARIES = 8
"""The number of completions of the first step (canaries) that are judged again at each later step, half of them right
if possible. A changed verdict on a canary shows that the verifier has changed."""
MOST = 64
"""Maximum number of completions of a step that are judged again to find a fault's kind."""
NEIGHBOURS = 8
"""The largest shift, in completions, at which stored verdicts are compared with new ones."""
ALIKE = 0.95
"""Two lists of verdicts count as the same if more than this share of verdicts is equal, shifted or not."""
WINDOW = 64
"""The number of latest comparisons that count for verifiers that are not deterministic."""
Z_999 = 3.29
"""The normal quantile of the confidence interval of the share of different verdicts (99.9 %, two-sided)."""
TRANSIENT = frozenset({Reason.TIMEOUT, Reason.LIMIT, Reason.SANDBOX_ERROR})
"""Reasons that depend on the machine and may differ between two judgements."""
ROUNDING = 1e-6
"""Scores and rewards that differ by less are equal."""


def count_apart(drawn: Sequence[str], trained: Sequence[tuple[int, str]]) -> int:
    """Return the number of a step's groups on which the ranks disagree. All ranks call this together.

    The ranks disagree on a group if two of them sampled it, or if one drew or sampled another row than rank 0 drew.

    drawn: the ids of the rows that this rank's feed drew, in the order of the groups. trained: number and row id of
    each group that this rank sampled.
    """
    ranks = gathered((list(drawn), sorted(set(trained))))
    first = dict(enumerate(ranks[0][0]))
    holders = Counter(group for _, groups in ranks for group in {group for group, _ in groups})
    apart = {group for group, count in holders.items() if count > 1}
    apart |= {group for _, groups in ranks for group, row_id in groups if first.get(group) != row_id}
    # Feeds may differ in rows that this rank does not sample.
    apart |= {group for ids, _ in ranks for group, row_id in enumerate(ids) if first.get(group) != row_id}
    return len(apart)


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A completion with its verdict and reward, as stored in the step's file."""

    group: int
    question: Item
    """The stored text and gold, with the verifier and arguments that the row had at the start of the training."""
    score: float | None
    reason: str
    extracted: str | None
    reward: float | None
    composed: float | None
    """The reward computed from the stored scores of the reward's terms."""
    advantage: float
    trained: bool
    """Whether the completion entered the training batch."""
    is_row_kept: bool
    """Whether the stored prompt and gold are equal to the row's."""
    is_score_kept: bool
    """Whether the stored score is equal to the stored score of the correctness term."""

    @property
    def can_be_compared(self) -> bool:
        """Whether a second judgement must give the same verdict."""
        return self.score is not None and self.reason not in TRANSIENT

    def differs(self, now: Verdict) -> bool | None:
        """Return whether a new verdict differs from the stored one, or None if this cannot be known."""
        return differ_verdicts(self.question, Verdict(self.score, Reason(self.reason), self.extracted), now)


def differ_verdicts(question: Item, before: Verdict, now: Verdict) -> bool | None:
    """Return whether two verdicts on a completion differ, or None if this cannot be known."""
    if now.reason in TRANSIENT or (now.reason is Reason.UNREAD and before.score == 1.0):
        # A second opinion may have raised the score of the unread answer.
        return None
    if now.score is None:
        return now.reason != before.reason
    if before.score is None:
        return True
    is_same_answer = now.extracted == before.extracted or not is_deterministic(question.verifier)
    return abs(now.score - before.score) > ROUNDING or not is_same_answer


@lru_cache(maxsize=64)
def is_deterministic(verifier: str) -> bool:
    """Return whether a verifier gives the same verdict each time: its attribute `deterministic`, by default True."""
    return bool(getattr(resolve(verifier), "deterministic", True))


@dataclass(frozen=True, slots=True)
class _RowAtStart:
    """A copy of a row from the start of the training. It shares no objects with the rows that the training uses."""

    prompt: str
    gold: str | None
    verifier: str
    verifier_args: str
    problem: str | None


@dataclass
class StoredVerdicts:
    """Judges stored completions again. Every rank checks the completions that it sampled."""

    scorer: CompletionScorer
    config: GrpoConfig
    folder: Path
    """The output folder of the stage."""
    rows: dict[str, _RowAtStart]
    """The training rows by id."""
    canaries: list[StoredVerdict] = field(default_factory=list)
    compared: deque[bool] = field(default_factory=lambda: deque(maxlen=WINDOW))
    """Whether the second verdict differed, for the latest completions of verifiers that are not deterministic."""

    def check(self, step: int) -> dict[str, float | None]:
        """Return the faults of a stored step. All ranks call this together.

        golds_moved, rewards_moved, ... (`KINDS`)   the number of faults of a kind, summed over the ranks
        canaries_changed                            the share of rank 0's canaries whose verdict has changed
        verdicts_apart                              the lower confidence bound of the share of different verdicts, for
                                                    verifiers that are not deterministic; the highest of all ranks
        """
        count = self.config.guards.rejudged
        if not count or self.config.turns is not None:
            return {}
        stored = self._read(step)
        is_first = rank() == 0 and not self.canaries
        chosen = choose(stored, CANARIES if is_first else -(-count // world_size()), step)
        canaries = self.canaries if rank() == 0 else []
        verdicts = self.scorer.judge_apart([each.question for each in (*chosen, *canaries)])
        differing = [each.differs(now) for each, now in zip((*chosen, *canaries), verdicts, strict=True)]
        wrong, changed = (
            [
                differs
                for each, differs in zip(each_part, part, strict=True)
                if differs is not None and is_deterministic(each.question.verifier)
            ]
            for each_part, part in ((chosen, differing[: len(chosen)]), (canaries, differing[len(chosen) :]))
        )
        self.compared += [
            differs
            for each, differs in zip((*chosen, *canaries), differing, strict=True)
            if differs is not None and not is_deterministic(each.question.verifier)
        ]
        kinds = Counter[str](golds_moved=sum(not each.is_row_kept for each in stored))
        kinds["rewards_moved"] = sum(_differ(each.reward, each.composed) for each in stored)
        if not kinds["rewards_moved"]:
            kinds["advantages_moved"] = self._count_advantages_moved(stored)
        if any(wrong) or not all(each.is_score_kept for each in stored):
            kinds[self._diagnose(stored)] += 1
        elif any(changed):
            kinds["verifier_random"] += self._is_random([each.question for each in canaries] * CANARIES)
        if is_first:
            self.canaries = chosen
        kinds_of_ranks = gathered((kinds, wilson_interval(sum(self.compared), len(self.compared), Z_999)[0]))
        return {
            **{name: float(sum(each[name] for each, _ in kinds_of_ranks)) for name in KINDS},
            "verdicts_apart": max(low for _, low in kinds_of_ranks),
            "canaries_changed": from_first_rank(sum(changed) / len(changed) if changed else None),
        }

    def check_evaluation(self, evaluated: Sequence[tuple[Item, Verdict]]) -> dict[str, float | None]:
        """Return the number of an evaluation's completions that get a different verdict in a separate process.

        All ranks call this together.
        """
        if not self.config.guards.rejudged:
            return {}
        known = [(question, verdict) for question, verdict in evaluated if is_deterministic(question.verifier)]
        now = self.scorer.judge_apart([question for question, _ in known])
        differing = [
            verdict.reason not in TRANSIENT and bool(differ_verdicts(question, verdict, again))
            for (question, verdict), again in zip(known, now, strict=True)
        ]
        return {"evaluation_wrong": float(sum(gathered(sum(differing))))}

    def _read(self, step: int) -> list[StoredVerdict]:
        """Return this rank's completions of a step from their file, in order."""
        table = pl.read_parquet(completions_path(self.folder, step, rank()), columns=COLUMNS)
        return [each for record in table.iter_rows() if (each := self._stored(*record)) is not None]

    def _stored(
        self,
        row_id: str,
        group: int,
        prompt: str,
        gold: str | None,
        completion: str,
        score: float | None,
        reason: str,
        extracted: str | None,
        reward: float | None,
        reward_terms: str,
        advantage: float,
        trained: bool,
    ) -> StoredVerdict | None:
        """Return a stored completion from its columns (`COLUMNS`), or None if its row id is not unique."""
        row = self.rows.get(row_id)
        if row is None:
            return None
        terms, scores = self.config.reward.composition, json.loads(reward_terms)
        verdicts = [Verdict(scores[term.name]["score"], Reason(scores[term.name]["reason"])) for term in terms]
        correct = next(verdict for term, verdict in zip(terms, verdicts, strict=True) if term.verifier is None)
        return StoredVerdict(
            group,
            Item(completion, gold, row.verifier, row.verifier_args, row.problem),
            score,
            reason,
            extracted,
            reward,
            compose(terms, verdicts, self.config.reward.clip).value,
            advantage,
            trained,
            is_row_kept=(prompt, gold) == (row.prompt, row.gold),
            is_score_kept=not _differ(correct.score, score),
        )

    def _count_advantages_moved(self, stored: Sequence[StoredVerdict]) -> int:
        """Return the number of groups in which a completion with a lower reward has a higher advantage."""
        if any(kind.startswith("pass_at_k") for kind in self.config.objective.advantage_kinds):
            return 0
        count = 0
        for _, members in groupby(stored, key=lambda each: each.group):
            pairs = [(each.reward, each.advantage) for each in members if each.trained and each.reward is not None]
            count += any(
                low < high - ROUNDING and above > below + ROUNDING
                for (low, above), (high, below) in permutations(pairs, 2)
            )
        return count

    def _diagnose(self, stored: Sequence[StoredVerdict]) -> str:
        """Return the kind of a fault in the verdicts of a step."""
        stored = stored[:MOST]
        now = [verdict.score for verdict in self.scorer.judge_apart([each.question for each in stored])]
        scores, unmoved = [each.score for each in stored], agreement([each.score for each in stored], now)
        size = self.config.group_size
        for shift in (*range(1, NEIGHBOURS + 1), size):
            if max(agreement(scores[shift:], now[:-shift]), agreement(scores[:-shift], now[shift:])) > max(
                unmoved, ALIKE
            ):
                return "verdicts_moved"
        golds = [next(members).question for _, members in groupby(stored, key=lambda each: each.group)]
        groups = [group for group, _ in groupby(each.group for each in stored)]
        for before, after in ((0, 1), (1, 0)):
            pairs = dict(zip(groups[before:], golds[after:], strict=False)) if len(groups) > 1 else {}
            asked = [(each, pairs[each.group]) for each in stored if each.group in pairs]
            others = [replace(each.question, gold=other.gold) for each, other in asked]
            verdicts = [verdict.score for verdict in self.scorer.judge_apart(others)]
            if agreement([each.score for each, _ in asked], verdicts) > max(unmoved, ALIKE):
                return "golds_moved"
        return "verifier_random" if self._is_random([each.question for each in stored] * 2) else "verdicts_wrong"

    def _is_random(self, questions: Sequence[Item]) -> bool:
        """Return whether repeated questions get different scores. `questions` has each question several times in a
        row."""
        scores = [verdict.score for verdict in self.scorer.judge_apart(questions)]
        return len(set(zip(questions, scores, strict=True))) > len(set(questions))


KINDS = ("golds_moved", "rewards_moved", "advantages_moved", "verdicts_moved", "verifier_random", "verdicts_wrong")
"""The kinds of faults."""
COLUMNS = "id group prompt gold completion score reason extracted reward reward_terms advantage trained".split()
"""The columns of a step's file that are read."""


def make_stored_verdicts(
    scorer: CompletionScorer, config: GrpoConfig, folder: Path, rows: Sequence[Row]
) -> StoredVerdicts:
    """Return the checker of a training's steps, with a copy of its rows. Rows whose id is not unique are left out."""
    ids = Counter(row["id"] for row in rows)
    at_start = {
        row["id"]: _RowAtStart(row["prompt"], row["gold"], row["verifier"], row["verifier_args"], problem_of(row))
        for row in rows
        if ids[row["id"]] == 1 and config.turns is None
    }
    return StoredVerdicts(scorer, config, folder, at_start)


def choose(stored: Sequence[StoredVerdict], count: int, step: int) -> list[StoredVerdict]:
    """Choose `count` completions to judge again, half of them right if possible."""
    draw = random.Random(f"again-{step}")
    known = [each for each in stored if each.can_be_compared]
    draw.shuffle(known)
    right = [each for each in known if each.score == 1.0]
    wrong = [each for each in known if each.score != 1.0]
    half = max(count // 2, count - len(wrong))
    return (right[:half] + wrong)[:count]


def agreement(first: Sequence[float | None], second: Sequence[float | None]) -> float:
    """Return the share of equal scores at the positions where both lists have one, or 0 for fewer than 8 positions."""
    pairs = [(left, right) for left, right in zip(first, second, strict=True) if left is not None and right is not None]
    return sum(abs(left - right) <= ROUNDING for left, right in pairs) / len(pairs) if len(pairs) >= NEIGHBOURS else 0.0


def _differ(first: float | None, second: float | None) -> bool:
    """Return whether two numbers differ by more than rounding. NaN never differs, because another guard reports it."""
    if first is None or second is None:
        return (first is None) != (second is None)
    return abs(first - second) > ROUNDING
