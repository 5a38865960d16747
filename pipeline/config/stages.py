"""Settings of every pipeline stage, and of a whole curation.

Each class is a section of the configuration. For example, `DecontaminateConfig` is the section `decontaminate`, which
names evaluation sets in four ways:

decontaminate:
  against:
    - math500                                  # a set that truegold knows by name, streamed from the hub
    - openai/gsm8k:main@test                   # any other set of the hub: owner/name:subset@split
    - evals/aime.jsonl                         # a file, or a folder of `save_to_disk` (folder@split)
    - {set: evals/ours.csv, columns: {prompt: Question, gold: Key}}
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Mapping
from enum import StrEnum
from importlib.resources import files
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, Tag, field_validator, model_validator

from truegold.pipeline.config.base import ROUNDING, Filled, StageConfig, VerdictConfig, by_type
from truegold.pipeline.config.engines import (
    MOST_TOKENS,
    AskedEngineConfig,
    ChatConfig,
    ChatEngineConfig,
    EngineConfig,
    ScriptedEngineConfig,
    VllmEngineConfig,
)
from truegold.pipeline.config.sources import DataConfig
from truegold.verifiers import Reason

EditName = Literal[
    "mojibake",
    "damaged_latex",
    "control_characters",
    "html_entities",
    "html_tags",
    "unicode",
    "look_alikes",
    "whitespace",
    "doubled_backslashes",
    "written_newlines",
    "lost_backslashes",
    "stray_dollar",
    "leaked_answer",
    "boilerplate",
    "multiple_choice",
    "decimal_comma",
]
"""The edits that cleaning may make to a row. The name is also the reason in the ledger."""

QUOTA_COLUMNS = ("source", "domain")
"""The columns whose values may have a quota."""


def _boilerplate(end_of_prompt: str) -> tuple[str, ...]:
    """Return the patterns of `boilerplate.toml` for the start or the end of a prompt."""
    tables = tomllib.loads(files("truegold.pipeline.config").joinpath("boilerplate.toml").read_text("utf-8"))
    patterns = tables[end_of_prompt]
    for name, piece in reversed(tables["pieces"].items()):
        patterns = [pattern.replace(f"<<{name}>>", piece) for pattern in patterns]
    return tuple(patterns)


class CleanConfig(StageConfig):
    """Text cleaning, notes on every row, and limits of length."""

    min_prompt_chars: int = Field(default=8, ge=0)
    """Rows with a shorter prompt are dropped."""
    max_prompt_chars: int = Field(default=20_000, ge=1)
    """Rows with a longer prompt are dropped."""
    max_gold_chars: int = Field(default=2_000, ge=1)
    """Rows with a longer gold are dropped."""
    languages: tuple[Annotated[str, Field(pattern=r"^[a-z]{2,3}$")], ...] = ()
    """ISO 639-1 codes such as `en` and `zh`. Rows with prompts in other languages are dropped; by default all are kept.
    A prompt with too few words is always kept."""
    skip: tuple[EditName, ...] = ()
    """Edits that are not made, by reason: `multiple_choice`, `html_tags`, ..."""
    boilerplate: tuple[str, ...] = _boilerplate("start")
    """Case-insensitive regular expressions that are cut from the start of a prompt."""
    boilerplate_end: tuple[str, ...] = _boilerplate("end")
    """Case-insensitive regular expressions that are cut from the end of a prompt."""
    workers: int = Field(default=0, ge=0)
    """The number of processes; 0 means one per core."""

    @model_validator(mode="after")
    def _leaves_a_range(self) -> Self:
        if self.min_prompt_chars > self.max_prompt_chars:
            raise ValueError(
                f"min_prompt_chars ({self.min_prompt_chars}) exceeds max_prompt_chars ({self.max_prompt_chars}): every "
                "row would be dropped"
            )
        return self


class DedupConfig(StageConfig):
    """Deduplication of exact copies, rewordings of the same problem, and instances of one template."""

    case_sensitive: bool = False
    """Treat prompts that differ only in case as different. If true, only exact copies are found."""
    reworded: bool = True
    """Treat the same problem in other words, with the same quantities, as a duplicate. For code rows, only exact copies
    are duplicates."""
    confidence: float = Field(default=0.7, ge=0.5, lt=1)
    """One of two rows is dropped if they are the same problem with at least this probability."""
    conflict_confidence: float = Field(default=0.71, ge=0.71, lt=1)
    """Two rows with different golds are flagged if they are the same problem with at least this probability. Both are
    kept."""
    reworded_conflicts: bool = False
    """Flag rewordings with different golds. These flags hold no row back, since readers found only 2 of 33 right. Exact
    copies with different golds are always flagged."""
    template_cap: int | None = Field(default=None, ge=1)
    """The number of problems of one template (same words, other quantities) to keep; null keeps all. Needs
    `reworded`."""
    embedder: Filled | None = None
    """An encoder that proposes more pairs to compare, such as translations: a model on the hub, a folder, or an import
    string (`path/to/encoder.py:encode`). The time grows with the square of the number of rows. Needs `reworded`."""

    @model_validator(mode="after")
    def _has_an_effect(self) -> Self:
        comparing = {"template_cap": self.template_cap, "embedder": self.embedder}
        for name in (name for name, value in comparing.items() if value is not None):
            if not self.reworded or self.case_sensitive:
                switch = "case_sensitive: true" if self.reworded else "reworded: false"
                raise ValueError(f"{name} has no effect with {switch}, which compares only exact copies")
        return self


class AskedModelConfig(StageConfig):
    """A language model that answers questions about rows."""

    name: Filled
    """The model's name in the evidence, such as `Qwen3-8B`."""
    model: Filled | None = None
    """The folder of the checkpoint, or of the tokenizer if the model is served. Not needed for engines of the type
    `chat` or `scripted`."""
    engine: AskedEngineConfig = VllmEngineConfig()
    chat: ChatConfig = ChatConfig()
    max_tokens: int = Field(default=512, ge=1, le=MOST_TOKENS)
    temperature: float = Field(default=0.0, ge=0)
    batch_size: int = Field(default=256, ge=1)
    """The number of rows in one batch of questions."""
    seed: int = 0


class OpinionConfig(StageConfig):
    """A second verifier or a language model for answers that rules could not read. Its opinion is stored next to the
    verdict, which does not change. A text in place of this section names a verifier, such as `math_verify`."""

    verifier: Filled | None = None
    """A verifier's name or import string."""
    model: AskedModelConfig | None = None
    """A language model. It gets two prompts for each answer."""

    @model_validator(mode="before")
    @classmethod
    def _name_stands_for_a_verifier(cls, value: Any) -> Any:
        return {"verifier": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _names_who_is_heard(self) -> Self:
        if (self.verifier is None) == (self.model is None):
            raise ValueError("needs either verifier or model")
        return self


GRADED = "truegold.pipeline.judge.grading:graded"
"""The verifier of reward terms that a language model grades."""


class GraderModelConfig(AskedModelConfig):
    """A grading language model behind an OpenAI-compatible API. Its replies are stored."""

    engine: Annotated[
        Annotated[ChatEngineConfig, Tag("chat")] | Annotated[ScriptedEngineConfig, Tag("scripted")], by_type("chat")
    ]


class GraderConfig(StageConfig):
    """A language model that grades responses by a rubric."""

    rubric: Filled
    """The qualities of a good response, in words."""
    scale: int = Field(default=10, ge=1, le=100)
    """The highest grade; the lowest is 0. The score is the grade divided by the highest grade."""
    shows_gold: bool = True
    """Show the reference answer to the model."""
    model: GraderModelConfig
    """The grading model. It gets one prompt for each response."""


class AuditedOpinionConfig(OpinionConfig):
    """A second opinion that may raise scores in a training."""

    audit: Filled
    """The audit.json that `truegold verifiers audit-judge` wrote about this opinion with the current verifiers. In the
    audit, the opinion must not have called any wrong response right."""


class VerifyGoldConfig(VerdictConfig):
    """The check that each gold passes its own verifier."""

    workers: int = Field(default=0, ge=0)
    """The number of processes; 0 means one per core."""
    second_opinion: OpinionConfig | None = None
    """A second verifier or a model for worked solutions that contradict the gold or could not be judged. Its opinion
    does not change flags."""


class VetTestsConfig(StageConfig):
    """The check that the tests of code rows can compute a reward. Rows of other verifiers are skipped."""

    enabled: bool = True
    """Vet the tests of programs."""
    workers: int = Field(default=0, ge=0)
    """The number of suites vetted at a time; 0 means one per core."""
    programs: int = Field(default=3, ge=1, le=100)
    """Maximum number of worked solutions that are run for each row. The same maximum holds for the wrong programs that
    some sources list."""
    runs: int = Field(default=3, ge=1, le=20)
    """The number of runs of each worked solution, with different hash seeds. A case that passes only sometimes is
    flaky."""
    mutants: int = Field(default=30, ge=0, le=1000)
    """The number of faults planted in the worked solution, to measure how many of them the tests catch."""
    mend: bool = False
    """Add the cases that are proposed for weak tests. If false, a reviewer may add them."""
    seed: int = 0
    """The random seed for choosing planted faults."""
    min_cases: int = Field(default=2, ge=1)
    """The least number of cases that must remain after broken ones are removed."""
    min_case_share: float = Field(default=0.5, ge=0, le=1)
    """The least share of the cases that must remain."""
    min_kill_rate: float = Field(default=0.8, ge=0, le=1)
    """Tests that catch a smaller share of the planted faults are flagged `low_kill_rate`."""
    max_guess_chance: float = Field(default=0.05, ge=0, le=1)
    """The largest chance that a guess passes the tests; tests above it are flagged `guessable`."""
    max_leaked: float = Field(default=0.5, ge=0, le=1)
    """Tests are flagged `leaked_cases` if the prompt shows a larger share of them."""
    max_headroom: float = Field(default=0.5, ge=0, le=1)
    """The largest share of the CPU limit that the worked solution may use. If it uses more, the limit is raised."""
    max_repeat_s: float = Field(default=60.0, gt=0)
    """Maximum CPU seconds of a row for each kind of repetition, such as `runs` and `mutants`. Slow solutions get fewer
    runs and fewer planted faults."""
    python: Filled | None = None
    """The Python interpreter whose packages programs may use; by default truegold's own."""


class Fault(StrEnum):
    """The kinds of faults that a language model looks for. The value is the reason of the flag."""

    MISSING_CONDITION = "model_missing_condition"
    CONTRADICTION = "model_contradiction"
    SEVERAL_READINGS = "model_several_readings"
    IMPOSSIBLE_QUANTITY = "model_impossible_quantity"
    UNDEFINED_NOTION = "model_undefined_notion"
    NO_PROBLEM = "model_no_problem"
    MISSING_REFERENCE = "model_missing_reference"
    NO_SOLUTION = "model_no_solution"
    GOLD_OF_OTHER_KIND = "model_gold_of_other_kind"


class WellPosedConfig(AskedModelConfig):
    """A language model that judges whether each problem can be answered. It gets one prompt for each row, and a second
    one if it finds a fault."""

    moved: ClassVar[Mapping[str, str]] = {"steps": "kinds"}

    max_tokens: int = Field(default=2048, ge=1, le=MOST_TOKENS)
    kinds: tuple[Fault, ...] = Field(default=tuple(Fault), min_length=1)
    """The kinds of faults to look for. Each kind is the reason of its flags."""
    known: Filled | None = None
    """A file that gives flags a confidence; by default they have none. Either problems with `ill_posed` (true or false)
    as JSON Lines, which the model judges first, or `asked_model.json` of an earlier run with this model and prompts."""
    prior: float = Field(default=0.05, gt=0, lt=1)
    """The expected share of ill-posed rows before the model is asked."""
    blocks: tuple[Fault, ...] = ()
    """Kinds of flags that hold a row back for review, if their measured confidence is at least .9."""


class FlagConfig(StageConfig):
    """The rules that flag suspicious rows. Flags hold rows back or explain them; they never drop rows."""

    detectors: tuple[Filled, ...] = ("default",)
    """The detectors to run, by name or import string: `["default", "proof", "checks.py:shouting"]`. `all` stands for
    every built-in detector, `default` for the detectors that were precise on corpora they were not written for."""
    advise_only: tuple[str, ...] = ()
    """Reasons whose flags are only reported, and hold no row back for review."""
    model: WellPosedConfig | None = None
    """A language model that judges whether each problem can be answered; by default none."""
    workers: int = Field(default=0, ge=0)
    """The number of processes; 0 means one per core."""


class SampleSource(StageConfig):
    """The system that sampled a file, and its training step. They apply to rows that do not name their own."""

    system: str | None = None
    step: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """The training step of the system."""


class SuspicionConfig(StageConfig):
    """The probability that each label is wrong, estimated from samples of one or several systems."""

    files: tuple[SampleSource, ...] = ()
    """The files of samples, in order."""

    workers: int = Field(default=0, ge=0)
    """The number of processes that judge whole responses; 0 means one per core."""


class Tiers(StrEnum):
    """The precision that decides whether a flag holds its row back."""

    MEASURED = "measured"
    """The precision that truegold measured. Reasons in `flag.advise_only` hold no row back."""
    DECISIONS = "decisions"
    """The precision in the reviewers' decisions about randomly drawn rows, once there are enough of them."""


class SettleConfig(StageConfig):
    """The application of reviewers' decisions."""

    tiers: Tiers = Tiers.MEASURED
    """The precision that decides whether flags of a reason hold rows back."""
    min_decisions: int = Field(default=20, ge=5)
    """The least number of decisions about randomly drawn rows; with fewer, `tiers: decisions` changes no reason."""


class JudgeConfig(AskedModelConfig):
    """A language model that judges responses whose verdict has no score. It gets two prompts for each response."""

    reasons: tuple[Reason, ...] = (Reason.GOLD_UNPARSED, Reason.LIMIT, Reason.TIMEOUT, Reason.DECLINED)
    """The model judges only responses whose verdict has one of these reasons."""

    @field_validator("reasons")
    @classmethod
    def _can_be_judged(cls, reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
        if bad := sorted({Reason.GOLD_MISSING, Reason.NO_ANSWER} & set(reasons)):
            raise ValueError(f"nothing can be compared where the reason is {' or '.join(bad)}")
        return reasons


class ProfileConfig(VerdictConfig):
    """The measurement of pass rates."""

    engine: EngineConfig = VllmEngineConfig()
    """The engine that samples; by default the run's `engine`."""
    chat: ChatConfig = ChatConfig()
    """The chat prompt; by default the run's `chat`."""
    samples: int = Field(default=16, ge=1, le=MOST_TOKENS)
    """The largest number of completions per problem."""
    first_samples: int | None = Field(default=4, ge=1, le=MOST_TOKENS)
    """The number of completions that every problem gets at first. A problem gets more only if more could change the
    selection, or if the first ones agree on another answer than the gold. Held-out problems always get all `samples`.
    If null, every problem does."""
    group_size: int = Field(default=8, ge=2)
    """The number of samples in a training group; by default `train.group_size`."""
    rows_to_select: int | None = Field(default=None, ge=1)
    """The number of rows that selection will take; by default `select.max_rows`. A problem is sampled as long as more
    samples could change which rows are selected. If null, selections of a quarter and of half of all rows are
    considered. A finished profile remains valid if this, `quotas`, `zero_share` or `group_size` changes."""
    quotas: dict[str, float] = Field(default_factory=dict)
    """Shares of the selection by `domain:NAME` or `source:NAME`; by default those of `select`."""
    zero_share: float = Field(default=0.1, ge=0, le=1)
    """The largest share of selected rows without a right sample; by default `select.zero_share`."""
    budget_tokens: int | None = Field(default=None, ge=1)
    """The largest number of sampled tokens. When it is reached, running samples are finished and no new one starts.
    Rows without a sample are dropped as `not_sampled`."""
    temperature: float = Field(default=1.0, ge=0)
    """The sampling temperature; use that of training."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus sampling: tokens are drawn from the smallest set with this probability."""
    max_tokens: int = Field(default=512, ge=1, le=MOST_TOKENS)
    """Maximum length of a completion, in tokens."""
    stop_loops: bool = True
    """Stop a completion whose last 150 to 190 tokens repeat the same text, and count it as `repeating`. Needs a vLLM
    version that can detect this."""
    seed: int = 0
    """The seed from which each sample's seed is derived."""
    logprobs: bool = False
    """Store the log-probability of each token in samples.parquet. truegold does not use them."""
    suspect_agreement: float = Field(default=0.75, gt=0, le=1)
    """A problem without a right sample is flagged `suspect_gold` if at least this share of its samples agrees on
    another answer. The flag is for review and drops no row."""
    unread: Literal["wrong", "left_out"] = "wrong"
    """How pass rates count a completion whose answer cannot be read: as `wrong`, like in training, or `left_out`.
    Reports show them as `unread` in both cases."""
    workers: int = Field(default=1, ge=0)
    """The number of processes that verify; 0 means one per core. More than one helps only with slow verifiers."""
    judge: JudgeConfig | None = None
    """A language model for samples that the verifier could not judge. Use a server for it, since two models in one
    process need the memory of both."""
    second_opinion: OpinionConfig | None = None
    """A second verifier or a model for samples with unread answers. It does not change verdicts."""

    @model_validator(mode="after")
    def _samples_differ(self) -> Self:
        if self.temperature == 0 and self.samples > 1:
            raise ValueError("all samples are equal at temperature 0: set samples: 1, or the temperature of training")
        return self

    @model_validator(mode="before")
    @classmethod
    def _few_samples_are_all_first(cls, values: Any) -> Any:
        samples = values.get("samples") if isinstance(values, dict) else None
        default = cls.model_fields["first_samples"].default
        is_fewer = isinstance(samples, int) and 1 <= samples < default and "first_samples" not in values
        return {**values, "first_samples": samples} if is_fewer else values

    @model_validator(mode="after")
    def _first_samples_are_among_all(self) -> Self:
        if (self.first_samples or 0) > self.samples:
            raise ValueError(
                f"first_samples ({self.first_samples}) must not exceed samples ({self.samples}), the most that a "
                "problem gets"
            )
        return self

    def sampling_settings(self) -> dict[str, Any]:
        """Return the settings that determine a sample."""
        names = {"temperature", "top_p", "max_tokens", "seed", "logprobs", "stop_loops"}
        return self.model_dump(mode="json", include=names)


class ExportConfig(StageConfig):
    """The export of the curated set: a folder with a data card."""

    license: str | None = None
    """The licence on the card, by its Hugging Face name: `mit`, `apache-2.0`, `cc-by-4.0`, ..."""
    suspicion: Filled | None = None
    """A suspicion.parquet of `truegold flag`, from which the card estimates the share of wrong labels; by default the
    profile's."""

    moved: ClassVar[Mapping[str, str]] = {"matches": "/decontaminate.against"}


class ReportConfig(StageConfig):
    """The report on a run."""

    name: Filled
    """The run's name."""
    stages: tuple[str, ...]
    """The stages in the report, in order."""
    group_size: int = Field(default=8, ge=1)
    """The number of samples in a training group, for expected rewards. If the run has trained, its own group size is
    used."""
    max_rows: int = Field(default=50_000, ge=1)
    """The largest number of rows on the page. If there are more, it shows the most suspicious rows and a random sample.
    The Parquet tables have all rows."""


class MatchKind(StrEnum):
    """The kinds of matches between a row and an evaluation item, the most certain first (`kind` in matches.parquet)."""

    EXACT = "exact"
    OVERLAP = "overlap"
    REWORDED = "reworded"


class EvalColumns(StageConfig):
    """The columns of an evaluation set by role. Columns that are not given are guessed by their names."""

    keys_are_roles: ClassVar[bool] = True

    prompt: str | None = None
    """The problem."""
    gold: str | None = None
    """The reference answer."""
    id: str | None = None
    """The item's identifier, by which matches refer to it."""


class EvalSetConfig(StageConfig):
    """One evaluation set."""

    set: Filled
    """A name such as `math500`, a file, a folder, or `owner/name:subset@split` of the hub."""
    preset: str | None = None
    """The format of the records, as in `data.preset`; by default chosen by the columns."""
    columns: EvalColumns = EvalColumns()
    """The columns by role, where the guess is wrong."""

    @model_validator(mode="before")
    @classmethod
    def _name_stands_for_a_set(cls, value: Any) -> Any:
        return {"set": value} if isinstance(value, str) else value


class DecontaminateConfig(StageConfig):
    """The comparison with evaluation sets. Matching training rows are dropped. Held-out rows are kept, since they are
    not trained on."""

    against: tuple[EvalSetConfig, ...] = Field(min_length=1)
    """The evaluation sets."""
    drop: tuple[MatchKind, ...] = tuple(MatchKind)
    """The kinds of matches that drop a row. For other kinds the row is kept and the ledger records the match."""

    @field_validator("against", mode="before")
    @classmethod
    def _one_set_needs_no_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str | dict) else value

    @field_validator("against")
    @classmethod
    def _are_different(cls, value: tuple[EvalSetConfig, ...]) -> tuple[EvalSetConfig, ...]:
        names = [entry.set for entry in value]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{', '.join(repeated)} is listed more than once")
        return value


class TargetBand(StageConfig):
    """A band of expected pass rates. It starts where the band before it ends; the first starts at 0."""

    up_to: float = Field(gt=0, le=1)
    """The upper end of the band, inclusive."""
    share: float | None = Field(default=None, ge=0, le=1)
    """The band's share of the selection; 0 leaves the band out. By default all rows of the band are taken."""


class TargetName(StrEnum):
    """Named histograms of pass rates."""

    BALANCED = "balanced"
    """Four bands of equal width, each with the same number of rows."""
    OPEN_R1 = "open-r1"
    """Pass rates of .1 to .6, like open-r1's filter."""
    SKYWORK = "skywork"
    """1 to 15 failures in 16 samples, like Skywork-OR1."""
    CURRICULUM = "curriculum"
    """Three bands, each with the same number of rows; selected.parquet has the easy ones first."""


TARGETS: Mapping[TargetName, tuple[TargetBand, ...]] = {
    TargetName.BALANCED: tuple(TargetBand(up_to=quarter / 4, share=1 / 4) for quarter in range(1, 5)),
    TargetName.OPEN_R1: (TargetBand(up_to=0.1, share=0), TargetBand(up_to=0.6), TargetBand(up_to=1, share=0)),
    TargetName.SKYWORK: (TargetBand(up_to=1 / 16, share=0), TargetBand(up_to=15 / 16), TargetBand(up_to=1, share=0)),
    TargetName.CURRICULUM: tuple(TargetBand(up_to=third / 3, share=1 / 3) for third in range(1, 4)),
}


class SelectConfig(StageConfig):
    """The selection of profiled problems for training."""

    moved: ClassVar[Mapping[str, str]] = {"bands": "target"}

    group_size: int = Field(default=8, ge=2)
    """The number of samples in a training group; by default `train.group_size`."""
    min_teaching: float = Field(default=0.2, ge=0, le=1)
    """A group of samples teaches if it is neither all wrong nor all right. Rows are dropped if the expected share of
    their groups that teach is below this."""
    min_teaching_share: float = Field(default=0.05, ge=0, le=1)
    """The least expected share of groups that teach in the whole selection. A selection below it raises an error."""
    may_be_empty: bool = False
    """Accept a selection that is empty or teaches little. Runs with a section `synth` do so, since synthesis may make
    rows trainable that hardly ever pass."""
    min_pass_rate: float = Field(default=0.0, ge=0, le=1)
    """The lowest expected pass rate of a selected row."""
    max_pass_rate: float = Field(default=1.0, ge=0, le=1)
    """The highest expected pass rate of a selected row."""
    min_passes: int = Field(default=0, ge=0)
    """The least number of right samples of a selected row; set 1 to train on right samples."""
    zero_share: float = Field(default=0.1, ge=0, le=1)
    """The largest share of selected rows without a right sample. Such rows have wrong labels and broken texts more
    often. Rows whose label is trusted do not count."""
    target: TargetName | tuple[TargetBand, ...] | None = None
    """The histogram of expected pass rates: a name, or bands. By default all rows are taken; if `max_rows` requires a
    choice, it is `balanced`, as far as there are rows."""
    quotas: dict[str, float] = Field(default_factory=dict)
    """Shares of the selection by `domain:NAME` or `source:NAME`. Values without a quota share the rest."""
    max_rows: int | None = Field(default=None, ge=1)
    """The largest number of selected rows; by default as many as the target's shares and the quotas allow."""
    seed: int = 0
    """The seed that decides between rows of equal value."""

    @property
    def bands(self) -> tuple[TargetBand, ...]:
        """The bands of the target, from 0 to 1."""
        if self.target is None:
            return TARGETS[TargetName.BALANCED]
        return TARGETS[self.target] if isinstance(self.target, TargetName) else self.target

    @field_validator("target")
    @classmethod
    def _check_bands(
        cls, target: TargetName | tuple[TargetBand, ...] | None
    ) -> TargetName | tuple[TargetBand, ...] | None:
        if target is None or isinstance(target, TargetName):
            return target
        ends = [band.up_to for band in target]
        if not ends or ends != sorted(set(ends)) or ends[-1] != 1:
            raise ValueError("the bands must rise and the last one must go up to 1")
        shares = [band.share for band in target if band.share is not None]
        is_whole = len(shares) == len(target)
        if sum(shares) > 1 + ROUNDING or (is_whole and sum(shares) < 1 - ROUNDING):
            raise ValueError(f"the shares of the bands must add up to 1, not to {sum(shares):g}")
        return target

    @field_validator("quotas")
    @classmethod
    def _check_quotas(cls, quotas: dict[str, float]) -> dict[str, float]:
        totals: defaultdict[str, float] = defaultdict(float)
        for name, share in quotas.items():
            column, separator, value = name.partition(":")
            if column not in QUOTA_COLUMNS or not separator or not value:
                raise ValueError(f"the name of a quota is `domain:NAME` or `source:NAME`, not {name!r}")
            if not 0 <= share <= 1:
                raise ValueError(f"the quota of {name} must be a share from 0 to 1, not {share:g}")
            totals[column] += share
        if over := [f"{column} ({total:g})" for column, total in totals.items() if total > 1 + ROUNDING]:
            raise ValueError(f"the quotas by {' and by '.join(over)} add up to more than 1")
        return quotas

    @model_validator(mode="after")
    def _check_band(self) -> Self:
        if self.min_pass_rate >= self.max_pass_rate:
            raise ValueError("min_pass_rate must be below max_pass_rate")
        return self


class PartsConfig(StageConfig):
    """The division of tables into parts, which are processed in parallel. Results do not depend on it, and finished
    stages remain valid if it changes."""

    rows: int = Field(default=5_000, ge=1)
    """The number of rows in a part. A table with fewer rows is one file."""


class CurationConfig(StageConfig):
    """All settings of `truegold curate`. Sections that are left out have their defaults."""

    data: DataConfig
    """The source of the raw rows, or a list of sources with the most trusted first."""
    clean: CleanConfig = CleanConfig()
    """The cleaning of texts."""
    decontaminate: DecontaminateConfig | None = None
    """The comparison with evaluation sets; by default none."""
    dedup: DedupConfig = DedupConfig()
    """The removal of copies and rewordings."""
    verify_gold: VerifyGoldConfig = VerifyGoldConfig()
    """The check that each gold passes its own verifier."""
    vet_tests: VetTestsConfig = VetTestsConfig()
    """The check of programs' tests."""
    flag: FlagConfig = FlagConfig()
    """The rules that flag suspicious rows."""
    settle: SettleConfig = SettleConfig()
    """The application of reviewers' decisions."""
    decisions: tuple[Filled, ...] = ()
    """The reviewers' decisions: a folder (JSON Lines, one file for each reviewer), a file, or a list of them. The
    folder `decisions` of the run is used as well, unless another folder is named."""
    parts: PartsConfig = PartsConfig()
    """The division of tables into parts."""
    max_rejected: float | None = Field(default=None, ge=0, le=1)
    """The largest share of records that may be rejected; above it the run ends with an error. By default one accepted
    record is enough."""
    max_held: float | None = Field(default=None, ge=0, le=1)
    """The largest share of rows that may be held back for review; above it the run ends with an error. By default one
    remaining row is enough."""

    @field_validator("decisions", mode="before")
    @classmethod
    def _take_one_as_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value or ()
