"""The command `truegold template`: what a model's chat template does to dialogues."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from truegold.flows.console import print_line

MEANINGS = {True: "yes", False: "no", None: "-"}
QUESTIONS = {
    "has_system": "takes a system message",
    "needs_system": "refuses a dialogue without one",
    "keeps_turns": "keeps earlier answers as they were written",
    "keeps_thoughts": "keeps earlier thoughts",
    "keeps_thoughts_in_tool_loops": "keeps thoughts when a tool has answered",
    "opens_thought": "opens a thought at the end of the prompt",
    "doubles_bos": "text of the template gets a second BOS",
}


def template(
    model: Annotated[Path, typer.Argument(help="The folder of a checkpoint.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Try a model's chat template: what becomes of earlier thoughts, tool calls and answers."""
    from truegold.pipeline.config.engines import ChatConfig
    from truegold.pipeline.engines.chat import load_encoder
    from truegold.train.turns.template import TurnTemplate
    from truegold.train.turns.thinking import profile_template

    # What the template does is found out below, also where it refuses the prompt that an encoder tries.
    encoder = load_encoder(model, ChatConfig(use_template=False))
    profile = profile_template(TurnTemplate(encoder.tokenizer, encoder.stop_token_ids), model)
    if as_json:
        print_line(json.dumps({**asdict(profile), "advice": profile.advice()}, indent=2, ensure_ascii=False))
        return
    for name, question in QUESTIONS.items():
        print_line(f"{question:<48} {MEANINGS[getattr(profile, name)]}")
    tags = " ".join(profile.think_tags) if profile.think_tags else "none"
    print_line(f"{'think tags of one token each':<48} {tags}")
    sampling = ", ".join(f"{name} {value:g}" for name, value in profile.stated_sampling.items()) or "not stated"
    print_line(f"{'sampling, as the checkpoint states it':<48} {sampling}")
    print_line(f"{'longest context':<48} {profile.max_positions or '-'}")
    for line in profile.advice():
        print_line(f"- {line}")
