"""Advice before a training starts: what would quietly spoil the run.

    Llama 3.2        what RL was seen to do for this family, and where that was reported
    <think>          four tokens for this tokenizer; [THINK] would be one
    chat template    drops the thinking of earlier turns
    overlong         punished by the term `length` and masked: what is punished is never trained on

It is told at the start, and kept in the stage's record.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.resources import files
from typing import Any

from truegold.pipeline.engines.chat import ChatEncoder
from truegold.train.config.grpo import GrpoConfig
from truegold.train.grpo.start_checks import EvalSampling
from truegold.train.turns.template_arguments import unread_arguments
from truegold.train.turns.template_profile import choose_opening, find_thoughts, none_where_refused
from truegold.verifiers.answers.format import KNOWN_PAIRS, tag_tokens
from truegold.verifiers.user_code import close_match

FAMILIES: Mapping[str, str] = tomllib.loads(files("truegold.train.grpo").joinpath("families.toml").read_text("utf-8"))
"""Maps the model_type of a configuration to a report on this family of models."""


def advise(config: GrpoConfig, encoder: ChatEncoder, model_type: str, evaluation: EvalSampling) -> list[str]:
    """Return what to know before this training starts, a line each."""
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
    """Return the report on RL with a family of models; nothing for families without one."""
    return [FAMILIES[model_type]] if model_type in FAMILIES else []


def _tag_advice(config: GrpoConfig, encoder: ChatEncoder) -> Iterator[str]:
    """Yield the mistakes about the think tags that the prompt or a reward asks for: tags of several tokens, and an
    opening tag that the template writes itself."""
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
    """Return advice on how the chat template treats the thinking of earlier turns.

    There is none for a template that does not render the turns of the assistant.

    The template is tried on a dialogue, and on one with a tool call in between. arguments: the template's own, such as
    `enable_thinking`.
    """
    render = none_where_refused(partial(tokenizer.apply_chat_template, tokenize=False, **(arguments or {})))
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
    """Yield a line for each configured argument that the chat template never reads."""
    arguments = config.turns.template_args if config.turns is not None else {}
    for name, known in unread_arguments(tokenizer, arguments).items():
        close = close_match(name, known)
        meant = f"; did you mean {close}?" if close else "."
        yield f"turns.template_args.{name} changes nothing: the model's chat template never reads it{meant}"


def overlong_advice(config: GrpoConfig) -> list[str]:
    """Return whether completions that were cut are trained on, where a term of the reward punishes length."""
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


def graded_advice(config: GrpoConfig) -> list[str]:
    """Return what to know of terms by which a language model's grades are paid for wrong answers too."""
    paid = [term.name for term in config.reward.terms if term.judge is not None and term.weight and term.gate is None]
    return [
        f"The term {name} pays what a language model likes, for wrong answers as well: a policy learns to please it. "
        "Set its gate to the term of correctness, and read the completions that it pays for."
        for name in paid
    ]


def _sampling_advice(config: GrpoConfig, evaluation: EvalSampling) -> Iterator[str]:
    """Yield how held-out rows and rollouts are sampled, and a warning of rollouts at another temperature than 1."""
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
