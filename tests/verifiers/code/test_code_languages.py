"""Programs in other languages than Python: each edition means what it says, and inserted test programs fail loudly."""

import pytest
from sandboxes import STDIO, box_of, fenced

from truegold.verifiers import Reason
from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.sandbox import Tier
from truegold.verifiers.sandbox.local import installed_languages
from truegold.verifiers.sandbox.toolchains import edition_name


def need(language: str) -> None:
    """Skip the test where this machine cannot run programs of a language."""
    box_of(Tier.FULL)
    if language not in installed_languages():
        pytest.skip(f"there is no toolchain for {language} on this machine")


@pytest.mark.parametrize(
    ("language", "program"),
    [
        ("cpp", "#include <iostream>\nint main() { long a, b; std::cin >> a >> b; std::cout << a + b << std::endl; }"),
        ("c", '#include <stdio.h>\nint main(void) { long a, b; scanf("%ld%ld", &a, &b); printf("%ld\\n", a + b); }'),
        (
            "java",
            "import java.util.*;\npublic class Sum { public static void main(String[] x) {"
            " Scanner s = new Scanner(System.in); System.out.println(s.nextLong() + s.nextLong()); } }",
        ),
        (
            "java",
            "// A file of its own.\npackage com.acme.sums;\nimport java.util.*;\npublic class Sum {"
            " record Pair(long a, long b) { long sum() { return a + b; } } public static void main(String[] x) {"
            " var s = new Scanner(System.in); System.out.println(new Pair(s.nextLong(), s.nextLong()).sum()); } }",
        ),
        (
            "javascript",
            "const t = require('fs').readFileSync(0, 'utf8').trim().split(/\\s+/).map(Number);"
            " console.log(t[0] + t[1]);",
        ),
        (
            "rust",
            "use std::io::*;\nfn main() { let mut s = String::new(); stdin().read_to_string(&mut s).unwrap();"
            ' println!("{}", s.split_whitespace().map(|x| x.parse::<i64>().unwrap()).sum::<i64>()); }',
        ),
        ("go", 'package main\nimport "fmt"\nfunc main() { var a, b int; fmt.Scan(&a, &b); fmt.Println(a + b) }'),
        ("bash", "read a; read b; echo $((a + b))"),
        ("perl", 'my $s = 0; while (<>) { $s += $_ } print "$s\\n";'),
    ],
)
def test_programs_in_other_languages(language: str, program: str) -> None:
    need(language)
    info = {"tests": STDIO, "language": language}
    assert CodeVerifier()(fenced(program, language), info=info).score == 1.0
    broken = CodeVerifier()(
        fenced(program.replace("a + b", "a - b").replace("sum::", "product::").replace("+=", "-="), language), info=info
    )
    if "a + b" in program or "sum" in program or "+=" in program:
        assert broken.score == 0.0


STDIN_BY_PATH = {
    "python with asyncio": "import asyncio, sys\nasync def read():\n    reader = asyncio.StreamReader()\n"
    "    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)\n"
    "    print(sum(map(int, (await reader.read()).split())))\nasyncio.run(read())",
    "python": "print(sum(map(int, open('/dev/stdin').read().split())))",
    "cpp": "#include <cstdio>\n"
    'int main() { long a, b; freopen("/dev/stdin", "r", stdin); scanf("%ld%ld", &a, &b); printf("%ld", a + b); }',
    "javascript": "const t = require('fs').readFileSync('/dev/stdin', 'utf8').trim().split(/\\s+/).map(Number);"
    " console.log(t[0] + t[1]);",
    "bash": "{ read a; read b; } < /dev/fd/0; echo $((a + b))",
}


@pytest.mark.parametrize("tier", [Tier.FULL, Tier.CONTAINER])
@pytest.mark.parametrize("name", STDIN_BY_PATH)
def test_the_input_can_be_read_by_its_path(name: str, tier: Tier) -> None:
    box_of(tier)
    language = name.partition(" ")[0]
    need(language)
    verifier = CodeVerifier(tier=tier)
    verdict = verifier(fenced(STDIN_BY_PATH[name], language), info={"tests": STDIO, "language": language})
    assert verdict.score == 1.0, verdict.evidence


def test_a_program_that_does_not_compile_says_so() -> None:
    need("cpp")
    verdict = CodeVerifier()(fenced("int main() { return x; }", "cpp"), info={"tests": STDIO, "language": "cpp"})
    assert (verdict.score, verdict.reason) == (0.0, Reason.UNREAD)


EDITIONS = {
    "c++20": "#include <concepts>\n#include <iostream>\ntemplate <std::integral T> T add(T a, T b) { return a + b; }\n"
    "int main() { long a, b; std::cin >> a >> b; std::cout << add(a, b); }",
    "GNU C++98": "#include <iostream>\n#include <memory>\nint main() { register long a; long b; std::cin >> a >> b;"
    " std::auto_ptr<long> p(new long(a + b)); std::cout << *p; }",
    "java 11": "import java.util.*;\npublic class Sum { public static void main(String[] x) {"
    " var s = new Scanner(System.in); System.out.println(s.nextLong() + s.nextLong()); } }",
    "python2": "import sys\nprint sum(map(int, sys.stdin.read().split()))",
    "pypy": "import sys\nprint(sum(map(int, sys.stdin.read().split())))",
}


@pytest.mark.parametrize("language", EDITIONS)
def test_an_edition_means_what_it_says_or_gives_no_verdict(language: str) -> None:
    box_of(Tier.FULL)
    program = f"```\n{EDITIONS[language]}\n```"
    verdict = CodeVerifier()(program, info={"tests": STDIO, "language": language})
    if edition_name(language) in installed_languages():
        assert verdict.score == 1.0, verdict.evidence
    else:
        assert (verdict.score, verdict.reason) == (None, Reason.SANDBOX_ERROR)
        assert "install" in verdict.evidence["error"]


def test_a_program_of_a_later_edition_does_not_compile_under_an_earlier_one() -> None:
    need("cpp")
    verdict = CodeVerifier()(f"```\n{EDITIONS['c++20']}\n```", info={"tests": STDIO, "language": "c++14"})
    assert (verdict.score, verdict.reason) == (0.0, Reason.UNREAD)


def test_a_language_without_a_toolchain_is_no_verdict() -> None:
    box_of(Tier.FULL)
    verdict = CodeVerifier()(fenced("x", "cobol"), info={"tests": STDIO, "language": "cobol"})
    assert (verdict.score, verdict.reason) == (None, Reason.SANDBOX_ERROR)
    assert "cobol" in verdict.evidence["error"]


INSERTED = {
    "cpp": (
        "#<INSERT>\nint main() { if (add(1, 2) != 3) throw 1; return 0; }",
        "int add(int a, int b) { return a + b; }",
        "#include <cstdlib>\nint add(int a, int b) { std::exit(0); }",
    ),
    "java": (
        "#<INSERT>\nclass Main { public static void main(String[] x) throws Exception { if (S.add(1, 2) != 3)"
        " throw new Exception(); } }",
        "class S { static int add(int a, int b) { return a + b; } }",
        "class S { static int add(int a, int b) { System.exit(0); return 0; } }",
    ),
    "javascript": (
        "#<INSERT>\nif (add(1, 2) !== 3) throw 1;",
        "function add(a, b) { return a + b }",
        "function add(a, b) { process.exit(0) }",
    ),
    "bash": ("#<INSERT>\nset -e\n[[ $(add 1 2) = 3 ]]", "add() { echo $(($1 + $2)); }", "exit 0"),
}


ASSERTIONS = {
    "javascript": (
        "#<INSERT>\nconsole.assert(add(1, 2) === 3);",
        "function add(a, b) { return a + b }",
        "console.assert = () => {};",
    ),
    "cpp": (
        "#include <cassert>\n#<INSERT>\nint main() { assert(add(1, 2) == 3); return 0; }",
        "int add(int a, int b) { return a + b; }",
        "#undef assert\n#define assert(x)\n#define NDEBUG\n",
    ),
    "c": (
        "#include <assert.h>\n#<INSERT>\nint main(void) { assert(add(1, 2) == 3); return 0; }",
        "int add(int a, int b) { return a + b; }",
        "#undef assert\n#define assert(x)\n#define NDEBUG\n",
    ),
}


@pytest.mark.parametrize("language", ASSERTIONS)
def test_failed_assertions_of_an_inserted_test_fail_the_solution(language: str) -> None:
    need(language)
    code, right, switched_off = ASSERTIONS[language]
    info = {"tests": {"type": "inserted", "code": code}, "language": language}
    wrong = right.replace("a + b", "a - b")
    responses = [right, wrong, switched_off + wrong, wrong + "\n" + switched_off]
    assert [CodeVerifier()(fenced(each, language), info=info).score for each in responses] == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("language", INSERTED)
def test_a_solution_inserted_into_a_test_program_has_to_reach_its_end(language: str) -> None:
    need(language)
    code, right, leaving = INSERTED[language]
    info = {"tests": {"type": "inserted", "code": code}, "language": language}
    assert CodeVerifier()(fenced(right, language), info=info).score == 1.0
    assert CodeVerifier()(fenced(right.replace("+", "-"), language), info=info).score == 0.0
    assert CodeVerifier()(fenced(leaving, language), info=info).score == 0.0
