"""The chat templates of many models, as TRL ships them: every turn stands in the context that it was sampled in."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from turn_templates import turn_template

from truegold.pipeline.engines.base import Completion
from truegold.train.turns.dialogue import Dialogue
from truegold.train.turns.template import TurnTemplate
from truegold.verifiers import ConfigError

SPEC = find_spec("trl")
FOLDER = Path(SPEC.origin).parent / "chat_templates" if SPEC is not None and SPEC.origin is not None else Path("none")
# Those for training differ by marks that say what the model has written; processors of images have others.
TEMPLATES = sorted(path.stem for path in FOLDER.glob("*.jinja") if not path.stem.endswith(("_training", "vl", "vlm")))
CALL = '<tool_call>\n{"name": "look", "arguments": {"what": "杯子"}}\n</tool_call>'
TALK = (
    ("<think>\n3 and 4\n</think>\n\n7", {"role": "user", "content": "Sure?"}),
    ("Yes.", {"role": "user", "content": "真的吗？"}),
    ("", {"role": "user", "content": "Say it."}),
    ("It is 7.", {"role": "user", "content": "Bye."}),
)
TOOLS = (
    (f"<think>\nlook\n</think>\n\n{CALL}", {"role": "tool", "content": "red", "name": "look", "tool_call_id": "0"}),
    (f"Again.\n{CALL}\n{CALL}", {"role": "tool", "content": "blue", "name": "look", "tool_call_id": "1"}),
    ('<tool_call>\n{"name": "look"', {"role": "user", "content": "That is no call."}),
    ("I have it.", {"role": "user", "content": "Bye."}),
)


def contexts(dialogue: Dialogue) -> list[tuple[int, ...]]:
    """Return what stands in front of each turn in its segment."""
    fronts = []
    for held in dialogue.segments:
        segment = held.to_segment(1.0)
        sampled = segment.sampled or (True,) * len(segment.output_ids)
        for index, is_sampled in enumerate(sampled):
            if is_sampled and (index == 0 or not sampled[index - 1]):
                fronts.append((*segment.prompt_ids, *segment.output_ids[:index]))
    return fronts


@pytest.mark.parametrize("turns", [TALK, TOOLS], ids=["talk", "tools"])
@pytest.mark.parametrize("name", TEMPLATES)
def test_each_turn_stands_behind_its_own_prompt(tiny_model: Path, name: str, turns: Any) -> None:
    template: TurnTemplate = turn_template(tiny_model, (FOLDER / f"{name}.jinja").read_text(encoding="utf-8"))
    dialogue = Dialogue(template, [{"role": "user", "content": "What is 3+4?"}])
    prompts = []
    try:
        for text, following in turns:
            prompts.append(dialogue.prompt())
            ids = (*template.tokenizer(text, add_special_tokens=False)["input_ids"], template.stop_token_ids[0])
            dialogue.add_completion(Completion(ids, (-1.0,) * len(ids), "stop"), version=0)
            dialogue.messages.append(dict(following))
    except ConfigError as error:
        # Not every model has tools, and those that have them may want other names.
        assert "chat template" in str(error)
    assert contexts(dialogue) == prompts[: dialogue.turns]
