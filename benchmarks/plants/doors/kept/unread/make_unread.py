"""Writes the completions of this folder: twelve answer forms, three healthy corpora, and expected.json.

Run it in any folder: `python make_unread.py`. All golds are computed here.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NAMES = ["Anouk", "Bilal", "Celia", "Dmitri", "Eun", "Fatou", "Georg", "Hana", "Iker", "Joana"]
EXPECT = (
    "each is paid, or it is 0 with the reason unread and counted apart from mismatch; where most are unread, one line with "
    "an example comes within the first 50"
)


@dataclass
class Problem:
    """A story, its steps and its answer."""

    question: str
    steps: list[str]
    gold: str
    unit: str
    parts: list[int]
    verifier: str = "math"
    args: dict[str, Any] = field(default_factory=dict)

    @property
    def work(self) -> str:
        """The steps in one text."""
        return " ".join(self.steps)


def story(r: random.Random) -> Problem:
    """A problem of two steps."""
    n, a, b, c = r.choice(NAMES), r.randint(6, 28), r.randint(4, 25), r.randint(11, 48)
    kind = r.randrange(4)
    if kind == 0:
        x = a * b - c if a * b > c else a * b + c
        if a * b > c:
            return Problem(
                f"{n} plants {a} rows of {b} tulips; {c} of them freeze. How many tulips are left?",
                [f"{n} plants {a} * {b} = {a * b} tulips.", f"{a * b} - {c} = {x} stay alive."],
                str(x),
                "tulips",
                [a, b, c],
            )
    if kind == 1:
        return Problem(
            f"A lorry makes {a} trips with {b} sacks each and one trip with {c} sacks. How many sacks does it carry?",
            [
                f"On {a} trips it carries {a} * {b} = {a * b} sacks.",
                f"With the last trip that makes {a * b} + {c} = {a * b + c}.",
            ],
            str(a * b + c),
            "sacks",
            [a, b, c],
        )
    if kind == 2:
        return Problem(
            f"{n} reads {a} pages on each of {b} evenings and {c} pages on Sunday. How many pages is that?",
            [f"In the evenings: {a} * {b} = {a * b}.", f"{a * b} + {c} = {a * b + c}."],
            str(a * b + c),
            "pages",
            [a, b, c],
        )
    return Problem(
        f"A shop sells {a} chairs at {b} euros each and a table at {c} euros. How many euros does it take in?",
        [f"The chairs bring {a} * {b} = {a * b} euros.", f"With the table: {a * b} + {c} = {a * b + c}."],
        str(a * b + c),
        "euros",
        [a, b, c],
    )


def yaml_block(p: Problem, r: random.Random) -> str:
    """YAML at the end."""
    k = r.randrange(3)
    if k == 0:
        return f"```yaml\nreasoning: |\n  {p.steps[0]}\n  {p.steps[1]}\nanswer: {p.gold}\nunit: {p.unit}\n```"
    if k == 1:
        return f"{p.work}\n\n---\nfinal_answer:\n  value: {p.gold}\n  unit: {p.unit}\n"
    return f'steps:\n  - "{p.steps[0]}"\n  - "{p.steps[1]}"\nresult: {p.gold}  # {p.unit}\n'


def xml_fields(p: Problem, r: random.Random) -> str:
    """XML with the answer in a field or an attribute."""
    k = r.randrange(3)
    if k == 0:
        return f'<response>\n  <steps>{p.work}</steps>\n  <result unit="{p.unit}"><value>{p.gold}</value></result>\n</response>'
    if k == 1:
        return f'{p.work}\n<output type="number" value="{p.gold}" unit="{p.unit}"/>'
    return f'<solution><step n="1">{p.steps[0]}</step><step n="2">{p.steps[1]}</step><final>{p.gold}</final></solution>'


def framed(p: Problem, r: random.Random) -> str:
    """Frames and environments of LaTeX that are no \\boxed."""
    k = r.randrange(4)
    head = p.work + "\n\n"
    if k == 0:
        return head + f"\\[ \\fbox{{{p.gold}}} \\]"
    if k == 1:
        return head + f"\\begin{{equation*}}\n\\text{{Total}} = \\framebox{{$ {p.gold} $}}\n\\end{{equation*}}"
    if k == 2:
        return head + f"\\begin{{center}}\\fcolorbox{{black}}{{yellow}}{{{p.gold} {p.unit}}}\\end{{center}}"
    return head + f"\\begin{{tcolorbox}}[title=Answer]\n{p.gold} {p.unit}\n\\end{{tcolorbox}}"


def code_output(p: Problem, r: random.Random) -> str:
    """A program and what it prints."""
    a, b, _ = p.parts
    k = r.randrange(3)
    expr = p.steps[1].split("=")[0].strip().split()[-3:]
    text = " ".join(expr)
    if k == 0:
        return f"```python\ntotal = {text}\nprint(total)\n```\n```output\n{p.gold}\n```"
    if k == 1:
        return f"We compute it.\n\n```python\n>>> {a} * {b}\n{a * b}\n>>> {text}\n{p.gold}\n```"
    return f"In [1]: {a} * {b}\nOut[1]: {a * b}\n\nIn [2]: {text}\nOut[2]: {p.gold}"


LANGUAGES = [
    "Ответ: {g}",
    "Итак, всего получается {g}.",
    "したがって、答えは{g}です。",
    "따라서 정답은 {g}입니다.",
    "La respuesta es {g}.",
    "Η απάντηση είναι {g}.",
    "Odpowiedź: {g}",
    "Cevap: {g}",
    "Vastaus on {g}.",
    "الجواب هو {g}.",
    "Đáp án là {g}.",
    "उत्तर: {g}",
    "A resposta é {g}.",
    "Svaret är {g}.",
]


def languages(p: Problem, r: random.Random) -> str:
    """The last sentence in another language."""
    a, b, c = p.parts
    return f"{a} × {b} = {a * b}; {a * b} {'−' if int(p.gold) < a * b else '+'} {c} = {p.gold}.\n\n" + r.choice(
        LANGUAGES
    ).format(g=p.gold)


def emoji(p: Problem, r: random.Random) -> str:
    """Emoji mark the answer."""
    k = r.randrange(4)
    tail = [f"✅ {p.gold} {p.unit}", f"👉 **{p.gold}** {p.unit} 🎉", f"🏁 {p.gold} 🏁", f"🎯 → {p.gold} {p.unit}! 😊"][
        k
    ]
    return f"1️⃣ {p.steps[0]}\n2️⃣ {p.steps[1]}\n\n{tail}"


def answer_first(p: Problem, r: random.Random) -> str:
    """The answer, then a long explanation that ends with other numbers."""
    a, b, c = p.parts
    head = r.choice([f"**{p.gold} {p.unit}**", f"{p.gold} {p.unit}.", f"It's {p.gold} {p.unit}."])
    return (
        f"{head}\n\nHere is why. {p.steps[0]} Then the {c} of the second part have to be taken into account, which is done in one more step. "
        f"People often forget this, and stop after the product of {a} and {b}. Others mix up the order and begin with {c}. "
        f"As a check, you may split {b} into {b - 2} and 2, and multiply {a} by each of them."
    )


def bullets(p: Problem, r: random.Random) -> str:
    """A list whose last point is the answer."""
    a, b, c = p.parts
    mark = r.choice(["-", "*", "•", "–"])
    last = r.choice(
        [
            f"**All in all:** {p.gold} {p.unit}",
            f"{p.unit.capitalize()} in the end: {p.gold}",
            f"Sum total — {p.gold}",
            f"⇒ **{p.gold}** {p.unit}",
        ]
    )
    return f"{mark} First part: {a} × {b} = {a * b}\n{mark} Second part: {c}\n{mark} {last}"


def two_parts(p: Problem, r: random.Random) -> str:
    """Two values are asked for, and given in two places."""
    x, y = p.gold.split(", ")
    k = r.randrange(4)
    if k == 0:
        return f"(a) {p.steps[0]} So the larger number is {y}.\n\n(b) {p.steps[1]} So the smaller number is {x}."
    if k == 1:
        return f"{p.work}\n\n- smaller number: {x}\n- larger number: {y}"
    if k == 2:
        return f"{p.work}\n\nThe smaller one is \\boxed{{{x}}} and the larger one is \\boxed{{{y}}}."
    return f"{p.work}\n\n**Smaller:** {x} | **Larger:** {y}"


def two_numbers(r: random.Random) -> Problem:
    """Sum and difference of two numbers are known."""
    x, d = r.randint(5, 60), r.randint(3, 40)
    y = x + d
    return Problem(
        f"The sum of two numbers is {x + y} and their difference is {d}. Find both numbers, the smaller one first.",
        [f"The larger number is half of {x + y} + {d}.", f"The smaller number is half of {x + y} - {d}."],
        f"{x}, {y}",
        "",
        [x, y, d],
    )


def units_odd(p: Problem, r: random.Random) -> str:
    """The unit stands in front, is glued or is joined by a hyphen."""
    g = p.gold
    forms = {
        "euros": [f"EUR {g}", f"€{g}", f"{g}€", f"{g} EUR (euros)", f"euros: {g}"],
        "pages": [f"pages: {g}", f"{g}pp.", f"{g}-pages"],
        "tulips": [f"tulips: {g}", f"{g}x tulip", f"tulips = {g}"],
        "sacks": [f"sacks: {g}", f"{g}x sack", f"# sacks = {g}"],
    }[p.unit]
    lead = r.choice(["Altogether ", "Total = ", "Result: ", ""])
    return f"{p.work}\n\n{lead}{r.choice(forms)}"


def choice_problem(r: random.Random) -> Problem:
    """A multiple-choice problem."""
    p = story(r)
    g = int(p.gold)
    options = [str(g), str(g + r.randint(1, 9)), str(max(1, g - r.randint(2, 9))), str(g + 10 + r.randint(1, 9))]
    r.shuffle(options)
    letter = "ABCD"[options.index(p.gold)]
    text = "\n".join(f"{x}. {o} {p.unit}" for x, o in zip("ABCD", options))
    return Problem(
        f"{p.question}\n{text}",
        p.steps,
        letter,
        p.unit,
        [*p.parts, options.index(p.gold), g],
        "choice",
        {"options": [f"{o} {p.unit}" for o in options]},
    )


def choice_words(p: Problem, r: random.Random) -> str:
    """The option is named by its place or its text."""
    place, g = p.parts[3], p.parts[4]
    name = ["first", "second", "third", "fourth"][place]
    k = r.randrange(4)
    if k == 0:
        return f"{p.work} So the {name} option is the right one."
    if k == 1:
        return f"{p.work} I pick the one that says {g} {p.unit}."
    if k == 2:
        return f"{p.work}\n\nOption #{place + 1} fits."
    return f"{p.work}\n\n☑ {'ABCD'[place]}"


def markup(p: Problem, r: random.Random) -> str:
    """Markup of other tools."""
    k = r.randrange(6)
    return (
        p.work
        + "\n\n"
        + [
            f'$ "Answer" = {p.gold} $',
            f"<math><mtext>Total</mtext><mo>=</mo><mn>{p.gold}</mn></math>",
            f"{{{{answer|{p.gold} {p.unit}}}}}",
            f"#+RESULT:\n: {p.gold}",
            f'<div class="answer"><b>{p.gold}</b> {p.unit}</div>',
            f".. admonition:: Answer\n\n   {p.gold} {p.unit}",
        ][k]
    )


FORMS: list[tuple[str, Callable[[Problem, random.Random], str], str, str]] = [
    ("yaml_block", yaml_block, "Reply in YAML.", "final_answer:\\n  value: 72"),
    ("xml_fields", xml_fields, "Reply in XML.", '<result unit="pages"><value>72</value></result>'),
    (
        "framed",
        framed,
        "Write your solution in LaTeX and frame the answer.",
        "\\fbox{72}, \\begin{tcolorbox}[title=Answer]",
    ),
    ("code_output", code_output, "You may run Python.", "```output 72 ```, Out[2]: 72"),
    ("languages", languages, "Answer in a language of your choice.", "Ответ: 72, 答えは72です"),
    ("emoji", emoji, "Make it fun!", "✅ 72 pages"),
    ("answer_first", answer_first, "Give the answer first, then explain.", "**72 pages**, then a long explanation"),
    ("bullets", bullets, "Answer in bullet points.", "• **All in all:** 72 pages"),
    ("two_parts", two_parts, "Show your work.", "- smaller number: 12 - larger number: 45"),
    ("units_odd", units_odd, "Do not forget the unit.", "EUR 72, 72pp., sacks: 72"),
    ("choice_words", choice_words, "Choose one of the options.", "So the third option is the right one."),
    ("markup", markup, "Format your answer nicely.", "{{answer|72 pages}}, <mn>72</mn>"),
]


def wrong(p: Problem, r: random.Random) -> str:
    """Another value."""
    return str(int(p.gold) + r.choice([-10, -3, -1, 1, 2, 9, 10, 100]))


def base_ramble(p: Problem, r: random.Random) -> tuple[str, str, bool | None]:
    """A weak base model: it answers and rambles on, or only rambles."""
    k = r.random()
    noise = "It is a nice day and the sun is out. " * r.randint(2, 9)
    if k < 0.36:
        x = r.choice(
            [
                "You can see that there are many of them. And then there are more of them, and so it goes on and on. ",
                "The question is how many there are. We have to think about how many there are. ",
                "Answer: we do not know. ",
            ]
        )
        return x * r.randint(3, 14), r.choice(["length", "length", "stop"]), None
    right = r.random() < 0.38
    g = p.gold if right else wrong(p, r)
    body = r.choice(
        [
            f"{p.steps[0]}\nThe answer is {g}.",
            f"{p.steps[0]} #### {g}",
            f"Answer: {g}",
            f"{p.steps[0]}\nSo the answer is {g} {p.unit}.",
        ]
    )
    tail = r.choice(["", "", "\n\n" + noise.strip(), "\n\n\n"])
    return body + tail, "length" if tail.startswith("\n\nIt") else "stop", right


def thinking_limit(p: Problem, r: random.Random) -> tuple[str, str, bool | None]:
    """A thinking model; many thoughts run into the limit."""
    a, b, _ = p.parts
    thought = (
        f"<think>\nThe user asks: {p.question} Let me start with {a} times {b}. {p.steps[0]} "
        + "Let me double-check this by adding repeatedly. Wait, that is fine. " * r.randint(1, 6)
    )
    if r.random() < 0.45:
        cut = (
            thought
            + f"Alternatively, one could take {a - 1} times {b} and then add {b}. Hmm, but what if the question means something else"
        )
        return cut[: len(cut) - r.randint(1, 30)], "length", None
    right = r.random() < 0.7
    g = p.gold if right else wrong(p, r)
    end = r.choice(
        [
            f"The final answer is $\\boxed{{{g}}}$.",
            f"**Answer:** {g} {p.unit}",
            f"\\boxed{{{g}}}",
            f"Therefore, the answer is **{g}**.",
        ]
    )
    return thought + f"So {g}.\n</think>\n\n{p.steps[0]}\n\n{end}", "stop", right


def chat_usual(p: Problem, r: random.Random) -> tuple[str, str, bool | None]:
    """A chat model in usual forms."""
    k = r.random()
    if k < 0.08:
        return "I'm sorry, but I can't help with that.", "stop", None
    right = r.random() < 0.62
    g = p.gold if right else wrong(p, r)
    end = r.choice(
        [
            f"So the final answer is \\(\\boxed{{{g}}}\\).",
            f"**Answer: {g}**",
            f"The answer is **{g} {p.unit}**.",
            f"Final answer: {g}",
            f"#### {g}",
            f"### Final Answer\n\n$$\\boxed{{{g}}}$$",
            f"Thus, the answer is {g} {p.unit}.",
            f"<answer>{g}</answer>",
        ]
    )
    return (
        f"To solve this, let's go step by step.\n\n**Step 1.** {p.steps[0]}\n\n**Step 2.** We take the rest into account.\n\n{end}",
        "stop",
        right,
    )


expected: dict[str, Any] = {}


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """JSON Lines."""
    (HERE / f"{name}.jsonl").write_text(
        "\n".join(json.dumps(x, ensure_ascii=False) for x in rows) + "\n", encoding="utf-8"
    )


for number, (name, form, lead, example) in enumerate(FORMS):
    r, rows, seen = random.Random(300 + number), [], set()
    make = {"two_parts": two_numbers, "choice_words": choice_problem}.get(name, story)
    while len(rows) < 60:
        p = make(r)
        if p.question in seen:
            continue
        seen.add(p.question)
        row = {"id": f"{name}-{len(rows)}", "prompt": f"{lead}\n\n{p.question}", "gold": p.gold}
        row |= {"verifier": "choice", "verifier_args": p.args} if p.verifier == "choice" else {}
        rows.append(row | {"response": form(p, r), "finish_reason": "stop", "right": True})
    write(name, rows)
    expected[name] = {
        "rows": 60,
        "right": 60,
        "example": example,
        "verifier": (make is choice_problem and "choice") or "math",
        "expect": EXPECT,
    }
for number, (name, corpus) in enumerate(
    [("base_ramble", base_ramble), ("thinking_limit", thinking_limit), ("chat_usual", chat_usual)]
):
    r, rows = random.Random(400 + number), []
    while len(rows) < 100:
        p = story(r)
        text, end, right = corpus(p, r)
        prompt = f"Q: {p.question}\nA:" if name == "base_ramble" else p.question
        rows.append(
            {
                "id": f"{name}-{len(rows)}",
                "prompt": prompt,
                "gold": p.gold,
                "response": text,
                "finish_reason": end,
                "right": right,
            }
        )
    write(name, rows)
    expected[name] = {
        "rows": 100,
        "right": sum(x["right"] is True for x in rows),
        "wrong": sum(x["right"] is False for x in rows),
        "no_answer": sum(x["right"] is None for x in rows),
        "cut": sum(x["finish_reason"] == "length" for x in rows),
        "verifier": "math",
        "expect": "right ones are paid, others are not; no line about an unread form and no action",
    }
(HERE / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
print({k: (v["right"], v.get("wrong"), v.get("no_answer")) for k, v in expected.items()})
