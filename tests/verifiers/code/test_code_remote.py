"""Remote back ends and healthy local servers: what is asked of them, what is made of the answers, and their names."""

from __future__ import annotations

import base64
import re

import pytest
from remote_services import CPP, OK, PYTHON, RUN, Answer, fused, fusion, piston

from truegold.verifiers.code.execution import End, Program, SandboxError
from truegold.verifiers.code.limits import Limits
from truegold.verifiers.code.remote import backend_of, prepared
from truegold.verifiers.code.remote import piston as piston_module
from truegold.verifiers.errors import ConfigError

pytestmark = pytest.mark.usefixtures("fresh_connections")


def test_sandboxfusion_runs_a_program_with_limits_and_files(server, time):
    server.script(fused(OK))
    program = Program("python", PYTHON.source, {"data/a.bin": b"\xff\x00"})
    with fusion(server, time).prepare(program, Limits(cpu_s=2, memory_mb=256)) as ready:
        execution = ready.run("3 ½\n".encode())
    assert ready.compiled is None
    assert (execution.end, execution.status, execution.stdout, execution.ok) == (End.EXITED, 0, b"4\n", True)
    assert (execution.cpu_s, execution.wall_s) == (None, 0.02)
    (asked,) = server.asked
    assert asked["path"] == "/run_code"
    body = asked["body"]
    assert (body["language"], body["code"], body["stdin"]) == ("python", PYTHON.source, "3 ½\n")
    assert (body["run_timeout"], body["memory_limit_MB"]) == (8.0, 256)
    assert body["files"] == {"data/a.bin": base64.b64encode(b"\xff\x00").decode()}


@pytest.mark.parametrize(
    ("run", "end", "status"),
    [
        ({**OK, "return_code": 3}, End.EXITED, 3),
        ({**OK, "return_code": -11}, End.SIGNALLED, 11),
        ({**OK, "status": "TimeLimitExceeded", "return_code": None}, End.WALL_LIMIT, 9),
        ({**OK, "stdout": "x" * 2**20}, End.OUTPUT_LIMIT, 0),
        (
            {
                **OK,
                "stdout": "[DecodeError] 'utf-8' codec can't decode byte 0xe4 in position 9: unexpected end of data",
            },
            End.OUTPUT_LIMIT,
            0,
        ),
        ({**OK, "stdout": None, "stderr": None}, End.EXITED, 0),
    ],
)
def test_sandboxfusion_says_how_a_program_ended(server, time, run, end, status):
    server.script(fused(run))
    execution = fusion(server, time).prepare(PYTHON, Limits()).run(b"")
    assert (execution.end, execution.status) == (end, status)


def test_output_above_the_limit_is_cut_and_said_so(server, time):
    server.script(fused({**OK, "stdout": "y" * 5000, "stderr": "e" * 100_000}))
    execution = fusion(server, time).prepare(PYTHON, Limits(output_mb=1 / 1024)).run(b"")
    assert execution.end is End.OUTPUT_LIMIT
    assert (len(execution.stdout), len(execution.stderr)) == (1024, prepared.STDERR_BYTES)


def test_a_program_that_does_not_compile_says_so_before_any_test_runs(server, time):
    failed = {**OK, "return_code": 1, "stdout": "", "stderr": "error: expected ';'"}
    server.script(fused(None, failed))
    ready = fusion(server, time).prepare(CPP, Limits())
    assert ready.compiled is not None
    assert (ready.compiled.ok, ready.compiled.status, ready.compiled.stderr) == (False, 1, b"error: expected ';'")
    assert server.asked[0]["body"]["run_timeout"] == prepared.CHECK_S

    server.script(Answer({"compile": {**RUN, "code": 1, "stderr": "error"}, "language": "c++", "version": "10.2.0"}))
    ready = piston(server, time).prepare(CPP, Limits())
    assert ready.compiled is not None
    assert (ready.compiled.ok, ready.compiled.stderr) == (False, b"error")


def test_a_program_that_compiled_and_then_does_not_is_no_failure_of_the_program(server, time):
    late = {**OK, "status": "TimeLimitExceeded", "return_code": None}
    server.script(fused(OK, OK), fused(None, late))
    ready = fusion(server, time).prepare(CPP, Limits())
    assert ready.compiled is not None
    assert ready.compiled.ok
    with pytest.raises(SandboxError, match="did not compile again"):
        ready.run(b"")


def test_a_service_without_the_compiler_is_no_compile_error(server, time):
    server.script(fused(None, {**OK, "return_code": 127, "stderr": "/bin/bash: g++: command not found\n"}))
    with pytest.raises(SandboxError, match=r"lacks the compiler: /bin/bash: g\+\+: command not found"):
        fusion(server, time).prepare(CPP, Limits())


def test_memory_is_bounded_only_where_the_runtime_starts_under_a_bound(server, time):
    server.script(fused(OK))
    for language in ("python", "javascript", "java"):
        fusion(server, time).prepare(Program(language, "x"), Limits(memory_mb=512)).run(b"")
    assert {asked["body"]["language"]: asked["body"]["memory_limit_MB"] for asked in server.asked} == {
        "python": 512,
        "nodejs": -1,
        "java": -1,
    }


def test_piston_runs_a_program_with_limits_and_files(server, time):
    server.script(Answer({"run": {**RUN, "memory": 9_000_000}, "language": "python", "version": "3.12.0"}))
    program = Program("python", PYTHON.source, {"a.bin": b"\xff"})
    execution = piston(server, time).prepare(program, Limits(cpu_s=2, memory_mb=256)).run(b"3\n")
    assert (execution.end, execution.status, execution.stdout) == (End.EXITED, 0, b"4\n")
    assert (execution.cpu_s, execution.wall_s, round(execution.peak_mb or 0)) == (0.02, 0.03, 9)
    (asked,) = server.asked
    assert asked["path"] == "/api/v2/execute"
    assert asked["body"] == {
        "language": "python",
        "version": "*",
        "files": [
            {"name": "main.py", "content": PYTHON.source},
            {"name": "a.bin", "content": "/w==", "encoding": "base64"},
        ],
        "stdin": "3\n",
        "run_timeout": 8000,
        "run_cpu_time": 2000,
        "run_memory_limit": 256 * 2**20,
    }


@pytest.mark.parametrize(
    ("run", "end", "status"),
    [
        ({"code": 1, "status": "RE"}, End.EXITED, 1),
        ({"code": None, "signal": "SIGSEGV", "status": "SG"}, End.SIGNALLED, 11),
        ({"code": None, "signal": "SIGKILL", "status": "TO", "message": "Time limit exceeded"}, End.CPU_LIMIT, 9),
        (
            {"code": None, "signal": "SIGKILL", "status": "TO", "message": "Time limit exceeded (wall clock)"},
            End.WALL_LIMIT,
            9,
        ),
        ({"code": None, "signal": "SIGKILL", "status": "SG", "memory": 2**30 - 2**20}, End.MEMORY_LIMIT, 9),
        ({"code": 137, "status": "RE", "memory": 2**30 - 2**20}, End.MEMORY_LIMIT, 137),
        ({"code": 137, "status": "RE", "memory": 2**20}, End.EXITED, 137),
        ({"code": None, "signal": "SIGKILL", "status": "OL", "stdout": "x" * 2**16}, End.OUTPUT_LIMIT, 9),
        ({"code": None, "signal": "SIGKILL", "status": "EL", "stderr": "x" * 2**16}, End.OUTPUT_LIMIT, 9),
        ({"code": None, "signal": "SIGNONE", "status": "SG"}, End.SIGNALLED, 9),
    ],
)
def test_piston_says_how_a_program_ended(server, time, run, end, status):
    server.script(Answer({"run": {**RUN, **run}}))
    execution = piston(server, time).prepare(PYTHON, Limits(memory_mb=1024)).run(b"")
    assert (execution.end, execution.status) == (end, status)


def test_output_cut_at_pistons_small_default_is_no_wrong_answer(server, time):
    server.script(Answer({"run": {**RUN, "stdout": "x" * 1024, "signal": "SIGKILL", "status": "OL"}}))
    with pytest.raises(SandboxError, match="cut the output after 1024 bytes; start Piston with PISTON_OUTPUT_MAX_SIZE"):
        piston(server, time).prepare(PYTHON, Limits()).run(b"")


def test_a_piston_that_does_not_say_why_it_killed_is_not_guessed_at(server, time):
    old = {"stdout": "x", "stderr": "", "code": None, "signal": "SIGKILL", "output": "x"}
    server.script(Answer({"run": old}))
    with pytest.raises(SandboxError, match="does not say why it killed a program; update Piston"):
        piston(server, time).prepare(PYTHON, Limits()).run(b"")


def test_a_ceiling_of_pistons_settings_is_answered_with_the_setting_to_change(server, time):
    server.script(Answer({"message": "run_cpu_time cannot exceed the configured limit of 3000"}, 400))
    with pytest.raises(
        SandboxError, match=r"configured limit of 3000\. Start it with PISTON_RUN_CPU_TIME=10000"
    ) as error:
        piston(server, time).prepare(PYTHON, Limits()).run(b"")
    assert "\n" not in str(error.value)
    assert len(server.asked) == 1


def test_the_settings_that_pistons_docstring_gives_are_enough_for_the_default_limits(server, time):
    server.script(Answer({"run": RUN, "compile": RUN}))
    piston(server, time).prepare(CPP, Limits()).run(b"")
    asked = server.asked[-1]["body"]
    documented = dict(re.findall(r"PISTON_(\w+)=(\d+)", piston_module.__doc__ or ""))
    assert int(documented.pop("OUTPUT_MAX_SIZE")) == Limits().output_mb * 2**20
    assert documented == {
        name.upper(): str(asked[name])
        for name in ("run_cpu_time", "run_timeout", "compile_cpu_time", "compile_timeout")
    }


def test_piston_lists_what_is_installed_by_our_names(server, time):
    runtimes = [{"language": name, "version": "1.0.0", "aliases": []} for name in ("python", "c++", "rscript")]
    server.script(Answer(runtimes))
    back_end = piston(server, time)
    assert back_end.languages() == {"python", "cpp", "r"} == back_end.languages()
    assert [asked["path"] for asked in server.asked] == ["/api/v2/runtimes"]


def test_an_empty_program_is_a_program(server, time):
    server.script(Answer({"run": RUN}))
    assert piston(server, time).prepare(Program("python", ""), Limits()).run(b"").ok
    assert server.asked[0]["body"]["files"][0]["content"] == "\n"


@pytest.mark.parametrize("make", [fusion, piston])
def test_a_source_that_is_no_text_fails_as_a_program_without_being_sent(server, time, make):
    ready = make(server, time).prepare(Program("python", "print('\ud800')"), Limits())
    assert ready.compiled is not None
    assert (ready.compiled.ok, ready.compiled.end) == (False, End.EXITED)
    assert server.asked == []


@pytest.mark.parametrize("make", [fusion, piston])
def test_stdin_that_is_no_text_cannot_be_sent(server, time, make):
    with pytest.raises(SandboxError, match="not UTF-8"):
        make(server, time).prepare(PYTHON, Limits()).run(b"\xff")


def test_a_language_the_service_does_not_have_is_named_with_those_it_has(server, time):
    with pytest.raises(SandboxError, match=r"runs no 'cobol', only bash, cpp, "):
        fusion(server, time).prepare(Program("cobol", "x"), Limits())
    server.script(Answer({"message": "cobol-* runtime is unknown"}, 400))
    with pytest.raises(SandboxError, match=r"status 400 Bad Request: cobol-\* runtime is unknown"):
        piston(server, time).prepare(Program("cobol", "x"), Limits())


@pytest.mark.parametrize(
    ("spec", "kind", "place"),
    [
        ("sandboxfusion+http://host:8080", "sandboxfusion", "http://host:8080"),
        ("sandboxfusion+https://host/box/run_code", "sandboxfusion", "https://host/box"),
        ("piston+http://host:2000", "piston", "http://host:2000/api/v2"),
        ("piston+https://me:word@host/api/v2/", "piston", "https://host/api/v2"),
        ("piston+https://host/api/v2/piston/execute", "piston", "https://host/api/v2/piston"),
        ("piston+http://[::1]:2000", "piston", "http://[::1]:2000/api/v2"),
    ],
)
def test_a_spec_names_its_service(spec, kind, place):
    back_end = backend_of(spec)
    assert (back_end.name, back_end.tier, back_end.service().place) == (kind, "remote", place)


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "http://host",
        "judge0+http://host",
        "piston+",
        "piston+host:80",
        "piston+http://",
        "piston+http://host:99999",
    ],
)
def test_a_spec_that_names_none_is_one_clear_line(spec):
    with pytest.raises(ConfigError) as error:
        backend_of(spec)
    assert "http" in str(error.value)
    assert "\n" not in str(error.value)
