"""A recorded environment answers as it did, and what nobody recorded is a miss that is counted."""

from __future__ import annotations

import asyncio
import difflib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from numbered_rows import make_row

from truegold.pipeline.rows import Row
from truegold.train.turns.environment import Done, Message, Reply
from truegold.train.turns.mock import UNKNOWN, MockEnvironment, Recorder, load_recording, most_alike, report_misses
from truegold.verifiers import ConfigError, InputError

ROOT = Path(__file__).parents[3]


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shop_row(shop: Any, number: int) -> Row:
    return {**make_row(number), "id": f"shop-{number}", "prompt": shop.row(number)["question"]}


def say(text: str) -> Message:
    return {"role": "assistant", "content": text}


def say_as_user(text: str) -> list[Message]:
    return [{"role": "user", "content": text}]


def actions(dialogue: list[Message]) -> list[str]:
    return [message["content"] for message in dialogue if message["role"] == "assistant"]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Twenty shops as an expert went through them."""
    shop = example("shop")
    path = tmp_path / "shop.jsonl"

    async def record(number: int) -> None:
        recorder = Recorder(shop.Shop(), path)
        await recorder.reset(shop_row(shop, number))
        for action in actions(shop.expert_dialogue(number)):
            await recorder.step(say(action))

    for number in range(20):
        asyncio.run(record(number))
    return path


def test_what_was_done_before_is_answered_as_it_was(recording: Path) -> None:
    shop = example("shop")
    for number in range(20):
        row = shop_row(shop, number)
        real, mock = shop.Shop(), MockEnvironment(str(recording))
        assert mock.reset(row) == real.reset(row)
        for action in actions(shop.expert_dialogue(number)):
            # White space makes no other action.
            assert mock.step(say(f"  {action} ")) == real.step(say(action))
    assert load_recording(str(recording)).real_share == 1.0


@pytest.mark.parametrize("on_miss", ["nearest", "error", "end"])
def test_what_nobody_did_follows_the_policy_and_is_counted(recording: Path, on_miss: Any) -> None:
    load_recording.cache_clear()
    shop = example("shop")
    number = next(n for n in range(20) if len(actions(shop.expert_dialogue(n))) >= 3)
    search, look = actions(shop.expert_dialogue(number))[:2]
    mock = MockEnvironment(str(recording), on_miss=on_miss)
    mock.reset(shop_row(shop, number))
    known = mock.step(say(search))
    missed = mock.step(say(look + "x"))
    if on_miss == "nearest":
        real = shop.Shop()
        real.reset(shop_row(shop, number))
        assert known == real.step(say(search))
        assert missed == real.step(say(look))
    elif on_miss == "error":
        assert missed == Reply([{"role": "user", "content": UNKNOWN}])
        # Nothing is known of what comes after it either.
        assert mock.step(say(look)) == Reply([{"role": "user", "content": UNKNOWN}])
    else:
        assert missed == Done()
    misses = 2 if on_miss == "error" else 1
    report = report_misses({"shop": mock.recording})["shop"]
    assert report == {"recorded": 1, "missed": misses, "real_share": 1 / (1 + misses)}


def test_a_state_that_is_unknown_is_answered_from_the_nearest_of_its_row(tmp_path: Path) -> None:
    load_recording.cache_clear()
    path = tmp_path / "r.jsonl"
    steps = [
        {"action": "go north", "messages": [{"role": "user", "content": "a lake"}]},
        {"action": "swim", "messages": [{"role": "user", "content": "cold"}]},
    ]
    row = make_row(1)
    path.write_text(json.dumps({"row": row["id"], "opening": [], "steps": steps}) + "\n")
    mock = MockEnvironment(str(path))
    mock.reset(row)
    assert mock.step(say("go nort")) == Reply([{"role": "user", "content": "a lake"}])
    assert mock.step(say("swim!")) == Reply([{"role": "user", "content": "cold"}])
    # Behind the last recorded step nothing is known: the nearest state is the one before it.
    assert mock.step(say("swim again")) == Reply([{"role": "user", "content": "cold"}])
    with pytest.raises(KeyError, match="no episode of row"):
        mock.reset(make_row(2))


def test_tool_calls_are_actions(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"

    def call(what: str) -> Message:
        function = {"name": "look", "arguments": {"what": what}}
        return {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}

    class Looks:
        def reset(self, row: Row) -> list[Message]:
            return say_as_user("Look.")

        def step(self, completion: Message) -> Reply:
            # Unicode's own ends of lines are none of the file's.
            return Reply(say_as_user(completion["tool_calls"][0]["function"]["arguments"]["what"].upper() + "\u2028"))

    async def record() -> None:
        for what in ("cup", "hat"):
            recorder = Recorder(Looks(), path)
            await recorder.reset(make_row(1))
            await recorder.step(call(what))
            # An episode that was not over is written too.
            await recorder.close()

    asyncio.run(record())
    load_recording.cache_clear()
    for what in ("hat", "cup"):
        mock = MockEnvironment(str(path), on_miss="error")
        mock.reset(make_row(1))
        assert mock.step(call(what)) == Reply(say_as_user(what.upper() + "\u2028"))


def test_a_recording_has_the_tools_of_its_environment(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"

    class Tooled:
        tools = ({"type": "function", "function": {"name": "look"}},)

        def reset(self, row: Row) -> list[Message]:
            return say_as_user("Look.")

        def step(self, completion: Message) -> Done:
            return Done(1.0)

    async def record() -> None:
        recorder = Recorder(Tooled(), path)
        assert recorder.tools == Tooled.tools
        await recorder.reset(make_row(1))
        await recorder.step(say("look"))

    asyncio.run(record())
    load_recording.cache_clear()
    assert list(MockEnvironment(str(path)).tools) == list(Tooled.tools)
    with path.open("a") as file:
        file.write(json.dumps({"row": "another", "opening": [], "steps": []}) + "\n")
    load_recording.cache_clear()
    with pytest.raises(InputError, match=r"line 2: .*tools are not those"):
        MockEnvironment(str(path))


def test_the_most_alike_text_is_what_comparing_all_of_them_finds() -> None:
    texts = ["look p3", "look p31", "buy p3", "", "search cup", "blue is not red look p3", "look p3"]
    for text in ("look p4", "buy", "red is red buy p3", "搜索"):
        ratios = [difflib.SequenceMatcher(None, other, text, autojunk=False).ratio() for other in texts]
        assert most_alike(text, texts) == ratios.index(max(ratios))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "holds no recorded episode"),
        ('{"row": "a"}\n', r"line 1: this is no recorded episode \(KeyError"),
        ('{"row": "a", "opening": [], "steps": []}\n{half', "line 2: this is no recorded episode"),
        ("[1]\n", "line 1: this is no recorded episode"),
    ],
)
def test_a_file_that_is_no_recording_is_named_with_its_line(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=error):
        MockEnvironment(str(path))
    with pytest.raises(ConfigError, match="on_miss is 'guess'"):
        MockEnvironment(str(path), on_miss="guess")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["shop", "household"])
def test_the_expert_of_an_example_reaches_its_goal(name: str) -> None:
    module = example(name)
    environment = {"shop": "Shop", "household": "Household"}[name]
    for number in range(200):
        made = getattr(module, environment)()
        made.reset({"prompt": module.row(number)["question"]})
        answers = [made.step(say(action)) for action in actions(module.expert_dialogue(number))]
        assert answers[-1] == Done(1.0)


def test_a_careless_expert_of_the_household_goes_round_again_and_may_run_out_of_turns() -> None:
    module = example("household")
    turns = [len(actions(module.expert_dialogue(house, is_careful=False))) for house in range(200)]
    careful = [len(actions(module.expert_dialogue(house))) for house in range(200)]
    # examples/household.yaml gives an episode twelve turns.
    assert max(careful) == 12
    assert 0.2 < sum(count > 12 for count in turns) / 200 < 0.5
    for house in range(20):
        made = module.Household()
        made.reset({"prompt": module.row(house)["question"]})
        spoken = actions(module.expert_dialogue(house, is_careful=False))
        assert [made.step(say(action)) for action in spoken][-1] == Done(1.0)


def test_the_files_of_the_examples_are_written(tmp_path: Path) -> None:
    for name in ("shop", "household"):
        example(name).main(tmp_path / name, 5, 4)
        counts = {path.name: len(path.read_text().splitlines()) for path in (tmp_path / name).iterdir()}
        assert counts == {"rows.jsonl": 5, "sft.jsonl": 4}
