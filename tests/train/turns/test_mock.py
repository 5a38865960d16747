"""A recorded environment answers as it did, and what nobody recorded is a miss that is counted."""

from __future__ import annotations

import asyncio
import collections
import difflib
import importlib.util
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numbered_rows import make_row

from truegold.pipeline.tables.rows import Row
from truegold.pipeline.verify.gold_stage import REPEATED_SHARE
from truegold.train.turns.environment import Done, Message, Reply
from truegold.train.turns.mock import (
    UNKNOWN,
    MockEnvironment,
    Recorder,
    UnknownActionError,
    _load_recording,
    most_alike,
)
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


@pytest.mark.parametrize("name", ["shop", "household"])
def test_golds_of_the_examples_are_no_stand_ins(name: str) -> None:
    golds = collections.Counter(example(name).row(number)["answer"] for number in range(200))
    assert max(golds.values()) < REPEATED_SHARE * golds.total()


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
        assert mock.step_counts["missed"] == 0


def test_environments_that_are_made_at_once_read_their_recording_once(recording: Path) -> None:
    _load_recording.cache_clear()
    barrier = threading.Barrier(8)

    def make(_: int) -> MockEnvironment:
        barrier.wait()
        return MockEnvironment(str(recording))

    with ThreadPoolExecutor(8) as pool:
        assert len({id(mock.recording) for mock in pool.map(make, range(8))}) == 1


@pytest.mark.parametrize("on_miss", ["nearest", "error", "end"])
def test_what_nobody_did_follows_the_policy_and_is_counted(recording: Path, on_miss: Any) -> None:
    _load_recording.cache_clear()
    shop = example("shop")
    number = next(n for n in range(20) if len(actions(shop.expert_dialogue(n))) >= 3)
    search, look = actions(shop.expert_dialogue(number))[:2]
    mock = MockEnvironment(str(recording), on_miss=on_miss)
    mock.reset(shop_row(shop, number))
    known = mock.step(say(search))
    if on_miss == "end":
        # Nobody knows what the episode would have earned, so that it must not be judged by its last turn.
        with pytest.raises(UnknownActionError, match="this action was not recorded"):
            mock.step(say(look + "x"))
        assert mock.step_counts == {"recorded": 1, "missed": 1}
        return
    missed = mock.step(say(look + "x"))
    if on_miss == "nearest":
        real = shop.Shop()
        real.reset(shop_row(shop, number))
        assert known == real.step(say(search))
        assert missed == real.step(say(look))
    else:
        assert missed == Reply([{"role": "user", "content": UNKNOWN}])
        # Nothing is known of what comes after it either.
        assert mock.step(say(look)) == Reply([{"role": "user", "content": UNKNOWN}])
    misses = 2 if on_miss == "error" else 1
    assert mock.step_counts == {"recorded": 1, "missed": misses}


def test_a_state_that_is_unknown_is_answered_from_the_nearest_of_its_row(tmp_path: Path) -> None:
    _load_recording.cache_clear()
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
    _load_recording.cache_clear()
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
    _load_recording.cache_clear()
    assert list(MockEnvironment(str(path)).tools) == list(Tooled.tools)
    with path.open("a") as file:
        file.write(json.dumps({"row": "another", "opening": [], "steps": []}) + "\n")
    _load_recording.cache_clear()
    with pytest.raises(InputError, match=r"line 2: .*tools differ from those"):
        MockEnvironment(str(path))


def test_the_most_alike_text_is_what_comparing_all_of_them_finds() -> None:
    texts = ["look p3", "look p31", "buy p3", "", "search cup", "blue is not red look p3", "look p3"]
    for text in ("look p4", "buy", "red is red buy p3", "搜索"):
        ratios = [difflib.SequenceMatcher(None, other, text, autojunk=False).ratio() for other in texts]
        assert most_alike(text, texts) == ratios.index(max(ratios))


EPISODE: dict[str, Any] = {"row": "a", "opening": [], "steps": []}


def with_step(**step: Any) -> str:
    """Return the line of an episode whose second step is this one."""
    first = {"action": "look", "messages": say_as_user("A cup.")}
    return json.dumps({**EPISODE, "steps": [first, {"action": "take", **step}]})


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "has no recorded episode"),
        ('{"row": "a", "opening": []}\n', "line 1: this is not a recorded episode: steps is missing"),
        (json.dumps(EPISODE) + "\n{half", "line 2: this is not a recorded episode: Expecting"),
        (json.dumps(EPISODE) + "\n\n\n{half", "line 4: "),
        ("[1]\n", "line 1: .* it is a list, not an object"),
        ('{"row": "a", "opening": ' + "[" * 100_000, "line 1: .*nested too deep"),
        (json.dumps({**EPISODE, "row": None}), "line 1: .* row is None"),
        (json.dumps({**EPISODE, "tools": "look"}), "line 1: .* tools is 'look', not a list"),
        (json.dumps({**EPISODE, "opening": 3}), "line 1: .* opening: messages must be a list"),
        (json.dumps({**EPISODE, "steps": {}}), "line 1: .* steps is {}, not a list"),
        (json.dumps({**EPISODE, "steps": [1]}), r"line 1: .* steps\[0\] is 1, not an object"),
        (with_step(action=3, messages=[]), r"steps\[1\]\.action is 3, not text"),
        (with_step(), r"steps\[1\]\.messages is missing"),
        (with_step(messages=None), r"steps\[1\]\.messages: messages must be a list"),
        (with_step(messages=[{"content": "x"}]), r"steps\[1\]\.messages: a message must be a dict with a role"),
        (with_step(done=True, score=7), r"steps\[1\]\.score is 7, not a number from 0 to 1"),
        (with_step(done=True, score="1"), r"steps\[1\]\.score is '1', not a number"),
        (with_step(messages=[], turn_score=True), r"steps\[1\]\.turn_score is True, not a number"),
        (with_step(done="yes"), r"steps\[1\]\.done is 'yes', not true or false"),
    ],
)
def test_a_file_that_is_no_recording_is_named_with_line_and_field_before_it_is_played(
    tmp_path: Path, text: str, error: str
) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=error):
        MockEnvironment(str(path))
    with pytest.raises(ConfigError, match="on_miss is 'guess'"):
        MockEnvironment(str(path), on_miss="guess")  # type: ignore[arg-type]


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(EPISODE).encode() + b"\r\n" + with_step(done=True).encode())
    mock = MockEnvironment(str(path))
    mock.reset({**make_row(1), "id": "a"})
    assert mock.step(say("look")) == Reply(say_as_user("A cup."))
    assert mock.step(say("take")) == Done()


def test_another_recording_in_the_same_file_has_another_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(EPISODE))
    before = MockEnvironment.fingerprint(str(path), on_miss="end")
    path.write_text(with_step(done=True))
    assert MockEnvironment.fingerprint(str(path), on_miss="end") != before


def record(environment: Any, path: Path, actions: list[Message]) -> list[dict[str, Any]]:
    """Have an environment recorded, and return what its file has then."""

    async def play() -> None:
        recorder = Recorder(environment, path)
        await recorder.reset(make_row(1))
        for action in actions:
            await recorder.step(action)
        await recorder.close()

    asyncio.run(play())
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_is_recorded_stays_as_it_was_answered(tmp_path: Path) -> None:
    class Edits:
        """Goes on with the message that it has handed out, and edits what the model said."""

        def __init__(self) -> None:
            self.messages = say_as_user("1")

        def reset(self, row: Row) -> list[Message]:
            return self.messages

        def step(self, completion: Message) -> Reply:
            self.messages[0]["content"] += "1"
            completion["content"] = "edited"
            return Reply(self.messages)

    (episode,) = record(Edits(), tmp_path / "r.jsonl", [say("a"), say("b")])
    assert episode["opening"] == say_as_user("1")
    assert [step["messages"][0]["content"] for step in episode["steps"]] == ["11", "111"]
    assert [step["action"] for step in episode["steps"]] == ["a", "b"]


class Scores:
    """Ends with a score."""

    def __init__(self, answer: object) -> None:
        self.answer, self.is_closed = answer, False

    def reset(self, row: Row) -> list[Message]:
        return say_as_user("go")

    def step(self, completion: Message) -> Any:
        return self.answer

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("score", [np.float32(1), np.int64(1), np.bool_(True), np.array(1.0), True])
def test_scores_are_recorded_whatever_an_environment_counts_with(tmp_path: Path, score: Any) -> None:
    environment = Scores(Done(score))
    (episode,) = record(environment, tmp_path / "r.jsonl", [say("a")])
    assert episode["steps"] == [{"action": "a", "done": True, "score": 1.0, "turn_score": None}]
    assert environment.is_closed


@pytest.mark.parametrize("answer", [Done(7), Reply([{"content": "no role"}]), Reply("text"), "go on"])  # type: ignore[arg-type]
def test_an_answer_that_is_refused_is_handed_on_and_not_recorded(tmp_path: Path, answer: Any) -> None:
    path = tmp_path / "r.jsonl"

    async def play() -> None:
        recorder = Recorder(Scores(answer), path)
        await recorder.reset(make_row(1))
        assert await recorder.step(say("a")) is answer
        await recorder.close()

    asyncio.run(play())
    assert json.loads(path.read_text())["steps"] == []
    _load_recording.cache_clear()
    MockEnvironment(str(path))


def test_half_a_surrogate_pair_in_a_call_is_recorded(tmp_path: Path) -> None:
    function = {"name": "x", "arguments": {"a": "\ud83d"}}
    call = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}
    path = tmp_path / "r.jsonl"
    record(Scores(Done(1.0)), path, [call])
    _load_recording.cache_clear()
    mock = MockEnvironment(str(path), on_miss="end")
    mock.reset(make_row(1))
    assert mock.step(call) == Done(1.0)


def test_a_file_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none/r\.jsonl cannot be written"):
        Recorder(Scores(Done(1.0)), tmp_path / "none" / "r.jsonl")


def test_an_environment_is_closed_also_where_its_episode_cannot_be_written(tmp_path: Path) -> None:
    environment = Scores(Reply(say_as_user("more")))
    path = tmp_path / "folder" / "r.jsonl"
    path.parent.mkdir()

    async def play() -> None:
        recorder = Recorder(environment, path)
        await recorder.reset(make_row(1))
        path.unlink()
        path.parent.rmdir()
        await recorder.close()

    with pytest.raises(FileNotFoundError):
        asyncio.run(play())
    assert environment.is_closed


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
