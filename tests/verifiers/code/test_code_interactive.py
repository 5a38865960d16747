"""Programs that talk to an interactor: two processes, pipes in both directions, limits for both."""

import pytest
from testlib_programs import BISECT, BISECT_CPP, BOTH_TIERS, GUESSES, NEEDS_CPP, judge

from truegold.verifiers import Reason
from truegold.verifiers.audit.suites import VetOptions, VetReason, vet
from truegold.verifiers.sandbox import Tier
from truegold.verifiers.sandbox.local import installed_languages

LIMITS = {"cpu_s": 1.0}
PYTHON_INTERACTOR = """
import sys
n, secret = map(int, open("input.txt").read().split())
print(n, flush=True)
for _ in range(12):
    words = sys.stdin.readline().split()
    if len(words) != 2:
        sys.exit("no question")
    guess = int(words[1])
    if words[0] == "!":
        sys.exit(0 if guess == secret else 2)
    print("<" if guess < secret else ">" if guess > secret else "=", flush=True)
sys.exit(1)
"""
ECHO_ONLY = {"type": "interactive", "cases": [{"input": "7 3\n"}], "interactor": PYTHON_INTERACTOR}


@NEEDS_CPP
@pytest.mark.parametrize("tier", [Tier.FULL, pytest.param(Tier.CONTAINER, marks=pytest.mark.long_run)])
@pytest.mark.parametrize(("language", "program"), [("python", BISECT), ("cpp", BISECT_CPP)])
def test_a_right_program_is_accepted_whatever_its_language(tier: Tier, language: str, program: str) -> None:
    verdict = judge(tier, program, GUESSES, language)
    assert (verdict.score, verdict.reason) == (1.0, Reason.MATCH), verdict


WAITS_AS_FOR_A_PIPE = """
import asyncio, sys
async def bisect():
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    low, high = 1, int(await reader.readline())
    while low < high:
        middle = (low + high) // 2
        print("?", middle, flush=True)
        low, high = (middle + 1, high) if (await reader.readline()).strip() == b"<" else (low, middle)
    print("!", low, flush=True)
asyncio.run(bisect())
"""


@BOTH_TIERS
def test_a_program_that_waits_for_its_pipe_gets_what_the_interactor_says(tier: Tier) -> None:
    assert judge(tier, WAITS_AS_FOR_A_PIPE, ECHO_ONLY).score == 1.0
    assert judge(tier, WAITS_AS_FOR_A_PIPE.replace('"!", low', '"!", low + 1'), ECHO_ONLY).score == 0.0


@NEEDS_CPP
@BOTH_TIERS
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (BISECT.replace('"!", low', '"!", low - 1'), Reason.MISMATCH),
        (
            "n = int(input())\nfor guess in range(1, n):\n    print('?', guess, flush=True)\n    input()",
            Reason.MISMATCH,
        ),
        ("print('! 5', flush=True)\nprint('! 900', flush=True)", Reason.MISMATCH),
        ("pass", Reason.MISMATCH),
        ("print('? what', flush=True)", Reason.MISMATCH),
        ("while True:\n    print('x' * 10_000)", Reason.MISMATCH),
        ("import sys\nwhile True:\n    sys.stdout.write('x' * 100_000)", Reason.MISMATCH),
        ("import os\nos.close(1)\nos.close(0)\nwhile True:\n    pass", Reason.MISMATCH),
        ("while True:\n    pass", Reason.TIMEOUT),
        ("raise SystemExit(0)", Reason.MISMATCH),
        ("print(open('input.txt').read())", Reason.MISMATCH),
    ],
)
def test_a_wrong_program_is_refused(tier: Tier, program: str, reason: Reason) -> None:
    verdict = judge(tier, program, GUESSES, limits=LIMITS)
    assert (verdict.score, verdict.reason) == (0.0, reason), verdict


@BOTH_TIERS
def test_a_program_that_takes_all_memory_is_refused(tier: Tier) -> None:
    assert judge(tier, "held = []\nwhile True:\n    held.append(bytearray(2**24))", ECHO_ONLY).score == 0.0


@BOTH_TIERS
@pytest.mark.parametrize(
    "program",
    [
        BISECT.replace("flush=True", "flush=False").replace("input()", "__import__('sys').stdin.readline()"),
        pytest.param("import time\ntime.sleep(1000)", marks=pytest.mark.long_table),
        pytest.param("while True:\n    input()", marks=pytest.mark.long_table),
    ],
    ids=["never flushes", "sleeps", "only reads"],
)
def test_where_both_wait_for_each_other_waiting_ends(tier: Tier, program: str) -> None:
    verdict = judge(tier, program, ECHO_ONLY)
    assert (verdict.score, verdict.reason) == (0.0, Reason.TIMEOUT), verdict
    assert "it has to flush its output" in verdict.evidence["failed"]["error"]


@BOTH_TIERS
def test_an_interactor_in_python_and_one_that_is_at_fault(tier: Tier) -> None:
    assert judge(tier, BISECT, ECHO_ONLY).score == 1.0
    assert judge(tier, "print('! 4')", ECHO_ONLY).score == 0.0
    for broken in ("1 / 0", "import os\nos.abort()", "import sys\nsys.exit(9)"):
        verdict = judge(tier, BISECT, {**ECHO_ONLY, "interactor": broken + "\n"})
        assert (verdict.score, verdict.reason) == (None, Reason.VERIFIER_ERROR), (broken, verdict)


@BOTH_TIERS
def test_a_program_that_an_interactor_cannot_take_is_refused(tier: Tier) -> None:
    greedy = PYTHON_INTERACTOR.replace("sys.stdin.readline().split()", "sys.stdin.readline(); words.encode('ascii')")
    greedy = greedy.replace(
        "    if len(words)", "    if words == '!!\\n':\n        __import__('os').abort()\n    if len(words)"
    )
    verdict = judge(tier, "print('!!', flush=True)", {**ECHO_ONLY, "interactor": greedy})
    assert verdict.score == 0.0, verdict
    assert "the interactor cannot read its messages" in verdict.evidence["failed"]["error"]


@BOTH_TIERS
def test_what_a_program_does_after_the_talk_changes_nothing(tier: Tier) -> None:
    for ending in ("input()", "raise SystemExit(3)", "print('more')", "import time; time.sleep(100)"):
        verdict = judge(tier, f"{BISECT}\n{ending}", ECHO_ONLY)
        assert verdict.score == 1.0, (ending, verdict)


@NEEDS_CPP
def test_what_the_interactor_writes_goes_to_the_checker() -> None:
    few = "def check(input, output, answer):\n    return int(output) <= int(answer)\n"
    cases = [{"input": "1000 900\n", "output": limit} for limit in ("12", "3")]
    tests = {**GUESSES, "cases": cases[:1], "checker": few}
    assert judge(Tier.FULL, BISECT, tests).score == 1.0
    verdict = judge(Tier.FULL, BISECT, {**tests, "cases": cases})
    assert (verdict.score, verdict.evidence["failed"]["case"]) == (0.0, 1)


def test_naming_a_path_of_the_input_is_no_way_out_of_a_verdict() -> None:
    assert judge(Tier.FULL, f"{BISECT}\n# not open('/dev/stdin')", ECHO_ONLY).score == 1.0
    assert judge(Tier.FULL, "print(open('/dev/stdin').readline())", ECHO_ONLY).score == 0.0


@pytest.mark.skipif("javascript" not in installed_languages(), reason="node is not installed (apt: nodejs)")
def test_node_talks_too() -> None:
    program = """
const lines = require("readline").createInterface({ input: process.stdin });
let low = 1, high = 0, asked = 0;
lines.on("line", line => {
  if (!high) high = Number(line);
  else if (line === "=") low = high = asked;
  else if (line === "<") low = asked + 1;
  else high = asked - 1;
  asked = Math.floor((low + high) / 2);
  console.log(low < high ? `? ${asked}` : `! ${low}`);
});
"""
    assert judge(Tier.FULL, program, ECHO_ONLY, "javascript").score == 1.0


@pytest.mark.long_run
def test_vetting_takes_interactive_problems_that_have_an_interactor() -> None:
    prompt = "This is an interactive problem. Guess the number."
    vetting = vet(ECHO_ONLY, prompt=prompt, references=[BISECT], options=VetOptions(mutants=4))
    assert VetReason.INTERACTIVE not in vetting.reasons, vetting.findings
    assert vetting.outcome == "keep", vetting.findings
    assert vetting.kill_rate is not None
