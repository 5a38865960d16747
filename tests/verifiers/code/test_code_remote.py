"""The remote back end and a healthy local server: what it asks, what it makes of the answers, and its name."""

from __future__ import annotations

import base64

import pytest
from remote_services import CPP, OK, PYTHON, fused

from truegold.verifiers.sandbox import sandboxfusion
from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.sandbox.execution import Limits, Program, ProgramEnd, SandboxError
from truegold.verifiers.sandbox.local import Local
from truegold.verifiers.sandbox.sandboxfusion import SandboxFusion, backend_of

pytestmark = pytest.mark.usefixtures("fresh_connections")


def test_sandboxfusion_runs_a_program_with_limits_and_files(server, time):
    server.script(fused(OK))
    program = Program("python", PYTHON.source, {"data/a.bin": b"\xff\x00"})
    ready = SandboxFusion(server.url).prepare(program, Limits(cpu_s=2, memory_mb=256))
    execution = ready.run("3 ½\n".encode())
    assert ready.compiled is None
    assert (execution.end, execution.status, execution.stdout, execution.ok) == (ProgramEnd.EXITED, 0, b"4\n", True)
    assert (execution.cpu_s, execution.wall_s) == (None, 0.02)
    (request,) = server.requests
    assert request["path"] == "/run_code"
    body = request["body"]
    assert (body["language"], body["code"], body["stdin"]) == ("python", PYTHON.source, "3 ½\n")
    assert (body["run_timeout"], body["memory_limit_MB"]) == (8.0, 256)
    assert body["files"] == {"data/a.bin": base64.b64encode(b"\xff\x00").decode()}


@pytest.mark.parametrize(
    ("run", "end", "status"),
    [
        ({**OK, "return_code": 3}, ProgramEnd.EXITED, 3),
        ({**OK, "return_code": -11}, ProgramEnd.SIGNALLED, 11),
        ({**OK, "status": "TimeLimitExceeded", "return_code": None}, ProgramEnd.WALL_LIMIT, 9),
        ({**OK, "stdout": "x" * 2**20}, ProgramEnd.OUTPUT_LIMIT, 0),
        (
            {
                **OK,
                "stdout": "[DecodeError] 'utf-8' codec can't decode byte 0xe4 in position 9: unexpected end of data",
            },
            ProgramEnd.OUTPUT_LIMIT,
            0,
        ),
        ({**OK, "stdout": None, "stderr": None}, ProgramEnd.EXITED, 0),
    ],
)
def test_sandboxfusion_says_how_a_program_ended(server, time, run, end, status):
    server.script(fused(run))
    execution = SandboxFusion(server.url).prepare(PYTHON, Limits()).run(b"")
    assert (execution.end, execution.status) == (end, status)


def test_output_above_the_limit_is_cut_and_reported(server, time):
    server.script(fused({**OK, "stdout": "y" * 5000, "stderr": "e" * 100_000}))
    execution = SandboxFusion(server.url).prepare(PYTHON, Limits(output_mb=1 / 1024)).run(b"")
    assert execution.end is ProgramEnd.OUTPUT_LIMIT
    assert (len(execution.stdout), len(execution.stderr)) == (1024, sandboxfusion.STDERR_BYTES)


def test_a_program_that_does_not_compile_says_so_before_any_test_runs(server, time):
    failed = {**OK, "return_code": 1, "stdout": "", "stderr": "error: expected ';'"}
    server.script(fused(None, failed))
    ready = SandboxFusion(server.url).prepare(CPP, Limits())
    assert ready.compiled is not None
    assert (ready.compiled.ok, ready.compiled.status, ready.compiled.stderr) == (False, 1, b"error: expected ';'")
    assert server.requests[0]["body"]["run_timeout"] == sandboxfusion.CHECK_S


def test_a_program_that_compiled_and_then_does_not_is_no_failure_of_the_program(server, time):
    late = {**OK, "status": "TimeLimitExceeded", "return_code": None}
    server.script(fused(OK, OK), fused(None, late))
    ready = SandboxFusion(server.url).prepare(CPP, Limits())
    assert ready.compiled is not None
    assert ready.compiled.ok
    with pytest.raises(SandboxError, match="did not compile again"):
        ready.run(b"")


def test_a_service_without_the_compiler_is_no_compile_error(server, time):
    server.script(fused(None, {**OK, "return_code": 127, "stderr": "/bin/bash: g++: command not found\n"}))
    with pytest.raises(SandboxError, match=r"lacks the compiler: /bin/bash: g\+\+: command not found"):
        SandboxFusion(server.url).prepare(CPP, Limits())


def test_memory_is_bounded_only_where_the_runtime_starts_under_a_bound(server, time):
    server.script(fused(OK))
    for language in ("python", "javascript", "java"):
        SandboxFusion(server.url).prepare(Program(language, "x"), Limits(memory_mb=512)).run(b"")
    assert {request["body"]["language"]: request["body"]["memory_limit_MB"] for request in server.requests} == {
        "python": 512,
        "nodejs": -1,
        "java": -1,
    }


def test_lone_surrogates_of_a_source_are_sent_as_question_marks(server, time):
    server.script(fused(OK))
    assert SandboxFusion(server.url).prepare(Program("python", "print('\ud800')"), Limits()).run(b"").ok
    assert server.requests[0]["body"]["code"] == "print('?')"


def test_stdin_that_is_no_text_cannot_be_sent(server, time):
    with pytest.raises(SandboxError, match="not UTF-8"):
        SandboxFusion(server.url).prepare(PYTHON, Limits()).run(b"\xff")


def test_a_language_the_service_does_not_have_is_named_with_those_it_has(server, time):
    with pytest.raises(SandboxError, match=r"runs no 'cobol', only bash, cpp, "):
        SandboxFusion(server.url).prepare(Program("cobol", "x"), Limits())


@pytest.mark.parametrize(
    ("spec", "address"),
    [
        ("sandboxfusion+http://host:8080", "http://host:8080"),
        ("sandboxfusion+https://me:word@host/box/", "https://host/box"),
        ("sandboxfusion+https://host/box/run_code", "https://host/box"),
        ("sandboxfusion+http://[::1]:2000", "http://[::1]:2000"),
    ],
)
def test_a_spec_names_its_service(spec, address):
    back_end = backend_of(spec, Local())
    assert (back_end.tier, back_end.address) == ("remote", address)


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "http://host",
        "judge0+http://host",
        "sandboxfusion+",
        "sandboxfusion+host:80",
        "sandboxfusion+http://",
        "sandboxfusion+http://host:99999",
    ],
)
def test_a_spec_that_names_none_is_one_clear_line(spec):
    with pytest.raises(ConfigError) as error:
        backend_of(spec, Local())
    assert "http" in str(error.value)
    assert "\n" not in str(error.value)
