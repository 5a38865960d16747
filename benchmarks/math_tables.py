"""Markdown tables of the results of `math_verifier.py`. All numbers are taken from the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from math_peers import REFERENCE, TRUEGOLD

WORST_HOSTILE = 10
COMMANDS = """```
python3.11 -m venv PEERS
PEERS/bin/pip install inspect-ai math-verify==0.9.0 antlr4-python3-runtime==4.11.0 sympy pylatexenc numpy tqdm
PEERS/bin/pip install --no-deps mathruler verl lm-eval evalscope
python benchmarks/math_verifier.py DATA_DIR --peer-python PEERS/bin/python --write benchmarks/results/math_verifier.md
```"""
Measurements = dict[str, Any]


def report(measurements: Measurements) -> str:
    """Return all tables as Markdown."""
    peers = list(measurements["peers"])
    readers = [peer for peer in peers if "responses" in measurements["peers"][peer]]
    parts = [_head(measurements)]
    if "pairs" in measurements["sets"]:
        parts += ["## Pairs (gold, answer)", _totals(measurements, "pairs", peers, "choice rows included")]
        parts += [_halves(measurements, "pairs")]
        parts += [_by_corpus(measurements, "pairs", peers), _by_rule(measurements, peers)]
        parts += [_apart(measurements, "policy", peers), _apart(measurements, "noise", peers)]
    if "hard" in measurements["sets"]:
        parts += [_hard(measurements, peers)]
    if readers:
        parts += ["## Whole responses", _totals(measurements, "responses", readers, "gaming and zh included")]
        parts += [_halves(measurements, "responses")]
        parts += [_by_corpus(measurements, "responses", readers), _responses_policy(measurements, readers)]
    parts += [_speed(measurements, peers), _probes(measurements, peers), _hostile(measurements["hostile"])]
    return "\n\n".join(part for part in parts if part)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def code(text: str) -> str:
    """Inline code that survives inside a table."""
    escaped = text.replace("|", "\\|")
    return f"`{escaped}`" if text else ""


def rate(errors: int, rows: int) -> str:
    """Return errors as a fraction and a percentage."""
    return f"{errors}/{rows} = {100 * errors / rows:.1f} %" if rows else "-"


def _head(measurements: Measurements) -> str:
    sets = measurements["sets"]
    sizes = ", ".join(f"{count} {name}" for name, count in sets.items())
    limited = f" (a stratified subset, `--limit {measurements['limit']}`)" if measurements["limit"] else ""
    lines = [
        f"{sizes}{limited}, judged by {len(measurements['peers'])} graders, one after another, on "
        f"{measurements['machine']}.",
        "FN: a right answer refused or not judged. FP: a wrong answer accepted. Label noise and rows on which sound",
        "verifiers differ are left out of the rates and stand in tables of their own. Time is CPU time of the process",
        "and its children; imports and the same few warm-up rows come before and count for nobody. A grader that is",
        "silent for 30 s on a row is killed (a hang: not judged) and goes on behind it.",
    ]
    versions = [[name, _versions(peer["versions"])] for name, peer in measurements["peers"].items()]
    absent = [f"Not run: {name} ({why})." for name, why in measurements["not_run"].items()]
    graders = table(["grader", "versions"], versions)
    return "\n".join([*lines, *measurements["missing"], *absent, "", COMMANDS, "", graders])


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{package} {version}" for package, version in versions.items() if package != "source")


def _totals(measurements: Measurements, name: str, peers: Sequence[str], with_all: str) -> str:
    def row(peer: str) -> list[str]:
        main, everything = (measurements["peers"][peer][name][part] for part in ("main", "all"))
        cells = [peer]
        for part in (main, everything):
            cells += [rate(part["fn"], part["positives"]), rate(part["fp"], part["negatives"])]
        return [*cells, str(everything["unjudged"]), str(everything["hangs"])]

    header = ["grader", "FN", "FP", f"FN, {with_all}", f"FP, {with_all}", "not judged", "hangs"]
    return table(header, map(row, peers))


def _errors(part: dict[str, int]) -> str:
    """False negatives / false positives, as far as there could be any."""
    kinds = [("fn", "positives"), ("fp", "negatives")]
    return " / ".join(str(part[error]) if part[rows] else "-" for error, rows in kinds)


def _by_corpus(measurements: Measurements, name: str, peers: Sequence[str]) -> str:
    first = measurements["peers"][peers[0]][name]["by_corpus"]
    rows = [
        [corpus, f"{part['positives']} / {part['negatives']}"]
        + [_errors(measurements["peers"][peer][name]["by_corpus"][corpus]) for peer in peers]
        for corpus, part in first.items()
    ]
    return "By corpus, FN / FP:\n\n" + table(["corpus", "right / wrong rows", *peers], rows)


def _halves(measurements: Measurements, name: str) -> str:
    """Return truegold's errors on the half of the rows that may have been read and on the other one."""
    if TRUEGOLD not in measurements["peers"]:
        return ""
    halves = [measurements["peers"][TRUEGOLD][name][half] for half in ("read", "counted only")]
    kinds = [kind for kind in halves[0] if kind in halves[1]]
    if halves[0]["real corpora"] == halves[0]["all"]:
        kinds.remove("real corpora")
    rows = []
    for kind in kinds:
        cells = [rate(half[kind]["fn"], half[kind]["positives"]) for half in halves]
        cells += [rate(half[kind]["fp"], half[kind]["negatives"]) for half in halves]
        rows.append([kind, *cells])
    header = ["rows", "FN, read", "FN, counted only", "FP, read", "FP, counted only"]
    return (
        "truegold on the rows that may have been read while it was made, and on those that were only counted (by a "
        "hash of the key); real corpora are rows that no rule has made:\n\n" + table(header, rows)
    )


def _by_rule(measurements: Measurements, peers: Sequence[str]) -> str:
    parts = {peer: measurements["peers"][peer]["pairs"]["by_rule"] for peer in peers}
    rows, flawless = [], []
    for rule, part in parts[peers[0]].items():
        errors = [parts[peer][rule]["fn"] + parts[peer][rule]["fp"] for peer in peers]
        sign = "=" if part["positives"] else "≠"
        if any(errors):
            cells = [str(count or "") for count in errors]
            rows.append((-sum(errors), [code(rule), sign, str(part["positives"] + part["negatives"]), *cells]))
        else:
            flawless.append(rule)
    if not rows:
        return ""
    rows.sort(key=lambda entry: entry[0])
    tail = f"\n\nNo error by anyone: {', '.join(map(code, flawless))}." if flawless else ""
    header = ["rule", "label", "rows", *peers]
    return (
        "Rewrites (=) and edits (≠) of MATH golds, errors by rule:\n\n"
        + table(header, (cells for _, cells in rows))
        + tail
    )


def _apart(measurements: Measurements, name: str, peers: Sequence[str]) -> str:
    titles = {
        "policy": "Policy rows, how many each accepts:",
        "noise": "Rows with a wrong label, how many each accepts:",
    }
    return _accepted(titles[name], {peer: measurements["peers"][peer]["pairs"][name] for peer in peers})


def _responses_policy(measurements: Measurements, peers: Sequence[str]) -> str:
    parts = {peer: measurements["peers"][peer]["responses"]["policy"] for peer in peers}
    return _accepted("Responses without a label, how many each accepts:", parts)


def _accepted(title: str, parts: dict[str, Any]) -> str:
    first = next(iter(parts.values()))
    if not first:
        return ""
    rows = [
        [code(rule), str(group["rows"]), *(str(part[rule]["accepted"]) for part in parts.values())]
        for rule, group in first.items()
    ]
    return f"{title}\n\n" + table(["rule or corpus", "rows", *parts], rows)


def _hard(measurements: Measurements, peers: Sequence[str]) -> str:
    parts = {peer: measurements["peers"][peer]["hard"] for peer in peers}
    counted = parts[peers[0]]["all"]
    rows = [
        [code(rule), str(group["positives"] + group["negatives"])]
        + [str(part["by_rule"][rule]["fn"] + part["by_rule"][rule]["fp"]) for part in parts.values()]
        for rule, group in parts[peers[0]]["by_rule"].items()
    ]
    total = ["all", str(counted["positives"] + counted["negatives"])]
    total += [str(part["all"]["fn"] + part["all"]["fp"]) for part in parts.values()]
    title = "Rows that eleven graders once got wrong, without those whose label is wrong; errors by class:"
    return f"{title}\n\n" + table(["class", "rows", *peers], [*rows, total])


def _speed(measurements: Measurements, peers: Sequence[str]) -> str:
    parts = []
    for name in ("pairs", "responses"):
        if name not in measurements["sets"]:
            continue
        speeds = {
            peer: measurements["peers"][peer][name]["speed"] for peer in peers if name in measurements["peers"][peer]
        }
        reference = speeds.get(REFERENCE)
        rows = [
            [
                peer,
                f"{it['per_cpu_s']:,.0f}",
                f"{it['per_cpu_s'] / reference['per_cpu_s']:.1f} x" if reference else "-",
                *(f"{it[key]:.3f}" for key in ("mean_ms", "p50_ms", "p99_ms")),
                f"{it['max_ms']:.1f}",
                f"{it['cpu_s']:.1f}",
            ]
            for peer, it in speeds.items()
        ]
        header = ["grader", f"{name} per CPU-second", f"against {REFERENCE}", "mean ms", "p50", "p99", "max", "CPU s"]
        parts.append(table(header, rows))
    return "\n\n".join(["## Speed", *parts]) if parts else ""


def _probes(measurements: Measurements, peers: Sequence[str]) -> str:
    probes = measurements["probes"]

    def cell(probe: dict[str, Any], peer: str) -> str:
        score = measurements["peers"][peer]["probes"]["scores"][probe["probe"]]
        if probe["want"] == "policy":
            return {True: "=", False: "≠", None: "?"}[score]
        is_equal = probe["want"] == "="
        right = score is is_equal or (score is None and not is_equal)
        error = "FN" if is_equal else "**FP**"
        return "" if right else error

    rows = []
    for probe in probes:
        want = f"policy {probe['default']}" if probe["want"] == "policy" else probe["want"]
        want = want.replace("!=", "≠")
        shown = [probe["probe"].replace("|", "\\|"), code(probe["gold"]), code(probe["answer"]), want]
        rows.append([*shown, *(cell(probe, peer) for peer in peers)])
    totals = [measurements["peers"][peer]["probes"]["all"] for peer in peers]
    last = ["**FN / FP**", "", "", f"{totals[0]['positives']} = / {totals[0]['negatives']} ≠"]
    rows.append([*last, *(f"{total['fn']} / {total['fp']}" for total in totals)])
    intro = (
        'Blank: right. For policy rows the table has what each does, and under "want" what truegold documents.\n\n'
        "<details><summary>All probes</summary>\n\n"
    )
    full = table(["probe", "gold", "answer", "want", *peers], rows)
    short = table(["", *peers], [["FN / FP", *rows[-1][4:]]])
    return f"## Capability probes\n\n{short}\n\n{intro}{full}\n\n</details>"


def _hostile(hostile: list[dict[str, Any]] | str | None) -> str:
    if hostile is None:
        return ""
    if isinstance(hostile, str):
        return f"## Hostile strings\n\nNot run: {hostile}."
    accepts: dict[str, Callable[[Any], bool]] = {
        "any": lambda score: True,
        "match": lambda score: score is not False,
        "no_match": lambda score: score is not True,
    }
    wrong = [case["name"] for case in hostile if not accepts[case["expected"]](case["score"])]
    lost = [case["name"] for case in hostile if case["note"] in {"hang", "crash"} or "raised" in case["note"]]
    worst = sorted(hostile, key=lambda case: (-case.get("cpu_ms", 0.0), -case.get("mb", 0.0)))[:WORST_HOSTILE]
    most_mb = max((case.get("mb", 0.0) for case in hostile), default=0.0)
    rows = [
        [
            case["name"].replace("|", "\\|"),
            _verdict(case),
            f"{case.get('cpu_ms', 0.0):.1f}",
            f"{case.get('mb', 0.0):.1f}",
        ]
        for case in worst
    ]
    note = (
        f"{len(hostile)} strings, {TRUEGOLD} alone, each in a process of its own. Largest growth of memory: "
        f"{most_mb:.1f} MB. Wrong verdicts: {', '.join(wrong) or 'none'}."
        f" Hangs, crashes, exceptions: {', '.join(lost) or 'none'}."
        " The dearest:"
    )
    return f"## Hostile strings\n\n{note}\n\n" + table(["string", "verdict", "CPU ms", "MB"], rows)


def _verdict(case: dict[str, Any]) -> str:
    score = {True: "right", False: "wrong", None: "not judged"}[case["score"]]
    return f"{score} ({case['note']})" if case["note"] else score
