"""Checkers, interactors and programs that talk to them, for the tests of problems with several answers."""

import pytest
from sandboxes import box_of

from truegold.verifiers import Verdict
from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.sandbox import Tier
from truegold.verifiers.sandbox.local import installed_languages

BOTH_TIERS = pytest.mark.parametrize("tier", [Tier.FULL, pytest.param(Tier.CONTAINER, marks=pytest.mark.long_table)])
NEEDS_CPP = pytest.mark.skipif("cpp" not in installed_languages(), reason="g++ is not installed (apt: g++)")

SUM_CHECKER = r"""
#include <iostream>
#include "testlib.h"
#include "params.h"
int main(int argc, char* argv[]) {
    registerTestlibCmd(argc, argv);
    int n = inf.readInt();
    if (ans.readInt() < 0) quitf(_fail, "the jury has no answer");
    int a = ouf.readInt(1, MAX_PART), b = ouf.readInt(1, MAX_PART);
    if (a + b == n + 1) quitp(0.5, "one too many");
    if (a + b == n + 2) quitf(_pc(25), "two too many");
    if (a == 666) { volatile int* nowhere = 0; *nowhere = 1; }
    if (a + b != n) quitf(_wa, "%d + %d is not %d", a, b, n);
    quitf(_ok, "%d + %d", a, b);
}
"""
SUMS = {
    "type": "stdio",
    "cases": [{"input": f"{n}\n", "output": "1 4\n"} for n in (5, 9, 20)],
    "checker": SUM_CHECKER,
    "files": {"params.h": "#define MAX_PART 1000\n"},
}

GUESS_INTERACTOR = r"""
#include "testlib.h"
#include <iostream>
int main(int argc, char* argv[]) {
    registerInteraction(argc, argv);
    int n = inf.readInt(), secret = inf.readInt();
    std::cout << n << std::endl;
    for (int asked = 0; asked < 12; asked++) {
        std::string word = ouf.readToken();
        int guess = ouf.readInt(1, n);
        if (word == "!") {
            tout << asked << std::endl;
            if (guess == secret) quitf(_ok, "after %d questions", asked);
            quitf(_wa, "it is not %d", guess);
        }
        std::cout << (guess < secret ? "<" : guess > secret ? ">" : "=") << std::endl;
    }
    quitf(_wa, "too many questions");
}
"""
GUESSES = {
    "type": "interactive",
    "cases": [{"input": f"1000 {secret}\n"} for secret in (5, 900, 1000, 1)],
    "interactor": GUESS_INTERACTOR,
}
BISECT = """
n = int(input())
low, high = 1, n
while low < high:
    middle = (low + high) // 2
    print("?", middle, flush=True)
    reply = input()
    if reply == "=":
        low = high = middle
    elif reply == "<":
        low = middle + 1
    else:
        high = middle - 1
print("!", low, flush=True)
"""
BISECT_CPP = r"""
#include <iostream>
#include <string>
int main() {
    int n, low = 1;
    std::cin >> n;
    int high = n;
    while (low < high) {
        int middle = (low + high) / 2;
        std::cout << "? " << middle << std::endl;
        std::string reply;
        std::cin >> reply;
        if (reply == "=") low = high = middle;
        else if (reply == "<") low = middle + 1;
        else high = middle - 1;
    }
    std::cout << "! " << low << std::endl;
}
"""


def judge(tier: Tier, program: str, tests: object, language: str = "python", **info: object) -> Verdict:
    """Return the verdict on a program in a tier, or skip where the machine does not give that."""
    box_of(tier)
    return CodeVerifier(tier=tier)(
        f"```{language}\n{program}\n```", info={"tests": tests, "language": language, **info}
    )
