"""Child process of `code_environments.py`: judges rows in one environment and prints the verdicts as one line of JSON.

python code_environments_child.py ROWS.jsonl [--user] [--no-namespaces] [--threads N] [--ray | --batch]
"""

from __future__ import annotations

import argparse
import json
import os
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SPELLING = "truegold.verifiers.code.verifier:CodeVerifier"
WORKERS = 2
ORDINARY_USER = 1000
Rows = list[dict[str, Any]]
Seen = list[Any]


def forbid_namespaces() -> None:
    """Forbid namespaces, like most containers: unshare, setns, mount and clone with namespace flags fail with EPERM."""
    from truegold.verifiers.sandbox.inside.confine import kernel, seccomp

    load, equal, any_of, give = 0x20, 0x15, 0x45, 0x06
    allow, deny = (give, 0, 0, 0x7FFF0000), (give, 0, 0, 0x00050001)
    program: list[tuple[int, int, int, int]] = [(load, 0, 0, 0)]
    numbers = {"unshare": (272, 97), "setns": (308, 268), "mount": (165, 40)}  # x86-64, arm64
    for pair in numbers.values():
        program += [(equal, 0, 1, pair[not kernel.HAS_X32]), deny]
    program += [(equal, 0, 1, kernel.call_number("clone3")), (give, 0, 0, 0x00050000 | 38)]
    program += [
        (equal, 0, 3, kernel.call_number("clone")),
        (load, 0, 0, 16),
        (any_of, 0, 1, 0x7E020000),
        deny,
        allow,
    ]
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if seccomp.Filter(b"".join(struct.pack("=HBBI", *step) for step in program)).install() != 0:
        raise OSError("the seccomp filter could not be installed")


def judge(row: dict[str, Any]) -> Any:
    """Return the compared fields of the verdict on a row."""
    from code_environments import seen_of

    from truegold.verifiers.code.verifier import CodeVerifier

    verdict = CodeVerifier()(row["response"], info=row["info"])
    return seen_of(verdict.score, str(verdict.reason), verdict.evidence)


def in_threads(rows: Rows, threads: int) -> Seen:
    """Judge from several threads of one process."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(judge, rows))


def in_batches(rows: Rows) -> Seen:
    """Judge by `verify_batch`, in worker processes."""
    from code_environments import seen_of

    from truegold.verifiers import verify_batch
    from truegold.verifiers.running.batch import Item

    rows_to_judge = [Item(row["response"], None, SPELLING, json.dumps(row["info"])) for row in rows]
    verdicts = verify_batch(rows_to_judge, workers=WORKERS, chunk=16, item_deadline_s=300.0)
    return [seen_of(verdict.score, str(verdict.reason), verdict.evidence) for verdict in verdicts]


def in_ray(rows: Rows) -> Seen:
    """Judge in Ray's workers."""
    import ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        task = ray.remote(judge)
        return list(ray.get([task.remote(row) for row in rows]))
    finally:
        ray.shutdown()


def main() -> None:
    """Judge the rows of a file as the options say, and print the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--user", action="store_true")
    parser.add_argument("--no-namespaces", action="store_true")
    parser.add_argument("--threads", type=int, default=WORKERS)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--batch", action="store_true")
    arguments = parser.parse_args()
    rows: Rows = [json.loads(line) for line in arguments.rows.read_text().split("\n") if line]
    if arguments.user:
        os.setgroups([])
        os.setgid(ORDINARY_USER)
        os.setuid(ORDINARY_USER)
    if arguments.no_namespaces:
        forbid_namespaces()
    if arguments.ray:
        seen = in_ray(rows)
    else:
        seen = in_batches(rows) if arguments.batch else in_threads(rows, arguments.threads)
    print("\n" + json.dumps(seen))


if __name__ == "__main__":
    main()
