"""The rows of `profile.parquet`: the pass rates of one problem each."""

from __future__ import annotations

from truegold.pipeline.tables.rows import Int32, RowReference, arrow_schema


class ProfileRow(RowReference):
    """A row of `profile.parquet`: the pass rates of one problem."""

    split: str
    n: Int32
    """The problem's samples."""
    judged: Int32
    """The samples that have a score."""
    passes: Int32
    pass_rate: float | None
    """Passes of the judged samples, None where there are none."""
    low: float
    high: float
    """The ends of Wilson's 95 % interval of the pass rate."""
    pass_at: str
    """A JSON object: k (1, 2, 4, ...) to pass@k."""
    posterior_a: float | None
    posterior_b: float | None
    """What is known of the pass rate, Beta(a, b), with the prior of all problems of training (`prior`); None where
    nothing could be judged. `pass_rate` of a problem that got further samples because of its first ones is biased, this
    is not."""
    decision: str | None
    """What the pass rate most probably means for training (`PassRateBand`)."""
    decision_probability: float | None
    tokens_mean: float
    tokens_max: Int32
    truncated: float
    """The share of samples that ended at a length limit."""
    repeating: float
    """The share of samples that ended in a loop: there, or where the engine noticed it (`stop_loops`)."""
    answers: Int32
    """How many different answers the samples give."""
    majority_answer: str | None
    majority_agreement: float
    """The share of all samples that give the majority answer."""


PROFILE_SCHEMA = arrow_schema(ProfileRow)
