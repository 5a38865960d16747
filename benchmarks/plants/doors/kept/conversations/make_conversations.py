"""Writes the six files of conversations and expected.json: `python make_conversations.py`."""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Row = dict[str, Any]
EXPECTED: Row = {}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def m(role: str, content: Any, **more: Any) -> Row:
    """A message."""
    return {"role": role, "content": content} | more


def u(content: Any) -> Row:
    """A message of the user."""
    return m("user", content)


def a(content: Any) -> Row:
    """A message of the assistant."""
    return m("assistant", content)


def s(content: Any) -> Row:
    """A system message."""
    return m("system", content)


def want(prompt: list[Row], gold: str, note: str = "") -> Row:
    """A row is expected."""
    on = ["question", "gold"]
    on += ["system message"] if any(x["role"] == "system" for x in prompt) else []
    on += ["earlier turns"] if any(x["role"] != "system" for x in prompt[:-1]) else []
    out = {"outcome": "row", "prompt": prompt, "question": prompt[-1]["content"], "gold": gold, "id_depends_on": on}
    return out | ({"note": note} if note else {})


def no(reason: str, say: str) -> Row:
    """A reject is expected."""
    carried = (
        {"or": "carried whole as opaque content, where the target takes it"} if reason in ("pictures", "tools") else {}
    )
    return {"outcome": "refused", "reason": reason, "say": say} | carried


def put(name: str, note: str, pairs: list[tuple[Row, Row]]) -> None:
    """A file and what is expected of it."""
    (HERE / f"{name}.jsonl").write_text(
        "\n".join(json.dumps(r, ensure_ascii=False) for r, _ in pairs) + "\n", encoding="utf-8"
    )
    EXPECTED[name] = {"note": note, "rows": [{"row": n} | w for n, (_, w) in enumerate(pairs, 1)]}


put(
    "system_places",
    "The system message stands in other places than at the head of the messages, and changes the answer each time.",
    [
        (
            {
                "system_prompt": "Answer in inches (1 foot is 12 inches).",
                "prompt": "A door is 7 feet high. How high is it?",
                "answer": "84",
            },
            want([s("Answer in inches (1 foot is 12 inches)."), u("A door is 7 feet high. How high is it?")], "84"),
        ),
        (
            {"system_prompt": "Answer in feet.", "prompt": "A door is 7 feet high. How high is it?", "answer": "7"},
            want([s("Answer in feet."), u("A door is 7 feet high. How high is it?")], "7"),
        ),
        (
            {
                "prompt": [m("developer", "Numbers are in base 5; answer in base 10."), u("What is 13 + 4?")],
                "answer": "12",
            },
            want(
                [s("Numbers are in base 5; answer in base 10."), u("What is 13 + 4?")],
                "12",
                "the role may be written as developer or system",
            ),
        ),
        (
            {
                "prompt": [
                    s([{"type": "text", "text": "A dozen has 13 pieces here."}]),
                    u("How many rolls are two dozen?"),
                ],
                "answer": "26",
            },
            want([s("A dozen has 13 pieces here."), u("How many rolls are two dozen?")], "26"),
        ),
        (
            {
                "prompt": [
                    s("Count Sundays as workdays."),
                    s("A workday has 6 hours."),
                    u("How many hours are worked in a week of work on all days?"),
                ],
                "answer": "42",
            },
            want(
                [
                    s("Count Sundays as workdays.\n\nA workday has 6 hours."),
                    u("How many hours are worked in a week of work on all days?"),
                ],
                "42",
                "two system messages may stay two or become one",
            ),
        ),
        (
            {
                "prompt": [
                    u("The rate is fixed today."),
                    s("From now on 1 pound is 1.5 euros."),
                    u("What are 30 pounds in euros?"),
                ],
                "answer": "45",
            },
            want(
                [
                    u("The rate is fixed today."),
                    s("From now on 1 pound is 1.5 euros."),
                    u("What are 30 pounds in euros?"),
                ],
                "45",
                "a system message in the middle may stay there or come first, with the turn before the question",
            ),
        ),
        ({"system_prompt": "", "prompt": "What is 9 * 12?", "answer": "108"}, want([u("What is 9 * 12?")], "108")),
        (
            {
                "system_prompt": None,
                "prompt": [s("Give the result in minutes."), u("How long are 2.5 hours?")],
                "answer": "150",
            },
            want([s("Give the result in minutes."), u("How long are 2.5 hours?")], "150"),
        ),
        (
            {"prompt": [u("What is the double of 21?"), s("Round to tens.")], "answer": "40"},
            want(
                [s("Round to tens."), u("What is the double of 21?")],
                "40",
                "the system message stands behind the question; it belongs to it",
            ),
        ),
    ],
)

SHOT = [u("Problem: 2 + 3"), a("#5#"), u("Problem: 10 - 4"), a("#6#")]
put(
    "few_shot",
    "Earlier turns are examples, given as turns, as `history` of pairs or messages, or within the text. The last question may "
    "depend on them (rows 3 and 4), and rows with other examples are other problems.",
    [
        ({"prompt": [*SHOT, u("Problem: 7 * 6")], "answer": "42"}, want([*SHOT, u("Problem: 7 * 6")], "42")),
        (
            {"prompt": [s("Answer between number signs."), *SHOT, u("Problem: 81 / 9")], "answer": "9"},
            want([s("Answer between number signs."), *SHOT, u("Problem: 81 / 9")], "9"),
        ),
        (
            {"prompt": [u("blip 3"), a("6"), u("blip 10"), a("20"), u("blip 17")], "answer": "34"},
            want([u("blip 3"), a("6"), u("blip 10"), a("20"), u("blip 17")], "34"),
        ),
        (
            {"prompt": [u("blip 3"), a("9"), u("blip 10"), a("100"), u("blip 17")], "answer": "289"},
            want([u("blip 3"), a("9"), u("blip 10"), a("100"), u("blip 17")], "289"),
        ),
        (
            {
                "prompt": "What is 14 + 30?",
                "history": [["What is 1 + 1?", "2"], ["What is 5 + 9?", "14"]],
                "answer": "44",
            },
            want([u("What is 1 + 1?"), a("2"), u("What is 5 + 9?"), a("14"), u("What is 14 + 30?")], "44"),
        ),
        (
            {"prompt": "And times 3?", "history": [u("What is 12 + 8?"), a("20")], "answer": "60"},
            want([u("What is 12 + 8?"), a("20"), u("And times 3?")], "60"),
        ),
        ({"prompt": "What is 90 / 6?", "history": [], "answer": "15"}, want([u("What is 90 / 6?")], "15")),
        (
            {
                "prompt": [u("Q: What is 2 + 2?\nA: 4\n\nQ: What is 3 * 3?\nA: 9\n\nQ: What is 8 * 7?\nA:")],
                "answer": "56",
            },
            want(
                [u("Q: What is 2 + 2?\nA: 4\n\nQ: What is 3 * 3?\nA: 9\n\nQ: What is 8 * 7?\nA:")],
                "56",
                "examples within the text stay",
            ),
        ),
        (
            {"prompt": [u("What is 13 * 5?"), a("Let's think step by step.")], "answer": "65"},
            want(
                [u("What is 13 * 5?")],
                "65",
                "the beginning of an answer is no part of the question, or is carried behind it",
            ),
        ),
    ],
)

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Temperature of a town.",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    },
}
put(
    "tool_turns",
    "Calls of tools and their results in the forms of OpenAI's old and new interface, Hermes, Anthropic and ShareGPT. Refused with the "
    "reason `tools` (or `earlier_turns`), or carried whole. Empty lists, null, and words about tools are none.",
    [
        (
            {
                "messages": [
                    u("How warm is it in Oslo, in Fahrenheit?"),
                    m(
                        "assistant",
                        None,
                        tool_calls=[
                            {
                                "id": "t1",
                                "type": "function",
                                "function": {"name": "weather", "arguments": {"town": "Oslo"}},
                            }
                        ],
                    ),
                    m("tool", "10", tool_call_id="t1"),
                    u("Add 5 to it."),
                ],
                "answer": "55",
            },
            no("tools", "a call with its result, arguments as an object"),
        ),
        (
            {
                "messages": [
                    u("How warm is it in Rome?"),
                    m("assistant", None, function_call={"name": "weather", "arguments": '{"town": "Rome"}'}),
                    m("function", "24", name="weather"),
                    u("And twice that?"),
                ],
                "answer": "48",
            },
            no("tools", "function_call and the role function"),
        ),
        (
            {"messages": [u("How warm is it in Bern?")], "functions": [TOOL["function"]], "answer": "18"},
            no("tools", "the column functions"),
        ),
        (
            {
                "messages": [
                    s("You may call tools.\n<tools>\n" + json.dumps(TOOL) + "\n</tools>"),
                    u("How warm is it in Lima?"),
                ],
                "answer": "21",
            },
            no("tools", "Hermes: the definitions stand in the system message")
            | {"or": "carried whole: the system message is a text"},
        ),
        (
            {
                "messages": [
                    u("Weather of Kiev?"),
                    m("assistant", [{"type": "tool_use", "id": "x", "name": "weather", "input": {"town": "Kiev"}}]),
                    u([{"type": "tool_result", "tool_use_id": "x", "content": "12"}]),
                ],
                "answer": "12",
            },
            no("tools", "Anthropic's tool_use and tool_result"),
        ),
        (
            {"messages": [u("What is 17 + 8?")], "tools": [], "tool_choice": "none", "answer": "25"},
            want([u("What is 17 + 8?")], "25"),
        ),
        (
            {
                "messages": [m("user", "What is 6 * 14?", tool_calls=None, function_call=None, name=None)],
                "tools": None,
                "answer": "84",
            },
            want([u("What is 6 * 14?")], "84", "empty fields lose nothing"),
        ),
        (
            {"messages": [u("A tool costs 12 dollars. What do 7 such tools cost?")], "tools": "[]", "answer": "84"},
            want([u("A tool costs 12 dollars. What do 7 such tools cost?")], "84"),
        ),
        (
            {
                "messages": [
                    {"from": "human", "value": "Temperature in Graz?"},
                    {"from": "function_call", "value": '{"name": "weather", "arguments": {"town": "Graz"}}'},
                    {"from": "observation", "value": "15"},
                    {"from": "human", "value": "Three degrees more?"},
                ],
                "answer": "18",
            },
            no("tools", "ShareGPT's function_call and observation"),
        ),
    ],
)

put(
    "pictures",
    "Pictures by address, in base64 and as files, in the forms of OpenAI, its Responses, Anthropic, Qwen, LLaVA and Hugging Face. "
    "Refused with the reason `pictures` (`media` for sounds and films), or carried whole. Empty columns and text parts lose nothing.",
    [
        (
            {
                "prompt": [
                    u(
                        [
                            {"type": "text", "text": "What is the sum of the numbers on the board?"},
                            {
                                "type": "image_url",
                                "image_url": {"url": "https://example.org/board.jpg", "detail": "low"},
                            },
                        ]
                    )
                ],
                "answer": "17",
            },
            no("pictures", "image_url by address"),
        ),
        (
            {
                "prompt": [
                    u(
                        [
                            {"type": "input_text", "text": "How many dots are there?"},
                            {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
                        ]
                    )
                ],
                "answer": "9",
            },
            no("pictures", "input_image in base64"),
        ),
        (
            {
                "prompt": [
                    u(
                        [
                            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                            {"type": "text", "text": "Which angle is marked?"},
                        ]
                    )
                ],
                "answer": "40",
            },
            no("pictures", "Anthropic's source"),
        ),
        (
            {
                "prompt": [
                    u(
                        [
                            {"type": "image", "image": "file:///data/figures/12.png"},
                            {"type": "text", "text": "What is the height of the tower?"},
                        ]
                    )
                ],
                "answer": "30",
            },
            no("pictures", "Qwen's image by path"),
        ),
        (
            {"prompt": [u("<image>\nWhat is the area of the shape?")], "image": "train/000123.jpg", "answer": "24"},
            no("pictures", "LLaVA's mark and a path in the column image"),
        ),
        (
            {"prompt": [u("How many squares are drawn?")], "images": [{"bytes": PNG, "path": None}], "answer": "14"},
            no("pictures", "an object of bytes and path"),
        ),
        (
            {
                "prompt": [
                    u(
                        [
                            {"type": "video", "video": "clip.mp4"},
                            {"type": "text", "text": "How often does the ball bounce?"},
                        ]
                    )
                ],
                "answer": "4",
            },
            no("media", "a film"),
        ),
        (
            {
                "prompt": [u([{"type": "input_text", "text": "What is 12 * 11?"}])],
                "images": None,
                "image": "",
                "answer": "132",
            },
            want([u("What is 12 * 11?")], "132"),
        ),
        (
            {
                "prompt": [
                    u(
                        [
                            {"type": "text", "text": "An image has 640 columns and 480 rows."},
                            {"type": "text", "text": "How many pixels has it?"},
                        ]
                    )
                ],
                "images": [],
                "answer": "307200",
            },
            want(
                [u("An image has 640 columns and 480 rows.\nHow many pixels has it?")],
                "307200",
                "words about images are no picture; any white space between the parts",
            ),
        ),
    ],
)

put(
    "sharegpt_variants",
    "Relatives of ShareGPT: other names of roles, of keys and of columns in one shape each. A row whose roles are not known is "
    "better refused than read with its turns mixed up.",
    [
        (
            {
                "id": "v1",
                "conversations": [{"from": "user", "value": "What is 45 + 19?"}, {"from": "chatgpt", "value": "64"}],
                "answer": "64",
            },
            want([u("What is 45 + 19?")], "64"),
        ),
        (
            {
                "id": "v2",
                "conversations": [
                    {"from": "human", "value": "I have 8 coins.", "weight": 0},
                    {"from": "gpt", "value": "Fine.", "weight": 1},
                    {"from": "human", "value": "Half of them are gone. How many are left?"},
                ],
                "answer": "4",
            },
            want([u("I have 8 coins."), a("Fine."), u("Half of them are gone. How many are left?")], "4"),
        ),
        (
            {
                "id": "v3",
                "system": "Give the answer as a percentage.",
                "conversations": [
                    {"from": "human", "value": "Which share of 40 is 10?"},
                    {"from": "gpt", "value": "25 %"},
                ],
                "answer": "25%",
            },
            want([s("Give the answer as a percentage."), u("Which share of 40 is 10?")], "25%"),
        ),
        (
            {
                "id": "v4",
                "conversations": [
                    {"from": "system", "value": "A score has 20 years."},
                    {"from": "human", "value": "How many years are four score and seven?"},
                ],
                "answer": "87",
            },
            want([s("A score has 20 years."), u("How many years are four score and seven?")], "87"),
        ),
        (
            {
                "id": "v5",
                "conversations": [{"role": "human", "content": "What is 3 cubed?"}, {"role": "bot", "content": "27"}],
                "answer": "27",
            },
            want([u("What is 3 cubed?")], "27"),
        ),
        (
            {
                "id": "v6",
                "conversations": [
                    {"from": "human", "value": "What is a third of 96?", "markdown": None, "text": None},
                    {"from": "bing", "value": "32"},
                ],
                "answer": "32",
            },
            want([u("What is a third of 96?")], "32"),
        ),
        (
            {"id": "v7", "conversations": '[{"from": "human", "value": "What is 1000 - 367?"}]', "answer": "633"},
            want([u("What is 1000 - 367?")], "633"),
        ),
        (
            {
                "id": "v8",
                "conversations": [
                    {"from": "gpt", "value": "Hello, I am a calculator."},
                    {"from": "gpt", "value": "Nothing to do."},
                ],
                "answer": "1",
            },
            no("missing_prompt", "no turn of the user"),
        ),
        (
            {
                "id": "v9",
                "conversations": [
                    {"from": "human", "value": "My shelf has 5 boards."},
                    {"from": "human", "value": "Each holds 14 books. How many fit?"},
                ],
                "answer": "70",
            },
            want(
                [u("My shelf has 5 boards."), u("Each holds 14 books. How many fit?")],
                "70",
                "two turns of the user in a row: both are needed",
            ),
        ),
    ],
)

put(
    "chinese_mixed",
    "Chinese words for roles and columns, beside usual ones. Known or refused; a system message or a turn must not be lost.",
    [
        ({"messages": [m("用户", "12乘以15等于多少？")], "answer": "180"}, want([u("12乘以15等于多少？")], "180")),
        (
            {"messages": [m("系统", "请以厘米为单位作答。"), m("用户", "一根绳子长3米，它有多长？")], "answer": "300"},
            want([s("请以厘米为单位作答。"), u("一根绳子长3米，它有多长？")], "300"),
        ),
        (
            {
                "messages": [m("用户", "我有24个苹果。"), m("助手", "好的。"), m("用户", "平均分给6个人，每人几个？")],
                "answer": "4",
            },
            want([u("我有24个苹果。"), a("好的。"), u("平均分给6个人，每人几个？")], "4"),
        ),
        (
            {"messages": [s("请用分数作答。"), u("0.25等于多少？")], "answer": "1/4"},
            want([s("请用分数作答。"), u("0.25等于多少？")], "1/4"),
        ),
        (
            {"messages": [s("请用小数作答。"), u("0.25等于多少？")], "answer": "0.25"},
            want([s("请用小数作答。"), u("0.25等于多少？")], "0.25"),
        ),
        (
            {
                "messages": [{"from": "人类", "value": "100减去58等于多少？"}, {"from": "模型", "value": "42"}],
                "answer": "42",
            },
            want([u("100减去58等于多少？")], "42"),
        ),
        (
            {
                "messages": [
                    u("Mein Garten ist 12 m lang."),
                    a("Gut."),
                    u("Er ist 5 m breit. Wie groß ist er in Quadratmetern?"),
                ],
                "answer": "60",
            },
            want(
                [u("Mein Garten ist 12 m lang."), a("Gut."), u("Er ist 5 m breit. Wie groß ist er in Quadratmetern?")],
                "60",
            ),
        ),
        (
            {
                "messages": [
                    u(
                        [
                            {"type": "text", "text": "图中有几个三角形？"},
                            {"type": "image_url", "image_url": {"url": "https://example.org/t.png"}},
                        ]
                    )
                ],
                "answer": "8",
            },
            no("pictures", "a picture by address"),
        ),
        (
            {"messages": [u("一个数的3倍是51，这个数是多少？"), a("")], "answer": "17"},
            want([u("一个数的3倍是51，这个数是多少？")], "17", "an empty turn at the end is none"),
        ),
        (
            {"messages": [m("narrator", "一天，"), u("8加9等于多少？")], "answer": "17"},
            no("earlier_turns", "a role that nobody knows"),
        ),
    ],
)
OTHERS = {
    ("system_places", 5): [
        [
            s("Count Sundays as workdays."),
            s("A workday has 6 hours."),
            u("How many hours are worked in a week of work on all days?"),
        ]
    ],
    ("system_places", 6): [
        [s("From now on 1 pound is 1.5 euros."), u("The rate is fixed today."), u("What are 30 pounds in euros?")]
    ],
    ("system_places", 9): [[u("What is the double of 21?"), s("Round to tens.")]],
    ("few_shot", 9): [[u("What is 13 * 5?"), a("Let's think step by step.")]],
    ("sharegpt_variants", 9): [[u("My shelf has 5 boards.\n\nEach holds 14 books. How many fit?")]],
}
for (name, number), prompts in OTHERS.items():
    EXPECTED[name]["rows"][number - 1]["or_prompts"] = prompts
(HERE / "expected.json").write_text(json.dumps(EXPECTED, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
print({k: len(v["rows"]) for k, v in EXPECTED.items()})
