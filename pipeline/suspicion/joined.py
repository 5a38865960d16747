"""Combines the evidence on a row into the probabilities that its problem is ill-posed, and that its label is wrong.

The evidence is answers of systems (votes), the wording, rules, and a model that was asked whether the row is at fault.
Each kind of evidence adds to the log odds:

    prior -2.9, samples +2.9, rules +2.2, model +0.7    ->    ill-posed with .90, label wrong with .05, suspicion .95

There are three hypotheses: the row is sound, its problem is ill-posed, or only its label is wrong. Votes give evidence
on all three (`label_posterior`), other kinds of evidence only on the problem:

    samples   the log odds of an ill-posed problem by the row's votes, minus the log odds by all votes of the file
    wording   a wording that allows several readings (`assess.several_readings`)
    doubts    responses which say that the problem lacks something (`doubts`)
    rules     the most precise rule among those that call the problem ill-posed (`rule_ratio`)
    model     the likelihood ratio of an asked model's outcome, from known problems and the votes (`weigh_verdicts`)

All evidence comes from the same text, so errors are shared. Among evidence that points in the same direction, the
strongest counts fully, and the rest is multiplied by `FURTHER`. Two equal log odds count as 5/3 of one. This is the
design effect of a correlation of .2 (Kish 1965, 5.4).

The prior is the configured share of ill-posed rows, corrected by the votes of the file. A row without evidence has no
posterior. The absence of flags is not evidence, because rules cover few of the possible faults. The tier follows from
the posterior. Rules, wordings, doubts and an unmeasured model can send a row to review, but cannot drop it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.config.stages import Fault
from truegold.pipeline.flag.fault_likelihood import FAULTY, JEFFREYS, likelihood_ratio
from truegold.pipeline.suspicion.rasch_model import sigmoid
from truegold.pipeline.tables.measured_flags import MEASURED
from truegold.pipeline.tables.reasons import AskedModel

Array = NDArray[np.float64]

PRIOR = 0.05
"""The prior share of ill-posed rows. It is also assumed for the corpora on which rules were measured."""
PRIOR_ROWS = 20.0
"""The weight, in rows, of each of three priors: `PRIOR` for the share of ill-posed rows in the file, the share in the
file for the share in each source, and the outcomes of known problems. A known problem was written with or without a
fault, to measure a model."""
ROUNDS = 50
"""The number of rounds of expectation-maximisation."""
FURTHER = 2 / 3
"""The factor of evidence if there is stronger evidence in the same direction."""
UNMEASURED_FINDS = (0.5, 0.1)
"""The assumed shares of ill-posed and of sound problems in which an unmeasured model finds faults."""
SOUND = "sound"
"""The outcome of a model that finds no fault."""
LEAST_SOUND = (1.0 - UNMEASURED_FINDS[0]) / (1.0 - UNMEASURED_FINDS[1])
"""The minimum likelihood ratio of the outcome SOUND. Faults of known problems were planted. In a file, a model may miss
more faults."""
UNKNOWN_MODEL = AskedModel(PRIOR, {}, {})
"""An unmeasured model."""
FLOOR = 1e-12
"""The minimum distance of a share from 0 and 1, to keep its odds finite."""

DROP_AT = 0.95
"""The minimum probability of a fault at which few strong systems, or a measured model that finds a fault, drop a
row."""
DENIED_AT, DENYING_SHARE = 0.6, 0.37
"""A row is dropped if strong systems deny its label, and the suspicion is at least DENIED_AT. Systems deny a label if
they give it in a smaller share of samples than DENYING_SHARE."""
CLOSED_DROP_AT = 0.9
"""Closed questions are dropped if all models deny the label, and at least this share of such labels is estimated to be
wrong. Where the estimate was .9 to .95, .93 to .98 of the labels were wrong."""
PRIOR_VOTES = 4
"""The number of votes that are added to the share of the label, half of them for the label (Agresti and Coull 1998). So
a label with 1 of 4 votes is not denied, but a label with 9 of 28 votes is."""
MIN_WITNESSES = 3
"""The minimum number of systems whose votes can drop a row, because two systems may share an error."""
MIN_INDEPENDENT = 2.0
"""The minimum total weight of systems whose votes can drop a row (`independent_weights`)."""
REVIEW_AT = 0.15
"""The minimum suspicion for a review. Two of three such rows are at fault if strong systems answered, and one of three
in other cases."""
REVIEW_CLOSED_AT = 0.3
"""The minimum suspicion for a review of a closed question. A fifth of such rows are at fault."""


class Shares(NamedTuple):
    """The probabilities of the three hypotheses."""

    sound: float
    ill_posed: float
    mislabeled: float


class IllPosedTotal(NamedTuple):
    """The expected number of ill-posed problems by votes."""

    ill_posed: float
    rows: int
    """The number of rows with votes."""


def shares_of(fault: float, replaced: float) -> Shares:
    """Return the probabilities by votes. `replaced` is the probability that only the label is wrong, given a fault."""
    return Shares(1.0 - fault, fault * (1.0 - replaced), fault * replaced)


@dataclass(frozen=True, slots=True)
class AskedVerdict:
    """The verdict of an asked model on a row, with its likelihood ratio once it is known (`weigh_verdicts`)."""

    outcome: str
    verdict: str
    """The outcome, or the kind of the fault."""
    ratio: float | None = None
    """The likelihood ratio of the outcome, or None if it is not evidence."""
    at_least: float | None = None
    """The lower end of the ratio's 90 % interval, or None for an unmeasured model."""

    @property
    def log_ratio(self) -> float | None:
        """The logarithm of the ratio."""
        return None if self.ratio is None else math.log(self.ratio)

    @property
    def claimed_log_ratio(self) -> float:
        """The log ratio that counts for dropping a row.

        For a fault, it is the lower end of the measured ratio, or 0 for an unmeasured model.
        """
        log = self.log_ratio or 0.0
        if log > 0.0:
            return max(0.0, math.log(self.at_least)) if self.at_least and self.outcome == FAULTY else 0.0
        return log


@dataclass(frozen=True, slots=True)
class OtherEvidence:
    """The evidence on a row in addition to its votes."""

    rules: frozenset[str] = frozenset()
    """The rules that call the problem ill-posed."""
    asked: AskedVerdict | None = None
    doubts: tuple[float, int, int] = (0.0, 0, 0)
    """The log likelihood ratio of doubts (`doubts`), the number of doubts, and the number of responses."""

    def log_ratios(self) -> dict[str, float]:
        """Return the log likelihood ratio of each kind of evidence that the row has."""
        ratios = {}
        if self.doubts[0]:
            ratios["doubts"] = self.doubts[0]
        if self.rules:
            ratios["rules"] = max(math.log(rule_ratio(rule)) for rule in self.rules)
        if self.asked is not None and (ratio := self.asked.log_ratio) is not None:
            ratios["model"] = ratio
        return ratios

    def shown(self) -> dict[str, Any]:
        """Return the evidence for a reviewer, as data for JSON."""
        shown: dict[str, Any] = {}
        if self.doubts[1]:
            shown["doubts"] = list(self.doubts[1:])
        if self.rules:
            shown["rules"] = sorted(self.rules)
        if self.asked is not None:
            ratio = float(f"{self.asked.ratio:.3g}") if self.asked.ratio and self.asked.at_least else None
            shown["asked"] = {"verdict": self.asked.verdict, "ratio": ratio}
        return shown


NOTHING_ELSE = OtherEvidence()


@dataclass(frozen=True, slots=True)
class IllPosedShares:
    """The expected shares of ill-posed rows."""

    of_file: float = PRIOR
    """The expected share in the whole file."""
    by_source: Mapping[str, float] = field(default_factory=dict)
    """The expected share in each source that has its own estimate. Other sources have the share of the file."""

    def log_odds(self, source: str) -> float:
        """Return the log odds of a row of this source."""
        return _log_odds(self.by_source.get(source, self.of_file))


@dataclass(frozen=True, slots=True)
class Joined:
    """The posterior of a row."""

    shares: Shares
    log_odds: Mapping[str, float]
    """The weighted log odds of each kind of evidence. Their sum is the log odds of an ill-posed against a sound row."""

    @property
    def suspicion(self) -> float:
        """The probability that the row is not sound, rounded to significant digits. So small values stay apart."""
        return float(f"{self.shares.ill_posed + self.shares.mislabeled:.6g}")

    @property
    def ill_posed(self) -> float:
        """The probability that the problem is ill-posed."""
        return float(f"{self.shares.ill_posed:.6g}")

    @property
    def label_wrong(self) -> float:
        """The probability that only the label is wrong."""
        return float(f"{self.shares.mislabeled:.6g}")


def rule_ratio(rule: str) -> float:
    """Return the likelihood ratio of a rule's flag: the odds of its precision divided by the odds of `PRIOR`.

    The precision is the posterior mean of the measured precision under a uniform prior.
    """
    measured = MEASURED[rule]
    return (measured.right + 1) / (measured.read - measured.right + 1) * (1 - PRIOR) / PRIOR


def weigh_verdicts(
    asked: Mapping[str, AskedVerdict],
    sources: Mapping[str, str],
    votes: Mapping[str, Shares],
    model: AskedModel,
    total: IllPosedTotal,
) -> tuple[dict[str, AskedVerdict], IllPosedShares]:
    """Return the verdicts with their likelihood ratios by row, and the expected shares of ill-posed rows.

        faults found by the model                                           likelihood ratio of a fault
        in 178 of 200 known ill-posed problems, and 22 of 226 sound ones    9
        also in 15 of 648 rows of the file, which votes suspect as well     80

    The ratios are estimated from known problems and from the file, by expectation-maximisation (Dempster, Laird and
    Rubin 1977). For example, a model that finds faults in only 15 of 648 rows cannot have false alarms on a tenth of
    the sound rows. If it finds more faults in a source than its errors explain, the estimated share of faults of this
    source rises (empirical Bayes).

    `sources` and `votes` are for the rows that the model was asked about, `total` is for all rows. A model without
    known problems and without votes is unmeasured and counts a little (`UNMEASURED_FINDS`).
    """
    of_file = (PRIOR_ROWS * model.prior + total.ill_posed) / (PRIOR_ROWS + total.rows)
    judged = sorted(row for row, verdict in asked.items() if verdict.verdict != Fault.GOLD_OF_OTHER_KIND)
    with_votes = sum(row in votes for row in judged)
    outcomes = sorted({FAULTY, SOUND, *(asked[row].outcome for row in judged)})
    known = [
        _known_rows(counts, finds, with_votes)
        for counts, finds in zip((model.ill_posed, model.sound), UNMEASURED_FINDS, strict=True)
    ]
    counts = np.array([[side.get(outcome, 0.0) for outcome in outcomes] for side in known])
    by_source: dict[str, float] = {}
    is_measured = bool(model.ill_posed) or with_votes >= PRIOR_ROWS
    if judged and is_measured:
        names, source = np.unique([sources[row] for row in judged], return_inverse=True)
        outcome = np.array([outcomes.index(asked[row].outcome) for row in judged])
        by_votes = np.array([_log_odds(_inside(votes[row].ill_posed)) if row in votes else math.nan for row in judged])
        evidence = np.nan_to_num(by_votes - _log_odds(of_file))
        counts, shares = _learn(counts, of_file, outcome, source, evidence)
        by_source = dict(zip(names.tolist(), shares.tolist(), strict=True))
    expected, weighed = IllPosedShares(of_file, by_source), dict(asked)
    for row in judged:
        index = outcomes.index(asked[row].outcome)
        on_ill_posed, on_sound = ((float(side[index]), float(side.sum())) for side in counts)
        ratio, at_least, _ = likelihood_ratio(on_ill_posed, on_sound)
        if asked[row].outcome == SOUND:
            above_file = expected.log_odds(sources[row]) - _log_odds(of_file)
            ratio = max(ratio, LEAST_SOUND * math.exp(-above_file))
        if is_measured:
            weighed[row] = replace(asked[row], ratio=ratio, at_least=at_least)
        elif asked[row].outcome in (FAULTY, SOUND):
            weighed[row] = replace(asked[row], ratio=ratio)
    return weighed, expected


def _learn(
    known: Array, of_file: float, outcome: NDArray[np.intp], source: NDArray[np.intp], evidence: Array
) -> tuple[Array, Array]:
    """Estimate, by expectation-maximisation, how often each outcome occurs, and the share of ill-posed rows in each
    source.

    Returns the rate of each outcome on ill-posed and on sound rows (2, outcomes), and the share of ill-posed rows
    (sources,). `known` (2, outcomes) has counts from known problems. `outcome`, `source` and `evidence` (log odds by
    votes) have a value for each asked row. The share of a source is at least the share of the file, because few
    findings may mean few faults or hidden faults.
    """
    counts, shares = known, np.full(int(source.max()) + 1, of_file)
    for _ in range(ROUNDS):
        means = (counts + JEFFREYS.a) / (counts.sum(axis=1, keepdims=True) + JEFFREYS.a + JEFFREYS.b)
        log_odds = np.log(shares / (1.0 - shares))[source] + evidence + np.log(means[0] / means[1])[outcome]
        ill_posed = sigmoid(log_odds)
        counts = known + [np.bincount(outcome, side, known.shape[1]) for side in (ill_posed, 1.0 - ill_posed)]
        learnt = (PRIOR_ROWS * of_file + np.bincount(source, ill_posed)) / (PRIOR_ROWS + np.bincount(source))
        shares = np.maximum(of_file, learnt)
    return counts, shares


def _known_rows(counts: Mapping[str, int], finds: float, with_votes: int) -> Mapping[str, float]:
    """Return the outcomes of known problems as weighted counts. Faults of known problems may be easier to see than
    those of the file. So the more asked rows have votes, the lower is the total weight, down to `PRIOR_ROWS`."""
    total = sum(counts.values())
    if not total:
        return {FAULTY: PRIOR_ROWS * finds, SOUND: PRIOR_ROWS * (1.0 - finds)}
    scale = max(min(PRIOR_ROWS, total), total - with_votes) / total
    return {outcome: count * scale for outcome, count in counts.items()}


def join(
    votes: Shares | None, wording: float, other: OtherEvidence, source: str, prior: IllPosedShares
) -> Joined | None:
    """Return the posterior of a row, or None for a row without evidence.

    `votes` has the posterior by the row's samples, None without samples. `wording` is the probability of several
    readings.
    """
    ratios = other.log_ratios()
    if votes is None and not wording and not ratios:
        return None
    parts = {"samples": 0.0, "wording": 0.0} | ratios
    if votes is not None:
        sound, ill_posed, mislabeled = (max(share, FLOOR) for share in votes)
        parts["samples"] = math.log(ill_posed / sound) - _log_odds(prior.of_file)
        either = (ill_posed + wording * (1.0 - ill_posed)) / (1.0 - wording)
        parts["wording"] = math.log(either / ill_posed)
    elif wording:
        parts["wording"] = _log_odds(wording) - _log_odds(PRIOR)
    text = parts["samples"] + parts["wording"]
    factors = counted_parts([text, *ratios.values()])
    counted = {"samples": factors[0], "wording": factors[0]} | dict(zip(ratios, factors[1:], strict=True))
    log_odds = {"prior": prior.log_odds(source)} | {name: part * counted[name] for name, part in parts.items()}
    odds = math.exp(sum(log_odds.values())), 0.0 if votes is None else mislabeled / sound
    shares = Shares(1.0 / (1.0 + sum(odds)), *(each / (1.0 + sum(odds)) for each in odds))
    shown = {name: round(value, 2) for name, value in log_odds.items() if value or name == "prior"}
    return Joined(shares, shown)


def counted_parts(logs: Sequence[float]) -> list[float]:
    """Return the factor of each log ratio: 1 for the highest positive and for the lowest negative one, else
    `FURTHER`."""
    strongest = {logs.index(max(logs))} if max(logs) > 0 else set()
    strongest |= {logs.index(min(logs))} if min(logs) < 0 else set()
    return [1.0 if index in strongest else FURTHER for index in range(len(logs))]


def _inside(probability: float) -> float:
    return min(max(probability, FLOOR), 1.0 - FLOOR)


def _log_odds(probability: float) -> float:
    return math.log(probability / (1.0 - probability))


class SuspicionTier(StrEnum):
    """The advice on a row."""

    DROP = "drop"
    REVIEW = "review"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Witnesses:
    """The models that answered a row."""

    models: int = 0
    independent: float = 0.0
    """The total weight of the models, in independent witnesses."""
    strong: int = 0
    """The number of strong models, which are right on at least `assess.STRONG_RATE` of the rows."""
    strong_independent: float = 0.0
    """The total weight of the strong models, in independent witnesses."""
    strong_share: float = 0.0
    """The share of the strong models' samples that give the label."""

    @property
    def are_enough(self) -> bool:
        """Return whether there are enough models to drop a row by their votes."""
        return self.models >= MIN_WITNESSES and self.independent >= MIN_INDEPENDENT

    @property
    def are_strong(self) -> bool:
        """Return whether there are enough strong models."""
        return self.strong >= MIN_WITNESSES and self.strong_independent >= MIN_INDEPENDENT

    @property
    def deny_label(self) -> bool:
        """Return whether there are enough strong models, and most of them do not give the label."""
        share = (self.strong_share * self.strong + PRIOR_VOTES / 2) / (self.strong + PRIOR_VOTES)
        return self.are_strong and share < DENYING_SHARE


@dataclass(frozen=True, slots=True)
class Claim:
    """The grounds on which a row can be dropped."""

    fault: float
    """The probability that the row is at fault (`claim_fault`), without wording, rules and doubts."""
    denied: float
    """For a closed question whose label all models deny: the share of wrong labels among such questions. Else 0."""
    by_model: bool
    """Whether a measured model finds the problem at fault."""


def claim_fault(
    votes: Shares | None, witnesses: Witnesses, asked: AskedVerdict | None, source: str, prior: IllPosedShares
) -> float:
    """Return the probability that a row is at fault, from the evidence that may drop a row.

    Votes count if enough models have answered. The verdict of the asked model always counts, a fault by the lower end
    of its ratio. If strong systems have answered, `votes` has the suspicion by samples. Else it has the probability
    that the label is outvoted. For a closed question it is then None.
    """
    ratio = 0.0 if asked is None else asked.claimed_log_ratio
    sound, ill_posed, mislabeled = (max(share, FLOOR) for share in votes or (1.0, 0.0, 0.0))
    start, wrong = prior.log_odds(source), 0.0
    text = 0.0
    if votes is not None and witnesses.are_enough:
        text = math.log(ill_posed / sound) - _log_odds(prior.of_file)
        wrong = mislabeled / sound
    counted = counted_parts([text, ratio])
    odds = wrong + math.exp(start + counted[0] * text + counted[1] * ratio)
    return odds / (1.0 + odds)


def choose_tier(suspicion: float, claim: Claim, witnesses: Witnesses, *, is_open: bool) -> SuspicionTier:
    """Return the advice on a row. `is_open` is false for a closed question, which has a few options to choose from."""
    if not is_open:
        by_votes = claim.denied >= CLOSED_DROP_AT
    elif witnesses.are_strong:
        by_votes = claim.fault >= DENIED_AT and witnesses.deny_label
    else:
        by_votes = claim.fault >= DROP_AT
    if (witnesses.are_enough and by_votes) or (claim.by_model and claim.fault >= DROP_AT):
        return SuspicionTier.DROP
    review_at = REVIEW_AT if is_open else REVIEW_CLOSED_AT
    return SuspicionTier.REVIEW if suspicion >= review_at else SuspicionTier.KEEP
