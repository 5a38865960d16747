"""Runs the command line on every plant of a folder and judges the outcomes.

python try_doors.py OUT.json [--truegold PROGRAM] [--only layouts,gate] [--plants kept]

The plants are those of this folder, or those of another one, whose `make_*.py` write them where they are not there.

An outcome is `right`, `refused` (an error or a reject where a row was expected: loud), `wrong` (another row, another
verdict or another fault, in silence), `silent` (nothing was said of a fault), `half` (another fault than the planted
one was named) or `crash`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from truegold import pipeline

HERE = Path(__file__).parent
Row = dict[str, Any]


class Door:
    """The command line, run in a folder that goes away."""

    def __init__(self, program: str, folder: Path, plants: Path) -> None:
        self.program, self.folder, self.plants = program, folder, plants

    def run(self, *arguments: str) -> tuple[int, str]:
        """Return the exit code and the text that was printed."""
        done = subprocess.run(
            [self.program, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=900, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def exported(self, data: Path, form: str) -> tuple[int, str, dict[int, Row]]:
        """The rows that `truegold export` makes, by their number in the file."""
        out = self.folder / f"{data.parent.name}_{data.stem}_{form}"
        code, printed = self.run("export", str(data), "--format", form, "--out", str(out))
        rows: dict[int, Row] = {}
        for file in sorted(out.glob("**/*.parquet")):
            for record in pl.read_parquet(file).to_dicts():
                rows[json.loads(record["truegold"])["source_row"]] = record
        return code, printed, rows


def errors_of(text: str, plants: Path) -> str:
    """The lines that say what was refused."""
    lines = [line.strip() for line in text.splitlines() if "error:" in line or "rejected" in line or "Error" in line]
    return " | ".join(lines).replace(str(plants) + "/", "")[:300]


def squeezed(text: Any) -> str:
    """The text with single blanks."""
    return " ".join(str(text).split())


def layout_row(want: Row, got: Row | None) -> tuple[str, str]:
    """The outcome of one row, and what is wrong with it."""
    if want["outcome"] == "refused":
        if got is None or got["gold"] in want.get("or", {}).get("gold", []):
            return "right", ""
        return "wrong", f"taken as {got['verifier']}, gold {got['gold']!r}"
    if got is None:
        return "refused", ""
    faults = [] if got["verifier"] in verifiers(want) else [f"verifier {got['verifier']}"]
    faults += text_faults(want, got)
    if want["verifier"] == got["verifier"] == "code":
        tests = got["verifier_args"]
        outputs = [json.dumps(test["output"])[1:-3] for test in want.get("tests", [])]
        outputs += ["TestCases"] if "entry_point" in want else []
        faults += ["tests lost"] if any(text not in tests for text in outputs) else []
        faults += tests_faults(want, tests)
    return ("wrong", "; ".join(faults)) if faults else ("right", "")


def bare(text: Any) -> str:
    """The text without white space, quotation marks and what escapes them."""
    return "".join(
        c for c in str(text).replace("\\\\n", "").replace("\\n", "") if not c.isspace() and c not in "\"'\\\\"
    )


def tests_faults(want: Row, tests: Any) -> list[str]:
    """What the tests have to hold: parts of them in any quotation, and one of the words in `says`."""
    lost = [text for text in want.get("tests_contain", []) if bare(text) not in bare(tests)]
    unsaid = "says" in want and not any(word in str(tests).lower() for word in want["says"])
    return (["tests lost"] if lost else []) + ([f"nothing says {want['says'][0]}"] if unsaid else [])


def verifiers(want: Row) -> list[str]:
    """The verifiers that are right for the row."""
    return [want["verifier"], *want.get("or", {}).get("verifier", [])]


def text_faults(want: Row, got: Row) -> list[str]:
    """What the prompt and the golds lack."""
    faults = []
    prompt = squeezed(got["prompt"])
    if "options" in want:
        missing = [text for text in [want["prompt"], *want["options"]] if squeezed(text) not in prompt]
        faults += [f"the prompt lacks {missing[:2]}"] if missing else []
    elif not any(squeezed(text) in prompt for text in [want["prompt"], *want.get("or", {}).get("prompt", [])]):
        faults.append("prompt " + repr(prompt[:60]))
    if want["verifier"] != "code" and got["gold"] not in (
        want["gold"],
        want.get("gold_text"),
        *want.get("or", {}).get("gold", []),
    ):
        faults.append(f"gold {got['gold']!r}")
    golds = [gold for gold in want.get("golds", []) if gold not in (got["golds"] or [])]
    return faults + ([f"golds without {golds}"] if golds else [])


def worst(counts: Counter[str]) -> str:
    """Wrong in silence is worse than refused."""
    return next((kind for kind in ("wrong", "refused") if counts[kind]), "right")


def layouts(door: Door) -> Row:
    """Exports each layout to canonical rows."""
    out: Row = {}
    for name, plant in json.loads((door.plants / "layouts/expected.json").read_text(encoding="utf-8")).items():
        code, printed, rows = door.exported(door.plants / f"layouts/{name}.jsonl", "hf")
        outcomes = [layout_row(want, rows.get(want["row"])) for want in plant["rows"]]
        counts = Counter(kind for kind, _ in outcomes)
        whole = worst(counts)
        whole = "crash" if code == 1 else whole
        why = sorted({text for _, text in outcomes if text})
        out[name] = {
            "outcome": whole,
            "rows": dict(counts),
            "exit": code,
            "said": errors_of(printed, door.plants),
            "wrong": why[:4],
        }
    return out


def conversation_row(want: Row, got: Row | None) -> tuple[str, str]:
    """The outcome of one row, and what is wrong with it."""
    if got is None:
        return ("right", "") if want["outcome"] == "refused" else ("refused", "")
    if want["outcome"] == "refused":
        if "or" in want and any(word in str(got) for word in ("image", "video", "tools", "tool_calls")):
            return "right", ""
        return "wrong", "taken, and the rest is lost"
    messages = [{"role": m["role"], "content": squeezed(m["content"])} for m in got["prompt"]]
    expected = [{"role": m["role"], "content": squeezed(m["content"])} for m in want["prompt"]]
    if want.get("note", "").startswith("the role"):
        for message in [*messages, *expected]:
            message["role"] = message["role"].replace("developer", "system")
    if want.get("note", "").startswith("an empty system"):
        messages = [message for message in messages if message["content"]]
    others = [
        [{"role": m["role"], "content": squeezed(m["content"])} for m in other] for other in want.get("or_prompts", [])
    ]
    if messages != expected and messages not in others:
        return "wrong", f"the model sees {[m['role'] for m in messages]}, {messages[-1]['content'][:50]!r}"
    return ("right", "") if got["answer"] == want["gold"] else ("wrong", f"gold {got['answer']!r}")


def conversations(door: Door) -> Row:
    """Exports each file as messages."""
    out: Row = {}
    for name, plant in json.loads((door.plants / "conversations/expected.json").read_text(encoding="utf-8")).items():
        code, printed, rows = door.exported(door.plants / f"conversations/{name}.jsonl", "trl")
        outcomes = [conversation_row(want, rows.get(want["row"])) for want in plant["rows"]]
        counts = Counter(kind for kind, _ in outcomes)
        whole = worst(counts)
        ids = [row["id"] for row in rows.values()]
        out[name] = {
            "outcome": "crash" if code == 1 else whole,
            "rows": dict(counts),
            "equal_ids": len(ids) - len(set(ids)),
            "exit": code,
            "said": errors_of(printed, door.plants),
            "wrong": sorted({text for _, text in outcomes if text})[:4],
        }
    return out


def gate(door: Door) -> Row:
    """Asks the gate about each set."""
    out: Row = {}
    for name, plant in json.loads((door.plants / "gate/expected.json").read_text(encoding="utf-8")).items():
        sarif = door.folder / f"{name}.sarif"
        options = [str(door.plants / "gate" / o) if o.endswith(".jsonl") else o for o in plant["options"].split()]
        code, printed = door.run(
            "gate", str(door.plants / "gate" / name), *options, "--workers", "1", "--sarif", str(sarif)
        )
        reported = []
        if sarif.exists():
            for result in json.loads(sarif.read_text(encoding="utf-8"))["runs"][0]["results"]:
                text = result["message"]["text"].replace(str(door.plants) + "/", "")
                line = result["locations"][0]["physicalLocation"]["region"]["startLine"]
                names = {result["ruleId"], text.split(":")[0].strip()}
                reported.append((line, names, result["level"], text))
        faults = []
        for fault in plant["faults"]:
            hits = [x for x in reported if x[0] in fault["rows"] and x[1] & set(fault["names"])]
            faults.append(
                {
                    "kind": fault["kind"],
                    "rows": fault["rows"],
                    "outcome": "right" if hits else "silent",
                    "rows_named": len({x[0] for x in hits}),
                    "fails_the_gate": any(level == "error" for _, _, level, _ in hits),
                    "said": sorted({f"{' '.join(sorted(n))[:60]} ({level})" for _, n, level, _ in hits})[:2],
                }
            )
        planted = {line for fault in plant["faults"] for line in fault["rows"]}
        accused = sorted({(line, text[:80]) for line, _, _, text in reported if line not in planted})
        out[name] = {"exit": code, "faults": faults, "clean_rows_accused": accused, "printed": printed.count("FAILED")}
    return out


def curate(door: Door) -> Row:
    """Curates the gate's sets: which faults do flags, edits, drops and rejects name?"""
    out: Row = {}
    for name, plant in json.loads((door.plants / "gate/expected.json").read_text(encoding="utf-8")).items():
        against = [{"set": str(door.plants / "gate/against.jsonl")}]
        curated = pipeline.curate(door.plants / "gate" / name, decontaminate={"against": against})
        named: set[tuple[int, str]] = {(row, reason) for row, reason, *_ in curated.rejects.iter_rows()}
        changes = curated.ledger.filter(pl.col("action") != "keep")
        for table in (curated.flags, changes):
            named |= set(table.select("source_row", "reason").iter_rows())
        faults = [
            {
                "kind": fault["kind"],
                "rows": fault["rows"],
                "said": sorted({reason for row, reason in named if row in fault["rows"]} & set(fault["names"])),
            }
            for fault in plant["faults"]
        ]
        for fault in faults:
            fault["outcome"] = "right" if fault["said"] else "silent"
            names = next(f["names"] for f in plant["faults"] if f["kind"] == fault["kind"])
            fault["rows_named"] = len({row for row, reason in named if row in fault["rows"] and reason in names})
        planted = {row for fault in plant["faults"] for row in fault["rows"]}
        out[name] = {"faults": faults, "clean_rows_named": sorted(pair for pair in named if pair[0] not in planted)}
    return out


def unread(door: Door) -> Row:
    """Verifies each file of completions."""
    out: Row = {}
    for name, plant in json.loads((door.plants / "unread/expected.json").read_text(encoding="utf-8")).items():
        data, verdicts = door.plants / f"unread/{name}.jsonl", door.folder / f"{name}.jsonl"
        code, printed = door.run("verify", "--input", str(data), "--output", str(verdicts), "--workers", "1")
        rows = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines()]
        judged = [json.loads(line) for line in verdicts.read_text(encoding="utf-8").splitlines()]
        pairs = list(zip(rows, judged, strict=True))
        reasons = Counter(v["reason"] for r, v in pairs if r["right"] and v["score"] != 1)
        lost = sum(reasons.values())
        paid_wrongly = sum(v["score"] == 1 for r, v in pairs if not r["right"])
        lines = printed.replace(str(data), "").splitlines()
        line = next((x.strip() for x in lines if "unread" in x or "not read" in x), None)
        if plant["rows"] == 60:
            outcome = "right" if not lost or (line and set(reasons) == {"unread"}) else "silent"
        else:
            outcome = "wrong" if lost or paid_wrongly or line else "right"
        out[name] = {
            "outcome": outcome,
            "right_and_paid": plant["right"] - lost,
            "of": plant["right"],
            "right_but_unpaid": dict(reasons),
            "wrong_but_paid": paid_wrongly,
            "line": line,
            "exit": code,
        }
    return out


NAMES = {
    "dead run": ["dead", "no group teaches", "nothing is learnt", "nothing_teaches", "same reward", "idle"],
    "periodic fault": ["period", "every tenth", "every 10", "recur"],
    "slow rise of length": ["length", "truncated", "cut"],
    "format reward hides falling accuracy": ["accuracy"],
    "entropy collapse": ["entropy"],
    "reward hacking": ["hack", "jump", "reward_jump", "gamed"],
    "reward scale changes": ["scale"],
    "data repeated each epoch": ["epoch", "repeat", "by heart", "memor"],
    "clip ratio grows": ["clip"],
    "not finite": ["finite", "nan"],
    "kl explodes": ["kl ", "kl:", "kl,", "kl)", "kl`", "kl_", "reference", "divergence"],
    "length collapse": ["length", "short"],
    "engines drift apart": ["mismatch", "engine", "sampler", "disagree", "off-policy"],
    "restart from the base weights": [
        "restart",
        "resum",
        "twice",
        "fall",
        "fell",
        "pass_rate",
        "goes back",
        "repeated step",
    ],
    "verdicts are missing": ["unjudged", "not judged", "timeout", "verdict"],
    "entropy explodes": ["entropy"],
    "responses are cut": ["truncat", "cut short", "are cut", "cut at", "limit", "clip_ratio"],
    "gradient explodes": ["grad", "learning rate"],
}


def logs(door: Door) -> Row:
    """Asks the doctor about each log."""
    out: Row = {}
    for name, plant in json.loads((door.plants / "logs/expected.json").read_text(encoding="utf-8")).items():
        code, printed = door.run("train", "--doctor", str(door.plants / "logs" / name))
        alarms = [
            line for line in printed.splitlines() if "what went wrong" in line or line.lstrip().startswith("then")
        ]
        head = " ".join(alarms).lower()
        if code == 1:
            outcome = "crash"
        elif code != 0:
            outcome = "refused"
        elif plant["fault"] is None:
            outcome = "wrong" if alarms else "right"
        elif not alarms:
            outcome = "silent"
        else:
            outcome = "right" if any(word in head for word in NAMES[plant["fault"]]) else "half"
        last = printed.strip().splitlines()[-1] if code else next((x for x in alarms), "no guard fires.")
        out[name] = {
            "fault": plant["fault"],
            "outcome": outcome,
            "exit": code,
            "said": last.replace(str(door.plants) + "/", "").strip()[:260],
        }
    return out


def make(folder: Path) -> None:
    """Write the plants of a folder where they are not there."""
    for script in sorted(folder.glob("make_*.py")) if not (folder / "expected.json").exists() else ():
        subprocess.run([sys.executable, "-P", script.name], cwd=folder, check=True)


def main() -> None:
    """Runs what is asked for and writes the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--truegold", default="truegold")
    parser.add_argument("--plants", type=Path, default=HERE)
    parser.add_argument("--only", default="layouts,conversations,gate,curate,unread,logs")
    asked = parser.parse_args()
    plants = asked.plants.resolve()
    kinds = {
        "layouts": layouts,
        "conversations": conversations,
        "gate": gate,
        "curate": curate,
        "unread": unread,
        "logs": logs,
    }
    result: Row = {}
    with tempfile.TemporaryDirectory() as folder:
        door = Door(
            str(Path(asked.truegold).resolve()) if "/" in asked.truegold else asked.truegold, Path(folder), plants
        )
        result["truegold"] = door.run("--version")[1].strip()
        for kind in asked.only.split(","):
            make(plants / ("gate" if kind == "curate" else kind))
            result[kind] = kinds[kind](door)
            print(kind, "done", flush=True)
    asked.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
