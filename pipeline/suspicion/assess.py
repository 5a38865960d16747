"""Computes the suspicion of rows: the probability that a row's label is wrong or its problem is ill-posed.

Systems are models or persons that have answered the problems; each answer is a vote.

1. The abilities of systems and the share of wrong labels are learnt from the whole file (`population`). 2. The votes on
each row give a probability of a fault, with an even prior (`label_posterior`). It is averaged
   with estimates from the ablest systems alone, and corrected by the neighbouring rows (`with_neighbours`). The result
   is the suspicion by votes.
3. A second estimate, with the learnt share of wrong labels as prior, tells whether the label is outvoted. 4. The
suspicion by votes is combined with the wording, rules and the verdict of an asked model (`joined`).

No reviewed labels are used: all is learnt from the agreement of systems. If a problem is ill-posed, able systems give
many answers. If a label is wrong, they agree on another answer. The order of samples does not matter. The order of
problems does, because wrong labels come in runs.

The tier is a recommendation: `drop`, `review` or `keep`.

    gold "18", suspicion 0.98 by 12 systems                                  drop
    gold "C", all of 14 systems answer "A", in a file of clean labels        review: able systems share misconceptions
    gold "C", all of 14 systems answer "A", in a file with 30 % wrong labels drop
    gold "C", one model answers "A" eight times                              review: the model may be wrong
    gold "1,800", ten of twelve answers are "1"                              review: extraction may have cut them short

A question is closed if it has a few options to choose from, else it is open. Votes drop a row with an open question in
two cases:

- at least three strong systems have answered, few of their samples give the label, and the suspicion is high
- fewer strong systems have answered, and the second estimate of a wrong label is high

Votes drop a row with a closed question if all models agree against its label, and nine in ten such labels of the file
are wrong (`unanimously_denied`). A pass rate of 0 alone does not drop a row.

A reviewer sees the evidence: the systems that gave the label or the alternative, and the log odds of each source.

    {"passes": {"weak": [5, 20], "strong": [0, 20]}, "alternative_support": {"weak": [3, 20], "strong": [19, 20]},
     "history": {"label": [0.6, 0.1], ...}, "log_odds": {"prior": -2.9, "samples": 1.2, "model": 3.1}, ...}
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.suspicion.answer_classes import LABEL_CLASS, LabelledProblem
from truegold.pipeline.suspicion.joined import (
    NOTHING_ELSE,
    UNKNOWN_MODEL,
    Claim,
    IllPosedTotal,
    OtherEvidence,
    Shares,
    SuspicionTier,
    Witnesses,
    choose_tier,
    claim_fault,
    join,
    shares_of,
    weigh_verdicts,
)
from truegold.pipeline.suspicion.label_posterior import SHARED, UNDECIDED, WRONG, Readings, pooled_fault, read
from truegold.pipeline.suspicion.population import Learnt, learn
from truegold.pipeline.suspicion.rasch_model import MAX_ITEMS, Ability, text_features
from truegold.pipeline.suspicion.votes import Votes
from truegold.pipeline.tables.reasons import AskedModel

MULTIPLE, DURATION = 0.5, 0.12
"""The probability of several readings. MULTIPLE is for "three times older", DURATION for a duration without a unit."""

_COUNT_WORD = (
    r"(?:\d+(?:\.\d+)?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty"
    r"|hundred|thousand)"
)
_MULTIPLE = re.compile(rf"\b{_COUNT_WORD} times (?:more|fewer|less|older|younger)\b(?! often)", re.IGNORECASE)
"""A multiple of either the difference or the whole: "three times older". "Three times as many" and "two more times" do
not match."""
_DURATION = re.compile(r"\bhow (?:long|much time)\b[^.?!]*", re.IGNORECASE)
"""A question about a duration."""
_UNIT = r"(?:second|minute|hour|day|week|month|year)s?"
_NAMED_UNIT = re.compile(rf"\b{_UNIT}\b", re.IGNORECASE)
_STATED_UNIT = re.compile(rf"\bin (?:total )?{_UNIT}\b", re.IGNORECASE)
"""A unit in which the duration is asked for: "in minutes"."""
MAX_CHARS = 20_000
"""The number of characters of a text that are searched."""


def several_readings(prompt: str | None) -> float:
    """Return the probability that the wording of the prompt allows several readings; 0.0 for other wordings.

        "Kim is three times older than Leo, who is 4."                      12, or 16?          0.5
        "15 minutes a day and an hour on Sunday. How long is that a week?"  minutes, or hours?  0.12

    Systems that learnt from the same texts read such a sentence alike, so their votes are not evidence. The
    probabilities are the shares of rejected rows among rows with such a wording in a reviewed corpus
    (docs/explain/suspicion.md).
    """
    text = (prompt or "")[:MAX_CHARS]
    if _MULTIPLE.search(text):
        return MULTIPLE
    question = _DURATION.search(text)
    if question and _NAMED_UNIT.search(text) and not _STATED_UNIT.search(question[0]):
        return DURATION
    return 0.0


MIN_MODELS = 3
"""The minimum number of models that answered a question. Questions with fewer models are not counted."""


def unanimously_denied(votes: Votes) -> tuple[NDArray[np.bool_], float]:
    """Mark the closed questions on which all models choose one option against the label (n,). Return them and the share
    of wrong labels among them.

        models that agree on one option against the label       13 of 14        14 of 14
        in a file with 2 % of its labels replaced               30 questions    79 questions: at least 59 % are wrong
        in a file with 30 % of its labels replaced              80 questions    546 questions: at least 94 % are wrong

    If all models agree against a label, it is wrong, or they share a misconception. Misconceptions mislead all models
    about as often as all models but one. So both columns contain about the same number m of misconceptions. If a label
    is wrong, the models choose the true answer as often as they choose right labels. All models choose a share r of the
    right labels, and all but one choose a share s. Both shares are counted in the file. Then the two columns determine
    the number w of wrong labels:

        questions on which all models agree against the label             = w r + m
        questions on which all models but one agree against the label     = w s + m

    The returned share is one standard error below the most likely value, and 0.0 with too few models or questions. Only
    the last checkpoint of each model is used.
    """
    denied = np.zeros(votes.n_items, dtype=bool)
    closed = np.flatnonzero(votes.closed)
    if not len(closed) or not len(votes.family):
        return denied, 0.0
    answers = votes.of_items(closed).plurality()[:, np.append(votes.family[1:] != votes.family[:-1], True)]
    answered, label = (answers >= 0).sum(axis=1), (answers == LABEL_CLASS).sum(axis=1)
    enough = answered >= MIN_MODELS
    other = np.zeros(len(closed), dtype=np.intp)
    for answer_class in range(LABEL_CLASS + 1, int(answers.max()) + 1):
        other = np.maximum(other, (answers == answer_class).sum(axis=1))
    denied[closed] = enough & (other == answered)
    given_by_all, given_by_most = (int((enough & (label == answered - short)).sum()) for short in (0, 1))
    n_denied, denied_by_most = int(denied.sum()), int((enough & (other == answered - 1)).sum())
    if not n_denied or given_by_most >= given_by_all:
        return denied, 0.0
    ratio = given_by_most / given_by_all
    misconceptions = max(0.0, denied_by_most - ratio * n_denied) / (1.0 - ratio)
    misconceptions += math.sqrt(denied_by_most + 1.0 + ratio**2 * n_denied) / (1.0 - ratio)
    return denied, max(0.0, 1.0 - misconceptions / n_denied)


Array = NDArray[np.float64]

HALF_WIDTHS = (10, 20, 40)
"""The numbers of neighbours on each side of a row that are tried."""
SAME_SOURCE = -1
"""The half width for which the neighbours are all rows of the same source."""
SHRINKAGES = (3.0, 10.0, 30.0, 100.0, 300.0)
"""The weights that are tried for the file's mean rate of faults. A weight of 10 counts as much as ten neighbours."""
MIN_GAIN = 4.0
"""The minimum gain in log likelihood for which neighbours are used: twice Akaike's penalty for the two parameters."""
FLOOR = 1e-6
"""The minimum distance of a suspicion from 0 and 1, to keep its odds finite."""
GROUPS = ("weak", "middle", "strong")
"""Thirds of the systems by ability. With fewer than three systems, all are in the last third."""
STRONG_RATE = 0.9
"""A strong system gives at least this share of right answers, by the estimated truth."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """The assessment of a row: its suspicion, tier and evidence."""

    id: str
    suspicion: float | None
    """The probability that the row is at fault, or None without evidence."""
    ill_posed: float | None
    """The probability that the problem is ill-posed."""
    label_wrong: float | None
    """The probability that only the label is wrong, or None without answers."""
    tier: SuspicionTier
    evidence: dict[str, Any]
    """Counts that a reviewer can check, as data for JSON."""
    suggestion: str | None
    """The alternative answer, if able systems prefer it to the label."""

    @property
    def is_measured(self) -> bool:
        """Return whether the suspicion rests on samples or on an asked model whose errors were measured."""
        return self.label_wrong is not None or self.evidence.get("asked", {}).get("ratio") is not None


@dataclass(frozen=True, slots=True)
class Fit:
    """The fitted systems and labels of the whole file, for reports."""

    learnt: Learnt
    agreement: Array
    """(m,), the share of each system's answers that are equal to the label."""
    strength: Array
    """(m,), the share of each system's answers that are equal to the estimated truth."""
    half_width: int
    """The number of neighbours used on each side: 0 for none, `SAME_SOURCE` for all rows of the source."""

    @property
    def wrong_labels(self) -> float | None:
        """The share of wrong labels, or None if only one model has answered."""
        return self.learnt.population.prior[WRONG] if self.learnt.is_informed else None

    @property
    def ability(self) -> Ability:
        """The abilities of the systems."""
        return self.learnt.population.ability


def assess(
    problems: Sequence[LabelledProblem],
    votes: Votes,
    others: Mapping[str, OtherEvidence] = MappingProxyType({}),
    asked_model: AskedModel = UNKNOWN_MODEL,
) -> tuple[Fit, Iterator[Assessment]]:
    """Return the fitted values, and an assessment for each item, in order.

    `others` has the evidence other than votes by item id, `asked_model` the measurement of the asked model. Raises
    ValueError if the votes are on another number of items.
    """
    if len(problems) != votes.n_items:
        raise ValueError(f"{len(problems)} items, but votes on {votes.n_items}")
    features = text_features(problems)
    answered = votes.has_votes()
    chosen = np.flatnonzero(answered)
    if len(chosen) > MAX_ITEMS:
        chosen = chosen[np.linspace(0, len(chosen) - 1, MAX_ITEMS).astype(np.intp)]
    learnt = learn(votes.of_items(chosen), features[chosen])
    agreement, strength = _rates(votes.of_items(chosen), learnt)
    votes = votes.reweight(learnt.system_weight)
    wrong = read(votes, learnt.population, features).outvoted
    # The learnt prior would put the suspicion of ambiguous items far below their share of faults.
    undecided = replace(learnt.population, prior=UNDECIDED)
    readings = read(votes, undecided, features)
    suspicion = pooled_fault(readings.fault, votes, undecided, features)
    sources = [problem.source for problem, has_answer in zip(problems, answered, strict=True) if has_answer]
    suspicion[answered], half_width = with_neighbours(suspicion[answered], sources)
    fit = Fit(learnt, agreement, strength, half_width)
    return fit, _assessments(problems, votes, readings, suspicion, wrong, fit, others, asked_model)


def _rates(votes: Votes, learnt: Learnt) -> tuple[Array, Array]:
    """Return the share of each system's answers that agree with the label, and with the estimated truth; (m,) each."""
    seen = np.maximum(votes.table().sum(axis=0), 1e-9)
    agreeing = votes.table(votes.answer_class == LABEL_CLASS).sum(axis=0)
    return agreeing / seen, learnt.right(votes).sum(axis=0) / seen


def _assessments(
    problems: Sequence[LabelledProblem],
    votes: Votes,
    readings: Readings,
    suspicion: Array,
    wrong: Array,
    fit: Fit,
    others: Mapping[str, OtherEvidence],
    asked_model: AskedModel,
) -> Iterator[Assessment]:
    has_votes = votes.has_votes()

    def shares(index: int) -> Shares | None:
        return shares_of(float(suspicion[index]), float(readings.replaced[index])) if has_votes[index] else None

    asked = {item: other.asked for item, other in others.items() if other.asked is not None}
    rows = {item.id: (item.source, shares(index)) for index, item in enumerate(problems) if item.id in asked}
    ill_posed = (known.ill_posed for index in range(len(problems)) if (known := shares(index)) is not None)
    total = IllPosedTotal(sum(ill_posed), int(has_votes.sum()))
    weighed, expected = weigh_verdicts(
        asked,
        {item: source for item, (source, _) in rows.items()},
        {item: known for item, (_, known) in rows.items() if known is not None},
        asked_model,
        total,
    )
    systems = _Systems(fit, votes)
    denied, denied_wrong = unanimously_denied(votes)
    starts = votes.starts()
    for index, item in enumerate(problems):
        other = replace(others.get(item.id, NOTHING_ELSE), asked=weighed.get(item.id))
        part = slice(starts[index], starts[index + 1])
        alternative = int(readings.alternative[index])
        entries = _ItemVotes(votes.system[part], votes.answer_class[part], votes.samples[part], alternative)
        set_aside = {"unjudged": int(votes.unjudged[index]), "cut_short": int(votes.cut_short[index])}
        looks_cut = set_aside["cut_short"] >= max(1, int(entries.samples.sum()))
        is_open, by_votes, suggestion = not votes.closed[index], shares(index), None
        witnesses, claimed = Witnesses(), None
        evidence: dict[str, Any] = {"systems": 0, "samples": 0}
        if by_votes is not None:
            witnesses = systems.count_models(entries)
            outvoted = denied_wrong if denied[index] else float(wrong[index])
            if is_open:
                sure = float(suspicion[index]) if witnesses.are_strong else outvoted
                claimed = shares_of(sure, float(readings.replaced[index]))
            text = votes.alternatives[index][entries.alternative - 1] if entries.alternative else None
            suggestion = text if readings.strong_share[index] < 0.5 else None
            evidence = systems.describe(entries, witnesses) | {
                "alternative": text,
                "outvoted": round(outvoted, 4),
                "label_share_at_top": round(float(readings.strong_share[index]), 4),
            }
        joined = join(by_votes, several_readings(item.prompt), other, item.source, expected)
        claim = Claim(
            claim_fault(claimed, witnesses, other.asked, item.source, expected),
            denied_wrong if denied[index] else 0.0,
            other.asked is not None and other.asked.claimed_log_ratio > 0.0,
        )
        tier = SuspicionTier.KEEP
        if joined is not None:
            tier = choose_tier(joined.suspicion, claim, witnesses, is_open=is_open)
            evidence |= other.shown() | {"log_odds": dict(joined.log_odds)}
        yield Assessment(
            item.id,
            None if joined is None else joined.suspicion,
            None if joined is None else joined.ill_posed,
            None if joined is None or by_votes is None else joined.label_wrong,
            SuspicionTier.REVIEW if looks_cut else tier,
            evidence | set_aside,
            suggestion,
        )


def with_neighbours(suspicion: Array, sources: Sequence[str] = ()) -> tuple[Array, int]:
    """Return the suspicions corrected by neighbours, and the number of neighbours on each side.

        0.9 0.8 [0.3] 0.9 ... in a file whose mean is 0.05  ->  0.3 becomes more than 0.8

    Errors come in runs, for example if the labels of a whole section are shifted. The rate of faults around a problem
    is the mean suspicion of the neighbours, or of the source. It is shrunk towards the mean of the file (empirical
    Bayes). The number of neighbours and the amount of shrinking maximise the likelihood of each problem given the
    others.

    `suspicion` (n,) is from samples only, in the order of the file. `sources` has the source of each item, if there are
    several. If neighbours do not help, their number is 0, and the suspicions are unchanged. `SAME_SOURCE` stands for
    all rows of the source.
    """
    if len(suspicion) < 3:
        return suspicion.copy(), 0
    clipped = np.clip(suspicion, FLOOR, 1.0 - FLOOR)
    rate = float(clipped.mean())
    # The Bayes factor that leads from the rate (prior) to the suspicion (posterior).
    evidence = clipped / (1.0 - clipped) * (1.0 - rate) / rate
    best = float(np.log(rate * evidence + 1.0 - rate).sum()) + MIN_GAIN
    chosen: tuple[Array, int] = suspicion.copy(), 0
    widths = (*HALF_WIDTHS, SAME_SOURCE) if len(set(sources)) > 1 else HALF_WIDTHS
    for half_width in widths:
        total, count = (
            _sum_of_source(clipped, sources) if half_width == SAME_SOURCE else _sum_of_neighbours(clipped, half_width)
        )
        for shrinkage in SHRINKAGES:
            local = (shrinkage * rate + total) / (shrinkage + count)
            likelihood = float(np.log(local * evidence + 1.0 - local).sum())
            if likelihood > best:
                odds = evidence * local / (1.0 - local)
                best, chosen = likelihood, (odds / (1.0 + odds), half_width)
    return chosen


def _sum_of_neighbours(values: Array, half_width: int) -> tuple[Array, Array]:
    """Return the sum and the number of the neighbours of each value, without the value itself."""
    index = np.arange(len(values))
    low = np.maximum(0, index - half_width)
    high = np.minimum(len(values), index + half_width + 1)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return sums[high] - sums[low] - values, (high - low - 1).astype(np.float64)


def _sum_of_source(values: Array, sources: Sequence[str]) -> tuple[Array, Array]:
    """Return, for each value, the sum and the number of the other values of the same source."""
    _, index = np.unique(np.asarray(sources), return_inverse=True)
    total, count = np.bincount(index, weights=values)[index], np.bincount(index)[index].astype(np.float64)
    return total - values, count - 1.0


@dataclass(frozen=True, slots=True)
class _ItemVotes:
    """The votes on one item."""

    system: NDArray[np.int32]
    answer_class: NDArray[np.int32]
    samples: NDArray[np.int32]
    alternative: int
    """The class of the favoured alternative; 0 if there is none."""

    def count(self, answer_class: int, chosen: NDArray[np.bool_]) -> int:
        """Return the number of samples of a class among the chosen entries."""
        return int(self.samples[chosen & (self.answer_class == answer_class)].sum())


class _Systems:
    """The systems, and their answers to each item."""

    def __init__(self, fit: Fit, votes: Votes) -> None:
        self._group = _ability_groups(fit.ability.theta)
        self._strength, self._weight = fit.strength, fit.learnt.system_weight
        self._family = votes.family

    def count_models(self, votes: _ItemVotes) -> Witnesses:
        """Return the number and the total weight of the models that answered, and of the strong models among them."""
        weight: dict[int, float] = {}
        strong: dict[int, float] = {}
        for system in np.unique(votes.system).tolist():
            family = int(self._family[system])
            weight[family] = max(weight.get(family, 0.0), float(self._weight[system]))
            if self._strength[system] >= STRONG_RATE:
                strong[family] = weight[family]
        is_strong = self._strength[votes.system] >= STRONG_RATE
        share = votes.count(LABEL_CLASS, is_strong) / max(1, int(votes.samples[is_strong].sum()))
        return Witnesses(len(weight), sum(weight.values()), len(strong), sum(strong.values()), share)

    def describe(self, votes: _ItemVotes, witnesses: Witnesses) -> dict[str, Any]:
        """Return the evidence as data for JSON. Entropy is in bits, over the shares of the classes."""
        every_vote = np.ones(len(votes.system), dtype=bool)
        total = int(votes.samples.sum())
        wrong = total - votes.count(LABEL_CLASS, every_vote)
        shares = np.bincount(votes.answer_class, weights=votes.samples) / total
        passes, support = {}, {}
        for index, name in enumerate(GROUPS):
            in_group = self._group[votes.system] == index
            if n := int(votes.samples[in_group].sum()):
                passes[name] = [votes.count(LABEL_CLASS, in_group), n]
                if votes.alternative:
                    support[name] = [votes.count(votes.alternative, in_group), n]
        is_strong = self._strength[votes.system] >= STRONG_RATE
        agreement = votes.count(votes.alternative, every_vote) / wrong if wrong and votes.alternative else None
        return {
            "systems": witnesses.models,
            "samples": total,
            "independent": round(witnesses.independent / (1.0 + max(0.0, witnesses.independent - 1.0) * SHARED), 2),
            "passes": passes,
            "alternative_support": support,
            "wrong_agreement": None if agreement is None else round(agreement, 4),
            "entropy": round(-sum(float(share) * math.log2(share) for share in shares[shares > 0]) + 0.0, 4),
            "strong": {
                "systems": len(np.unique(votes.system[is_strong])),
                "label": votes.count(LABEL_CLASS, is_strong),
                "alternative": votes.count(votes.alternative, is_strong) if votes.alternative else 0,
            },
            **self._history(votes),
        }

    def _history(self, votes: _ItemVotes) -> dict[str, Any]:
        """Return the shares of label and alternative at the first and the last checkpoint.

        Only models with several checkpoints are counted.
        """
        first, last = [], []
        for family in np.unique(self._family[votes.system]):
            systems = np.unique(votes.system[self._family[votes.system] == family])
            if len(systems) > 1:
                first.append(systems[0])
                last.append(systems[-1])
        if not first:
            return {}
        classes = {"label": LABEL_CLASS, **({"alternative": votes.alternative} if votes.alternative else {})}
        ends = [np.isin(votes.system, systems) for systems in (first, last)]
        totals = [int(votes.samples[end].sum()) for end in ends]
        return {
            "history": {
                name: [round(votes.count(answer_class, end) / n, 4) for end, n in zip(ends, totals, strict=True)]
                for name, answer_class in classes.items()
            }
        }


def _ability_groups(theta: Array) -> NDArray[np.intp]:
    """Return the index of each system's group in `GROUPS`."""
    m = len(theta)
    if m < len(GROUPS):
        return np.full(m, len(GROUPS) - 1, dtype=np.intp)
    rank = np.empty(m, dtype=np.intp)
    rank[np.argsort(theta, kind="stable")] = np.arange(m)
    return rank * len(GROUPS) // m
