"""Metrics of a rollout batch: rewards, lengths, foreign scripts, and the diversity of completions in a group.

completions of a batch                             metric
"4 + 4 + 4 + 4 + 4 + 4 + 4"                        repetition near 1
"答案是四" as the answer to an English problem     foreign_script 1
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from statistics import fmean, stdev

from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.judge.opinions import RAISED
from truegold.train.grpo.feed import GroupScore
from truegold.train.grpo.groups import StepCompletion, right_share, strip_texts
from truegold.train.model.distributed import gathered
from truegold.verifiers import Reason, Term
from truegold.verifiers.running.blame import AVOIDABLE

NGRAM = 4
"""The length of n-grams, in tokens."""
FEWEST_NGRAMS = 4
"""The smallest number of n-grams for which the repetition of a completion is measured."""
KNOWN_SCRIPTS = {"LATIN", "GREEK"}
"""Scripts that never count as foreign. Mathematics is written in them."""
NO_SCRIPTS = {"MATHEMATICAL", "FEMININE", "MASCULINE", "MICRO", "DOUBLE-STRUCK", "SCRIPT"}
"""First words of the Unicode names of letters that do not belong to a script: MATHEMATICAL ITALIC SMALL X, FEMININE
ORDINAL INDICATOR (ª), MICRO SIGN (µ), DOUBLE-STRUCK CAPITAL R (ℝ), SCRIPT SMALL L (ℓ)."""

Metrics = dict[str, float | None]
"""Numbers by name; None if a metric is not defined for the batch."""


def measure_batch(
    completions: Sequence[StepCompletion],
    scores: Mapping[int, GroupScore],
    entered: Collection[int],
    terms: Sequence[Term],
    encoder: PromptEncoder,
) -> Metrics:
    """Return the metrics of a step's rollouts, over all ranks.

    completions: this rank's completions. scores: the scores of all groups of all ranks, by group. entered: the groups
    that are trained on.
    """
    # Tokens, texts and rows are too large to be gathered. Each rank measures its own.
    everything = list(chain(*gathered([strip_texts(completion) for completion in completions])))
    groups = group_completions(completions)
    ngram_shares = [distinct_ngrams([member.segment.output_ids for member in group]) for group in groups]
    teaching = sum(score.teaches for score in scores.values())
    tokens = sum(len(completion.segment.output_ids) for completion in everything)
    return {
        **reward_metrics(everything, terms),
        **diversity_metrics(everything, chain(*gathered(ngram_shares))),
        **text_metrics(completions, encoder),
        "members_alike": copies_evidence([*chain(*gathered(list(map(expected_copies, groups))))]),
        "tokens_per_teaching_group": tokens / teaching if teaching else None,
        "groups_entered": float(len(entered)),
        "groups_teaching": teaching / max(len(scores), 1),
        "right_share": right_share([scores[group] for group in entered]),
    }


def reward_metrics(completions: Sequence[StepCompletion], terms: Sequence[Term]) -> Metrics:
    """Return the metrics of a rollout batch that follow from verdicts and lengths, also by group, domain and term.

    score/NAME     the mean score of a term
    reward/NAME    the mean contribution of the term to the reward
    """
    metrics = {**_judging_metrics(completions), **_group_metrics(completions), **_length_metrics(completions)}
    metrics |= _domain_metrics(completions)
    scores = [completion.score for completion in completions]
    for index, term in enumerate(terms):
        metrics[f"score/{term.name}"] = _mean([score.verdicts[index].score for score in scores])
        metrics[f"reward/{term.name}"] = _mean([score.reward.parts[term.name] for score in scores])
    return metrics


def _judging_metrics(completions: Sequence[StepCompletion]) -> Metrics:
    """Return the metrics of a batch that follow from its verdicts.

    pass_rate            the share of right completions among the judged completions
    profile_pass_rate    the mean pass rate of these problems in the profile
    reward               the mean reward
    reward_spread        the highest reward minus the lowest
    reward_gap           the mean reward of right completions minus the mean reward of wrong completions
    timeouts             the share of verdicts, of all terms, with a timeout
    judged               the number of judged completions
    unjudged             the share of completions without a reward
    avoidable            the share of completions that could not be judged and score 0, because they are at fault
    ended                the number of completions that were not cut at max_tokens
    unread               the share of the `ended` completions whose answer the verifier could not read
    raised               the share of completions whose unread answer a second opinion scored 1
    """
    scores = [completion.score for completion in completions]
    correct_scores = [score.correct.score for score in scores]
    verdicts = [verdict for score in scores for verdict in score.verdicts]
    rewards = [score.reward.value for score in scores]
    known_rewards = [reward for reward in rewards if reward is not None]
    judged = [(score.correct.passed, score.reward.value) for score in scores if score.correct.score is not None]
    ended = [done.score.correct.reason for done in completions if not done.segment.truncated]
    right, wrong = (_mean([reward for passed, reward in judged if passed == kind]) for kind in (True, False))
    return {
        "pass_rate": _mean([_passed(score) for score in correct_scores]),
        "profile_pass_rate": _mean([completion.row.get("pass_rate") for completion in completions]),
        "reward": _mean(rewards),
        "reward_spread": max(known_rewards) - min(known_rewards) if known_rewards else None,
        "reward_gap": None if right is None or wrong is None else right - wrong,
        "timeouts": sum(verdict.reason is Reason.TIMEOUT for verdict in verdicts) / len(verdicts),
        "judged": float(len(judged)),
        "unjudged": (len(rewards) - len(known_rewards)) / len(rewards),
        "avoidable": sum(AVOIDABLE in score.correct.evidence for score in scores) / len(scores),
        "ended": float(len(ended)),
        "unread": _mean([float(reason is Reason.UNREAD) for reason in ended]),
        "raised": sum(RAISED in score.correct.evidence for score in scores) / len(scores),
    }


def _group_metrics(completions: Sequence[StepCompletion]) -> Metrics:
    """Return the metrics that compare groups.

    groups                 the number of groups
    groups_all_right       the share of groups in which all completions are right
    groups_all_wrong       the share of groups in which all completions are wrong
    pass_rate_between      the standard deviation of the groups' pass rates
    truncated_between      the standard deviation of the groups' shares of truncated completions
    """
    groups = group_completions(completions)
    means = [_mean([member.score.correct.score for member in group]) for group in groups]
    passed = [_mean([_passed(member.score.correct.score) for member in group]) for group in groups]
    return {
        "groups": float(len(groups)),
        "groups_all_right": sum(mean == 1.0 for mean in means) / len(means),
        "groups_all_wrong": sum(mean == 0.0 for mean in means) / len(means),
        "pass_rate_between": _deviation(passed),
        "truncated_between": _deviation([fmean(member.segment.truncated for member in group) for group in groups]),
    }


def _passed(score: float | None) -> float | None:
    return None if score is None else float(score == 1.0)


def _deviation(values: Sequence[float | None]) -> float | None:
    """Return the standard deviation of the known values, or None if fewer than two are known."""
    known = [value for value in values if value is not None]
    return stdev(known) if len(known) > 1 else None


def _length_metrics(completions: Sequence[StepCompletion]) -> Metrics:
    """Return the lengths of prompts, answers and completions.

    prompt_length    mean number of tokens
    answer_length    mean number of characters of the extracted answers; empty and missing answers are skipped
    length_mean      mean number of tokens of a completion
    length_max       largest number of tokens of a completion
    truncated        the share of completions that were cut at max_tokens
    """
    segments = [completion.segment for completion in completions]
    answers = [completion.score.correct.extracted for completion in completions]
    lengths = [len(segment.output_ids) for segment in segments]
    return {
        "prompt_length": sum(len(segment.prompt_ids) for segment in segments) / len(segments),
        "answer_length": _mean([len(answer) for answer in answers if answer]),
        "length_mean": sum(lengths) / len(lengths),
        "length_max": float(max(lengths)),
        "truncated": sum(segment.truncated for segment in segments) / len(segments),
    }


def _domain_metrics(completions: Sequence[StepCompletion]) -> Metrics:
    """Return the metrics of each domain. If there is only one domain, only its share is returned.

    domain/NAME               the domain's share of the sampled completions
    trained/NAME              the domain's share of the completions that are trained on
    pass_rate/NAME            the share of right completions among the judged completions
    profile_pass_rate/NAME    the mean pass rate of the domain's problems in the profile
    reward_spread/NAME        the highest reward minus the lowest
    """
    by_domain: dict[str, list[StepCompletion]] = {}
    for completion in completions:
        by_domain.setdefault(completion.row.get("domain") or "", []).append(completion)
    trained = sum(completion.trained for completion in completions)
    metrics: Metrics = {}
    for domain, members in sorted(by_domain.items()):
        if not domain:
            continue
        metrics[f"domain/{domain}"] = len(members) / len(completions)
        if len(by_domain) < 2:
            continue
        rewards = [reward for member in members if (reward := member.score.reward.value) is not None]
        passed = [member.score.correct.passed for member in members if member.score.correct.score is not None]
        metrics |= {
            f"trained/{domain}": sum(member.trained for member in members) / trained if trained else None,
            f"pass_rate/{domain}": fmean(passed) if passed else None,
            f"profile_pass_rate/{domain}": _mean([member.row.get("pass_rate") for member in members]),
            f"reward_spread/{domain}": max(rewards) - min(rewards) if rewards else None,
        }
    return metrics


def diversity_metrics(completions: Sequence[StepCompletion], ngram_shares: Iterable[float | None]) -> Metrics:
    """Return the mean shares of distinct answers and of distinct n-grams within groups.

    ngram_shares: the share of distinct n-grams in each group (`distinct_ngrams`).
    """
    groups = group_completions(completions)
    answers = [[completion.score.correct.extracted for completion in group] for group in groups]
    return {"distinct_answers": distinct_share(answers), "distinct_ngrams": _mean([*ngram_shares])}


def group_completions(completions: Sequence[StepCompletion]) -> list[list[StepCompletion]]:
    """Return the completions of each group, in the order in which the groups first appear."""
    groups: dict[int, list[StepCompletion]] = {}
    for completion in completions:
        groups.setdefault(completion.segment.group, []).append(completion)
    return list(groups.values())


def distinct_share(groups: Sequence[Sequence[object]]) -> float | None:
    """Return the mean, over groups, of the number of distinct values divided by the number of values.

    An example of a value is an extracted answer. None is skipped. Returns None if no group has a value.
    """
    known = [[value for value in group if value is not None] for group in groups]
    return _mean([len(set(values)) / len(values) if values else None for values in known])


def distinct_ngrams(group: Sequence[Sequence[int]], n: int = NGRAM) -> float | None:
    """Return the number of distinct n-grams of a group's completions, divided by the number of all their n-grams.

    This is distinct-n of Li et al., arXiv 1510.03055, on token ids. Returns None if no completion has n tokens.
    """
    ngrams = [ngram for ids in group for ngram in _ngrams(ids, n)]
    return len(set(ngrams)) / len(ngrams) if ngrams else None


def _mean(values: Sequence[float | None]) -> float | None:
    judged = [value for value in values if value is not None]
    return fmean(judged) if judged else None


def mean_metrics(metrics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each metric over the dictionaries that have it, for example of a batch's updates."""
    names = {name for values in metrics for name in values}
    return {name: fmean(values[name] for values in metrics if name in values) for name in sorted(names)}


def text_metrics(completions: Sequence[StepCompletion], encoder: PromptEncoder) -> Metrics:
    """Return the repetition and the share of foreign letters of a rollout batch, over all ranks.

    completions: this rank's completions.
    """
    repeated = [repeated_share(completion.segment.output_ids) for completion in completions]
    local_counts = Counter(
        script for completion in completions for script in _scripts(encoder.decode(completion.segment.output_ids))
    )
    problems = (f"{done.row['prompt']} {done.row['gold'] or ''}" for done in completions)
    local_known = {script for problem in problems for script in _scripts(problem)}
    counts = sum(gathered(local_counts), Counter[str]())
    return {
        "repetition": _mean([*chain(*gathered(repeated))]),
        "foreign_script": foreign_share(counts, set(chain(*gathered(local_known)))),
    }


def expected_copies(group: Sequence[StepCompletion]) -> tuple[int, float, float]:
    """Return the number of copies in a group, and the mean and variance of this number under independent sampling.

    A copy is a completion that is equal to an earlier one of the group. The probability of a copy at a position is the
    sum of the probabilities of the different completions before this position.
    """
    chances: dict[tuple[int, ...], float] = {}
    copies, mean, variance = 0, 0.0, 0.0
    for segment in (member.segment for member in group if member.segment.rollout_logprobs and not member.parts):
        chance = min(1.0, sum(chances.values()))
        copies += segment.output_ids in chances
        mean, variance = mean + chance, variance + chance * (1 - chance)
        chances.setdefault(segment.output_ids, math.exp(sum(segment.rollout_logprobs)))
    return copies, mean, variance


def copies_evidence(groups: Sequence[tuple[int, float, float]]) -> float:
    """Return the evidence, in nats, that completions were not sampled independently.

    It is -log of Bennett's bound on the probability of at least this number of copies. groups: the results of
    `expected_copies`.
    """
    excess = sum(count - mean for count, mean, _ in groups)
    variance = max(sum(variance for *_, variance in groups), 1e-9)
    ratio = max(excess, 0.0) / variance
    return variance * ((1 + ratio) * math.log1p(ratio) - ratio)


def repeated_share(ids: Sequence[int], n: int = NGRAM) -> float | None:
    """Return the share of a completion's n-grams that already occur earlier in the completion.

    Returns None if the completion has fewer than `FEWEST_NGRAMS` n-grams.
    """
    ngrams = _ngrams(ids, n)
    return 1.0 - len(set(ngrams)) / len(ngrams) if len(ngrams) >= FEWEST_NGRAMS else None


def _ngrams(ids: Sequence[int], n: int) -> list[tuple[int, ...]]:
    return [tuple(ids[start : start + n]) for start in range(len(ids) - n + 1)]


def foreign_share(counts: Mapping[str, int], known: set[str]) -> float:
    """Return the share of letters whose script is neither in `known` nor in `KNOWN_SCRIPTS`.

    counts: the number of letters of each script. known: the scripts of the problems.
    """
    letters = sum(counts.values())
    foreign = sum(count for script, count in counts.items() if script not in known | KNOWN_SCRIPTS)
    return foreign / letters if letters else 0.0


def _scripts(text: str) -> Iterable[str]:
    return (script for character in text if (script := _script(character)))


@lru_cache(maxsize=65536)
def _script(character: str) -> str:
    """Return the script of a letter, the first word of its Unicode name; "" for other characters.

    LATIN SMALL LETTER A -> LATIN, CJK UNIFIED IDEOGRAPH-7B54 -> CJK, MATHEMATICAL ITALIC SMALL X -> ""
    """
    if not character.isalpha():
        return ""
    script = unicodedata.name(character, "").split(" ", 1)[0]
    return "" if script in NO_SCRIPTS else script
