"""Writes the sets of this folder with 24 kinds of faults, two clean sets, a benchmark and expected.json.

Run it in any folder: `python make_gate.py`. Golds are computed, tests are made by running the programs.
"""

import json
import math
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Row = dict[str, Any]
NAMES = [
    "Ada",
    "Bruno",
    "Carla",
    "Dario",
    "Esra",
    "Felix",
    "Gita",
    "Henri",
    "Ivo",
    "Jana",
    "Koji",
    "Lotte",
    "Malik",
    "Nadja",
    "Omar",
    "Paola",
    "Quentin",
    "Rhea",
    "Sven",
    "Talia",
]


def tex(value: Fraction | int) -> str:
    """A number in LaTeX."""
    value = Fraction(value)
    if value.denominator == 1:
        return str(value.numerator)
    return ("-" if value < 0 else "") + f"\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


Made = tuple[str, str, str]


def t_tiles(r: random.Random) -> Made:
    a, b = r.randint(12, 60), r.randint(11, 45)
    k = r.choice([3, 4, 5])
    return (
        f"The floor of a hall is {a * k} cm long and {b * k} cm wide. It is laid with square tiles of side {k} cm. How many tiles are needed?",
        f"There are {a} tiles in a row and {b} rows, so ${a} \\cdot {b} = {a * b}$.",
        str(a * b),
    )


def t_lcm(r: random.Random) -> Made:
    a, b = r.sample(range(8, 40), 2)
    return (
        f"Find the least common multiple of {a} and {b}.",
        f"$\\gcd({a}, {b}) = {math.gcd(a, b)}$, so the least common multiple is $\\frac{{{a} \\cdot {b}}}{{{math.gcd(a, b)}}}$.",
        str(math.lcm(a, b)),
    )


def t_vieta(r: random.Random) -> Made:
    p, q = r.randint(3, 14), r.randint(2, 11)
    return (
        f"Let $r$ and $s$ be the roots of $x^2 - {p + q}x + {p * q} = 0$. Find $r^2 + s^2$.",
        f"$r^2 + s^2 = (r+s)^2 - 2rs = {p + q}^2 - 2 \\cdot {p * q}$.",
        str((p + q) ** 2 - 2 * p * q),
    )


def t_mod(r: random.Random) -> Made:
    b, e, k = r.randint(2, 9), r.randint(20, 90), r.choice([7, 11, 13, 17])
    return (
        f"What is the remainder when ${b}^{{{e}}}$ is divided by {k}?",
        f"Powers of {b} modulo {k} repeat, and the exponent {e} can be reduced.",
        str(pow(b, e, k)),
    )


def t_log(r: random.Random) -> Made:
    b, e = r.choice([2, 3, 5]), r.randint(3, 7)
    c = r.randint(2, 9)
    return (f"Evaluate $\\log_{{{b}}} {b**e} + {c}$.", f"${b}^{e} = {b**e}$, so the logarithm is {e}.", str(e + c))


def t_det(r: random.Random) -> Made:
    a, b, c, d = (r.randint(-9, 12) for _ in range(4))
    return (
        f"Compute the determinant of $\\begin{{pmatrix}} {a} & {b} \\\\ {c} & {d} \\end{{pmatrix}}$.",
        f"It is $({a})({d}) - ({b})({c})$.",
        str(a * d - b * c),
    )


def t_integral(r: random.Random) -> Made:
    a, b = r.randint(2, 9), r.randint(2, 6)
    return (f"Evaluate $\\int_0^{{{b}}} {2 * a}x \\, dx$.", f"An antiderivative is ${a}x^2$.", str(a * b * b))


def t_slope(r: random.Random) -> Made:
    x, y, dx, dy = r.randint(-8, 8), r.randint(-8, 8), r.randint(2, 9), r.choice([-7, -5, -3, 1, 4, 6, 11])
    return (
        f"What is the slope of the line through $({x}, {y})$ and $({x + dx}, {y + dy})$?",
        f"The slope is the difference of the ordinates over that of the abscissas, $\\frac{{{dy}}}{{{dx}}}$.",
        tex(Fraction(dy, dx)),
    )


def t_prob(r: random.Random) -> Made:
    n, k = r.randint(20, 60), r.choice([3, 4, 7])
    return (
        f"A number is chosen at random from the integers 1 to {n}. What is the probability that it is a multiple of {k}? Write a fraction in lowest terms.",
        f"There are {n // k} multiples of {k} among them.",
        tex(Fraction(n // k, n)),
    )


def t_speed(r: random.Random) -> Made:
    v, t = r.randint(12, 40), r.randint(3, 9)
    n = r.choice(NAMES)
    return (
        f"{n} cycles {v * t} km in {t} hours at a constant speed. What is the speed in km/h?",
        f"${v * t} / {t} = {v}$.",
        str(v),
    )


def t_mix(r: random.Random) -> Made:
    n = r.choice(NAMES)
    a, b, p, q = r.randint(3, 9), r.randint(2, 8), r.randint(11, 25), r.randint(26, 49)
    return (
        f"{n} buys {a} plants at {p} dollars each and {b} pots at {q} dollars each. What is the total price in dollars?",
        f"${a} \\cdot {p} + {b} \\cdot {q} = {a * p} + {b * q} = {a * p + b * q}$.",
        str(a * p + b * q),
    )


def t_age(r: random.Random) -> Made:
    n, m = r.sample(NAMES, 2)
    k, d = r.randint(2, 5), r.randint(4, 12)
    return (
        f"{n} is {k} times as old as {m}. The sum of their ages is {(k + 1) * d} years. How old is {n}?",
        f"{m} is ${(k + 1) * d} / {k + 1} = {d}$ years old, {n} ${k} \\cdot {d} = {k * d}$.",
        str(k * d),
    )


def t_perm(r: random.Random) -> Made:
    n, k = r.randint(5, 9), r.randint(2, 4)
    return (
        f"How many ordered selections of {k} different letters can be made from {n} letters?",
        f"There are $\\frac{{{n}!}}{{{n - k}!}}$ of them.",
        str(math.perm(n, k)),
    )


def t_sphere(r: random.Random) -> Made:
    a = r.randint(2, 24)
    return (
        f"What is the volume of a ball of radius {a} cm in cubic centimetres, in terms of $\\pi$?",
        f"It is $\\frac{{4}}{{3}} \\pi \\cdot {a}^3$.",
        (tex(Fraction(4 * a**3, 3)) + "\\pi"),
    )


def t_geo(r: random.Random) -> Made:
    a, q, n = r.randint(1, 7), r.choice([2, 3]), r.randint(4, 8)
    return (
        f"A geometric sequence begins with {a} and has the ratio {q}. Find the sum of its first {n} terms.",
        f"The sum is ${a} \\cdot \\frac{{{q}^{n} - 1}}{{{q - 1}}}$.",
        str(a * (q**n - 1) // (q - 1)),
    )


def t_binary(r: random.Random) -> Made:
    n = r.randint(40, 250)
    return (f"How many ones does the binary numeral of {n} have?", f"{n} is {n:b} in base two.", str(bin(n).count("1")))


def t_sqrt(r: random.Random) -> Made:
    a, b = r.randint(2, 12), r.choice([2, 3, 5, 6, 7])
    return (
        f"Write $\\sqrt{{{a * a * b}}}$ in simplest radical form.",
        f"${a * a * b} = {a}^2 \\cdot {b}$.",
        f"{a}\\sqrt{{{b}}}",
    )


def t_system(r: random.Random) -> Made:
    x, y = r.randint(2, 15), r.randint(-6, 9)
    return (
        f"Suppose $2x + y = {2 * x + y}$ and $x - y = {x - y}$. Find $x$.",
        f"Adding both equations gives $3x = {3 * x}$.",
        str(x),
    )


def t_work(r: random.Random) -> Made:
    n, m = r.sample(NAMES, 2)
    a, b = r.choice(
        [
            (3, 6),
            (4, 12),
            (6, 12),
            (10, 15),
            (20, 30),
            (12, 24),
            (5, 20),
            (8, 24),
            (6, 30),
            (15, 30),
            (9, 18),
            (14, 35),
            (21, 28),
            (24, 40),
            (30, 45),
        ]
    )
    return (
        f"{n} paints a fence in {a} hours, {m} in {b} hours. How many hours do they need together?",
        f"Together they paint $\\frac{{1}}{{{a}}} + \\frac{{1}}{{{b}}}$ of it in an hour.",
        tex(1 / (Fraction(1, a) + Fraction(1, b))),
    )


def t_clock(r: random.Random) -> Made:
    h = r.randint(1, 11)
    ang = min(30 * h, 360 - 30 * h)
    return (
        f"What is the smaller angle in degrees between the hands of a clock at {h} o'clock?",
        f"Each hour is 30 degrees; between the hands there are {min(h, 12 - h)} hours.",
        str(ang),
    )


def t_recipe(r: random.Random) -> Made:
    n = r.choice(NAMES)
    p, k, g = r.choice([4, 6, 8]), r.randint(3, 7), r.randint(11, 60) * 10
    return (
        f"A recipe for {p} persons needs {g} g of flour. {n} cooks for {p * k} persons. How many grams of flour are needed?",
        f"${k} \\cdot {g} = {k * g}$.",
        str(k * g),
    )


def t_poly(r: random.Random) -> Made:
    a, b, c, x = (
        r.randint(2, 6),
        r.choice([-9, -7, -4, -3, 2, 3, 5, 8]),
        r.randint(1, 20),
        r.choice([-4, -3, -2, 2, 3, 5, 6]),
    )
    return (
        f"Let $g(x) = {a}x^2 {b:+d}x + {c}$. What is $g({x})$?",
        f"$g({x}) = {a} \\cdot {x * x} {b * x:+d} + {c}$.",
        str(a * x * x + b * x + c),
    )


MAKERS: list[Callable[[random.Random], Made]] = [
    t_tiles,
    t_lcm,
    t_vieta,
    t_mod,
    t_log,
    t_det,
    t_integral,
    t_slope,
    t_prob,
    t_speed,
    t_mix,
    t_age,
    t_perm,
    t_sphere,
    t_geo,
    t_binary,
    t_sqrt,
    t_system,
    t_work,
    t_clock,
    t_recipe,
    t_poly,
]


def healthy(count: int, seed: int, tag: str, seen: set[str]) -> list[Row]:
    """Rows without a fault, no two of which have the same question but for names."""
    r, rows = random.Random(seed), []
    while len(rows) < count:
        question, work, gold = MAKERS[(len(rows) + seed) % len(MAKERS)](r)
        key = question
        for name in NAMES:
            key = key.replace(name, "X")
        if key in seen:
            continue
        seen.add(key)
        rows.append(
            {
                "id": f"{tag}-{len(rows):03d}",
                "problem": question,
                "solution": f"{work} The answer is $\\boxed{{{gold}}}$.",
                "answer": gold,
            }
        )
    return rows


def boxed(work: str, gold: str) -> str:
    """A worked solution."""
    return f"{work} The answer is $\\boxed{{{gold}}}$."


def planted(seen: set[str]) -> list[tuple[str, list[str], str, list[Row]]]:
    """Kinds of faults: name, names that a gate may give, what is wrong, rows."""
    r = random.Random(77)

    def fresh(n: int) -> list[Row]:
        return [dict(x) for x in healthy(n, r.randrange(10**6), "x", seen)]

    kinds: list[tuple[str, list[str], str, list[Row]]] = []
    some = fresh(4)
    for x, g in zip(some, ["See solution.", "N/A", "TBD", "略"]):
        x["answer"] = g
    kinds.append(
        (
            "placeholder as gold",
            [
                "missing_gold",
                "gold_missing",
                "gold_unmatchable",
                "gold_unparsed",
                "gold",
                "unusable",
                "gold_fails_verifier",
            ],
            "a placeholder stands in place of an answer",
            some,
        )
    )

    cut = [
        {
            "problem": "Write $\\frac{12}{18}$ in lowest terms.",
            "solution": boxed("Divide by 6.", "\\frac{2}{3}"),
            "answer": "\\frac{2}{3",
        },
        {
            "problem": "Solve $x^2 = 48$ for positive $x$.",
            "solution": boxed("$48 = 16 \\cdot 3$.", "4\\sqrt{3}"),
            "answer": "4\\sqrt{",
        },
        {
            "problem": "Find the midpoint of $(2, 5)$ and $(8, -1)$.",
            "solution": boxed("Take the means.", "(5, 2)"),
            "answer": "(5,",
        },
        {
            "problem": "What is $\\frac{3}{4}$ of $\\frac{5}{6}$?",
            "solution": boxed("Multiply.", "\\frac{5}{8}"),
            "answer": "\\frac{5}{",
        },
    ]
    kinds.append(
        (
            "gold cut at a brace",
            [
                "gold_unparsed",
                "gold",
                "gold_unmatchable",
                "solution_contradicts_gold",
                "gold_fails_verifier",
                "truncated_text",
                "damaged_latex",
            ],
            "a pattern for boxes stopped at the first brace or comma",
            cut,
        )
    )

    pairs = fresh(3)
    copies = [dict(x) for x in pairs]
    for x, g in zip(copies, ["17", "3", "1001"]):
        x["answer"] = g if x["answer"] != g else g + "0"
        x["solution"] = ""
    for x in pairs:
        x["solution"] = ""
    kinds.append(
        (
            "one question twice with two golds",
            ["conflicting_labels", "conflict_with_better_source", "conflict"],
            "the same text stands twice, with another gold and without a solution",
            [y for p in zip(pairs, copies) for y in p],
        )
    )

    talk = fresh(3)
    for x, head in zip(
        talk,
        [
            "Sure! Here is a new problem inspired by the given one:\n\n",
            "Certainly, here's a more challenging version of the problem:\n\n**Rewritten Problem:** ",
            "As an AI language model, I have created the following question:\n\n",
        ],
    ):
        x["problem"] = head + x["problem"]
    kinds.append(("talk of the generator", ["generator_talk"], "the words of the model that wrote the problem", talk))

    chat = fresh(3)
    for x, (a, b) in zip(
        chat,
        [
            ("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"),
            ("[INST] ", " [/INST]"),
            ("### Instruction:\n", "\n\n### Response:\n"),
        ],
    ):
        x["problem"] = a + x["problem"] + b
    kinds.append(
        (
            "remains of a chat template",
            [
                "boilerplate",
                "html_tags",
                "foreign_instruction",
                "chat_template",
                "template",
                "generator_talk",
                "control_characters",
            ],
            "marks of a chat template around the problem",
            chat,
        )
    )

    told = fresh(3)
    for x, head in zip(told, ["\n\nSolution: ", "\n\n**Solution.** ", "\n\n### Solution\n"]):
        x["problem"] += head + x["solution"]
    kinds.append(
        (
            "worked solution in the prompt",
            ["solution_in_prompt", "answer_in_prompt", "leaked_answer"],
            "the solution came along with the problem",
            told,
        )
    )

    looped = fresh(3)
    for x in looped:
        x["problem"] = " ".join([x["problem"]] * (3 if x is looped[0] else 2))
    looped[2]["problem"] = looped[2]["problem"] + " " + "Please note the units. " * 9
    kinds.append(
        ("text repeated", ["repeated_text"], "the problem is pasted two or three times, or a sentence loops", looped)
    )

    flat = [
        {
            "problem": "The Sun is about 1.5 x 108 km away. Light runs 3 x 105 km in a second. How many seconds does the light take?",
            "solution": boxed("$\\frac{1.5 \\cdot 10^8}{3 \\cdot 10^5} = 500$.", "500"),
            "answer": "500",
        },
        {
            "problem": "Find the value of x2 + 3x at x = 4.",
            "solution": boxed("$4^2 + 3 \\cdot 4 = 28$.", "28"),
            "answer": "28",
        },
        {
            "problem": "How many zeros are at the end of 106 x 254?",
            "solution": boxed("$10^6 \\cdot 25^4 = 10^6 \\cdot 390625$.", "6"),
            "answer": "6",
        },
    ]
    kinds.append(
        (
            "exponents lost",
            [
                "garbled_number",
                "lost_number",
                "lost_exponent",
                "damaged_latex",
                "solution_contradicts_gold",
                "arithmetic_error",
            ],
            "10^8 became 108, x^2 became x2",
            flat,
        )
    )

    hole = [
        {
            "problem": "A train runs at a speed of  km/h for 3 hours. How many kilometres does it run?",
            "solution": boxed("$80 \\cdot 3 = 240$.", "240"),
            "answer": "240",
        },
        {
            "problem": "Marta pays $ for a coat and $45 for a hat. How many dollars does she pay in all?",
            "solution": boxed("$120 + 45 = 165$.", "165"),
            "answer": "165",
        },
        {
            "problem": "A tank holds [NUM] litres. Each hour 15 litres flow out. After how many hours is it empty?",
            "solution": boxed("$300 / 15 = 20$.", "20"),
            "answer": "20",
        },
        {
            "problem": "A dress costs 80 dollars and is sold with a discount of  %. What is its price in dollars now?",
            "solution": boxed("$80 \\cdot 0.75 = 60$.", "60"),
            "answer": "60",
        },
    ]
    kinds.append(
        (
            "a number is missing",
            ["lost_number", "gap_in_text", "missing_quantity", "model_missing_condition"],
            "a number was lost with its markup",
            hole,
        )
    )

    half = [
        {
            "problem": "A school takes 130 pupils on a trip in buses of 40 seats. How many buses does it need?",
            "solution": boxed("$130 / 40 = 3.25$.", "3.25"),
            "answer": "3.25",
        },
        {
            "problem": "Nils has 27 marbles and gives them to 6 friends so that each gets the same number. How many marbles does each friend get?",
            "solution": boxed("$27 / 6 = 4.5$.", "4.5"),
            "answer": "4.5",
        },
        {
            "problem": "A class of 45 children forms teams of 7. How many children are left over?",
            "solution": boxed("$45 / 7 = 6.43$.", "6.43"),
            "answer": "6.43",
        },
    ]
    kinds.append(("fraction of persons or things", ["fractional_count"], "3.25 buses", half))

    comma = [
        {
            "problem": "A stadium has 35 blocks of 360 seats. How many seats has it?",
            "solution": boxed("$35 \\cdot 360 = 12600$.", "12,600"),
            "answer": "12",
        },
        {
            "problem": "A firm makes 2,450 bolts a day. How many bolts does it make in 6 days?",
            "solution": boxed("$2450 \\cdot 6 = 14700$.", "14,700"),
            "answer": "14",
        },
        {
            "problem": "A town has 48,200 inhabitants; 1,350 move away. How many remain?",
            "solution": boxed("$48200 - 1350 = 46850$.", "46,850"),
            "answer": "46",
        },
    ]
    kinds.append(
        (
            "gold cut at the comma of thousands",
            ["solution_contradicts_gold", "gold_slip", "gold"],
            "12 instead of 12,600",
            comma,
        )
    )

    beyond = [
        {
            "problem": "Which of these numbers is a multiple of 12?\n(A) 54\n(B) 60\n(C) 70\n(D) 86",
            "solution": "60 is 5 times 12.",
            "answer": "E",
        },
        {
            "problem": "What is the square of 17?\nA. 279\nB. 289\nC. 299\nD. 309",
            "solution": "$17^2 = 289$.",
            "answer": "F",
        },
        {
            "problem": "Which fraction is the greatest?\n(A) $\\frac{1}{2}$\n(B) $\\frac{2}{3}$\n(C) $\\frac{3}{5}$\n(D) $\\frac{4}{7}$",
            "solution": "$\\frac{2}{3}$ is the greatest.",
            "answer": "\\frac{5}{8}",
        },
    ]
    kinds.append(
        (
            "gold is none of the options",
            ["choice_remnant", "gold_unparsed", "answer_no_option", "gold", "gold_unmatchable"],
            "four options, and gold is a fifth",
            beyond,
        )
    )

    hidden = [
        {"problem": q, "solution": "", "answer": g}
        for q, g in [
            (
                "A  spider has 8 legs and a beetle has 6.&nbsp;In a box there are 13 of these animals with 90 legs.<br>How many spiders are in the box?",
                "6",
            ),
            (
                "**Problem 4.** Fіnd the number of оrdered pairs $(a, b)$ of positive integers such that $ab = 360$.",
                "24",
            ),
            (
                "The hexa\u00adgon $ABCDEF$ is regular and has side 10 . What is the length of its lon\u00adgest diago\u00adnal ?",
                "20",
            ),
        ]
    ]
    kinds.append(
        (
            "leak in disguise",
            ["leak", "evaluation_copy", "evaluation_overlap", "evaluation_rewording", "leaked_heldout"],
            "an item of against.jsonl with other letters, tags or soft hyphens",
            hidden,
        )
    )

    earlier = [
        {
            "problem": "Using the function from the previous exercise, find $f(3)$.",
            "solution": boxed("$f(3) = 2 \\cdot 3 + 5$.", "11"),
            "answer": "11",
        },
        {
            "problem": "Repeat Problem 14 with the numbers 8 and 18 in place of 4 and 9.",
            "solution": boxed("$\\sqrt{8 \\cdot 18} = 12$.", "12"),
            "answer": "12",
        },
        {
            "problem": "According to the table above, how many cars were sold in March?",
            "solution": boxed("The entry is 340.", "340"),
            "answer": "340",
        },
    ]
    kinds.append(
        (
            "refers to what is not there",
            [
                "missing_figure",
                "missing_quantity",
                "model_missing_condition",
                "missing_context",
                "no_question",
                "missing_reference",
                "truncated_text",
            ],
            "an earlier exercise, a table above",
            earlier,
        )
    )

    slip = [
        {
            "problem": "Rosa buys 14 boxes of 36 tiles and breaks 27 tiles. How many whole tiles has she?",
            "solution": "14 boxes hold 14 * 36 = 494 tiles. Of these 494 - 27 = 467 are whole. The answer is $\\boxed{467}$.",
            "answer": "467",
        },
        {
            "problem": "A cinema sells 125 tickets at 8 dollars and 64 at 5 dollars. How many dollars does it take in?",
            "solution": "It takes in 125 * 8 = 1000 dollars and 64 * 5 = 310 dollars, 1000 + 310 = 1310 in all. The answer is $\\boxed{1310}$.",
            "answer": "1310",
        },
        {
            "problem": "A lorry carries 18 pallets of 45 sacks. 96 sacks are unloaded. How many sacks stay on it?",
            "solution": "It carries 18 * 45 = 810 sacks, and 810 - 96 = 704 stay. The answer is $\\boxed{704}$.",
            "answer": "704",
        },
    ]
    kinds.append(
        ("arithmetic slip in the solution and gold", ["arithmetic_error", "gold_slip"], "14 * 36 is 504", slip)
    )
    return kinds


AGAINST = [
    (
        "A spider has 8 legs and a beetle has 6. In a box there are 13 of these animals with 90 legs. How many spiders are in the box?",
        "6",
    ),
    ("Find the number of ordered pairs $(a, b)$ of positive integers such that $ab = 360$.", "24"),
    ("The hexagon $ABCDEF$ is regular and has side 10. What is the length of its longest diagonal?", "20"),
    ("How many subsets of a set of 9 elements have an odd number of elements?", "256"),
    ("The digits of a two-digit number sum to 11, and reversing them adds 27. What is the number?", "47"),
]

# --- code -------------------------------------------------------------------------------------------------------------
TASKS: list[tuple[str, str, str, list[str]]] = [
    (
        "clamp",
        "limits a number x to the range from low to high",
        "def {f}(x, low, high):\n    return max(low, min(x, high))",
        ["5, 0, 10", "-3, 0, 10", "14, 0, 10", "2, 2, 2"],
    ),
    (
        "run_lengths",
        "returns the run lengths of a text as a list of pairs of letter and count",
        "def {f}(text):\n    out = []\n    for c in text:\n        if out and out[-1][0] == c:\n            out[-1] = (c, out[-1][1] + 1)\n        else:\n            out.append((c, 1))\n    return out",
        ["'aabccc'", "''", "'xyz'", "'zzzz'"],
    ),
    (
        "transpose",
        "transposes a matrix given as a list of rows",
        "def {f}(rows):\n    return [list(column) for column in zip(*rows)]",
        ["[[1, 2], [3, 4], [5, 6]]", "[[7]]", "[[1, 2, 3]]", "[]"],
    ),
    (
        "collatz_steps",
        "returns how many steps the Collatz rule takes from n to 1",
        "def {f}(n):\n    steps = 0\n    while n != 1:\n        n = n // 2 if n % 2 == 0 else 3 * n + 1\n        steps += 1\n    return steps",
        ["1", "6", "7", "27"],
    ),
    (
        "is_anagram",
        "says whether two texts are anagrams, without regard to case and blanks",
        "def {f}(a, b):\n    def key(s):\n        return sorted(s.replace(' ', '').lower())\n    return key(a) == key(b)",
        ["'Dormitory', 'dirty room'", "'abc', 'abd'", "'', ''", "'Listen', 'Silent'", "'aab', 'abb'"],
    ),
    (
        "merge_sorted",
        "merges two sorted lists into a sorted one",
        "def {f}(a, b):\n    return sorted(a + b)",
        ["[1, 4], [2, 3]", "[], [5]", "[1, 1], [1]", "[-2, 0], [-1, 7]"],
    ),
    (
        "to_roman",
        "writes a number from 1 to 3999 in Roman numerals",
        "def {f}(n):\n    out = ''\n    for value, sign in [(1000, 'M'), (900, 'CM'), (500, 'D'), (400, 'CD'), (100, 'C'), (90, 'XC'), (50, 'L'), (40, 'XL'), (10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')]:\n        while n >= value:\n            out += sign\n            n -= value\n    return out",
        ["4", "1994", "58", "3999", "444"],
    ),
    (
        "max_window",
        "returns the greatest sum of k neighbouring numbers of a list",
        "def {f}(numbers, k):\n    return max(sum(numbers[i:i + k]) for i in range(len(numbers) - k + 1))",
        ["[1, 5, 2, 8], 2", "[3], 1", "[-4, -1, -7], 2", "[2, 2, 9, 1, 4], 3"],
    ),
    (
        "prime_factors",
        "returns the prime factors of n in increasing order, with repetition",
        "def {f}(n):\n    out, d = [], 2\n    while n > 1:\n        while n % d == 0:\n            out.append(d)\n            n //= d\n        d += 1\n    return out",
        ["60", "13", "1", "49", "128"],
    ),
    (
        "caesar",
        "shifts the small letters of a text by k places in the alphabet and leaves the rest",
        "def {f}(text, k):\n    return ''.join(chr((ord(c) - 97 + k) % 26 + 97) if c.islower() else c for c in text)",
        ["'abc', 1", "'xyz!', 3", "'Hello', 26", "'m', -13"],
    ),
    (
        "deep_sum",
        "returns the sum of all numbers in a list of lists of any depth",
        "def {f}(items):\n    return sum({f}(x) if isinstance(x, list) else x for x in items)",
        ["[1, [2, [3, 4]], 5]", "[]", "[[[7]]]", "[-1, [1], [2, [-3]]]"],
    ),
    (
        "word_freq",
        "returns a dictionary from the words of a text to their counts",
        "def {f}(text):\n    out = {{}}\n    for w in text.split():\n        out[w] = out.get(w, 0) + 1\n    return out",
        ["'a b a'", "''", "'one'", "'x y x y z'"],
    ),
    (
        "spiral",
        "returns the numbers of a matrix in spiral order, clockwise from the upper left",
        "def {f}(rows):\n    rows, out = [list(r) for r in rows], []\n    while rows:\n        out += rows.pop(0)\n        rows = [list(r) for r in zip(*rows)][::-1]\n    return out",
        ["[[1, 2], [4, 3]]", "[[1, 2, 3], [8, 9, 4], [7, 6, 5]]", "[]", "[[5], [6]]"],
    ),
    (
        "hamming",
        "returns the number of places in which two texts of equal length differ",
        "def {f}(a, b):\n    return sum(x != y for x, y in zip(a, b))",
        ["'karolin', 'kathrin'", "'', ''", "'abc', 'abc'", "'1011101', '1001001'"],
    ),
    (
        "bin_search",
        "returns the index of x in a sorted list without repetitions, or -1 if it is not in it",
        "def {f}(numbers, x):\n    return numbers.index(x) if x in numbers else -1",
        ["[1, 3, 5, 8], 5", "[1, 3], 2", "[], 1", "[4, 9, 11], 4", "[2, 6, 7], 7"],
    ),
    (
        "snake",
        "turns a name in camel case, such as maxValue, into snake case",
        "def {f}(name):\n    return ''.join('_' + c.lower() if c.isupper() else c for c in name).lstrip('_')",
        ["'maxValue'", "'x'", "'HttpServerPort'", "'aB'"],
    ),
    (
        "pascal_row",
        "returns the n-th row of Pascal's triangle, counted from 0",
        "def {f}(n):\n    row = [1]\n    for k in range(n):\n        row.append(row[-1] * (n - k) // (k + 1))\n    return row",
        ["0", "1", "4", "6"],
    ),
    (
        "pairs_with_sum",
        "returns how many pairs of indices i < j have numbers[i] + numbers[j] equal to s",
        "def {f}(numbers, s):\n    return sum(numbers[i] + numbers[j] == s for j in range(len(numbers)) for i in range(j))",
        ["[1, 2, 3, 4], 5", "[], 0", "[2, 2, 2], 4", "[-1, 1, 0], 0"],
    ),
    (
        "title_case",
        "writes the first letter of each word as a capital and the others small",
        "def {f}(text):\n    return ' '.join(w[:1].upper() + w[1:].lower() for w in text.split(' '))",
        ["'hello world'", "''", "'oNE TwO'", "'x'"],
    ),
    (
        "digits_base",
        "returns the digits of n >= 0 in base b as a list, the most significant first",
        "def {f}(n, b):\n    out = [n % b]\n    while n >= b:\n        n //= b\n        out.insert(0, n % b)\n    return out",
        ["10, 2", "0, 7", "255, 16", "6, 7"],
    ),
    (
        "interleave",
        "takes items from two lists by turns and appends what is left of the longer one",
        "def {f}(a, b):\n    n = min(len(a), len(b))\n    return [x for p in zip(a, b) for x in p] + a[n:] + b[n:]",
        ["[1, 3], [2, 4]", "[], [1]", "['a', 'b', 'c'], ['x']", "[0], [9, 8]"],
    ),
    (
        "mode",
        "returns the most frequent item of a list, and the smallest of several",
        "def {f}(items):\n    return min(set(items), key=lambda x: (-items.count(x), x))",
        ["[1, 2, 2]", "[3, 1]", "[5, 5, 4, 4, 9]", "[7]"],
    ),
    (
        "strip_comments",
        "removes from each line of a text everything from a number sign on",
        "def {f}(text):\n    return '\\n'.join(line.split('#')[0] for line in text.split('\\n'))",
        ["'a # b'", "''", "'x\\n# y\\nz'", "'k=1#2#3'"],
    ),
    (
        "gray_code",
        "returns the Gray code of an integer n >= 0",
        "def {f}(n):\n    return n ^ (n >> 1)",
        ["0", "5", "12", "255"],
    ),
    (
        "balanced",
        "says whether the brackets ()[] of a text are balanced",
        "def {f}(text):\n    stack = []\n    for c in text:\n        if c in '([':\n            stack.append(c)\n        elif c in ')]':\n            if not stack or stack.pop() + c not in ('()', '[]'):\n                return False\n    return not stack",
        ["'([])'", "'([)]'", "''", "'(('", "'a(b)[c]'", "')('"],
    ),
]
AGGREGATES = [
    ("total", "sum", "sum({x})"),
    ("count", "number", "len({x})"),
    ("largest", "greatest, or 0 if there is none,", "max({x}, default=0)"),
    ("smallest", "least, or 0 if there is none,", "min({x}, default=0)"),
    ("sorted", "increasing list", "sorted({x})"),
    (
        "span",
        "difference between the greatest and the least, or 0 if there is none,",
        "max({x}, default=0) - min({x}, default=0)",
    ),
    ("squares", "sum of the squares", "sum(n * n for n in {x})"),
    ("backward", "list in reversed order", "{x}[::-1]"),
]
CONDITIONS = [
    ("even", "are even", "n % 2 == 0"),
    ("odd", "are odd", "n % 2 == 1"),
    ("positive", "are greater than 0", "n > 0"),
    ("below_ten", "are less than 10", "n < 10"),
    ("by_three", "are divisible by 3", "n % 3 == 0"),
    ("two_digits", "have two digits (10 to 99)", "10 <= n <= 99"),
    ("end_in_five", "end in the digit 5", "abs(n) % 10 == 5"),
    ("square", "are perfect squares", "n >= 0 and int(n ** 0.5 + 0.5) ** 2 == n"),
    ("unlike_neighbour", "differ from the number before them; the first one counts", "i == 0 or numbers[i - 1] != n"),
    ("at_even_index", "stand at an even index, counted from 0", "i % 2 == 0"),
]
LISTS = [
    "[3, 8, 15, 22, 9, 64, -5, 10]",
    "[]",
    "[25, 25, 7, 12, 100, 45, -18, 6, 1]",
    "[4]",
    "[-9, -2, 33, 33, 16, 5, 99, 10, 0]",
    "[11, 2, 2, 75, 36, 120, -15]",
]
for _a, _at, _ap in AGGREGATES:
    for _c, _ct, _cp in CONDITIONS:
        _keep = "[n for i, n in enumerate(numbers) if " + _cp + "]"
        TASKS.append(
            (
                f"{_a}_{_c}",
                f"returns the {_at} of those numbers in a list that {_ct}",
                "def {f}(numbers):\n    kept = " + _keep + "\n    return " + _ap.replace("{x}", "kept"),
                LISTS,
            )
        )


def program(name: str, source: str) -> tuple[str, dict[str, Any]]:
    """A program and what it defines."""
    text = source.replace("{{", "{").replace("}}", "}").replace("{f}", name)
    space: dict[str, Any] = {}
    exec(text, space)
    return text, space


def coded(task: int, number: int, extra: str = "") -> Row:
    """A row in MBPP's columns."""
    base, text, source, inputs = TASKS[task]
    name = base + extra
    code, space = program(name, source)
    tests = [f"assert {name}({x}) == {eval(f'{name}({x})', space)!r}" for x in inputs]
    return {
        "task_id": 9000 + number,
        "text": f"Write a function {name} that {text}.",
        "code": code,
        "test_list": tests,
        "test_setup_code": "",
        "challenge_test_list": [],
    }


def planted_code() -> list[tuple[str, list[str], str, list[Row]]]:
    """The kinds of faults of the code set."""
    kinds = []
    fails = ["gold", "reference_fails", "gold_fails_verifier"]
    rows = [coded(t, 0) for t in (0, 1, 2)]
    for x in rows:
        x["test_list"] = [t.replace("assert ", "print(", 1) + ")" for t in x["test_list"]]
    kinds.append(
        (
            "nothing is asserted",
            [
                "skipped",
                "null",
                "empty",
                "paid_null",
                "unreadable_tests",
                "missing_tests",
                "hack",
                "gold_unverified",
                "unusable",
            ],
            "the tests print instead of asserting",
            rows,
        )
    )
    rows = [coded(t, 0) for t in (3, 5, 7)]
    for x, new in zip(rows, ["collatzLength", "merge", "window_max"]):
        old = x["text"].split()[3]
        x["test_list"] = [t.replace(old, new) for t in x["test_list"]]
    kinds.append(
        (
            "tests call another name",
            [*fails, "entry_point_not_in_prompt", "unreadable_tests"],
            "the program has another name than the tests call",
            rows,
        )
    )
    rows = [coded(t, 0) for t in (8, 9, 10)]
    rows[0]["code"] = rows[0]["code"].replace("    while n > 1:", "    while n > 1")
    rows[1]["code"] = rows[1]["code"].replace("    return", "\treturn\n  pass\n  return", 1)
    rows[2]["code"] = "```python\n" + rows[2]["code"][:-30]
    kinds.append(
        (
            "program does not compile",
            [*fails, "gold_unverified", "gold_unparsed"],
            "a colon is missing, tabs and blanks are mixed, the end is cut",
            rows,
        )
    )
    rows = [coded(t, 0) for t in (4, 14, 24)]
    rows[0]["test_list"] = [
        "assert is_anagram('Listen', 'Silent') == True",
        "assert is_anagram('', '') == True",
        "assert is_anagram('ab', 'ba') == True",
    ]
    rows[1]["test_list"] = [
        "assert bin_search([1, 3], 2) == -1",
        "assert bin_search([], 1) == -1",
        "assert bin_search([4], 5) == -1",
    ]
    rows[2]["test_list"] = ["assert balanced('()')", "assert balanced('[]')", "assert balanced('')"]
    kinds.append(
        (
            "every test expects the same",
            ["null", "paid_null", "guessable", "low_kill_rate", "memorizable"],
            "a program that returns a constant passes",
            rows,
        )
    )
    rows = [coded(t, 0) for t in (6, 11, 12)]
    rows[0]["test_setup_code"] = "from solution import to_roman"
    rows[1]["test_setup_code"] = "import internal_test_utils as itu"
    rows[2]["test_list"] = ["from company_tests.helpers import check_matrix", *rows[2]["test_list"]]
    kinds.append(
        (
            "tests need a module that is nowhere",
            [*fails, "missing_package", "skipped", "unreadable_tests", "gold_unverified", "unusable"],
            "an import that no machine has",
            rows,
        )
    )
    rows = []
    for k, (name, text, code, tests) in enumerate(
        [
            (
                "mean_of",
                "returns the mean of a list of numbers",
                "def mean_of(numbers):\n    return sum(numbers) / len(numbers)",
                [
                    "assert mean_of([0.1, 0.2, 0.3]) == 0.2",
                    "assert mean_of([1, 2]) == 1.5",
                    "assert mean_of([0.7, 0.1, 0.1]) == 0.3",
                ],
            ),
            (
                "add_prices",
                "adds up prices",
                "def add_prices(prices):\n    total = 0.0\n    for p in prices:\n        total += p\n    return total",
                [
                    "assert add_prices([0.1, 0.2]) == 0.3",
                    "assert add_prices([1.1, 2.2]) == 3.3",
                    "assert add_prices([5]) == 5",
                ],
            ),
            (
                "celsius",
                "converts degrees Fahrenheit into degrees Celsius",
                "def celsius(f):\n    return (f - 32) / 1.8",
                ["assert celsius(212) == 100", "assert celsius(98.6) == 37.0", "assert celsius(-4.4) == -20.222222"],
            ),
        ]
    ):
        rows.append(
            {
                "task_id": k,
                "text": f"Write a function {name} that {text}.",
                "code": code,
                "test_list": tests,
                "test_setup_code": "",
                "challenge_test_list": [],
            }
        )
    kinds.append(("floats compared to the last digit", [*fails, "float_tolerance"], "0.1 + 0.2 == 0.3 is false", rows))
    rows = []
    for k, (name, text, code, tests) in enumerate(
        [
            (
                "years_since",
                "returns how many years have passed from a year to the present one",
                "import datetime\n\ndef years_since(year):\n    return datetime.date.today().year - year",
                ["assert years_since(2000) == 23", "assert years_since(1990) == 33", "assert years_since(2023) == 0"],
            ),
            (
                "roll",
                "returns the sum of n throws of a die",
                "import random\n\ndef roll(n):\n    return sum(random.randint(1, 6) for _ in range(n))",
                ["assert roll(5) == 17", "assert roll(1) == 3", "assert roll(10) == 38"],
            ),
            (
                "stamp",
                "returns the name of the current weekday in English",
                "import datetime\n\ndef stamp():\n    return datetime.datetime.now().strftime('%A %H:%M:%S')",
                ["assert stamp() == 'Tuesday 10:14:07'", "assert stamp().startswith('Tuesday 10')"],
            ),
        ]
    ):
        rows.append(
            {
                "task_id": k,
                "text": f"Write a function {name} that {text}.",
                "code": code,
                "test_list": tests,
                "test_setup_code": "",
                "challenge_test_list": [],
            }
        )
    kinds.append(
        (
            "depends on day or chance",
            [*fails, "flaky_cases"],
            "expected outputs of the day on which they were made, or of a die",
            rows,
        )
    )
    rows = [coded(t, 0) for t in (13, 15, 16)]
    for x in rows:
        body = "\n".join("        " + t for t in x["test_list"])
        x["test_list"] = [f"def test_all():\n    try:\n{body}\n    except Exception:\n        pass\n\ntest_all()"]
    rows[1]["test_list"] = [
        "try:\n    "
        + "\n    ".join(coded(15, 0)["test_list"])
        + "\nexcept AssertionError as error:\n    print('failed', error)"
    ]
    kinds.append(
        (
            "failures are caught",
            ["null", "paid_null", "skipped", "hack", "empty", "unreadable_tests", "gold_unverified", "unusable"],
            "the assertions stand in a try that forgives them",
            rows,
        )
    )
    rows = [coded(t, 0) for t in (17, 18, 19)]
    for x in rows:
        x["text"] += "\n\nReference solution:\n```python\n" + x["code"] + "\n```"
    kinds.append(
        (
            "program in the prompt",
            ["solution_in_prompt", "answer_in_prompt", "leaked_answer", "leaked_cases"],
            "the prompt shows the worked program",
            rows,
        )
    )
    return kinds


def spread(
    clean: list[Row], kinds: list[tuple[str, list[str], str, list[Row]]], total: int, seed: int
) -> tuple[list[Row], list[Row]]:
    """Puts the faulty rows at random places among the clean ones."""
    r = random.Random(seed)
    faulty = [(k, x) for k, kind in enumerate(kinds) for x in kind[3]]
    places = sorted(r.sample(range(total), len(faulty)))
    r.shuffle(faulty)
    at = dict(zip(places, faulty))
    rows, found, rest = [], {}, iter(clean)
    for n in range(total):
        if n in at:
            k, x = at[n]
            found.setdefault(k, []).append(n + 1)
            rows.append(x)
        else:
            rows.append(next(rest))
    return rows, [
        {"kind": kinds[k][0], "rows": found[k], "names": kinds[k][1], "say": kinds[k][2]} for k in range(len(kinds))
    ]


def write(name: str, rows: list[Row]) -> None:
    """JSON Lines."""
    (HERE / name).write_text("\n".join(json.dumps(x, ensure_ascii=False) for x in rows) + "\n", encoding="utf-8")


asked: set[str] = set()
kinds = planted(asked)
rows, faults = spread(healthy(150, 5, "p", asked), kinds, 150, 6)
for n, x in enumerate(rows):
    x["id"] = f"p2-{n:03d}"
rows = [{k: x[k] for k in ("id", "problem", "solution", "answer")} for x in rows]
write("maths.jsonl", rows)
write("maths_clean.jsonl", healthy(100, 1234, "c", set()))
write("against.jsonl", [{"id": f"e{n}", "problem": q, "answer": g} for n, (q, g) in enumerate(AGAINST)])
code_kinds = planted_code()
sound = [coded(t, 0) for t in (20, 21, 22, 23)] + [coded(t, 0) for t in (26, 37, 48, 59, 60, 71, 82, 93, 100)]
code_rows, code_faults = spread(sound, code_kinds, 40, 8)
for n, x in enumerate(code_rows):
    x["task_id"] = 8000 + n
write("code.jsonl", code_rows)
clean_code = [coded(t, 0) for t in range(100)]
for n, x in enumerate(clean_code):
    x["task_id"] = 9000 + n
write("code_clean.jsonl", clean_code)
expected = {
    "maths.jsonl": {"options": "--against against.jsonl", "rows": 150, "faults": faults},
    "maths_clean.jsonl": {"options": "--against against.jsonl", "rows": 100, "faults": []},
    "code.jsonl": {"options": "", "rows": 40, "faults": code_faults},
    "code_clean.jsonl": {"options": "", "rows": 100, "faults": []},
}
(HERE / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
print(len(faults), sum(len(f["rows"]) for f in faults), len(code_faults), sum(len(f["rows"]) for f in code_faults))
