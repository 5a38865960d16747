"""The configuration of every pipeline stage, and of curation as a whole.

decontaminate:
  against:
    - math500                                  # a set that is known by name, streamed from the hub
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

from truegold.pipeline.config.base import ROUNDING, StageConfig, VerdictConfig, by_type
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
"""The reasons for which cleaning edits a row."""

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
    """Text cleaning, notes on every row, and bounds."""

    min_prompt_chars: int = Field(default=8, ge=0)
    """Rows with a shorter prompt are dropped."""
    max_prompt_chars: int = Field(default=20_000, ge=1)
    """Rows with a longer prompt are dropped."""
    max_gold_chars: int = Field(default=2_000, ge=1)
    """Rows with a longer gold are dropped."""
    languages: tuple[Annotated[str, Field(pattern=r"^[a-z]{2,3}$")], ...] = ()
    """ISO 639-1 codes such as `en` and `zh`. Rows with prompts in other languages are dropped. By default all stay. A
    prompt with too few words always stays."""
    skip: tuple[EditName, ...] = ()
    """The reasons of edits that are not to be made: `multiple_choice`, `html_tags`, ..."""
    boilerplate: tuple[str, ...] = _boilerplate("start")
    """Regular expressions, without regard to case, cut from the start of a prompt."""
    boilerplate_end: tuple[str, ...] = _boilerplate("end")
    """Regular expressions, without regard to case, cut from the end of a prompt."""
    workers: int = Field(default=0, ge=0)
    """Processes; 0 takes one per core."""


class DedupConfig(StageConfig):
    """Deduplication: exact copies, rewordings of the same problem, instances of one template."""

    case_sensitive: bool = False
    """Whether prompts that differ in case only are different. Only exact copies are looked for then."""
    reworded: bool = True
    """Whether the same problem in other words, with the same quantities, is a duplicate. Code rows are only compared
    exactly."""
    confidence: float = Field(default=0.7, ge=0.5, lt=1)
    """The probability that two rows are the same problem (`near.confirmation`), from which one of them is dropped."""
    conflict_confidence: float = Field(default=0.71, ge=0.71, lt=1)
    """How likely two rows with different golds must be the same problem for both to be flagged; neither goes."""
    reworded_conflicts: bool = False
    """Whether rewordings with different golds are flagged for advice: of 33 read, 2 were right. Copies always are."""
    template_cap: int | None = Field(default=None, ge=1)
    """Problems of one template (the same words, other quantities) that stay; null keeps all. Needs `reworded`."""
    embedder: str | None = None
    """An encoder that proposes more pairs to compare, translations among them: a model on the hub, a folder, or an
    import string (`path/to/encoder.py:encode`). Its time grows with the square of the rows. Needs `reworded`."""

    @model_validator(mode="after")
    def _has_an_effect(self) -> Self:
        comparing = {"template_cap": self.template_cap, "embedder": self.embedder}
        for name in (name for name, value in comparing.items() if value is not None):
            if not self.reworded or self.case_sensitive:
                switch = "case_sensitive: true" if self.reworded else "reworded: false"
                raise ValueError(f"{name} has no effect with {switch}, which compares exact copies alone")
        return self


class AskedModelConfig(StageConfig):
    """A language model that is asked questions."""

    name: str
    """The name that the evidence has for the model, such as `Qwen3-8B`."""
    model: str | None = None
    """The folder of its checkpoint; for a served model the folder of its tokenizer. An engine of the type `chat`, or a
    scripted one, needs none."""
    engine: AskedEngineConfig = VllmEngineConfig()
    chat: ChatConfig = ChatConfig()
    max_tokens: int = Field(default=512, ge=1, le=MOST_TOKENS)
    temperature: float = Field(default=0.0, ge=0)
    batch_size: int = Field(default=256, ge=1)
    """Rows asked about at a time."""
    seed: int = 0


class OpinionConfig(StageConfig):
    """A verifier or a language model that is asked if rules could not read an answer. Its opinion is stored next to the
    verdict, which does not change. A plain text is the name of a verifier, such as `math_verify`."""

    verifier: str | None = None
    """A verifier's name or import string."""
    model: AskedModelConfig | None = None
    """A language model; each answer takes two prompts."""

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
"""The verifier of a reward term that a language model grades."""


class GraderModelConfig(AskedModelConfig):
    """A language model that grades, behind an OpenAI-compatible API. Its replies are kept."""

    engine: Annotated[
        Annotated[ChatEngineConfig, Tag("chat")] | Annotated[ScriptedEngineConfig, Tag("scripted")], by_type("chat")
    ]


class GraderConfig(StageConfig):
    """A language model that grades responses by a rubric."""

    rubric: str = Field(min_length=1)
    """The qualities that a response has to have, in words."""
    scale: int = Field(default=10, ge=1, le=100)
    """The highest grade; the lowest is 0, and the score is their share."""
    shows_gold: bool = True
    """Whether the model sees the reference answer."""
    model: GraderModelConfig
    """The model that grades; each response takes one prompt."""


class AuditedOpinionConfig(OpinionConfig):
    """A second opinion that may raise scores in a training."""

    audit: str
    """The audit.json of `truegold verifiers audit-judge`, in which no wrong response was called right, about this very
    opinion and the verifiers as they are."""


class VerifyGoldConfig(VerdictConfig):
    """The check that each gold passes its own verifier."""

    workers: int = Field(default=0, ge=0)
    """Processes; 0 takes one per core."""
    second_opinion: OpinionConfig | None = None
    """The verifier or model that is asked about worked solutions that contradict gold, or that the verifier could not
    judge; no flag changes."""


class VetTestsConfig(StageConfig):
    """The tests of code rows must be fit to compute a reward with. Rows of other verifiers are not looked at."""

    enabled: bool = True
    """Whether the tests of programs are vetted at all."""
    workers: int = Field(default=0, ge=0)
    """Suites vetted at a time; 0 takes one per core."""
    programs: int = Field(default=3, ge=1, le=100)
    """Worked solutions of a row that are run, and programs known to be wrong, where its source has several."""
    runs: int = Field(default=3, ge=1, le=20)
    """Runs of each worked solution, each under another hash seed: a case that passes only sometimes is flaky."""
    mutants: int = Field(default=30, ge=0, le=1000)
    """Faults planted in the worked solution to see how many of them the tests catch."""
    mend: bool = False
    """Whether the cases that are proposed for weak tests are added to them; otherwise a person may, in review."""
    seed: int = 0
    """The random seed that chooses the planted faults."""
    min_cases: int = Field(default=2, ge=1)
    """Cases that have to be left when broken ones are taken out."""
    min_case_share: float = Field(default=0.5, ge=0, le=1)
    """The share of the cases that has to be left."""
    min_kill_rate: float = Field(default=0.8, ge=0, le=1)
    """Tests that catch a smaller share of the planted faults are flagged `low_kill_rate`."""
    max_guess_chance: float = Field(default=0.05, ge=0, le=1)
    """Tests that a guess passes with a greater chance are flagged `guessable`."""
    max_leaked: float = Field(default=0.5, ge=0, le=1)
    """Tests are flagged `leaked_cases` if the prompt shows a larger share of them."""
    max_headroom: float = Field(default=0.5, ge=0, le=1)
    """The greatest share of the CPU limit that the worked solution may need; where it needs more, the limit is
    raised."""
    max_repeat_s: float = Field(default=60.0, gt=0)
    """CPU seconds for each sort of repetition: slow solutions are run less often, with fewer planted faults."""
    python: str | None = None
    """The interpreter whose packages programs may use; by default truegold's own."""


class Fault(StrEnum):
    """The kinds of faults that a language model is asked about; the value is the reason that it flags with."""

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
    """A language model that is asked whether each problem can be answered: one prompt a row, and a second one for those
    in which it finds a fault."""

    moved: ClassVar[Mapping[str, str]] = {"steps": "kinds"}

    max_tokens: int = Field(default=2048, ge=1, le=MOST_TOKENS)
    kinds: tuple[Fault, ...] = Field(default=tuple(Fault), min_length=1)
    """The kinds of faults that it is asked about, each named by the reason of its flag."""
    known: str | None = None
    """Problems to measure the model with: JSON Lines with `ill_posed` (true or false), about which it is asked first,
    or the `asked_model.json` of an earlier run with the same model and prompts. Without it, flags have no
    confidence."""
    prior: float = Field(default=0.05, gt=0, lt=1)
    """The share of ill-posed rows that is expected before the model is asked."""
    blocks: tuple[Fault, ...] = ()
    """Kinds of flags that hold a row back for review, if their measured confidence is at least .9."""


class FlagConfig(StageConfig):
    """The rules that flag suspicious rows. They route and explain; they never drop."""

    detectors: tuple[str, ...] = ("default",)
    """Names of the detectors to run, or import strings of your own: `["default", "proof", "checks.py:shouting"]`.
    `default` stands for the built-in ones that are right often enough on corpora that they never met, `all` for every
    built-in one."""
    advise_only: tuple[str, ...] = ()
    """Reasons that should only be reported and not hold a row back for review."""
    model: WellPosedConfig | None = None
    """A language model that is asked whether each problem can be answered; no model is asked where not given."""
    workers: int = Field(default=0, ge=0)
    """Processes; 0 takes one per core."""


class SampleSource(StageConfig):
    """The system and the step that a file of samples comes from, where its rows do not say so."""

    system: str | None = None
    step: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """The step of the system's training."""


class SuspicionConfig(StageConfig):
    """How likely each label is at fault, from samples of one or several systems."""

    files: tuple[SampleSource, ...] = ()
    """The files of samples, in their order."""

    workers: int = Field(default=0, ge=0)
    """Processes that judge whole responses; 0 takes one per core."""


class Tiers(StrEnum):
    """The measure that decides whether a flag holds its row back."""

    MEASURED = "measured"
    """The precision that truegold has measured, and `flag.advise_only`."""
    DECISIONS = "decisions"
    """The precision that the reviewers' decisions about rows drawn at random show, once there are enough of them."""


class SettleConfig(StageConfig):
    """Applying the reviewers' decisions."""

    tiers: Tiers = Tiers.MEASURED
    """The measure that decides whether the flags of a reason hold rows back."""
    min_decisions: int = Field(default=20, ge=5)
    """Rows drawn at random that have to be decided before they set the tier of a reason."""


class JudgeConfig(AskedModelConfig):
    """A language model that is asked about verdicts without a score. A row takes two prompts."""

    reasons: tuple[Reason, ...] = (Reason.GOLD_UNPARSED, Reason.LIMIT, Reason.TIMEOUT, Reason.DECLINED)
    """Why rules gave no score, for those rows that are sent."""

    @field_validator("reasons")
    @classmethod
    def _can_be_judged(cls, reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
        if bad := sorted({Reason.GOLD_MISSING, Reason.NO_ANSWER} & set(reasons)):
            raise ValueError(f"nothing can be compared where the reason is {' or '.join(bad)}")
        return reasons


class ProfileConfig(VerdictConfig):
    """How pass rates are measured."""

    engine: EngineConfig = VllmEngineConfig()
    """The source of completions; the run's `engine` where it is left out."""
    chat: ChatConfig = ChatConfig()
    """How a prompt is put to the model; the run's `chat` where it is left out."""
    samples: int = Field(default=16, ge=1, le=MOST_TOKENS)
    """Completions per problem, at most."""
    first_samples: int | None = Field(default=4, ge=1, le=MOST_TOKENS)
    """Completions that every problem gets. It gets further ones only where they may change which problems are worth
    selecting, or where they agree that its gold is wrong. Each problem gets all of `samples` where this is null, as
    held-out ones do in any case."""
    group_size: int = Field(default=8, ge=2)
    """The samples of one group in training; `train.group_size` where it is left out."""
    rows_to_select: int | None = Field(default=None, ge=1)
    """The number of rows that selection will take; by default `select.max_rows`. If neither is set, samples are drawn
    for selections of a quarter and of half of the rows. A finished profile stays valid if this, `quotas`, `zero_share`
    or `group_size` changes."""
    quotas: dict[str, float] = Field(default_factory=dict)
    """Shares of the selection by `domain:NAME` or `source:NAME`; by default those of `select`."""
    zero_share: float = Field(default=0.1, ge=0, le=1)
    """The share of rows without a right sample that selection takes at most; `select.zero_share` where it is left
    out."""
    budget_tokens: int | None = Field(default=None, ge=1)
    """No sample starts after this many sampled tokens. Running samples are finished. Rows without a sample are dropped
    as `not_sampled`."""
    temperature: float = Field(default=1.0, ge=0)
    """The temperature of sampling, as training will have it."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Tokens are drawn from the smallest set with this much probability."""
    max_tokens: int = Field(default=512, ge=1, le=MOST_TOKENS)
    """The longest completion."""
    stop_loops: bool = True
    """End a completion whose last 150 to 190 tokens repeat the same text, and count it as `repeating`. Needs a vLLM
    that can detect this."""
    seed: int = 0
    """The seed that each sample's own seed is made from."""
    logprobs: bool = False
    """Whether samples.parquet has the log-probability of each token. truegold does not use them."""
    suspect_agreement: float = Field(default=0.75, gt=0, le=1)
    """A problem with no pass is flagged `suspect_gold` when at least this share of all samples agrees on another
    answer. A flag for review, never a drop."""
    unread: Literal["wrong", "left_out"] = "wrong"
    """Whether a completion that ends in a form which is not read counts as a wrong one, as it does in training, or is
    left out of pass rates. It is shown as `unread` in any case."""
    workers: int = Field(default=1, ge=0)
    """Processes that verify; 0 takes one per core. Worth raising for slow verifiers only."""
    judge: JudgeConfig | None = None
    """A language model for samples that the verifier could not judge. Best a served one: in-process vLLM would hold
    two models at once."""
    second_opinion: OpinionConfig | None = None
    """The verifier or model that is asked about samples with unread answers. Verdicts do not change."""

    def sampling_settings(self) -> dict[str, Any]:
        """Return the settings that decide a sample."""
        names = {"temperature", "top_p", "max_tokens", "seed", "logprobs", "stop_loops"}
        return self.model_dump(mode="json", include=names)


class ExportConfig(StageConfig):
    """The curated set as a folder with its data card."""

    license: str | None = None
    """The licence on the card, by its Hugging Face name: `mit`, `apache-2.0`, `cc-by-4.0`, ..."""
    suspicion: str | None = None
    """A suspicion.parquet of `truegold flag`, from which the card estimates the share of wrong labels; the profile's
    own where not given."""

    moved: ClassVar[Mapping[str, str]] = {"matches": "/decontaminate.against"}


class ReportConfig(StageConfig):
    """The report on a run."""

    name: str
    """The run's name."""
    stages: tuple[str, ...]
    """The stages in the report, in order."""
    group_size: int = Field(default=8, ge=1)
    """The samples of a training group, for the expected rewards. If the run has trained, its own group size is used."""
    max_rows: int = Field(default=50_000, ge=1)
    """The records in the page; of more, the most suspicious and others at random. All stay in the Parquet tables."""


class MatchKind(StrEnum):
    """How a row matches an evaluation item, the most certain first. The value is `kind` in `matches.parquet`."""

    EXACT = "exact"
    OVERLAP = "overlap"
    REWORDED = "reworded"


class EvalColumns(StageConfig):
    """The columns of an evaluation set by their roles. Others are guessed by their names."""

    prompt: str | None = None
    """The problem."""
    gold: str | None = None
    """The reference answer."""
    id: str | None = None
    """The item's identifier, which matches name."""


class EvalSetConfig(StageConfig):
    """One evaluation set."""

    set: str = Field(min_length=1)
    """A name such as `math500`, a file, a folder, or `owner/name:subset@split` of the hub."""
    preset: str | None = None
    """The shape of its records, as in `data.preset`; by its columns where not given."""
    columns: EvalColumns = EvalColumns()
    """Columns that are not to be guessed."""

    @model_validator(mode="before")
    @classmethod
    def _name_stands_for_a_set(cls, value: Any) -> Any:
        return {"set": value} if isinstance(value, str) else value


class DecontaminateConfig(StageConfig):
    """The comparison with evaluation sets. Training rows that match are dropped. Held-out rows stay, because they are
    not trained on."""

    against: tuple[EvalSetConfig, ...] = Field(min_length=1)
    """The evaluation sets."""
    drop: tuple[MatchKind, ...] = tuple(MatchKind)
    """Kinds of matches that drop a row. Rows with other matches stay, and the ledger records the match."""

    @field_validator("against", mode="before")
    @classmethod
    def _one_set_needs_no_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str | dict) else value

    @field_validator("against")
    @classmethod
    def _are_different(cls, value: tuple[EvalSetConfig, ...]) -> tuple[EvalSetConfig, ...]:
        names = [entry.set for entry in value]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{', '.join(repeated)} stands there more than once")
        return value


class TargetBand(StageConfig):
    """A band of expected pass rates, from the one before it (0 for the first) up to a bound."""

    up_to: float = Field(gt=0, le=1)
    """The upper end of the band, which belongs to it."""
    share: float | None = Field(default=None, ge=0, le=1)
    """The share of the selection; 0 keeps the band out, and left out takes what there is."""


class TargetName(StrEnum):
    """Histograms of pass rates with a name."""

    BALANCED = "balanced"
    """Four bands of equal width, with the same number of rows from each."""
    OPEN_R1 = "open-r1"
    """Pass rates of .1 to .6, as open-r1's filter keeps them."""
    SKYWORK = "skywork"
    """1 to 15 failures of 16, as Skywork-OR1 keeps them."""
    CURRICULUM = "curriculum"
    """Three bands with the same number of rows from each, easy ones first in selected.parquet."""


TARGETS: Mapping[TargetName, tuple[TargetBand, ...]] = {
    TargetName.BALANCED: tuple(TargetBand(up_to=quarter / 4, share=1 / 4) for quarter in range(1, 5)),
    TargetName.OPEN_R1: (TargetBand(up_to=0.1, share=0), TargetBand(up_to=0.6), TargetBand(up_to=1, share=0)),
    TargetName.SKYWORK: (TargetBand(up_to=1 / 16, share=0), TargetBand(up_to=15 / 16), TargetBand(up_to=1, share=0)),
    TargetName.CURRICULUM: tuple(TargetBand(up_to=third / 3, share=1 / 3) for third in range(1, 4)),
}


class SelectConfig(StageConfig):
    """The choice of the profiled problems that are trained on."""

    moved: ClassVar[Mapping[str, str]] = {"bands": "target"}

    group_size: int = Field(default=8, ge=2)
    """The samples of one group in training; `train.group_size` where it is left out."""
    min_teaching: float = Field(default=0.2, ge=0, le=1)
    """A row is dropped where a smaller share of its groups is expected to teach (neither all wrong nor all right)."""
    min_teaching_share: float = Field(default=0.05, ge=0, le=1)
    """The least expected share of groups that teach. A selection below it is refused."""
    may_be_empty: bool = False
    """Whether a selection may be empty, or hardly teach. A run with a section `synth` sets it: rows that hardly ever
    pass may become trainable."""
    min_pass_rate: float = Field(default=0.0, ge=0, le=1)
    """The lowest expected pass rate that is taken."""
    max_pass_rate: float = Field(default=1.0, ge=0, le=1)
    """The highest expected pass rate that is taken."""
    min_passes: int = Field(default=0, ge=0)
    """The fewest right samples of a row, such as 1 to train on its right samples."""
    zero_share: float = Field(default=0.1, ge=0, le=1)
    """Rows without a right sample may make up this share of the selection, the worthiest ones. Wrong labels and broken
    texts are more frequent among them than elsewhere."""
    target: TargetName | tuple[TargetBand, ...] | None = None
    """The histogram of expected pass rates: a name, or bands. Left out: `balanced` as far as rows last where `max_rows`
    makes a choice necessary, and all rows otherwise."""
    quotas: dict[str, float] = Field(default_factory=dict)
    """Shares of the selection by `domain:NAME` or `source:NAME`. Values without a quota share the rest."""
    max_rows: int | None = Field(default=None, ge=1)
    """Rows that are selected at most. Left out: all, or as many as keep the target's shares and the quotas."""
    seed: int = 0
    """The seed that decides between rows of equal worth."""

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
                raise ValueError(f"a quota is of `domain:NAME` or `source:NAME`, not of {name!r}")
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
    """How tables are cut into parts, which are worked on side by side. Nothing that is written in them depends on it,
    and stages that are finished stay as they are."""

    rows: int = Field(default=5_000, ge=1)
    """Rows of a part. A table of fewer is one file."""


class CurationConfig(StageConfig):
    """Everything that `truegold curate` needs. Sections that are left out take their defaults."""

    data: DataConfig
    """The source of the raw rows, or a list of sources with the most trusted first."""
    clean: CleanConfig = CleanConfig()
    """How texts are cleaned."""
    decontaminate: DecontaminateConfig | None = None
    """The comparison with evaluation sets. By default there is none."""
    dedup: DedupConfig = DedupConfig()
    """The removal of copies and rewordings."""
    verify_gold: VerifyGoldConfig = VerifyGoldConfig()
    """The check of gold by its own verifier."""
    vet_tests: VetTestsConfig = VetTestsConfig()
    """How the tests of programs are vetted."""
    flag: FlagConfig = FlagConfig()
    """The rules that flag suspicious rows."""
    settle: SettleConfig = SettleConfig()
    """How reviewers' decisions are applied."""
    decisions: tuple[str, ...] = ()
    """The reviewers' decisions: a folder (JSON Lines, one file for each reviewer), a file, or a list of them. If no
    folder is named, `decisions` in the run's folder is used too."""
    parts: PartsConfig = PartsConfig()
    """How tables are cut into parts."""
    max_rejected: float | None = Field(default=None, ge=0, le=1)
    """The run ends with an error where a larger share of the records could not become rows; any share passes where not
    given, as long as a row is left."""
    max_held: float | None = Field(default=None, ge=0, le=1)
    """The run ends with an error where a larger share of the rows is held back for review; any share passes where not
    given, as long as a row is left."""

    @field_validator("decisions", mode="before")
    @classmethod
    def _take_one_as_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value or ()
