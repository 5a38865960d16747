"""Writes the completions of this folder: twelve answer forms, three healthy corpora, and expected.json.

Run it in any folder: `python make_unread.py`. All golds are computed here.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Row = dict[str, Any]
NAMES = ["Amara", "Boris", "Chen", "Dana", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kira", "Luca"]
ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
ONES += "seventeen eighteen nineteen".split()
TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def words(n: int) -> str:
    """A number in English words."""
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + (f"-{ONES[n % 10]}" if n % 10 else "")
    if n < 1000:
        return f"{ONES[n // 100]} hundred" + (f" {words(n % 100)}" if n % 100 else "")
    return f"{words(n // 1000)} thousand" + (f" {words(n % 1000)}" if n % 1000 else "")


class Problem:
    """A story of two steps: its text, its working, the gold and the unit."""

    def __init__(self, r: random.Random) -> None:
        self.who, self.kind = r.choice(NAMES), r.randrange(4)
        a, b, c = r.randint(4, 19), r.randint(6, 24), r.randint(3, 40)
        self.a, self.b, self.c = a, b, c
        if self.kind == 0:
            self.text = f"{self.who} sells {a} lamps for {b} dollars each and gets {c} dollars for a chair. "
            self.text += "How many dollars is that in all?"
            self.gold, self.unit, self.subject = a * b + c, "dollars", "The money"
        elif self.kind == 1:
            self.text = f"A hall has {a} rows of {b} seats and {c} seats on the balcony. How many seats has it?"
            self.gold, self.unit, self.subject = a * b + c, "seats", "The number of seats"
        elif self.kind == 2:
            self.text = f"{self.who} walks {a} km a day for {b} days and then {c} km more. How many kilometres is that?"
            self.gold, self.unit, self.subject = a * b + c, "km", "The distance"
        else:
            self.text = f"A farm packs {a + c} boxes of {b} eggs; {c} of the boxes fall. How many eggs are left?"
            self.gold, self.unit, self.subject = a * b, "eggs", "The rest"
        if self.kind == 3:
            self.work = f"{a + c} - {c} = {a} boxes are left. Each has {b} eggs: {a} * {b} = {a * b}."
        else:
            self.work = f"First, {a} * {b} = {a * b}. Then {a * b} + {c} = {self.gold}."


Form = Callable[[Problem, random.Random], str]


def bold_final(p: Problem, r: random.Random) -> str:
    """A bold announcement, then the value in dollars signs with its unit."""
    mark = r.choice(["**Final Answer:**", "**Final Answer**:", "**FINAL ANSWER —**", "**Answer (final):**"])
    return f"{p.work}\n\n{mark} ${p.gold}$ {p.unit}"


def foreign_tags(p: Problem, r: random.Random) -> str:
    """Tags that say answer in another language."""
    tag = r.choice(["réponse", "respuesta", "antwort", "risposta", "ответ", "答案", "回答"])
    return f"<think>{p.work}</think>\n<{tag}>{p.gold}</{tag}>"


def table(p: Problem, r: random.Random) -> str:
    """The last row of a table."""
    last = r.choice(["**Total**", "Total", "Result", "**Answer**"])
    first = f"| Step | Value |\n|---|---|\n| {p.a} × {p.b} | {p.a * p.b} |\n"
    return f"{first}| {last} | {p.gold} {p.unit} |"


def nested_json(p: Problem, r: random.Random) -> str:
    """JSON whose answer lies two levels deep."""
    inner: Any = r.choice([{"value": p.gold, "unit": p.unit}, {"number": str(p.gold)}, [p.gold]])
    text = json.dumps({"reasoning": p.work, "result": {"final": inner}, "confidence": 0.9})
    return r.choice([text, f"```json\n{text}\n```"])


def therefore(p: Problem, r: random.Random) -> str:
    """A sign for therefore, or one that ends a proof."""
    end = r.choice(["∴ x = {}.", "∴ {} ∎", "⇒ x = {} □", "∴ total = {}. QED"]).format(p.gold)
    return f"Let x be what is asked for.\nx = {p.a} · {p.b}" + (f" + {p.c}" if p.kind != 3 else "") + f"\n{end}"


def spelled(p: Problem, r: random.Random) -> str:
    """The number in words."""
    end = r.choice(
        [
            "So altogether that makes {} {}.",
            "In the end it comes to {} {}.",
            "That leaves us with exactly {} {}.",
            "And there we have it: {} {}!",
        ]
    ).format(words(p.gold), p.unit)
    return f"We take {words(p.a)} times {words(p.b)}" + (f" and add {words(p.c)}" if p.kind != 3 else "") + f". {end}"


def trailing(p: Problem, r: random.Random) -> str:
    """An arrow, then sentences with other numbers."""
    after = r.choice(
        [
            f"Note that all {p.a} of them were counted once.",
            f"(All amounts are in {p.unit}; nothing was rounded, and the {p.b} of the problem was used as it stands.)",
            f"This is what was to be found. It took 2 steps and {r.randint(20, 60)} seconds.",
            f"Let me know if you want to see it for {p.a + 1} instead!",
        ]
    )
    return f"{p.work}\n\nFinal result → {p.gold} {p.unit}. {after}"


def boxed_text(p: Problem, r: random.Random) -> str:
    """A sentence in the box."""
    inner = r.choice(
        [
            f"\\text{{{p.subject} is }} {p.gold} \\text{{ {p.unit}}}",
            f"\\textbf{{Answer: {p.gold} {p.unit}}}",
            f"\\text{{So we get {p.gold} {p.unit} in all}}",
            f"\\mathrm{{result}} \\to {p.gold}\\ \\mathrm{{{p.unit}}}",
        ]
    )
    return f"{p.work}\n\n$\\boxed{{{inner}}}$"


def boxed_lines(p: Problem, r: random.Random) -> str:
    """A box over several lines."""
    shape = r.choice(["\\boxed{{\n{}\n}}", "\\boxed\n{{{}}}", "\\boxed {{\n\n  {}\n\n}}", "\\boxed{{%\n{}}}"])
    return f"{p.work}\n\nThus\n$$\n{shape.format(p.gold)}\n$$"


def tool_call(p: Problem, r: random.Random) -> str:
    """The arguments of a tool call."""
    name, key = r.choice([("submit", "answer"), ("final_answer", "answer"), ("finish", "result"), ("answer", "value")])
    call = json.dumps({"name": name, "arguments": {key: str(p.gold)}})
    return f"{p.work}\n<tool_call>\n{call}\n</tool_call>"


def aligned(p: Problem, r: random.Random) -> str:
    """A chain of equations without a word."""
    letter = r.choice(["N", "T", "S", "x"])
    rest = f" + {p.c}" if p.kind != 3 else ""
    body = f"{letter} &= {p.a} \\cdot {p.b}{rest} \\\\\n  &= {p.a * p.b}{rest} \\\\\n  &= {p.gold}"
    return f"\\begin{{align*}}\n{body}\n\\end{{align*}}"


NUMERIC: dict[str, tuple[Form, str, str]] = {
    "bold_final": (bold_final, "Solve the problem and end with **Final Answer:**.", "**Final Answer:** $72$ dollars"),
    "foreign_tags": (foreign_tags, "Antworte in deiner Sprache, mit Marken um die Antwort.", "<réponse>72</réponse>"),
    "table": (table, "Answer with a table.", "| **Total** | 72 dollars |"),
    "nested_json": (nested_json, "Answer in JSON.", '{"result": {"final": {"value": 72}}}'),
    "therefore": (therefore, "Give a short derivation.", "∴ x = 72. or ∴ 72 ∎"),
    "spelled": (spelled, "Explain it to a child.", "So altogether that makes seventy-two dollars."),
    "trailing": (trailing, "Solve it.", "Final result → 72 dollars. Note that ..."),
    "boxed_text": (boxed_text, "Put the answer in a box.", "\\boxed{\\text{The money is } 72 \\text{ dollars}}"),
    "boxed_lines": (boxed_lines, "Put the final answer in \\boxed{}.", "\\boxed, a line break, {72}"),
    "tool_call": (tool_call, "Call a tool to hand in the answer.", '<tool_call> {"arguments": {"answer": "72"}}'),
    "aligned": (aligned, "Show the computation only.", "\\begin{align*} ... &= 72 \\end{align*}"),
}


def numeric(form: Form, name: str, template: str) -> list[Row]:
    """Sixty completions of one form."""
    r = random.Random(name)
    rows = []
    for index in range(60):
        p = Problem(r)
        rows.append(
            {
                "id": f"{name}-{index}",
                "prompt": f"{template}\n\n{p.text}",
                "gold": str(p.gold),
                "response": form(p, r),
                "finish_reason": "stop",
                "right": True,
            }
        )
    return rows


def chinese_choice() -> list[Row]:
    """Sixty choices in Chinese."""
    r = random.Random("choice")
    ends = [
        "故选{}",
        "故选：{}。",
        "因此本题选 {} 项。",
        "综上所述,选{}。",
        "所以答案选项为（{}）。",
        "故应选{}项",
        "选{}，理由如上。",
    ]
    rows = []
    for index in range(60):
        a, b, c = r.randint(3, 19), r.randint(4, 25), r.randint(2, 30)
        right = a * b + c
        others = [x for x in (right + a, right - c, a + b + c, right + 10, right + 1) if x != right]
        options = [str(x) for x in r.sample([right, *list(dict.fromkeys(others))[:3]], 4)]
        letter = "ABCD"[options.index(str(right))]
        listed = "\n".join(f"{key}. {text}" for key, text in zip("ABCD", options, strict=True))
        rows.append(
            {
                "id": f"chinese_choice-{index}",
                "prompt": f"一盒有{a}支铅笔，{b}盒再加{c}支，一共有多少支铅笔？\n{listed}",
                "gold": letter,
                "verifier": "choice",
                "verifier_args": {"options": options},
                "response": f"先算{a}×{b}={a * b}，再加{c}，得{right}。{r.choice(ends).format(letter)}",
                "finish_reason": "stop",
                "right": True,
            }
        )
    return rows


def wrong(p: Problem, r: random.Random) -> int:
    """A value that is mostly wrong."""
    return int(r.choice([p.gold + r.randint(1, 9), p.a + p.b + p.c, p.a * (p.b + p.c), p.gold - r.randint(1, 3)]))


def stated(p: Problem, r: random.Random, value: int) -> str:
    """A usual way to state a value."""
    return str(
        r.choice(
            [
                f"{p.work.split('. ')[0]}.\nThe answer is {value}.",
                f"{p.work.split('. ')[0]}.\n#### {value}",
                f"We find \\boxed{{{value}}}.",
                f"So the answer is {value} {p.unit}.",
                f"Answer: {value}",
            ]
        )
    )


def base_model() -> list[Row]:
    """A base model: right and wrong answers in usual forms, some with a further problem behind, and rambling."""
    r = random.Random("base")
    rows = []
    for index in range(100):
        p, other = Problem(r), Problem(r)
        lot = r.random()
        finish, right = "stop", None
        if lot < 0.38:
            text, right = stated(p, r, p.gold), True
        elif lot < 0.8:
            value = wrong(p, r)
            text, right = stated(p, r, value), value == p.gold
        elif lot < 0.9:
            sentence = f"{p.who} has {p.a} and then there are {p.b} and I think we need to know more about it. "
            text, finish = sentence * 6, "length"
        else:
            text = f"\nHi everyone, I am stuck with this homework.\n\n> {p.text}\n\nAny help? Thanks\n\nTags: maths"
        if right is not None and r.random() < 0.35:
            text += f"\n\nQuestion: {other.text}\nAnswer: {other.work.split('. ')[0]}."
            finish = r.choice(["stop", "length"])
        rows.append(row("base_model", index, "Question: {}\nAnswer:", p, text, finish, right))
    return rows


def thinking_cut() -> list[Row]:
    """A thinking model with too small a limit: half of the completions are cut within their thoughts."""
    r = random.Random("thinking")
    rows = []
    for index in range(100):
        p = Problem(r)
        thought = f"<think>\nOkay, let me see. {p.text} {p.work} Wait, let me check that again. "
        lot = r.random()
        if lot < 0.55:
            text = thought + f"Hmm, is it {p.a} times {p.b}? " * 3 + f"Suppose it were {p.a + 1}"
            rows.append(row("thinking_cut", index, "{}", p, text, "length", None))
        else:
            value = p.gold if lot < 0.88 else wrong(p, r)
            text = thought + f"Yes.\n</think>\n\n{p.work.split('. ')[0]}.\n\n**Answer:** $\\boxed{{{value}}}$"
            rows.append(row("thinking_cut", index, "{}", p, text, "stop", value == p.gold))
    return rows


def plain_chat() -> list[Row]:
    """An assistant that answers in plain words; three in four are right, a few decline."""
    r = random.Random("chat")
    rows = []
    for index in range(100):
        p = Problem(r)
        lot = r.random()
        value = p.gold if lot < 0.75 else wrong(p, r)
        if lot > 0.96:
            rows.append(row("plain_chat", index, "{}", p, "I am sorry, I cannot work that out.", "stop", None))
            continue
        end = r.choice(
            [
                f"The answer is **{value}**.",
                f"The answer is {value} {p.unit}.",
                f"Therefore, the answer is **{value} {p.unit}**.",
                f"So the final answer is {value}.",
            ]
        )
        work = p.work.split(". ")[0] + "."
        rows.append(row("plain_chat", index, "{}", p, f"Sure! {work}\n\n{end}", "stop", value == p.gold))
    return rows


def row(name: str, index: int, template: str, p: Problem, text: str, finish: str, right: bool | None) -> Row:
    """A completion of a healthy corpus."""
    return {
        "id": f"{name}-{index}",
        "prompt": template.format(p.text),
        "gold": str(p.gold),
        "response": text,
        "finish_reason": finish,
        "right": right,
    }


def write(name: str, rows: list[Row]) -> None:
    """Writes JSON Lines."""
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in rows)
    (HERE / f"{name}.jsonl").write_text(text, encoding="utf-8")


def main() -> None:
    """Writes all files of the folder."""
    expected: dict[str, Row] = {}
    for name, (form, template, example) in NUMERIC.items():
        rows = numeric(form, name, template)
        write(name, rows)
        expected[name] = {"rows": 60, "right": 60, "example": example, "verifier": "math"}
    write("chinese_choice", chinese_choice())
    expected["chinese_choice"] = {"rows": 60, "right": 60, "example": "故选C", "verifier": "choice"}
    for entry in expected.values():
        entry["expect"] = (
            "each is paid, or it is 0 with the reason unread and counted apart from mismatch; where most are unread, "
            "one line with an example comes within the first 50"
        )
    for healthy in (base_model, thinking_cut, plain_chat):
        rows = healthy()
        write(healthy.__name__, rows)
        expected[healthy.__name__] = {
            "rows": 100,
            "right": sum(line["right"] is True for line in rows),
            "wrong": sum(line["right"] is False for line in rows),
            "no_answer": sum(line["right"] is None for line in rows),
            "cut": sum(line["finish_reason"] == "length" for line in rows),
            "verifier": "math",
            "expect": "right ones are paid, others are not; no line about an unread form and no action",
        }
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
