"""Writes the data sets of this folder: maths and code, each with planted faults and clean, and expected.json.

Run it in any folder: `python make_gate.py`. Golds are computed here, and tests are made by running the programs.
"""

import itertools
import json
import math
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Row = dict[str, Any]
Made = tuple[str, str, str]  # problem, solution, answer
NAMES = ["Amara", "Boris", "Chen", "Dana", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kira", "Luca"]


def tex(value: Fraction | int) -> str:
    """A number as LaTeX."""
    value = Fraction(value)
    if value.denominator == 1:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    return f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def made(problem: str, steps: str, answer: str | int | Fraction) -> Made:
    """Problem, solution and gold of one row."""
    text = answer if isinstance(answer, str) else tex(answer)
    return problem, f"{steps} The answer is $\\boxed{{{text}}}$.", text


def shop(r: random.Random) -> Made:
    """Change for a purchase."""
    who, n, price, paid = r.choice(NAMES), r.randint(3, 9), r.randint(4, 13), 150
    return made(
        f"{who} buys {n} notebooks for {price} dollars each and pays with {paid} dollars. "
        "How many dollars does the cashier give back?",
        f"The notebooks cost {n * price} dollars, and ${paid} - {n * price} = {paid - n * price}$.",
        paid - n * price,
    )


def orchard(r: random.Random) -> Made:
    """Trees that are left."""
    rows, trees, dead = r.randint(11, 29), r.randint(12, 31), r.randint(5, 40)
    return made(
        f"An orchard has {rows} rows of {trees} pear trees. A storm breaks {dead} of the trees. How many are left?",
        f"There were {rows * trees} trees, and ${rows * trees} - {dead} = {rows * trees - dead}$.",
        rows * trees - dead,
    )


def tank(r: random.Random) -> Made:
    """Inflow and outflow."""
    rate, minutes, leak = r.randint(14, 40), r.randint(21, 58), r.randint(2, 9)
    return made(
        f"A pump fills a tank with {rate} litres of water a minute while a crack loses {leak} litres a minute. "
        f"The tank was empty. How many litres are in it after {minutes} minutes?",
        f"It gains ${rate} - {leak} = {rate - leak}$ litres a minute.",
        (rate - leak) * minutes,
    )


def linear(r: random.Random) -> Made:
    """A linear equation."""
    a, b, x = r.randint(3, 12), r.randint(5, 40), r.randint(-15, 25)
    return made(f"Solve ${a}x + {b} = {a * x + b}$ for $x$.", f"We get ${a}x = {a * x}$.", x)


def roots(r: random.Random) -> Made:
    """Vieta's formulas."""
    p, q = r.sample(range(2, 18), 2)
    return made(
        f"Let $p$ and $q$ be the roots of $x^2 - {p + q}x + {p * q} = 0$. Find $p^2 + q^2$.",
        f"$p + q = {p + q}$ and $pq = {p * q}$, so $p^2 + q^2 = {(p + q) ** 2} - {2 * p * q}$.",
        p * p + q * q,
    )


def divisor(r: random.Random) -> Made:
    """Greatest common divisor."""
    g = r.randint(6, 28)
    a, b = g * r.choice([3, 5, 7]), g * r.choice([4, 8, 11])
    return made(f"Find the greatest common divisor of {a} and {b}.", "Euclid's algorithm.", math.gcd(a, b))


def multiple(r: random.Random) -> Made:
    """Least common multiple."""
    a, b = r.randint(14, 45), r.randint(46, 90)
    return made(
        f"What is the least positive integer that both {a} and {b} divide?",
        f"It is ${a} \\cdot {b}$ divided by their greatest common divisor {math.gcd(a, b)}.",
        math.lcm(a, b),
    )


def remainder(r: random.Random) -> Made:
    """A power modulo a prime."""
    a, n, m = r.randint(2, 9), r.randint(20, 60), r.choice([11, 13, 17, 19, 23])
    return made(f"Find the remainder when ${a}^{{{n}}}$ is divided by {m}.", "Repeated squaring.", pow(a, n, m))


def committee(r: random.Random) -> Made:
    """A binomial coefficient."""
    n, k = r.randint(8, 14), r.randint(3, 5)
    return made(
        f"In how many ways can a committee of {k} members be chosen from {n} people?",
        f"This is $\\binom{{{n}}}{{{k}}}$.",
        math.comb(n, k),
    )


def paths(r: random.Random) -> Made:
    """Walks on a grid."""
    a, b = r.randint(3, 7), r.randint(3, 6)
    return made(
        f"A robot walks on a grid from $(0,0)$ to $({a},{b})$ with steps of length 1 to the right or up. "
        "How many different walks are there?",
        f"We choose which {a} of the {a + b} steps go right.",
        math.comb(a + b, a),
    )


def marbles(r: random.Random) -> Made:
    """Drawing without putting back."""
    red, blue = r.randint(4, 12), r.randint(3, 11)
    both = Fraction(red * (red - 1), (red + blue) * (red + blue - 1))
    return made(
        f"A bag holds {red} red and {blue} blue marbles. Two are drawn at random without putting one back. "
        "What is the probability that both are red? Give a fraction in lowest terms.",
        f"$\\frac{{{red}}}{{{red + blue}}} \\cdot \\frac{{{red - 1}}}{{{red + blue - 1}}}$.",
        both,
    )


def triangle(r: random.Random) -> Made:
    """Pythagoras."""
    a, b, c = r.choice([(5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29), (9, 40, 41), (12, 35, 37)])
    k = r.randint(2, 5)
    return made(
        f"A right triangle has legs of {k * a} cm and {k * b} cm. What is its perimeter in centimetres?",
        f"The hypotenuse is {k * c} cm.",
        k * (a + b + c),
    )


def circle(r: random.Random) -> Made:
    """Area from circumference."""
    radius = r.randint(4, 33)
    return made(
        f"A circle has a circumference of ${2 * radius}\\pi$. What is its area, in terms of $\\pi$?",
        f"The radius is {radius}.",
        f"{radius * radius}\\pi",
    )


def box(r: random.Random) -> Made:
    """A surface."""
    a, b, c = r.sample(range(3, 19), 3)
    return made(
        f"A closed box is {a} cm wide, {b} cm long and {c} cm high. Find its surface area in square centimetres.",
        f"$2({a} \\cdot {b} + {b} \\cdot {c} + {a} \\cdot {c})$.",
        2 * (a * b + b * c + a * c),
    )


def arithmetic(r: random.Random) -> Made:
    """A sum of equal steps."""
    first, step, n = r.randint(3, 20), r.randint(3, 11), r.randint(20, 60)
    last = first + (n - 1) * step
    return made(
        f"The first term of an arithmetic sequence is {first} and its common difference is {step}. "
        f"What is the sum of the first {n} terms?",
        f"The last of them is {last}, and the sum is $\\frac{{{n}({first} + {last})}}{{2}}$.",
        n * (first + last) // 2,
    )


def geometric(r: random.Random) -> Made:
    """A term of equal ratios."""
    first, ratio, n = r.randint(2, 9), r.randint(2, 4), r.randint(5, 8)
    return made(
        f"Each term of a sequence is {ratio} times the one before. The first is {first}. Which number is term {n}?",
        f"${first} \\cdot {ratio}^{{{n - 1}}}$.",
        first * ratio ** (n - 1),
    )


def sale(r: random.Random) -> Made:
    """A percentage off."""
    price, off = 20 * r.randint(4, 30), 5 * r.randint(2, 13)
    return made(
        f"A coat of {price} dollars is sold {off}% cheaper. What does it cost now, in dollars?",
        f"${price} \\cdot {100 - off}/100$.",
        Fraction(price * (100 - off), 100),
    )


def meeting(r: random.Random) -> Made:
    """Two trains."""
    a, b, hours = r.randint(41, 75), r.randint(76, 110), r.randint(2, 7)
    return made(
        f"Two trains leave towns that are {(a + b) * hours} km apart at the same time and drive towards each other, "
        f"one at {a} km/h and the other at {b} km/h. After how many hours do they meet?",
        f"They come closer by {a + b} km every hour.",
        hours,
    )


def derivative(r: random.Random) -> Made:
    """A derivative at a point."""
    a, b, x = r.randint(2, 8), r.randint(3, 15), r.randint(2, 6)
    return made(f"Let $f(x) = {a}x^3 - {b}x$. Find $f'({x})$.", f"$f'(x) = {3 * a}x^2 - {b}$.", 3 * a * x * x - b)


def integral(r: random.Random) -> Made:
    """A definite integral."""
    a, top = 3 * r.randint(1, 7), r.randint(2, 7)
    return made(f"Evaluate $\\int_0^{{{top}}} {a}x^2 \\, dx$.", f"An antiderivative is ${a // 3}x^3$.", a // 3 * top**3)


def determinant(r: random.Random) -> Made:
    """A determinant of two rows."""
    a, b, c, d = (r.randint(-9, 14) for _ in range(4))
    return made(
        f"Compute the determinant of $\\begin{{pmatrix}} {a} & {b} \\\\ {c} & {d} \\end{{pmatrix}}$.",
        f"$({a})({d}) - ({b})({c})$.",
        a * d - b * c,
    )


def system(r: random.Random) -> Made:
    """Two linear equations."""
    x, y = r.randint(4, 30), r.randint(2, 25)
    return made(
        f"The numbers $x$ and $y$ satisfy $x + 2y = {x + 2 * y}$ and $3x - y = {3 * x - y}$. What is $x + y$?",
        f"Solving gives $x = {x}$ and $y = {y}$.",
        x + y,
    )


def power(r: random.Random) -> Made:
    """A logarithm."""
    base, exponent = r.choice([2, 3, 5, 7]), r.randint(3, 9)
    return made(f"Evaluate $\\log_{{{base}}} {base**exponent}$.", f"${base}^{exponent}$.", exponent)


def fraction_sum(r: random.Random) -> Made:
    """A sum of fractions."""
    a, b, c, d = r.randint(2, 9), r.randint(11, 19), r.randint(2, 9), r.randint(3, 10)
    return made(
        f"Write $\\frac{{{a}}}{{{b}}} + \\frac{{{c}}}{{{d}}}$ as one fraction in lowest terms.",
        f"A common denominator is {b * d}.",
        Fraction(a, b) + Fraction(c, d),
    )


def modulus(r: random.Random) -> Made:
    """The modulus of a complex number."""
    a, b, c = r.choice([(3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29)])
    k = r.randint(1, 6)
    return made(f"Find $|{k * a} - {k * b}i|$.", f"$\\sqrt{{{(k * a) ** 2} + {(k * b) ** 2}}}$.", k * c)


def base_eight(r: random.Random) -> Made:
    """Base 8 to base 10."""
    decimal = r.randint(70, 500)
    return made(f"Write the base-8 number ${decimal:o}_8$ in base 10.", "Expand by powers of 8.", decimal)


def polygon(r: random.Random) -> Made:
    """Interior angles."""
    n = r.randint(7, 40)
    return made(
        f"What is the sum of the interior angles of a convex polygon with {n} sides, in degrees?",
        f"$({n} - 2) \\cdot 180$.",
        (n - 2) * 180,
    )


def average(r: random.Random) -> Made:
    """A mean that has to rise."""
    who, n, mean, up = r.choice(NAMES), r.randint(4, 9), r.randint(61, 84), r.randint(1, 3)
    return made(
        f"After {n} tests the mean of {who}'s scores is {mean}. Which score in the next test lifts it to {mean + up}?",
        f"The total has to grow from {n * mean} to {(n + 1) * (mean + up)}.",
        (n + 1) * (mean + up) - n * mean,
    )


def interval(r: random.Random) -> Made:
    """An inequality with an absolute value."""
    a, b = r.randint(1, 9), r.randint(2, 12)
    return made(
        f"Solve $|x - {a}| < {b}$. Write the solutions as an interval.",
        f"$-{b} < x - {a} < {b}$.",
        f"({a - b},{a + b})",
    )


def digits(r: random.Random) -> Made:
    """Multiples of seven in a range."""
    low = r.randint(15, 60)
    high = low + r.randint(120, 400)
    return made(
        f"How many multiples of 7 are there from {low} to {high}, both included?",
        f"$\\lfloor {high}/7 \\rfloor - \\lfloor {low - 1}/7 \\rfloor$.",
        high // 7 - (low - 1) // 7,
    )


FAMILIES: list[Callable[[random.Random], Made]] = [
    shop, linear, committee, triangle, arithmetic, derivative, marbles, divisor, sale, determinant, orchard, roots,
    paths, circle, geometric, integral, remainder, multiple, meeting, system, tank, power, box, fraction_sum, modulus,
    base_eight, polygon, average, interval, digits,
]  # fmt: skip


def maths(seed: int) -> list[Row]:
    """A hundred and twenty problems, four of each family."""
    r, rows, seen = random.Random(seed), [], set()
    for index, family in enumerate(FAMILIES * 4):
        problem, solution, answer = family(r)
        while problem in seen:
            problem, solution, answer = family(r)
        seen.add(problem)
        rows.append({"id": f"m{seed}-{index:03d}", "problem": problem, "solution": solution, "answer": answer})
    return rows


BENCHMARK = [
    ("A lighthouse flashes every 14 seconds and a buoy every 21 seconds. They flash together at noon. How many more "
     "times do they flash together in the ten minutes after noon?", "14"),
    ("The sides of a triangle are 13, 14 and 15. What is the length of its inradius?", "4"),
    ("How many integers from 1 to 500 are divisible by 3 but not by 5?", "133"),
    ("Let $a$ and $b$ be positive integers with $a^2 - b^2 = 45$. What is the greatest possible value of $a$?", "23"),
    ("A committee of 9 people elects a chair, a deputy and a treasurer. In how many ways can this end?", "504"),
    ("What is the units digit of $3^{2025}$?", "3"),
]  # fmt: skip


def fault_maths() -> tuple[list[Row], list[Row]]:
    """The maths set with its nineteen faults."""
    rows = maths(17)
    faults: list[Row] = []

    def plant(kind: str, lines: list[int], names: list[str], say: str) -> None:
        faults.append({"kind": kind, "rows": lines, "names": names, "say": say})

    def put(line: int, **columns: Any) -> None:
        rows[line - 1] |= columns

    put(4, answer=str(int(rows[3]["answer"]) + 10))
    plant(
        "wrong gold", [4], ["solution_contradicts_gold", "gold_slip", "gold"], "the row's own solution ends otherwise"
    )

    shifted = [rows[i]["answer"] for i in (10, 11, 12, 13)]
    for line, answer in zip((11, 12, 13), shifted[1:], strict=True):
        put(line, answer=answer)
    plant(
        "gold of the neighbouring row", [11, 12, 13], ["solution_contradicts_gold", "gold"],
        "three golds belong to the row after",
    )  # fmt: skip

    put(19, problem=rows[18]["problem"].rsplit(" towards each other", 1)[0] + " towards")
    plant("truncated prompt", [19], ["truncated_text", "no_question"], "the question is cut off")

    put(24, answer=None)
    plant("gold missing", [24], ["missing_gold", "unusable"], "there is no gold")

    put(31, problem=rows[30]["problem"] + f" (Answer: {rows[30]['answer']})")
    plant("gold in the prompt", [31], ["answer_in_prompt"], "the prompt tells the answer")

    near = rows[20]
    other = str(int(near["answer"]) + 6)
    reworded = near["problem"].replace("A pump fills a tank with", "A tank is filled by a pump with")
    put(
        40,
        problem=reworded.replace("The tank was empty.", "It was empty at first."),
        solution=f"We multiply. The answer is $\\boxed{{{other}}}$.",
        answer=other,
    )
    plant("near-duplicate with other gold", [21, 40], ["conflicting_labels"], "two wordings of a problem, two golds")

    item, gold = BENCHMARK[0]
    put(
        47,
        problem="Problem 12. " + item,
        solution=f"They meet every 42 seconds. The answer is $\\boxed{{{gold}}}$.",
        answer=gold,
    )
    plant(
        "leaked benchmark item", [47], ["leak", "evaluation_copy", "evaluation_overlap"], "it stands in against.jsonl"
    )

    put(
        52,
        problem="Ben and his brother share 24 sweets so that one of them gets twice as many as the other. "
        "How many sweets does Ben get?",
        solution="They get 8 and 16. The answer is $\\boxed{16}$.",
        answer="16",
    )
    plant(
        "ambiguous question",
        [52],
        ["ambiguous", "model_missing_condition", "missing_quantity"],
        "16 and 8 are both right",
    )

    put(
        58,
        problem="Write $\x0crac{7}{12} + \\frac{5}{9$ as one fraction in lowest terms.",
        solution="A common denominator is 36. The answer is $\\boxed{\\frac{41}{36}}$.",
        answer="\\frac{41}{36}",
    )
    plant(
        "broken LaTeX",
        [58],
        ["damaged_latex", "control_characters", "truncated_text"],
        "a form feed instead of \\f; a brace lost",
    )

    put(63, problem=f'<p class="q">{rows[62]["problem"]}</p><br/>&nbsp;<span style="color:red">2 points</span>')
    plant("HTML remains", [63], ["html_tags", "html_entities"], "tags and entities")

    put(
        69,
        problem="A cafÃ© sells croissants for 2 â‚¬ each. ZoÃ« buys 17 of them and pays with a 50 â‚¬ note. "
        "How many euros does she get back?",
        solution="$50 - 34 = 16$. The answer is $\\boxed{16}$.",
        answer="16",
    )
    plant("encoding damage", [69], ["mojibake"], "UTF-8 read as Windows-1252")

    put(
        74,
        problem="A rectangle has sides of 9 cm and 14 cm. (a) What is its area? (b) What is its perimeter? "
        "(c) How long is its diagonal?",
        solution="The area is $9 \\cdot 14$. The answer is $\\boxed{126}$.",
        answer="126",
    )
    plant("multi-part question with one gold", [74], ["multi_part"], "three questions, one gold")

    put(
        82,
        problem="Prove that the product of three consecutive integers is always divisible by 6.",
        solution="One of them is even and one is a multiple of 3. $\\boxed{6}$",
        answer="6",
    )
    plant("proof question", [82], ["proof"], "a proof is asked for, gold is a number out of the text")

    put(
        88,
        problem="In the figure below, lines $\\ell$ and $m$ are parallel. What is the measure of the shaded angle, "
        "in degrees?",
        solution="Alternate angles. The answer is $\\boxed{62}$.",
        answer="62",
    )
    plant("picture missing", [88], ["missing_figure", "pictures"], "the figure did not come along")

    put(
        95,
        problem="A pool holds 2700 litres and is filled with 15 litres a minute. How long does that take? "
        "State the unit.",
        solution="$2700/15 = 180$ minutes. The answer is $\\boxed{3 \\text{ hours}}$.",
        answer="3",
    )
    plant(
        "unit missing in gold", [95], ["unit_mismatch", "gold_unmatchable", "solution_contradicts_gold"], "3 of what?"
    )

    put(
        101,
        problem="A school has 340 pupils in 14 classes and some teachers. How many teachers has the school?",
        solution="$340/14$ is about 24. The answer is $\\boxed{24}$.",
        answer="24",
    )
    plant(
        "unanswerable",
        [101],
        ["missing_quantity", "unanswerable", "model_missing_condition"],
        "nothing is said of the teachers",
    )

    put(
        106,
        problem="Which of the following numbers is a prime?",
        solution="Only (C) has no divisors. $\\boxed{C}$",
        answer="C",
    )
    plant("option letter without options", [106], ["choice_remnant"], "the options are missing")

    put(112, answer=f"{rows[111]['answer']}, because the terms grow by the same step every time, as the solution shows")
    plant(
        "gold with explanation",
        [112],
        ["gold_unmatchable", "gold", "gold_unparsed"],
        "no response would be written like this",
    )

    put(
        117,
        problem="Ein Händler verkauft 12 Kisten mit je 8 Äpfeln und danach noch 15 einzelne Äpfel. "
        "How many apples did he sell in",
        solution="$96 + 15 = 111$. The answer is $\\boxed{111}$.",
        answer="111",
    )
    plant(
        "prompt in two languages, cut",
        [117],
        ["truncated_text", "foreign_fragment", "no_question"],
        "German, then half a question",
    )
    return rows, faults


def call(program: str, name: str, arguments: str) -> Any:
    """What the program returns."""
    space: Row = {}
    exec(program, space)
    return eval(f"{name}({arguments})", space)


def code(offset: int) -> list[Row]:
    """Sixty tasks: each of thirty with two numbers. Another offset takes other numbers."""
    rows = []
    for turn, task in itertools.product((0, 1), json.loads((HERE / "tasks.json").read_text(encoding="utf-8"))):
        name, k = task["name"], task["values"][turn]
        if offset and isinstance(k, int) and k > 1:
            k += offset
        title = f"{name}_{turn + 1}" if not offset else f"{name}_{'ab'[turn]}"
        source = task["program"].replace("{k}", str(k)).replace("{f}", title)
        inputs = [arguments.replace("{k}", str(k)) for arguments in task["inputs"]]
        tests = [f"assert {title}({x}) == {call(source, title, x)!r}" for x in inputs]
        rows.append(
            {
                "task_id": 7000 + 100 * offset + len(rows),
                "text": f"Write a function {title} that returns the {task['text'].replace('{k}', str(k))}.",
                "code": source,
                "test_list": tests,
                "test_setup_code": "",
                "challenge_test_list": [],
            }
        )
    return rows


def fault_code() -> tuple[list[Row], list[Row]]:
    """The code set with its five faults."""
    rows = code(0)
    faults: list[Row] = []

    def plant(kind: str, lines: list[int], names: list[str], say: str) -> None:
        faults.append({"kind": kind, "rows": lines, "names": names, "say": say})

    def wrapped(tests: list[str]) -> str:
        return 'if __name__ == "main":\n' + "".join(f"    {test}\n" for test in tests)

    rows[6]["test_list"] = [wrapped(rows[6]["test_list"])]
    plant(
        "tests that never run",
        [7],
        ["skipped", "null", "empty", "unreadable_tests", "gold_unverified"],
        'the assertions stand under __name__ == "main", which never holds',
    )

    rows[17]["code"] = rows[17]["code"].replace("b - a", "a - b")
    plant(
        "reference program that fails",
        [18],
        ["gold", "reference_fails", "gold_fails_verifier"],
        "the program has the differences the wrong way round",
    )

    name = "moving_sums_1"
    rows[11]["test_list"] = [f"assert {name}([1, 2, 3]) is not Ellipsis", f"assert isinstance({name}([]), object)"]
    plant("tests that anything passes", [12], ["null", "empty", "hack", "paid_null"], "every result passes")

    tests = rows[33]["test_list"]
    (left, first), (right, second) = (test.split(" == ") for test in (tests[1], tests[2]))
    rows[33]["test_list"] = [tests[0], f"{left} == {second}", f"{right} == {first}", tests[3]]
    plant(
        "expected output swapped",
        [34],
        ["gold", "reference_fails", "gold_fails_verifier"],
        "the results of the second and third test are exchanged",
    )

    rows[55] = rows[24] | {"task_id": rows[55]["task_id"]}
    plant("duplicate", [25, 56], ["duplicate", "exact_duplicate", "same_problem"], "row 56 is row 25 under another id")
    return rows, faults


def write(name: str, rows: list[Row]) -> None:
    """Writes JSON Lines."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (HERE / name).write_text(text, encoding="utf-8")


def main() -> None:
    """Writes all files of the folder."""
    faulty_maths, faults_maths = fault_maths()
    faulty_code, faults_code = fault_code()
    write("maths.jsonl", faulty_maths)
    write("maths_clean.jsonl", maths(29))
    write("code.jsonl", faulty_code)
    write("code_clean.jsonl", code(1))
    write("against.jsonl", [{"id": f"b{i}", "problem": p, "answer": a} for i, (p, a) in enumerate(BENCHMARK)])
    expected = {
        "maths.jsonl": {"options": "--against against.jsonl", "rows": 120, "faults": faults_maths},
        "maths_clean.jsonl": {"options": "--against against.jsonl", "rows": 120, "faults": []},
        "code.jsonl": {"options": "", "rows": 60, "faults": faults_code},
        "code_clean.jsonl": {"options": "", "rows": 60, "faults": []},
    }
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
