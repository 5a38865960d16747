"""Checks a training before its first step: how many tokens a completion may have, how evaluation samples, what would
quietly spoil a run, and whether prompts are written as they were in the profile.

    Llama 3.2        what RL was seen to do for this family, and where that was reported
    <think>          four tokens for this tokenizer; [THINK] would be one
    chat template    drops the thinking of earlier turns
    overlong         punished by the term `length` and masked: what is punished is never trained on

Such advice is told at the start, and kept in the stage's record. The rollouts' sampling has nothing to check: only
temperature can be set (`config.grpo`).
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import polars as pl

from truegold.pipeline.engines.chat import ChatEncoder
from truegold.pipeline.rates.lengths import MARGIN, is_wildly_above_need, propose_max_tokens, quantile_length
from truegold.pipeline.tables.rows import Row, read_rows
from truegold.train.config.grpo import EvaluationConfig, GrpoConfig, SamplingConfig
from truegold.train.guards.table import PROMPTS
from truegold.train.turns.environment import Message
from truegold.train.turns.template import TurnTemplate
from truegold.train.turns.template_arguments import unread_arguments
from truegold.train.turns.template_profile import choose_opening, find_thoughts
from truegold.verifiers import ConfigError, GuardError, InputError
from truegold.verifiers.answers.format import KNOWN_PAIRS, tag_tokens
from truegold.verifiers.user_code import close_match

FALLBACK_MAX_TOKENS = 512
"""The longest completion where the profile has no right one."""


@dataclass(frozen=True)
class EvalSampling:
    """How held-out rows are sampled."""

    temperature: float
    top_p: float
    top_k: int
    source: str
    """Where the settings come from."""


def choose_max_tokens(config: SamplingConfig, samples: Path | None, longest: int) -> tuple[int, str]:
    """Return the longest completion of a rollout, in tokens, and why it is that.

    samples: the profile's. longest: prompt plus completion that the engine takes. Raises InputError for a configured
    limit that is wildly above what right completions need: what rambles on to it costs time and teaches length.
    """
    lengths: dict[int, int] = dict(_right_lengths(samples)["length"].value_counts().iter_rows())
    configured, proposed = config.max_tokens, propose_max_tokens(lengths)
    if configured is not None:
        if is_wildly_above_need(configured, lengths) and not config.allow_long:
            raise InputError(
                f"train.sampling.max_tokens is {configured}, while 99.5 % of the profile's right completions end "
                f"within {quantile_length(lengths)} tokens: what runs on to the limit would take most of the time.",
                f"Leave it out ({proposed} then), or set train.sampling.allow_long where answers are to grow.",
            )
        return configured, "configured"
    if samples is None:
        return min(FALLBACK_MAX_TOKENS, longest - 1), "default: there is no profile"
    if proposed is None:
        return min(FALLBACK_MAX_TOKENS, longest - 1), "default: the profile has no right completion"
    why = f"{MARGIN} x {quantile_length(lengths)}, the 99.5 % quantile of right completions"
    return min(proposed, longest - 1), why


@dataclass(frozen=True)
class TrainingRows:
    """The rows of a training, without those that it cannot use."""

    rows: list[Row]
    reserve: list[Row]
    heldout: list[Row]
    rows_in: int
    """Selected rows that were read."""
    skipped: dict[str, int]
    """How many were left out, by reason."""


def read_training_rows(
    inputs: Mapping[str, Path], encoder: ChatEncoder, longest: int, *, evaluates: bool
) -> TrainingRows:
    """Read the inputs `rows`, `reserve` and `heldout` of a training.

    longest: prompt plus completion that the engine takes. evaluates: whether held-out rows are looked at. Raises
    InputError where nothing is left to train on, or to evaluate on.
    """
    (rows, cramped), (reserve, _), (heldout, _) = (
        split_by_room(read_rows(inputs[name]), inputs.get("samples"), encoder, longest)
        for name in ("rows", "reserve", "heldout")
    )
    if not rows:
        raise InputError(
            f"None of the {len(cramped)} selected rows leaves the model room for as many tokens as right answers "
            "took in the profile.",
            f"Raise train.engine.max_model_len (now {longest}).",
        )
    heldout, leaked = split_by_leak(heldout, rows, reserve) if evaluates else (heldout, [])
    skipped = {"skip:prompt_too_long_for_model": len(cramped), "skip:heldout_is_trained_on": len(leaked)}
    return TrainingRows(rows, reserve, heldout, len(rows) + len(cramped), skipped)


def split_by_room(
    rows: Iterable[Row], samples: Path | None, encoder: ChatEncoder, longest: int
) -> tuple[list[Row], list[Row]]:
    """Return the rows whose prompt leaves room for a right answer, and the others.

    A right answer needs the median length of the row's right samples in the profile; where it has none, that of all
    right samples. Without a profile any room will do. longest: prompt plus completion that the engine takes.
    """
    right = _right_lengths(samples, "id")
    lengths = dict(right.group_by("id").agg(pl.col("length").median()).iter_rows())
    usual = float(right["length"].median() or 1.0)  # type: ignore[arg-type]
    fitting: list[Row] = []
    cramped: list[Row] = []
    for row in rows:
        room = longest - len(encoder.encode(row["prompt"]))
        (fitting if room >= lengths.get(row["id"], usual) else cramped).append(row)
    return fitting, cramped


def split_by_leak(heldout: Iterable[Row], *trained: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """Return the held-out rows that are not trained on, and those whose prompt is: they would measure what was learnt
    by heart."""
    prompts = {_normalize(row["prompt"]) for rows in trained for row in rows}
    sound: list[Row] = []
    leaked: list[Row] = []
    for row in heldout:
        (leaked if _normalize(row["prompt"]) in prompts else sound).append(row)
    if leaked and not sound:
        raise InputError(
            f"All {len(leaked)} held-out rows have prompts that are trained on: an evaluation on them would measure "
            "what was learnt by heart.",
            "Hold other rows back (data.heldout), or decontaminate: truegold decontaminate.",
        )
    return sound, leaked


def _normalize(prompt: str) -> str:
    return " ".join(prompt.split()).casefold()


def _right_lengths(samples: Path | None, *columns: str) -> pl.DataFrame:
    """Return the `length`, in tokens, of the profile's right completions, and the named columns of them."""
    if samples is None:
        return pl.DataFrame(schema=[*columns, "length"])
    right = pl.scan_parquet(samples).filter((pl.col("score") == 1.0) & (pl.col("finish_reason") == "stop"))
    return right.select(*columns, length=pl.col("token_ids").list.len()).collect()


def choose_eval_sampling(config: EvaluationConfig, model: Path) -> EvalSampling:
    """Return the configured settings; for those left open the ones of the checkpoint's generation_config.json, else
    plain sampling at temperature 1."""
    official, names = _read_generation_config(model), ("temperature", "top_p", "top_k")
    card = {name: official.get(name) for name in names}
    if official.get("do_sample") is False:
        card = {"temperature": 0.0, "top_p": None, "top_k": None}
    configured = {name: getattr(config, name) for name in names}
    source = "configured" if any(configured.values()) else "default"
    if any(configured[name] is None and card[name] is not None for name in names):
        source = "generation_config.json"
    temperature, top_p, top_k = (card[name] if configured[name] is None else configured[name] for name in names)
    return EvalSampling(
        1.0 if temperature is None else float(temperature),
        1.0 if top_p is None else float(top_p),
        0 if top_k is None else int(top_k),
        source,
    )


def sampling_facts(
    config: SamplingConfig, max_tokens: int, max_tokens_from: str, evaluation: EvalSampling
) -> dict[str, object]:
    """Return what the run's record keeps of how rollouts and held-out rows are sampled."""
    temperature = config.temperature if isinstance(config.temperature, float) else config.temperature.model_dump()
    rollout = {"temperature": temperature, "top_p": 1.0, "max_tokens": max_tokens, "max_tokens_from": max_tokens_from}
    return {"rollout": rollout, "evaluation": asdict(evaluation)}


def check_prompts(prompts: Sequence[Sequence[int]], bos: int | None) -> None:
    """Raise InputError where a prompt begins with two BOS tokens: one of its text and one of the tokenizer."""
    doubled = sum(bos is not None and list(ids[:2]) == [bos, bos] for ids in prompts)
    if doubled:
        raise InputError(
            f"Double BOS: {doubled} of {len(prompts)} prompts begin with two BOS tokens.",
            "Take the BOS token out of the prompts' text, or set chat.use_template: false.",
        )


def _read_generation_config(model: Path) -> dict[str, float | bool | None]:
    path = model / "generation_config.json"
    if not path.exists():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}).") from error
    if not isinstance(settings, dict):
        raise InputError(f"{path} has no object of settings.")
    for name in ("temperature", "top_p", "top_k"):
        if not isinstance(settings.get(name), int | float | None):
            raise InputError(
                f"{path}: {name} is {settings[name]!r:.80} and no number.",
                "Mend the file; it says how held-out rows are sampled.",
            )
    return settings


FAMILIES: Mapping[str, str] = tomllib.loads(files("truegold.train.grpo").joinpath("families.toml").read_text("utf-8"))
"""What was reported of families, by the model_type of their configuration."""


def advise(config: GrpoConfig, encoder: ChatEncoder, model_type: str, evaluation: EvalSampling) -> list[str]:
    """Return what to know before this training starts, a line each."""
    return [
        *family_advice(model_type),
        *_tag_advice(config, encoder),
        *template_advice(encoder.tokenizer, config.turns.template_args if config.turns is not None else None),
        *_argument_advice(config, encoder.tokenizer),
        *overlong_advice(config),
        *_sampling_advice(config, evaluation),
    ]


def family_advice(model_type: str) -> list[str]:
    """Return what was reported of RL on a family of models; nothing of families that nobody has compared."""
    return [FAMILIES[model_type]] if model_type in FAMILIES else []


def _tag_advice(config: GrpoConfig, encoder: ChatEncoder) -> Iterator[str]:
    """Yield what is wrong with the think tags that the prompt or a reward asks for."""
    tokenizer = encoder.tokenizer
    prompt = tokenizer.decode(encoder.encode("1+1=?"))
    requirements = " ".join(json.dumps(term.args, ensure_ascii=False) for term in config.reward.terms)
    for opening, closing in KNOWN_PAIRS:
        is_required = opening in requirements or closing in requirements
        if not is_required and opening not in prompt:
            continue
        tags = tag_tokens(tokenizer, (opening, closing))
        alternative = "It has no think tags of one token."
        if tags.recommended:
            alternative = f"Tags that are one token for it: {' and '.join(tags.recommended)}."
        for tag in tags.split:
            count = tags.tokens[tag]
            yield (
                f"{tag} is {count} tokens for this tokenizer, or melts into its neighbours: RL learns slowly to spell "
                f"it. {alternative}"
            )
        if is_required and prompt.rstrip().endswith(opening):
            yield (
                f"The chat template opens {opening} itself, so that no completion has it: a reward that asks for the "
                "opening tag refuses all of them."
            )


def template_advice(tokenizer: Any, arguments: Mapping[str, Any] | None = None) -> list[str]:
    """Return what the chat template does to the thinking of earlier turns, where it does anything.

    The template is asked: what it leaves of a dialogue, and of a turn that calls a tool in between. arguments: the
    template's own, such as `enable_thinking`.
    """

    def render(messages: Sequence[Message], *, generates: bool = True) -> str | None:
        apply: Callable[..., str] = tokenizer.apply_chat_template
        try:
            return apply(list(messages), tokenize=False, add_generation_prompt=generates, **(arguments or {}))
        except Exception:  # A template is a program of the model's author: it raises what it likes.
            return None

    opening = choose_opening(render)
    thoughts = find_thoughts(render, opening) if opening is not None else None
    if thoughts is None:
        return []
    in_own_context = "each turn has to be trained in the context that it was sampled in"
    if thoughts.after_question:
        return ["The chat template keeps the thinking of earlier turns: a dialogue can be trained on as one sequence."]
    if thoughts.after_tool is False:
        return [
            f"The chat template drops the thinking of earlier turns, also between tool calls: {in_own_context}, and so "
            "has what follows each tool call."
        ]
    return [f"The chat template drops the thinking of earlier turns: in dialogues {in_own_context}."]


def _argument_advice(config: GrpoConfig, tokenizer: Any) -> Iterator[str]:
    """Yield arguments of the chat template that it never reads: somebody has probably misspelled them."""
    arguments = config.turns.template_args if config.turns is not None else {}
    for name, known in unread_arguments(tokenizer, arguments).items():
        close = close_match(name, known)
        meant = f"; did you mean {close}?" if close else "."
        yield f"turns.template_args.{name} changes nothing: the model's chat template never reads it{meant}"


def overlong_advice(config: GrpoConfig) -> list[str]:
    """Return how a punishment of length goes together with the mask of completions that were cut."""
    terms = [term.name for term in config.reward.terms if term.verifier == "length" and term.weight]
    if not terms:
        return []
    if config.objective.masks.truncated:
        return [
            f"Completions that run into max_tokens are punished by the term {terms[0]} and then left out of the loss "
            "by objective.masks.truncated: of the punished ones only those that fit are trained on. Leave "
            "masks.truncated out, or set it to false, for the punishment to be learnt from."
        ]
    return [
        f"Completions that run into max_tokens are trained on, because the term {terms[0]} punishes them "
        "(objective.masks.truncated is false)."
    ]


def _sampling_advice(config: GrpoConfig, evaluation: EvalSampling) -> Iterator[str]:
    temperature = config.sampling.temperature
    rollouts = f"temperature {temperature:g}" if isinstance(temperature, float) else "a schedule of temperatures"
    yield (
        f"Held-out rows are sampled at temperature {evaluation.temperature:g}, top_p {evaluation.top_p:g}, top_k "
        f"{evaluation.top_k} ({evaluation.source}); rollouts at {rollouts}, top_p 1."
    )
    if isinstance(temperature, float) and temperature != 1.0:
        yield (
            f"Rollouts at temperature {temperature:g} train another distribution than the one that is served at 1; "
            "below 1 they explore less, and entropy falls faster."
        )


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
"""A dialogue with what templates do something to: earlier thoughts, and those before a tool call."""
COMPARED = 64
"""How many rows are compared: a difference is one of template or tokenizer, and shows in every row."""


def compare_with_profile(
    rows: Sequence[Row], samples: Path | None, encoder: ChatEncoder, guards_off: Collection[str]
) -> None:
    """Compare the token ids of the first rows' prompts with those that the profile sampled from, where there is one.

    samples: the profile's. Raises GuardError where a prompt differs: pass rates, the selection and the limit of tokens
    would be those of other prompts, and what is learnt is not what will be asked.
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
        before, now = ids_of.get(row["id"]), tuple(encoder.encode(row["prompt"]))
        if before is None or before == now:
            continue
        pairs = enumerate(zip_longest(before, now))
        position = next(index for index, (old, new) in pairs if old != new)
        raise GuardError(
            f"The prompt of {row['source']}:{row['source_row']} has {len(now)} tokens, and had {len(before)} in the "
            f"profile. From token {position} on they differ: {_shown(encoder, before, position)} in the profile, "
            f"{_shown(encoder, now, position)} now.",
            "Give train and profile the same chat and model, and profile again; or put `prompts` into "
            "train.guards.off where this is meant.",
            PROMPTS,
        )


def digest_prompts(rows: Sequence[Row], encoder: ChatEncoder, template: TurnTemplate | None) -> str:
    """Return what changes with the way in which prompts are written: those of rows, and of a dialogue that has all that
    templates edit, where answers are dialogues."""
    ids = [tuple(encoder.encode(row["prompt"])) for row in rows]
    texts = [text for length in range(1, len(DIALOGUE) + 1, 2) if (text := _rendered(template, DIALOGUE[:length]))]
    return hashlib.sha256(json.dumps([ids, texts]).encode()).hexdigest()


def _rendered(template: TurnTemplate | None, messages: Sequence[Message]) -> str | None:
    if template is None:
        return None
    try:
        return template.render(messages)
    except ConfigError as error:
        # To refuse a dialogue is something that a template does, too.
        return str(error)


def check_prompts_have_stayed(before: str | None, now: str, guards_off: Collection[str]) -> None:
    """Raise GuardError where prompts are written otherwise than in the run that wrote the checkpoint. `before`: None
    for one that does not say."""
    if before is None or before == now or PROMPTS in guards_off:
        return
    raise GuardError(
        "The prompts of this training are written otherwise than when it was stopped: the chat template or the "
        "tokenizer does something else now, as after an update of a library.",
        "Go on with the versions that it began with, or begin again in another run; or put `prompts` into "
        "train.guards.off where this is meant.",
        PROMPTS,
    )


def _shown(encoder: ChatEncoder, ids: tuple[int, ...], position: int) -> str:
    """Return the text from a little before the position on."""
    text = encoder.tokenizer.decode(ids[max(position - 3, 0) : position + 5], skip_special_tokens=False)
    return f"{text!r}"
