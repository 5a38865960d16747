"""Choices and checks before the first step of a training: its rows, its default settings, and mistakes in them.

choice        rule
rows          rows whose prompt leaves room for a right answer within the engine's context
heldout       held-out rows and rows of evaluation sets whose prompt is not trained on
max_tokens    as configured, or a little above the lengths of right completions in the profile
evaluation    sampling of held-out rows, as configured or as in the checkpoint's generation_config.json

The token ids of prompts must be the same as in the profile, which has samples of each problem from before the training.
In a resumed training, they must be the same as before the stop:

    profile     <|im_start|>user What is 1+1? ...          pass rates were measured with this prompt
    training    <|im_start|>system You are ... user ...    error: the pass rates do not hold for this prompt

A library update, for example, can change the chat template or the tokenizer.

Settings that can spoil a training without an error get advice:

    model family     reported results of RL with Llama 3.2
    think tags       <think> is four tokens for this tokenizer; [THINK] would be one
    chat template    drops the thinking of earlier turns
    overlong         long completions are punished by the term `length`, but left out of the loss by a mask

The advice is printed at the start and kept in the stage's record.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.resources import files
from itertools import islice, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.decontaminate.matches import find_matches
from truegold.pipeline.engines.chat import ChatEncoder, encode_row, load_encoder
from truegold.pipeline.problems import ProblemColumns, read_problems
from truegold.pipeline.rates import MARGIN, is_wildly_above_need, propose_max_tokens, quantile_length
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.tables.conversation import turns_text
from truegold.pipeline.tables.reasons import MATCHES_FILE
from truegold.pipeline.tables.rows import Row, count_rows, read_rows
from truegold.train.config.grpo import HELDOUT_SET, EvaluationConfig, GrpoConfig, SamplingConfig
from truegold.train.grpo.evaluation import EvaluationRows, read_set
from truegold.train.guards.table import PROMPTS
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.export_check import refuse_export
from truegold.train.turns.environment import Message
from truegold.train.turns.template import TurnTemplate
from truegold.train.turns.template_profile import choose_opening, find_thoughts, none_where_refused, unread_arguments
from truegold.verifiers import ConfigError, GuardError, InputError, Reason
from truegold.verifiers.answers.format import KNOWN_PAIRS, tag_tokens
from truegold.verifiers.user_code import close_match

FALLBACK_MAX_TOKENS = 512
"""The longest completion, in tokens, if the profile has no right completion."""
PLAIN_SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": 0}
"""The settings of sampling from the model's own distribution, by their names in generation_config.json."""


@dataclass(frozen=True)
class EvalSampling:
    """How held-out rows are sampled."""

    temperature: float
    top_p: float
    top_k: int
    source: str
    """The source of the settings: `configured`, `generation_config.json` or `default`."""


def choose_max_tokens(config: SamplingConfig, samples: Path | None, longest: int) -> tuple[int, str]:
    """Return the longest completion of a rollout, in tokens, and the reason, such as "configured".

    samples: the samples of the profile. longest: the engine's limit for prompt plus completion. Raises InputError if
    the configured limit is far above the lengths of right completions. Completions that reach such a limit take much
    time and teach the policy to be long.
    """
    lengths: dict[int, int] = dict(_right_lengths(samples)["length"].value_counts().iter_rows())
    configured, proposed = config.max_tokens, propose_max_tokens(lengths)
    if configured is not None:
        if is_wildly_above_need(configured, lengths) and not config.allow_long:
            raise InputError(
                f"train.sampling.max_tokens is {configured}, while 99.5 % of the profile's right completions end "
                f"within {quantile_length(lengths)} tokens: completions up to the limit would take most of the time.",
                f"Leave it out (the default is {proposed}), or set train.sampling.allow_long for longer answers.",
            )
        return configured, "configured"
    if samples is None:
        return min(FALLBACK_MAX_TOKENS, longest - 1), "default: there is no profile"
    if proposed is None:
        return min(FALLBACK_MAX_TOKENS, longest - 1), "default: the profile has no right completion"
    why = f"{MARGIN} x {quantile_length(lengths)}, the 99.5 % quantile of right completions"
    return min(proposed, longest - 1), why


def unread_in_profile(samples: Path | None) -> dict[str, float | None]:
    """Return the share of unread answers in the profile, or an empty dict without samples.

    profile_ended    the number of samples that ended by themselves
    profile_unread   the share of these samples whose answer the verifier could not read
    """
    if samples is None:
        return {}
    ended = pl.scan_parquet(samples).filter(pl.col("finish_reason") == "stop")
    counts = ended.select(pl.len().alias("all"), (pl.col("reason") == str(Reason.UNREAD)).sum().alias("unread"))
    count, unread = counts.collect(engine="streaming").row(0)
    return {"profile_unread": unread / count, "profile_ended": float(count)} if count else {}


@dataclass(frozen=True)
class TrainingRows:
    """The usable rows of a training."""

    rows: list[Row]
    reserve: list[Row]
    heldout: list[Row]
    rows_in: int
    """The number of selected rows that were read."""
    skipped: dict[str, int]
    """The number of rows that were left out, by reason."""
    evaluation_sets: Mapping[str, Sequence[Row]]
    """The rows of further evaluation sets, by name."""
    reworded: list[str] = field(default_factory=list)
    """A line for each held-out row that was left out because it rewords a training row."""

    def evaluation_rows(self, config: EvaluationConfig) -> EvaluationRows:
        """Return the rows to evaluate: the first `config.problems` of each set. The run's held-out rows are the first
        set."""
        sets = {HELDOUT_SET: self.heldout, **self.evaluation_sets}
        return EvaluationRows.from_sets({name: members[: config.problems] for name, members in sets.items()})


def read_training_rows(
    inputs: Mapping[str, Path], encoder: ChatEncoder, longest: int, evaluation: EvaluationConfig
) -> TrainingRows:
    """Return the usable rows of the inputs `rows`, `reserve` and `heldout`, and of `evaluation NAME` for each named
    set.

    longest: the engine's limit for prompt plus completion, in tokens. Raises InputError if no row is left to train on
    or to evaluate.
    """
    (rows, cramped), (reserve, _), (heldout, _) = (
        split_by_room(read_rows(inputs[name]), inputs.get("samples"), encoder, longest)
        for name in ("rows", "reserve", "heldout")
    )
    if not rows:
        raise InputError(
            f"The prompts of all {len(cramped)} selected rows are too long: the remaining context is shorter than "
            "right answers in the profile.",
            f"Raise train.engine.max_model_len (now {longest}).",
        )
    is_evaluated = bool(evaluation.every)
    heldout, leaked = split_by_leak(heldout, rows, reserve) if is_evaluated else (heldout, [])
    reworded = find_reworded(inputs["heldout"], [inputs["rows"], inputs["reserve"]]) if is_evaluated and heldout else {}
    kept = [row for row in heldout if row["id"] not in reworded]
    skipped = {
        "skip:prompt_too_long_for_model": len(cramped),
        "skip:heldout_is_trained_on": len(leaked),
        "skip:heldout_is_a_reworded_one": len(heldout) - len(kept),
    }
    sets = {}
    for name in evaluation.sets:
        members, unusable = read_set(inputs[f"evaluation {name}"])
        fitting, too_long = split_by_room(members, inputs.get("samples"), encoder, longest)
        sets[name], leaked = split_by_leak(fitting, rows, reserve)
        counts = {"unusable": unusable, "prompt_too_long_for_model": len(too_long), "is_trained_on": len(leaked)}
        skipped |= {f"skip:{name}_{reason}": count for reason, count in counts.items() if count}
    lines = [reworded[row["id"]] for row in heldout if row["id"] in reworded]
    return TrainingRows(rows, reserve, kept, len(rows) + len(cramped), skipped, sets, lines)


def split_by_room(
    rows: Iterable[Row], samples: Path | None, encoder: ChatEncoder, longest: int
) -> tuple[list[Row], list[Row]]:
    """Return the rows whose prompt leaves room for a right answer, and the rows whose prompt is too long.

    The length of a right answer is the median of the row's right samples in the profile. For a row without such samples
    it is the median of all right samples, and without a profile 1. longest: the engine's limit for prompt plus
    completion, in tokens.
    """
    right = _right_lengths(samples, "id")
    lengths = dict(right.group_by("id").agg(pl.col("length").median()).iter_rows())
    usual = float(right["length"].median() or 1.0)  # type: ignore[arg-type]
    fitting: list[Row] = []
    cramped: list[Row] = []
    for row in rows:
        room = longest - len(encode_row(encoder, row))
        (fitting if room >= lengths.get(row["id"], usual) else cramped).append(row)
    return fitting, cramped


def split_by_leak(heldout: Iterable[Row], *trained: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """Return the held-out rows whose prompt is not trained on, then those whose prompt is trained on.

    Case and white space are ignored in the comparison. Raises InputError if all held-out prompts are trained on.
    """
    prompts = {_normalize(turns_text(row)) for rows in trained for row in rows}
    sound: list[Row] = []
    leaked: list[Row] = []
    for row in heldout:
        (leaked if _normalize(turns_text(row)) in prompts else sound).append(row)
    if leaked and not sound:
        raise InputError(
            f"All {len(leaked)} held-out rows have prompts that are trained on: an evaluation on them would measure "
            "memorized answers.",
            "Hold other rows out (data.heldout), or run truegold decontaminate.",
        )
    return sound, leaked


def find_reworded(heldout: Path, trained: Sequence[Path]) -> dict[str, str]:
    """Return a line for each held-out row that rewords a training row or is a part of one. Keys are held-out ids.

    Rows are compared as in `truegold decontaminate`.
    """
    columns = ProblemColumns(prompt="prompt", gold="gold", id="id")
    against = {str(path): columns for path in trained if count_rows(path)}
    if not against:
        return {}
    with TemporaryDirectory(prefix="truegold-leaks-") as folder:
        find_matches(lambda clean: read_problems(heldout, columns, clean=clean), against, Path(folder), NullProgress())
        matches = pl.read_parquet(Path(folder) / MATCHES_FILE, columns=["id", "against_id", "kind", "score"])
    return {
        row_id: f"held-out row {row_id} is not evaluated: row {other}, which is trained on, is the same problem "
        f"({kind}, {score:.2f})"
        for row_id, other, kind, score in matches.iter_rows()
    }


def _normalize(prompt: str) -> str:
    """Return a prompt with single spaces and without case, for comparison."""
    return " ".join(prompt.split()).casefold()


def _right_lengths(samples: Path | None, *columns: str) -> pl.DataFrame:
    """Return a table of the profile's right completions, with their `length` in tokens and these columns."""
    if samples is None:
        return pl.DataFrame(schema=[*columns, "length"])
    right = pl.scan_parquet(samples).filter((pl.col("score") == 1.0) & (pl.col("finish_reason") == "stop"))
    return right.select(*columns, length=pl.col("token_ids").list.len()).collect()


def choose_eval_sampling(config: EvaluationConfig, model: Path) -> EvalSampling:
    """Return the sampling settings of an evaluation.

    Each setting is taken from the configuration, else from generation_config.json, else from `PLAIN_SAMPLING`.
    """
    checkpoint_settings = _read_generation_config(model)
    stated = {name: checkpoint_settings.get(name) for name in PLAIN_SAMPLING}
    if checkpoint_settings.get("do_sample") is False:
        stated = {"temperature": 0.0, "top_p": None, "top_k": None}
    configured = {name: getattr(config, name) for name in PLAIN_SAMPLING}
    source = "configured" if any(configured.values()) else "default"
    if any(configured[name] is None and stated[name] is not None for name in PLAIN_SAMPLING):
        source = "generation_config.json"
    choices: list[Mapping[str, Any]] = [configured, stated, PLAIN_SAMPLING]
    chosen = {name: next(each[name] for each in choices if each[name] is not None) for name in PLAIN_SAMPLING}
    return EvalSampling(float(chosen["temperature"]), float(chosen["top_p"]), int(chosen["top_k"]), source)


def sampling_facts(
    config: SamplingConfig, max_tokens: int, max_tokens_from: str, evaluation: EvalSampling
) -> dict[str, object]:
    """Return the sampling settings of rollouts and held-out rows, for the stage's record."""
    temperature = config.temperature if isinstance(config.temperature, float) else config.temperature.model_dump()
    rollout = {"temperature": temperature, "top_p": 1.0, "max_tokens": max_tokens, "max_tokens_from": max_tokens_from}
    return {"rollout": rollout, "evaluation": asdict(evaluation)}


def _read_generation_config(model: Path) -> dict[str, float | bool | None]:
    """Return the settings of a checkpoint's generation_config.json, or an empty dict without the file.

    Raises InputError if the file or a sampling setting in it is malformed.
    """
    path = model / "generation_config.json"
    if not path.exists():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}).") from error
    if not isinstance(settings, dict):
        raise InputError(f"{path} has no object of settings.")
    for name in PLAIN_SAMPLING:
        if not isinstance(settings.get(name), int | float | None):
            raise InputError(
                f"{path}: {name} is {settings[name]!r:.80}, not a number.",
                "Correct the file, from which the sampling of held-out rows is read.",
            )
    return settings


DIALOGUE: tuple[Message, ...] = (
    {"role": "user", "content": "3+4?"},
    {"role": "assistant", "content": "Seven.", "reasoning_content": "three and four"},
    {"role": "user", "content": "Sure?"},
    {
        "role": "assistant",
        "content": "",
        "reasoning_content": "let me see",
        "tool_calls": [{"id": "functions.add:0", "type": "function", "function": {"name": "add", "arguments": "{}"}}],
    },
    {"role": "tool", "content": "7", "name": "add", "tool_call_id": "functions.add:0"},
)
"""A dialogue with the parts that chat templates treat differently: thinking in earlier turns and before a tool call."""
COMPARED = 64
"""The number of compared rows. A few are enough, because a changed template or tokenizer changes all prompts."""


def compare_with_profile(
    rows: Sequence[Row], samples: Path | None, encoder: ChatEncoder, guards_off: Collection[str]
) -> None:
    """Raise GuardError if the prompts of the first rows have other token ids than in the profile.

    The pass rates of the profile, the selection and the limit of tokens hold only for the prompts of the profile.
    samples: the samples of the profile; without them nothing is compared.
    """
    if samples is None or PROMPTS in guards_off:
        return
    compared = list(islice(rows, COMPARED))
    profiled = (
        pl.scan_parquet(samples)
        .filter(pl.col("id").is_in([row["id"] for row in compared]) & (pl.col("sample") == 0))
        .select("id", "prompt_ids")
        .collect()
    )
    ids_of = {row_id: tuple(prompt_ids) for row_id, prompt_ids in profiled.iter_rows()}
    for row in compared:
        before, now = ids_of.get(row["id"]), tuple(encode_row(encoder, row))
        if before is None or before == now:
            continue
        pairs = enumerate(zip_longest(before, now))
        position = next(index for index, (old, new) in pairs if old != new)
        raise GuardError(
            f"The prompt of {row['source']}:{row['source_row']} has {len(now)} tokens, and had {len(before)} in the "
            f"profile. From token {position} on they differ: {_text_around(encoder, before, position)} in the profile, "
            f"{_text_around(encoder, now, position)} now.",
            "Set the same chat and model for train and profile, and profile again; or, if the difference is intended, "
            "add `prompts` to train.guards.off.",
            PROMPTS,
        )


def digest_prompts(rows: Sequence[Row], encoder: ChatEncoder, template: TurnTemplate | None) -> str:
    """Return a digest of the prompts of rows. With a `template` of dialogues, it covers the prompts in `DIALOGUE`,
    too."""
    ids = [tuple(encode_row(encoder, row)) for row in rows]
    texts = [text for length in range(1, len(DIALOGUE) + 1, 2) if (text := _rendered(template, DIALOGUE[:length]))]
    return hashlib.sha256(json.dumps([ids, texts]).encode()).hexdigest()


def _rendered(template: TurnTemplate | None, messages: Sequence[Message]) -> str | None:
    """Return the rendered text of messages, or the template's error message. Return None without a template."""
    if template is None:
        return None
    try:
        return template.render(messages)
    except ConfigError as error:
        # An error message is compared like a text, because it must stay the same, too.
        return str(error)


def check_prompts_have_stayed(before: str | None, now: str, guards_off: Collection[str]) -> None:
    """Raise GuardError if the digest of prompts differs from the one in the checkpoint.

    before: the digest in the checkpoint, or None if it has none.
    """
    if before is None or before == now or PROMPTS in guards_off:
        return
    raise GuardError(
        "The prompts of this training have changed since it was stopped: the chat template or the tokenizer gives "
        "other tokens now, for example after an update of a library.",
        "Install the library versions that the run began with, or start a new run; or, if the change is intended, add "
        "`prompts` to train.guards.off.",
        PROMPTS,
    )


def check_exported(
    folder: Path, engine: TrainingEngine, chat: ChatConfig, rows: Sequence[Row], encoder: ChatEncoder
) -> None:
    """Raise GuardError if an exported checkpoint has other weights than the training, or writes other prompts."""
    engine.check_export(folder)
    refuse_export(folder, _export_differs(folder, chat, rows, encoder))


def _export_differs(folder: Path, chat: ChatConfig, rows: Sequence[Row], encoder: ChatEncoder) -> str | None:
    """Return the reason why an exported checkpoint writes other prompts than the training, or None if all are equal."""
    try:
        exported = load_encoder(folder, chat)
    except Exception as error:
        return f"its tokenizer cannot be loaded ({str(error).strip().splitlines()[0][:200]})"
    compared = rows[:COMPARED]
    if exported.stop_token_ids != encoder.stop_token_ids:
        return f"its stop tokens are {exported.stop_token_ids}, the training's are {encoder.stop_token_ids}"
    is_same = digest_prompts(compared, exported, None) == digest_prompts(compared, encoder, None)
    return None if is_same else "its tokenizer or chat template writes other prompts"


def _text_around(encoder: ChatEncoder, ids: tuple[int, ...], position: int) -> str:
    """Return the quoted text of a few tokens before and after a position."""
    text = encoder.tokenizer.decode(ids[max(position - 3, 0) : position + 5], skip_special_tokens=False)
    return f"{text!r}"


def check_prompts(prompts: Sequence[Sequence[int]], bos: int | None) -> None:
    """Raise InputError if a prompt begins with two BOS tokens: one from its text and one from the tokenizer."""
    doubled = sum(bos is not None and list(ids[:2]) == [bos, bos] for ids in prompts)
    if doubled:
        raise InputError(
            f"Double BOS: {doubled} of {len(prompts)} prompts begin with two BOS tokens.",
            "Remove the BOS token from the prompts' text, or set chat.use_template: false.",
        )


FAMILIES: Mapping[str, str] = tomllib.loads(files("truegold.train.grpo").joinpath("families.toml").read_text("utf-8"))
"""Maps the `model_type` of a model's config.json to a sentence on reported results of RL with this family."""


def advise(config: GrpoConfig, encoder: ChatEncoder, model_type: str, evaluation: EvalSampling) -> list[str]:
    """Return all advice on this training, one line each."""
    return [
        *family_advice(model_type),
        *_tag_advice(config, encoder),
        *template_advice(encoder.tokenizer, config.turns.template_args if config.turns is not None else None),
        *_argument_advice(config, encoder.tokenizer),
        *overlong_advice(config),
        *graded_advice(config),
        *_sampling_advice(config, evaluation),
    ]


def family_advice(model_type: str) -> list[str]:
    """Return a line on reported results of RL with a model family, or an empty list if there are no reports."""
    return [FAMILIES[model_type]] if model_type in FAMILIES else []


def _tag_advice(config: GrpoConfig, encoder: ChatEncoder) -> Iterator[str]:
    """Yield advice on the think tags that the prompt or a reward asks for. One advice is about tags of several tokens.
    Another is about a reward that asks completions for an opening tag that the chat template already writes into the
    prompt."""
    tokenizer = encoder.tokenizer
    prompt = tokenizer.decode(encoder.encode("1+1=?"))
    requirements = " ".join(json.dumps(term.args, ensure_ascii=False) for term in config.reward.terms)
    for opening, closing in KNOWN_PAIRS:
        is_required = opening in requirements or closing in requirements
        if not is_required and opening not in prompt:
            continue
        tags = tag_tokens(tokenizer, (opening, closing))
        alternative = "The tokenizer has no think tags of one token."
        if tags.recommended:
            alternative = f"Tags of one token are {' and '.join(tags.recommended)}."
        for tag in tags.split:
            count = tags.tokens[tag]
            yield (
                f"{tag} is {count} tokens for this tokenizer, or shares a token with the text around it: RL learns "
                f"such tags slowly. {alternative}"
            )
        if is_required and prompt.rstrip().endswith(opening):
            yield (
                f"The chat template writes {opening} at the end of the prompt, so completions do not contain it: a "
                "reward that asks for the opening tag rejects all completions."
            )


def template_advice(tokenizer: Any, arguments: Mapping[str, Any] | None = None) -> list[str]:
    """Return advice on how the chat template renders the thinking of earlier turns.

    The template is tried on a dialogue with and without a tool call. Returns an empty list if the template does not
    render assistant turns. arguments: arguments of the template, such as `enable_thinking`.
    """
    render = none_where_refused(partial(tokenizer.apply_chat_template, tokenize=False, **(arguments or {})))
    opening = choose_opening(render)
    thoughts = find_thoughts(render, opening) if opening is not None else None
    if thoughts is None:
        return []
    in_own_context = "each turn must be trained on in the context that it was sampled in"
    if thoughts.after_question:
        return ["The chat template keeps the thinking of earlier turns: a dialogue can be trained on as one sequence."]
    if thoughts.after_tool is False:
        return [
            f"The chat template drops the thinking of earlier turns, also between tool calls: {in_own_context}, and "
            "also the text after each tool call."
        ]
    return [f"The chat template drops the thinking of earlier turns: in dialogues {in_own_context}."]


def _argument_advice(config: GrpoConfig, tokenizer: Any) -> Iterator[str]:
    """Yield a line for each configured argument that the chat template never reads."""
    arguments = config.turns.template_args if config.turns is not None else {}
    for name, known in unread_arguments(tokenizer, arguments).items():
        close = close_match(name, known)
        meant = f"; did you mean {close}?" if close else "."
        yield f"turns.template_args.{name} changes nothing: the model's chat template never reads it{meant}"


def overlong_advice(config: GrpoConfig) -> list[str]:
    """Return advice on completions cut at max_tokens, if a term of the reward punishes length."""
    terms = [term.name for term in config.reward.terms if term.verifier == "length" and term.weight]
    if not terms:
        return []
    if config.objective.masks.truncated:
        return [
            f"Completions that reach max_tokens are punished by the term {terms[0]}, but objective.masks.truncated "
            "leaves them out of the loss, so the policy does not learn from the punishment. Set masks.truncated to "
            "false or leave it out."
        ]
    return [
        f"Completions that reach max_tokens are trained on, because the term {terms[0]} punishes them "
        "(objective.masks.truncated is false)."
    ]


def graded_advice(config: GrpoConfig) -> list[str]:
    """Return advice on terms by which a language model grades completions. Such a term may also reward wrong
    answers."""
    paid = [term.name for term in config.reward.terms if term.judge is not None and term.weight and term.gate is None]
    return [
        f"The term {name} rewards completions that a language model grades well, also if their answer is wrong: a "
        "policy may learn to please the grader. Set its gate to the term of correctness, and read the completions "
        "that it rewards."
        for name in paid
    ]


def _sampling_advice(config: GrpoConfig, evaluation: EvalSampling) -> Iterator[str]:
    """Yield how held-out rows and rollouts are sampled, and a warning if rollouts have a temperature other than 1."""
    temperature = config.sampling.temperature
    rollouts = f"temperature {temperature:g}" if isinstance(temperature, float) else "a schedule of temperatures"
    yield (
        f"Held-out rows are sampled at temperature {evaluation.temperature:g}, top_p {evaluation.top_p:g}, top_k "
        f"{evaluation.top_k} ({evaluation.source}); rollouts at {rollouts}, top_p 1."
    )
    if isinstance(temperature, float) and temperature != 1.0:
        yield (
            f"Rollouts at temperature {temperature:g} train a different distribution from the one served at "
            "temperature 1. Below 1 they explore less, and entropy falls faster."
        )
