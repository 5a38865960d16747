"""The seccomp filter, run here as the kernel would run it."""

import errno
import struct

import pytest

from truegold.verifiers.sandbox.inside.confine import kernel, seccomp

pytestmark = pytest.mark.skipif(kernel.AUDIT_ARCH is None, reason="the system calls of this machine are not known")

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
PRETEND = 0x50000
PID = 4242


def outcome(code: bytes, call: int, arguments: tuple[int, ...] = (), arch: int | None = None) -> tuple[int, int]:
    """Return what the filter says, and after how many instructions."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("<IIQ6Q", call, kernel.AUDIT_ARCH if arch is None else arch, 0, *padded)
    position = accumulator = steps = 0
    while True:
        operation, if_true, if_false, operand = struct.unpack_from("=HBBI", code, 8 * position)
        position, steps = position + 1, steps + 1
        match operation:
            case 0x20:
                accumulator = struct.unpack_from("<I", data, operand)[0]
            case 0x05:
                position += operand
            case 0x15:
                position += if_true if accumulator == operand else if_false
            case 0x35:
                position += if_true if accumulator >= operand else if_false
            case 0x45:
                position += if_true if accumulator & operand else if_false
            case 0x06:
                return operand, steps
            case _:
                raise AssertionError(f"operation {operation:#x}")


@pytest.fixture(params=[(False, False), (False, True), (True, False), (True, True)], ids=str)
def code(request: pytest.FixtureRequest) -> bytes:
    native, alone = request.param
    return seccomp.assemble(PID, native, alone)


def test_every_listed_call_passes_and_no_other_one(code: bytes) -> None:
    for call in {kernel.CALL_NUMBERS.get(name) for name in kernel.CALL_CLASSES["allowed"]} - {None}:
        assert outcome(code, call)[0] == ALLOW  # type: ignore[arg-type]
    known = set(kernel.CALL_NUMBERS.values())
    for call in {*range(700), 0x3FFFFFFF, 0x40000000, 0x40000001, 0x7FFFFFFF, 0xFFFFFFFF} - known:
        assert outcome(code, call)[0] in {EPERM, ENOSYS}, call


def test_another_architecture_is_the_end(code: bytes) -> None:
    assert outcome(code, 1, arch=0x40000003)[0] == KILL


def test_signals_reach_the_process_itself_and_nobody_else() -> None:
    code = seccomp.assemble(PID)
    for name in ("kill", "tgkill"):
        assert outcome(code, kernel.call_number(name), (PID, 9))[0] == ALLOW
        assert outcome(code, kernel.call_number(name), (PID + 1, 9))[0] == EPERM
        assert outcome(code, kernel.call_number(name), (2**64 - 1, 9))[0] == EPERM


def test_threads_pass_and_processes_and_namespaces_do_not() -> None:
    clone, thread, new_user, sigchld = kernel.call_number("clone"), 0x10000, 0x10000000, 17
    script, native = seccomp.assemble(PID), seccomp.assemble(PID, native=True)
    assert outcome(script, clone, (thread,))[0] == ALLOW
    assert outcome(script, clone, (sigchld,))[0] == EPERM
    assert outcome(native, clone, (sigchld,))[0] == ALLOW
    for code in (script, native):
        assert outcome(code, clone, (thread | new_user,))[0] == EPERM
        assert outcome(code, kernel.call_number("clone3"))[0] == ENOSYS


def test_limits_can_be_asked_for_and_not_changed() -> None:
    code = seccomp.assemble(PID)
    assert outcome(code, kernel.call_number("prlimit64"), (0, 7, 0))[0] == ALLOW
    assert outcome(code, kernel.call_number("prlimit64"), (0, 7, 1))[0] == PRETEND
    assert outcome(code, kernel.call_number("prlimit64"), (0, 7, 1 << 32))[0] == PRETEND


def test_the_kernel_need_not_run_long_for_any_number(code: bytes) -> None:
    assert max(outcome(code, call)[1] for call in range(700)) < 40


def test_what_is_in_the_page_cache_can_be_neither_asked_nor_changed(code: bytes) -> None:
    for name, arguments, says in (
        ("fadvise64", (3, 0, 0, 4), PRETEND),
        ("madvise", (0, 1, 4), ALLOW),
        ("madvise", (0, 1, 20), EPERM),
        ("madvise", (0, 1, 21), EPERM),
        ("preadv2", (3, 0, 1, 0, 0, 0), ALLOW),
        ("preadv2", (3, 0, 1, 0, 0, 8), 0x50000 | errno.EOPNOTSUPP),
        ("pwritev2", (3, 0, 1, 0, 0, 2), 0x50000 | errno.EOPNOTSUPP),
    ):
        assert outcome(code, kernel.call_number(name), arguments)[0] == says, name
    mincore, cachestat = 27 if kernel.HAS_X32 else 232, 451
    assert outcome(code, mincore)[0] == EPERM
    assert outcome(code, cachestat)[0] == ENOSYS


LOCKS = (5, 6, 7, 36, 37, 38)
"""F_GETLK, F_SETLK, F_SETLKW, and those of open file descriptions."""


def test_locks_succeed_and_are_never_made(code: bytes) -> None:
    fcntl_call = kernel.call_number("fcntl")
    for command in LOCKS:
        assert outcome(code, fcntl_call, (3, command))[0] == PRETEND, command
    for command in (0, 1, 2, 3, 4, 1030):
        assert outcome(code, fcntl_call, (3, command))[0] == ALLOW, command
    for command in (8, 1024, 1026, 1036):
        assert outcome(code, fcntl_call, (3, command))[0] == EPERM, command
