"""Advice on settings that would spoil a training without an error. Examples:

    model family     reported results of RL with Llama 3.2
    think tags       <think> is four tokens for this tokenizer; [THINK] would be one
    chat template    drops the thinking of earlier turns
    overlong         long completions are punished by the term `length`, but left out of the loss by a mask

The advice is printed at the start and kept in the stage's record.
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
    """Yield advice on the think tags that the prompt or a reward asks for.

    It is given for tags of several tokens, and for a reward that asks for an opening tag which the chat template
    writes.
    """
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
    """Return advice on reward terms by which a language model may also reward wrong answers."""
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
