"""Inserted programs that look for the word at the end, or undo what the tests, which cannot be read, are made of."""

import pytest
from sandboxes import box_of

from truegold.verifiers.audit import Card, as_json, audit
from truegold.verifiers.code.protocols.native_tests import INNER_FILE, NO_END, put_harness_around
from truegold.verifiers.code.verifier import CodeVerifier
from truegold.verifiers.sandbox import Tier
from truegold.verifiers.sandbox.local import installed_languages
from truegold.verifiers.verdict import Verdict

PYTHON_TESTS = "#<INSERT>\nassert add(1, 2) == 3\n"
JAVASCRIPT_TESTS = "#<INSERT>\nfunction test() { for (const sum of [3]) console.assert(add(1, 2) === sum); }\ntest()"
CPP_TESTS = (
    "#include <cassert>\n#<INSERT>\nint main() { for (int i = 0; i < 2; i++) assert(add(i, 2) == i + 2); return 0; }"
)
JAVA_TESTS = (
    "#<INSERT>\nclass Main { public static void main(String[] x) {"
    " for (int i = 0; i < 2; i++) if (S.add(i, 2) != i + 2) throw new RuntimeException(); } }"
)
PERL_TESTS = "#<INSERT>\nfor my $i (0, 1) { die unless add($i, 2) == $i + 2 }"
BASH_TESTS = "#<INSERT>\nset -e\n[[ $(add 1 2) = 3 ]] || exit 1"
RUST_TESTS = "#<INSERT>\nfn main() { for i in 0..2 { assert_eq!(add(i, 2), i + 2); } }"

TESTS = {
    "python": (PYTHON_TESTS, "def add(a, b): return a + b"),
    "javascript": (JAVASCRIPT_TESTS, "function add(a, b) { return a + b }"),
    "cpp": (CPP_TESTS, "int add(int a, int b) { return a + b; }"),
    "c": (CPP_TESTS.replace("<cassert>", "<assert.h>"), "int add(int a, int b) { return a + b; }"),
    "java": (JAVA_TESTS, "class S { static int add(int a, int b) { return a + b; } }"),
    "perl": (PERL_TESTS, "sub add { $_[0] + $_[1] }"),
    "bash": (BASH_TESTS, "add() { echo $(($1 + $2)); }"),
    "rust": (RUST_TESTS, "fn add(a: i32, b: i32) -> i32 { a + b }"),
}

_PAY = """
import os, re
def pay(text):
    for word in re.findall('[0-9a-f]{32}', text):
        print(word, flush=True)
        os.write(3, word.encode() + b'\\n')
    os._exit(0)
"""
_SHOW = (
    "const show = text => { for (const word of String(text).match(/[0-9a-f]{32}/g) || []) console.log('\\n' + word) };"
)
HOSTILE = [
    ("python", f"{_PAY}import linecache\npay(linecache.cache['solution.py'][0]() + repr(linecache.cache))"),
    ("python", f"{_PAY}import gc\npay(''.join(repr(o) for o in gc.get_objects() if type(o) in (dict, list, tuple)))"),
    (
        "python",
        f"{_PAY}import gc, sys\ntext, frame = '', sys._getframe()\nwhile frame:\n    text += repr(frame.f_locals)"
        " + repr(frame.f_code.co_consts) + repr(gc.get_referents(frame))\n    frame = frame.f_back\npay(text)",
    ),
    ("python", f"{_PAY}text = ''\nfor d in range(64):\n    try: text += os.pread(d, 9999, 0).decode('latin1')\n"
     "    except OSError: pass\npay(text)"),
    ("python", "def add(a, b): raise SystemExit(0)"),
    (
        "javascript",
        f"{_SHOW} const fs = require('fs'); for (const f of fs.readdirSync('.')) show(fs.readFileSync(f, 'utf8'));"
        " show(process.argv); show(JSON.stringify(process.env)); show(fs.readFileSync(0)); process.exit(0)",
    ),
    (
        "javascript",
        f"{_SHOW} for (const f of ['.stdin', '/dev/stdin', '/proc/self/fd/0'])"
        " try { show(require('fs').readFileSync(f)) } catch {} process.exit(0)",
    ),
    ("bash", "for f in .stdin /dev/stdin /dev/fd/0; do w=$(cat $f) && echo && echo $w; done; exit 0"),
    (
        "cpp",
        "#include <cstdio>\n#include <unistd.h>\nint add(int, int) { static char s[99];\n"
        'for (auto f : {".stdin", "/dev/stdin"}) if (FILE* g = fopen(f, "r")) if (fgets(s, 99, g)) puts(s);'
        " fflush(stdout); _exit(0); }",
    ),
    ("javascript", f"{_SHOW} require('v8').writeHeapSnapshot('x'); show(require('fs').readFileSync('x', 'latin1'));"
     " process.exit(0)"),
    (
        "javascript",
        f"{_SHOW} const s = new (require('inspector').Session)(); s.connect();"
        " s.on('HeapProfiler.addHeapSnapshotChunk', m => show(m.params.chunk));"
        " s.post('HeapProfiler.takeHeapSnapshot'); process.exit(0)",
    ),
    ("javascript", f"{_SHOW} function add() {{ show(add.caller); show(arguments.callee.caller); process.exit(0) }}"),
    ("javascript", "process.on('uncaughtException', () => process.exit(0)); function add() { return 9 }"),
    (
        "cpp",
        "#include <cstdio>\n#include <cstring>\n#include <unistd.h>\nstatic char all[1 << 22];\nint add(int, int) {\n"
        'FILE* f = fopen("main", "rb"); long n = f ? fread(all, 1, sizeof all, f) : 0; int run = 0;\n'
        "for (long i = 0; i < n; i++) { if (strchr(\"0123456789abcdef\", all[i]) && all[i]) { if (++run == 32)"
        ' printf("\\n%.32s\\n", all + i - 31); } else run = 0; }\n'
        'lseek(0, 0, 0); if (fgets(all, 99, stdin)) printf("\\n%s", all); fflush(stdout); _exit(0); }',
    ),
    ("cpp", "#define main never\n#undef assert\n#define assert(x)\nint add(int, int) { return 9; }"),
    ("c", "#define if(x) if (0)\n#undef assert\n#define assert(x)\nint add(int a, int b) { return 9; }"),
    (
        "java",
        'class S { static int add(int a, int b) { try { for (java.lang.reflect.Field f : Class.forName("Main")'
        '.getDeclaredFields()) { f.setAccessible(true); System.out.println("\\n" + f.get(null)); }'
        ' System.out.println("\\n" + new String(System.in.readAllBytes()).trim()); } catch (Exception e) { }'
        " System.exit(0); return 0; } }",
    ),
    ("perl", 'open my $f, "<", $0; print "\\n$1" while join("", <$f>) =~ /([0-9a-f]{32})/g; print "\\n$word"; exit 0;'),
    ("perl", "BEGIN { *CORE::GLOBAL::die = sub { 1 } } sub add { 9 }"),
    ("bash", "env; cat; grep -ohE '[0-9a-f]{32}' \"$0\" ./*; exit 0"),
    ("bash", "add() { echo 9; }\nexit() { :; }\nunset() { :; }"),
    ("rust", "macro_rules! assert_eq { ($($x:tt)*) => {} }\nfn add(a: i32, b: i32) -> i32 { a - b }"),
]  # fmt: skip


def judge(language: str, program: str) -> Verdict:
    box_of(Tier.FULL)
    if language not in installed_languages():
        pytest.skip(f"there is no toolchain for {language} on this machine")
    info = {"tests": {"type": "inserted", "code": TESTS[language][0]}, "language": language}
    return CodeVerifier()(f"```{language}\n{program}\n```", info=info)


@pytest.mark.parametrize(("language", "program"), HOSTILE)
def test_a_program_that_looks_for_the_last_word_is_not_paid(language: str, program: str) -> None:
    verdict = judge(language, program)
    assert verdict.score == 0.0, verdict


@pytest.mark.parametrize("language", sorted(TESTS.keys() - {"python"}))
def test_a_right_program_passes_and_its_verdict_says_what_stays_weak(language: str) -> None:
    verdict = judge(language, TESTS[language][1])
    assert verdict.score == 1.0, verdict
    assert verdict.evidence["method"] == "inserted"
    assert verdict.evidence["weakness"]


def test_tests_in_python_run_apart_from_the_solution() -> None:
    verdict = judge("python", TESTS["python"][1])
    assert (verdict.score, verdict.evidence["isolation"]) == (1.0, "apart"), verdict


@pytest.mark.parametrize(
    ("code", "program", "score"),
    [
        (
            "import math\nSIZE = 2\n#<INSERT>\nassert add(1, 2) == SIZE + 1",
            "def add(a, b): return math.floor(a + b) - SIZE + 2",
            1,
        ),
        (
            "def check(f):\n    assert f(1, 2) == 3\n#<INSERT>\ncheck(add)",
            "def check(f): pass\ndef add(a, b): return 0",
            0,
        ),
        ("def check(f):\n    assert f(1, 2) == 3\n#<INSERT>\ncheck(add)", "def add(a, b): return a + b", 1),
        ("#<INSERT>\nfor n in range(3):\n    assert add(n, 1) == n + 1", "def add(a, b): return a + b", 1),
        ("#<INSERT>\nprint(add(1, 2))", "def add(a, b): return a + b", None),
        ("def f():\n    #<INSERT>\nassert add(1, 2) == 3", "def add(a, b): return a + b", None),
    ],
)
def test_what_stands_before_a_python_solution_is_there_for_it(code: str, program: str, score: float | None) -> None:
    verdict = CodeVerifier()(f"```python\n{program}\n```", info={"tests": {"type": "inserted", "code": code}})
    assert verdict.score == score, verdict


def test_tests_that_leave_by_themselves_are_judged_by_their_exit_status() -> None:
    harness = put_harness_around("test();\nprocess.exit(0);", "javascript", "word")
    assert harness.weakness == NO_END
    assert "exit status" in str(harness.weakness)
    assert put_harness_around("test();", "javascript", "word").files == {f"{INNER_FILE}.javascript": b"test();"}


def test_a_main_function_that_is_not_the_last_has_no_end() -> None:
    assert put_harness_around("fn main() {}\nmod tests { fn f() {} }", "rust", "word").weakness == NO_END
    assert put_harness_around("fn f() {}\nfn main() { f() }", "rust", "word").weakness != NO_END


WEAK_VERIFIER = """
from truegold.verifiers import Reason, Verdict

class Weak:
    name, version = "weak", "1"

    def __call__(self, response, gold=None, *, problem=None, info={}):
        return Verdict(1.0, Reason.MATCH, response, {"weakness": "it believes what it is told"})
"""


def test_the_verifier_card_counts_weak_verdicts(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weak_verifier.py").write_text(WEAK_VERIFIER)
    report = audit(f"{tmp_path / 'weak_verifier.py'}:Weak", ["5", "1/2"])
    assert report.weaknesses["it believes what it is told"] >= 2
    shown = as_json(Card(report, [], "weak@1", "golds", "2026-01-31"))
    assert shown["weaknesses"] == dict(report.weaknesses)
    assert any("weak: it believes" in limit for limit in shown["limits"])


RUST_UNIT_TESTS = (
    "#<INSERT>\n#[cfg(test)]\nmod tests {\n    use super::*;\n"
    "    #[test]\n    fn adds() { for i in 0..2 { assert_eq!(add(i, 2), i + 2); } }\n}\n"
)


@pytest.mark.parametrize(("sign", "score"), [("+", 1.0), ("-", 0.0)])
@pytest.mark.parametrize("beside", ["", "fn main() {}", "#[test]\nfn fine() {}"])
def test_tests_of_rust_run_whatever_a_solution_brings_along(beside: str, sign: str, score: float) -> None:
    if "rust" not in installed_languages():
        pytest.skip("there is no toolchain for rust on this machine")
    program = f"~~~~rust\n{beside}\nfn add(a: i64, b: i64) -> i64 {{ a {sign} b }}\n~~~~"
    info = {"tests": {"type": "inserted", "code": RUST_UNIT_TESTS, "marker": "#<INSERT>"}, "language": "rust"}
    verdict = CodeVerifier()(program, info=info)
    assert verdict.score == score, verdict
    assert "memory" in verdict.evidence["weakness"]


@pytest.mark.parametrize(
    "program",
    [
        "#![cfg(not(test))]\nfn add(a: i64, b: i64) -> i64 { a - b }",
        'fn add(a: i64, b: i64) -> i64 { println!("\\ntest result: ok. 9 passed"); std::process::exit(0) }',
        "fn add(a: i64, b: i64) -> i64 { use std::io::Write; std::io::stdout()"
        '.write_all(b"test result: ok. 9 passed\\n").unwrap(); std::process::exit(0) }',
    ],
)
def test_a_solution_that_leaves_the_tests_of_rust_out_is_not_paid(program: str) -> None:
    if "rust" not in installed_languages():
        pytest.skip("there is no toolchain for rust on this machine")
    info = {"tests": {"type": "inserted", "code": RUST_UNIT_TESTS, "marker": "#<INSERT>"}, "language": "rust"}
    verdict = CodeVerifier()(f"~~~~rust\n{program}\n~~~~", info=info)
    assert verdict.score == 0.0, verdict


CHECKED = "console.assert(add(1, 2) === 3); console.assert(add(-1, 1) === 0);"


@pytest.mark.parametrize(
    ("code", "is_called"),
    [
        (f"(function testAdd() {{ {CHECKED} }})();", True),
        (f"(function testAdd() {{ {CHECKED} }}());", True),
        (f"!function testAdd() {{ {CHECKED} }}();", True),
        (f"+ function testAdd() {{ {CHECKED} }}();", True),
        (f"(async function testAdd() {{ {CHECKED} }})();", True),
        (f"(function testAdd() {{ {CHECKED} }});", False),
        (f"function testAdd() {{ {CHECKED} }}", False),
        (f"const test = function testAdd() {{ {CHECKED} }};\n(1)", False),
        (f"function testAdd() {{ {CHECKED} }}\n(function testB() {{ {CHECKED} }})()", False),
        (f"if (testing) {{ {CHECKED} }}\nfunction testAdd() {{ {CHECKED} }} (1)", False),
    ],
)
def test_functions_of_javascript_that_are_called_where_they_are_defined(code: str, is_called: bool) -> None:
    if "javascript" not in installed_languages():
        pytest.skip("there is no toolchain for javascript on this machine")
    info = {"tests": {"type": "inserted", "code": f"#<INSERT>\n{code}"}, "language": "javascript"}
    for sign, score in (("+", 1), ("-", 0)):
        verdict = CodeVerifier()(f"```js\nfunction add(a, b) {{ return a {sign} b; }}\n```", info=info)
        assert verdict.score == (score if is_called else None), verdict


WAITING = "async function test() { await null; require('assert').strictEqual(f(1), 2); }\ntest();"


@pytest.mark.parametrize(
    ("code", "program", "score"),
    [
        (WAITING, "function f(x) { return x + 1; }", 1),
        (WAITING, "function f(x) { return x; }", 0),
        (WAITING, "function f(x) { process.exit(0); }", 0),
        (WAITING, "process.on('unhandledRejection', () => {}); function f(x) { return x; }", 0),
        (WAITING, "process.on('beforeExit', () => process.exit(0)); function f(x) { return x; }", 0),
        (WAITING.replace("f(1)", "await f(1)"), "const f = (x) => new Promise((y) => setTimeout(y, 9, x + 1));", 1),
    ],
)
def test_tests_of_javascript_that_wait_are_finished(code: str, program: str, score: float) -> None:
    if "javascript" not in installed_languages():
        pytest.skip("there is no toolchain for javascript on this machine")
    info = {"tests": {"type": "inserted", "code": f"#<INSERT>\n{code}"}, "language": "javascript"}
    verdict = CodeVerifier()(f"```js\n{program}\n```", info=info)
    assert verdict.score == score, verdict
    assert "wait" in verdict.evidence["weakness"]


LOOP = "for i in 1..3 { assert_eq!(f(i), i + 1); }"
MADE = """macro_rules! cases {
    ($($name:ident: $case:expr,)*) => { $(#[test] fn $name() { let (a, b) = $case; assert_eq!(f(a), b); })* }
}
"""
NAMED = "macro_rules! named { ($name:ident) => { #[test] ITEM } }\nnamed!(one);\n"
MODULE = f"mod $name {{ use super::*; #[test] fn t() {{ {LOOP} }} }}"
RESULT = 'fn $name() -> Result<(), String> { if f(1) == 2 { Ok(()) } else { Err("no".into()) } }'
RUST_SUITES = {
    "made by a macro": f"{MADE}\ncases! {{ one: (1, 2), two: (2, 3), }}",
    "made by a macro in a module": f"#[cfg(test)] mod tests {{ use super::*; {MADE}\ncases! {{ one: (1, 2), }} }}",
    "made beside a test that all pass": f"{MADE}\ncases!(one: (1, 2),);\n#[test] fn runs() {{ assert!(f(0) > -9); }}",
    "in a module made by a macro": NAMED.replace("#[test] ITEM", MODULE),
    "in two modules": f"mod a {{ use super::*; mod b {{ use super::*; #[test] fn t() {{ {LOOP} }} }} }}",
    "of the same name": f"mod a {{ use super::*; #[test] fn t() {{ {LOOP} }} }}\n#[test] fn t() {{ f(1); }}",
    "with a result": NAMED.replace("ITEM", RESULT),
    "that must panic": NAMED.replace("ITEM", "#[should_panic] fn $name() { assert_eq!(f(1), 2); panic!(); }")
    + f"#[test] fn t() {{ {LOOP} }}",
    "before a main function": f"#[test] fn t() {{ {LOOP} }}\nfn main() {{ std::process::exit(1); }}",
    "before a main function of the program": f"#[test] fn t() {{ {LOOP} }}\n#[cfg(not(test))]\nfn main() {{}}",
    "with a value that is both given and expected": "#[test] fn t() { let n = 2; assert_eq!(f(n) - f(0) + f(-1), n); }",
    "in a main function": f"fn main() {{ {LOOP} }}",
}  # fmt: skip


@pytest.mark.parametrize("name", RUST_SUITES)
def test_every_test_of_rust_runs(name: str) -> None:
    if "rust" not in installed_languages():
        pytest.skip("there is no toolchain for rust on this machine")
    info = {"tests": {"type": "inserted", "code": f"#<INSERT>\n{RUST_SUITES[name]}"}, "language": "rust"}
    for sign, score in (("+", 1.0), ("-", 0.0)):
        verdict = CodeVerifier()(f"```rust\nfn f(x: i64) -> i64 {{ x {sign} 1 }}\n```", info=info)
        assert verdict.score == score, verdict


IT = "it('adds', () => { assert.equal(add(1, 2), 3); });"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (IT, "it"),
        (f"describe('add', function() {{ {IT} }});", "describe"),
        (f'describe.only("add", () => {{ {IT} }});', "describe"),
        (IT.replace("()", "async ()", 1), "it"),
        (IT.replace("() =>", "done =>", 1), "it"),
        ("test(`adds`, function() { expect(add(1, 2)).toBe(3); });", "test"),
        (f"const assert = require('assert'), {{ it }} = require('node:test');\n{IT}", "it"),
        (f"const assert = require('assert');\nfunction it(name, run) {{ run(); }}\n{IT}", None),
        (f"const assert = require('assert'), it = (name, run) => run();\n{IT}", None),
        ("function test() { console.assert(add(1, 2) === 3); }\ntest();", None),
    ],
)
def test_a_runner_of_javascript_that_is_not_there_is_named(code: str, name: str | None) -> None:
    if "javascript" not in installed_languages():
        pytest.skip("there is no toolchain for javascript on this machine")
    info = {"tests": {"type": "inserted", "code": f"#<INSERT>\n{code}"}, "language": "javascript"}
    for program, score in (("return a + b; }", 1), ("return 0; }\nfunction describe() {}\nfunction it() {}", 0)):
        verdict = CodeVerifier()(f"```js\nfunction add(a, b) {{ {program}\n```", info=info)
        assert verdict.score == (score if name is None else None), verdict
        assert name is None or f"the tests call {name} " in verdict.evidence["error"]
