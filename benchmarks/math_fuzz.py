"""Fuzz test of the math verifier with random strings: it must not raise or take long.

    python benchmarks/math_fuzz.py [--count 1000000] [--seed 1] [--search CPU_SECONDS]

Each of `count` golds and answers is a soup of the pieces that mathematics is written with (three in four), of printable
characters, or of any code points, lone surrogates among them; three answers in ten are their gold with something
behind it. Every pair goes through `equivalent` and, as a response, through `MathVerifier`. Prints the verdicts by
reason and the slowest pairs; exits with 1 where anything was raised. With `--search` it looks for the dearest text
instead (`math_hostile_search.py`), and exits with 1 where one costs more than a tenth of a second.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections import Counter

from math_hostile_search import search

from truegold.verifiers import MathVerifier, equivalent

SLOW_MS = 20.0
MAX_MS = 100.0
SHOWN_CHARS = 160
SHOWN = 5

MATHEMATICS = r"""
\frac \sqrt { } ( ) [ ] \{ \} | 1 2 3.5 0 x y n e i \pi + - * / ^ _ = < > \le \ge \ne , ; \text{ or and \cup
\cap \setminus \in \mathbb{R} \mathbb{Z} \infty \begin{pmatrix} \end{pmatrix} \\ & \pm \mp ! % ^\circ ° \sin
\cos \log \ln \sum \int \lim \to dx \binom \left \right \left. \right. \boxed{ $ \$ cm m hours 元 度 １ ， （ ） √ π ½
² ① 或 no yes none three am pm : 10:30 \overline \dot . ... \ldots f f(x) \quad ' \" ~ # \% 1,234 k\in \forall
for where \angle \lfloor \rfloor \operatorname{ \mid \cdot \times \div abs max min gcd mod 1e10 e5 \emptyset A B
C (C) (1) (2) th square per the is not 99999 \dfrac12 \tfrac ^{ _{ \usqrt \phi \alpha |x| \Rightarrow => ==
\approx ** ####
"""
PIECES = [*MATHEMATICS.split(), " ", "\n", "\t", "\x0c", "\x00", "\u200b", "\ud800"]
PRINTABLE = [chr(code) for code in range(32, 127)] + list("α一٠１𝟘\u2028\x85ﷺ😀")


def soup(dice: random.Random) -> str:
    """Return a random text of mathematical pieces."""
    kind = dice.random()
    if kind < 0.75:
        most = dice.choice([4, 8, 14, 30])
        return "".join(dice.choice(PIECES) + " " * (dice.random() < 0.15) for _ in range(dice.randint(1, most)))
    if kind < 0.9:
        return "".join(dice.choice(PRINTABLE) for _ in range(dice.randint(1, 25)))
    return "".join(chr(dice.randrange(0x110000)) for _ in range(dice.randint(1, 15)))


def show_dearest(seconds: float, seed: int) -> int:
    """Print the dearest verdicts that a search comes upon."""
    ranked = search(seconds, seed)
    for cost, gold, answer in ranked[:SHOWN]:
        print(f"{cost:7.1f} ms  {ascii(gold)[:SHOWN_CHARS]}  |  {ascii(answer)[:SHOWN_CHARS]}")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"seed {seed}, {seconds:g} CPU-s: dearest {ranked[0][0]:.1f} ms, peak of the process {peak_mb:.0f} MB")
    return 1 if ranked[0][0] > MAX_MS else 0


def main() -> int:
    """Compare random texts, and print what raised or took long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--search", type=float, metavar="CPU_SECONDS", help="look for the dearest text for so long")
    options = parser.parse_args()
    if options.search is not None:
        return show_dearest(options.search, options.seed)
    dice = random.Random(options.seed)
    verifier = MathVerifier()
    reasons: Counter[str] = Counter()
    raised: Counter[str] = Counter()
    slow: list[tuple[float, str, str]] = []
    start = time.process_time()
    for _ in range(options.count):
        gold = soup(dice)
        answer = gold + dice.choice(["", " ", "+0", ",1", "."]) if dice.random() < 0.3 else soup(dice)
        began = time.process_time()
        try:
            reasons[str(equivalent(answer, gold=gold).reason)] += 1
            reasons[str(verifier(answer, gold).reason)] += 1
        except Exception as error:
            raised[f"{type(error).__name__}: {error}"[:100]] += 1
            print(f"raised {type(error).__name__}: gold {gold!r}, answer {answer!r}")
        if (spent := 1000 * (time.process_time() - began)) > SLOW_MS:
            slow.append((round(spent, 1), gold, answer))
    seconds = time.process_time() - start
    print(
        f"{options.count:,} pairs in {seconds:.0f} CPU-s, {sum(raised.values())} raised, {len(slow)} above {SLOW_MS} ms"
    )
    print(dict(reasons.most_common()))
    for entry in sorted(slow, reverse=True)[:SHOWN]:
        print(*map(ascii, entry), sep="  |  ")
    return 1 if raised else 0


if __name__ == "__main__":
    sys.exit(main())
