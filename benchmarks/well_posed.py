"""Measures how well a language model finds ill-posed problems (`truegold flag --model`), by corpus and kind of fault.

    python benchmarks/well_posed.py DATA_DIR --model CHECKPOINT [--url URL]      asks a model
    python benchmarks/well_posed.py DATA_DIR --replies FILE                      replays what one has replied
    python benchmarks/well_posed.py DATA_DIR --export-prompts FILE [--replies FILE]
    python benchmarks/well_posed.py DATA_DIR --replies FILE --known MEASURED      joins them with votes and rules

DATA_DIR holds MiP (a premise removed, or the question of another problem: mip_gsm8k.jsonl, mip_svamp.jsonl beside
svamp.jsonl; mip_math.jsonl, whole problems alone), umwp.jsonl (unanswerable edits beside the originals), valimath.jsonl
(people's labels) and mathtrap.jsonl (traps beside the originals). `--also FILE`, which may be repeated, adds JSON Lines
of `problem`, `ill_posed` and perhaps `kind` and `pair`. Of each corpus `--rows` faulty and as many sound problems are
drawn by `--seed`; a file of one's own is taken whole.

The third command writes the prompts without a stored reply, as lines of `id` and `prompt`, in an order that keeps the
two problems of a pair far apart. First these are the first calls, and after their replies the second calls. The file of
replies has lines of `id`, `model` and `reply`. Reported are, by corpus,

    found      the share of faulty problems that are flagged, with its 95 % interval
    flagged    the share of sound problems that are flagged
    undecided  replies that cannot be read, and faults with quotations that are not in the problem
    calls      calls and tokens per problem

and the share of right flags by kind. `--measured FILE` stores the measured worth of verdicts for `truegold flag
--known`.

The last asks about the rows of GSM8K-Platinum (gsm8k_platinum.jsonl, see `curation_suspicion`), whose prompts are
exported with the others, and ranks them by votes, by rules, by the model and by all joined: rejected rows by
`ill_posed`, rejected and revised ones by suspicion.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from curation_rules import Case, reasons
from curation_suspicion import GSM8K, hits, rates, read, with_interval
from curation_suspicion import measure as measure_votes

from truegold.pipeline.config.engines import ChatConfig, EngineConfig, ServerEngineConfig, VllmEngineConfig
from truegold.pipeline.config.stages import Fault, WellPosedConfig
from truegold.pipeline.engines import build_engine
from truegold.pipeline.engines.base import Engine
from truegold.pipeline.engines.chat import MessageEncoder, PromptEncoder
from truegold.pipeline.engines.scripted import RepliesEngine, load_replies, name_model
from truegold.pipeline.flag.fault_likelihood import MeasuredModel, count_verdicts, load_measured
from truegold.pipeline.flag.well_posed import Asked, AskedProblem, Outcome, check_problems
from truegold.pipeline.suspicion.joined import NOTHING_ELSE, PRIOR, UNKNOWN_MODEL, AskedVerdict, OtherEvidence
from truegold.pipeline.tables.measured_flags import ILL_POSED_RULES
from truegold.pipeline.tables.reasons import AskedModel
from truegold.verifiers.rates import wilson_interval

ROWS = 60
WEAK = 0.88
"""Systems below it, by agreement with the labels, are one set of those that vote on GSM8K-Platinum."""
KINDS = tuple(fault for fault in Fault if fault is not Fault.GOLD_OF_OTHER_KIND)
"""These corpora give no gold that could be of another kind."""


@dataclass(frozen=True)
class Labelled:
    """A problem, and whether it is ill-posed."""

    prompt: str
    ill_posed: bool
    kind: str = ""
    """What its corpus calls the fault."""
    pair: int | None = None
    """The number of its row, where that has a faulty and a sound problem, or what a file says in `pair`."""


def valimath(row: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield ValiMath's questions and whether people found them valid."""
    columns = ("question_format", "level_0_check", "min_Pi_check", "contradiction_check", "condition_complete_check")
    kind = next((column for column in columns if str(row[column]) == "False"), "")
    yield Labelled(row["question"], str(row["gt"]) != "True", kind)


def mathtrap(row: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield MathTrap's questions, sound or with a trap."""
    yield Labelled(row["original_problem"], ill_posed=False)
    yield Labelled(row["trap_problem"], ill_posed=True, kind=row["trap_type"])


def mip(row: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield questions whole and with a premise removed, as far as the row has them."""
    if "question" in row:
        yield Labelled(row["question"], ill_posed=False)
    if "insufficient_question" in row:
        yield Labelled(row["insufficient_question"], ill_posed=True, kind="premise removed")


def svamp(row: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield SVAMP's problems: sound ones and their faulty versions from MiP."""
    yield Labelled(f"{row['Body'].rstrip(' .')}. {row['Question']}", ill_posed=False)


def umwp(row: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield questions that can be answered or not."""
    yield Labelled(row["question"], str(row["answerable"]) != "True", f"category {row['category']}")


def other(row: Mapping[str, Any]) -> Iterator[Labelled]:
    """Yield the problems of a file of one's own."""
    yield Labelled(row["problem"], bool(row["ill_posed"]), str(row.get("kind") or ""), row.get("pair"))


Reader = Callable[[Mapping[str, Any]], Iterator[Labelled]]

CORPORA: Mapping[str, Mapping[str, Reader]] = {
    "MiP gsm8k": {"mip_gsm8k.jsonl": mip},
    "MiP math": {"mip_math.jsonl": mip},
    "MiP svamp": {"mip_svamp.jsonl": mip, "svamp.jsonl": svamp},
    "UMWP": {"umwp.jsonl": umwp},
    "ValiMath": {"valimath.jsonl": valimath},
    "MathTrap": {"mathtrap.jsonl": mathtrap},
}


def load(folder: Path, also: Sequence[Path], rows: int, seed: int) -> dict[str, list[Labelled]]:
    """Return the problems of the corpora that are there, so many faulty and sound ones of each."""
    readers = {name: {folder / file: read for file, read in files.items()} for name, files in CORPORA.items()}
    readers |= {path.stem: {path: other} for path in also}
    corpora = {}
    for name, files in readers.items():
        labelled: list[Labelled] = []
        count = rows if name in CORPORA else sys.maxsize
        for path, read_row in files.items():
            if path.exists():
                for line_number, line in enumerate(path.read_text("utf-8").splitlines()):
                    problems = list(read_row(json.loads(line)))
                    labelled += (
                        [replace(each, pair=line_number) for each in problems] if len(problems) > 1 else problems
                    )
        drawn = [
            problem
            for ill_posed in (True, False)
            for problem in _draw([each for each in labelled if each.ill_posed is ill_posed], count, f"{seed} {name}")
        ]
        if drawn:
            corpora[name] = drawn
    return corpora


def _draw(problems: list[Labelled], rows: int, seed: str) -> list[Labelled]:
    unique = list({problem.prompt: problem for problem in problems}.values())
    return random.Random(seed).sample(unique, min(rows, len(unique)))


def spread(corpora: Mapping[str, Sequence[Labelled]], seed: int) -> list[str]:
    """Return the problems of all corpora in an order by chance, in which those of one pair lie half of it apart."""
    chance = random.Random(seed)
    first: dict[tuple[str, int], float] = {}
    order = []
    for name, problems in corpora.items():
        for problem in problems:
            key = chance.random()
            if problem.pair is not None:
                other_half = first.get((name, problem.pair))
                key = key if other_half is None else (other_half + 0.5) % 1
                first.setdefault((name, problem.pair), key)
            order.append((key, problem.prompt))
    return [prompt for _, prompt in sorted(order)]


def export_prompts(
    corpora: Mapping[str, Sequence[Labelled]],
    platinum: Path,
    engine: RepliesEngine,
    encoder: PromptEncoder,
    out: Path,
    seed: int,
) -> int:
    """Write the prompts that have no reply, of the corpora and of the rows of a file, where it is there; return how
    many."""
    asked = [AskedProblem("", prompt) for prompt in spread(corpora, seed)]
    list(check_problems(asked, engine, encoder, make_config("export")))
    if platinum.exists():
        ask_platinum(read(platinum), engine, encoder)
    out.write_bytes(
        b"".join(orjson.dumps({"id": name, "prompt": text}) + b"\n" for name, text in engine.missing.items())
    )
    return len(engine.missing)


def report(problems: Sequence[Labelled], answers: Sequence[Asked]) -> Iterator[str]:
    """Yield the lines on one corpus, or on several together."""
    pairs = list(zip(problems, answers, strict=True))
    for ill_posed, name in ((True, "found"), (False, "flagged")):
        of_label = [answer for problem, answer in pairs if problem.ill_posed is ill_posed]
        outcomes = Counter(answer.outcome for answer in of_label if answer.outcome is not Outcome.NOT_ASKED)
        shown = ", ".join(f"{outcome} {outcomes[outcome]}" for outcome in Outcome if outcomes[outcome])
        first = [bool(answer.faults) for answer in of_label if answer.replies]
        yield f"  {name:<8} {share(outcomes[Outcome.FAULTY], outcomes.total())}   ({shown})"
        yield f"    by the first call alone {share(sum(first), len(first))}"
    asked = [(problem, answer) for problem, answer in pairs if answer.outcome is not Outcome.NOT_ASKED]
    flagged = [(problem, answer) for problem, answer in asked if answer.outcome is Outcome.FAULTY]
    yield f"  right    {share(sum(problem.ill_posed for problem, _ in flagged), len(flagged))}"
    for fault in KINDS:
        of_kind = [problem.ill_posed for problem, answer in flagged if answer.verdict == fault]
        if of_kind:
            yield f"    {fault:<28} {share(sum(of_kind), len(of_kind))}"
    labels = Counter(problem.kind or "faulty" for problem, _ in asked if problem.ill_posed)
    hits = Counter(problem.kind or "faulty" for problem, _ in flagged if problem.ill_posed)
    if labels:
        yield "  by label " + ", ".join(f"{kind} {hits[kind]}/{count}" for kind, count in sorted(labels.items()))
    calls = sum(len(answer.replies) for _, answer in asked)
    yield f"  {len(asked)} of {len(problems)} asked, {calls} calls, {calls / max(1, len(asked)):.2f} a problem"


def share(part: int, whole: int) -> str:
    """Return a share with its interval."""
    low, high = wilson_interval(part, whole)
    return f"{part} of {whole} = {part / whole:.3f} [{low:.3f}, {high:.3f}]" if whole else "0 of 0"


def measure(
    corpora: Mapping[str, Sequence[Labelled]],
    engine: Engine,
    encoder: PromptEncoder,
    config: WellPosedConfig,
    measured: Path | None = None,
) -> Iterator[str]:
    """Ask the model about every problem; yield the lines of the report. What its verdicts are worth goes into the file
    `measured`."""
    everything: list[tuple[Labelled, Asked]] = []
    for name, problems in corpora.items():
        asked = [AskedProblem(f"{name}:{index}", problem.prompt) for index, problem in enumerate(problems)]
        answers = list(check_problems(asked, engine, encoder, config))
        everything += zip(problems, answers, strict=True)
        yield f"{name}:"
        yield from report(problems, answers)
    yield "all:"
    yield from report([problem for problem, _ in everything], [answer for _, answer in everything])
    if measured is not None:
        verdicts = [
            (each.ill_posed, asked.verdict) for each, asked in everything if asked.outcome is not Outcome.NOT_ASKED
        ]
        count_verdicts(config.name, verdicts).save(measured)


def ask_platinum(rows: Sequence[Mapping[str, Any]], engine: Engine, encoder: PromptEncoder) -> list[Asked]:
    """Return the verdicts on the rows of GSM8K-Platinum, by the settings of `truegold flag`."""
    problems = [AskedProblem(str(row["id"]), row["question"], row["gold_original"]) for row in rows]
    return list(check_problems(problems, engine, encoder, WellPosedConfig(name="platinum")))


def find_rules(rows: Sequence[Mapping[str, Any]]) -> dict[str, OtherEvidence]:
    """Return the rules that call a row ill-posed, for the rows that have any."""
    others = {}
    for row in rows:
        case = Case(str(row["id"]), row["question"], row["gold_original"], row["gold_solution"], ill=False)
        if rules := frozenset(reason for reason, _ in reasons(case)) & ILL_POSED_RULES:
            others[case.key] = OtherEvidence(rules)
    return others


def join_platinum(rows: Sequence[Mapping[str, Any]], answers: Sequence[Asked], known: MeasuredModel) -> Iterator[str]:
    """Yield the lines on each source of evidence alone, and on all joined."""
    status = [row["status"] for row in rows]
    bad, rejected = (np.array([each in kinds for each in status]) for kinds in (("rejected", "revised"), ("rejected",)))
    ruled, asked = find_rules(rows), dict[str, OtherEvidence]()
    for row, answer in zip(rows, answers, strict=True):
        if answer.outcome is not Outcome.NOT_ASKED:
            asked[str(row["id"])] = OtherEvidence(asked=AskedVerdict(str(answer.outcome), answer.verdict))
    joined = {key: replace(others, rules=ruled.get(key, NOTHING_ELSE).rules) for key, others in asked.items()}
    model = AskedModel(PRIOR, *known.outcomes())
    counts = Counter(zip(status, (answer.verdict for answer in answers), strict=True))
    yield "asked: " + ", ".join(f"{kind} {verdict} {count}" for (kind, verdict), count in sorted(counts.items()))
    yield "ruled: " + ", ".join(
        f"{row['id']} {row['status']} {' '.join(sorted(ruled[str(row['id'])].rules))}"
        for row in rows
        if str(row["id"]) in ruled
    )
    rate = rates(rows, "math")
    ranked = sorted(rate, key=lambda name: (-rate[name], name))
    weak = [name for name in ranked if rate[name] < WEAK]
    told_by: dict[str, tuple[Mapping[str, OtherEvidence], AskedModel]] = {
        "votes": ({}, UNKNOWN_MODEL),
        "rules": (ruled, UNKNOWN_MODEL),
        "asked": (asked, model),
        "asked, not measured": (asked, UNKNOWN_MODEL),
        "joined": (joined, model),
        "joined, not measured": (joined, UNKNOWN_MODEL),
    }
    yield "AP: ill_posed of rejected rows, suspicion of bad ones; precision and recall of drops, and with reviews"
    for name, systems in {"nobody": [], "all": ranked, "15 best": ranked[:15], f"below {WEAK:.0%}": weak}.items():
        for source, (others, asked_model) in told_by.items():
            measured = measure_votes(rows, systems, "math", others=others, asked_model=asked_model)
            sound = ~bad
            yield (
                f"{name:<10} {source:<20} {with_interval(rejected, measured.ill_posed):<20}"
                f" {with_interval(bad, measured.suspicion):<20} drop {hits(measured.dropped, bad):<20}"
                f" review {hits(measured.review, bad):<20} kept rows: {(measured.dropped & sound).sum()} dropped,"
                f" {(sound & (measured.ill_posed >= 0.5)).sum()} ill-posed with .5 or more"
            )


def make_config(name: str, engine: EngineConfig | None = None) -> WellPosedConfig:
    """Return the settings of the check."""
    return WellPosedConfig(name=name, kinds=KINDS, **({} if engine is None else {"engine": engine}))


def main() -> None:
    """Ask the model about the problems that the command line names, and print what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--also", type=Path, action="append", default=[], help="a file of problems with `ill_posed`")
    parser.add_argument("--model", type=Path, help="folder of the checkpoint, or of a served one's tokenizer")
    parser.add_argument("--url", help="a vLLM server that serves the model")
    parser.add_argument("--replies", type=Path, help="a file of replies, or a folder of such files")
    parser.add_argument("--export-prompts", type=Path, metavar="FILE")
    parser.add_argument("--rows", type=int, default=ROWS, help="faulty and sound problems of each corpus")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--measured", type=Path, help="write an asked_model.json for `truegold flag --known`")
    parser.add_argument("--known", type=Path, help="such a file, to join the replies about GSM8K-Platinum by")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    corpora = load(arguments.data_dir, arguments.also, arguments.rows, arguments.seed)
    encoder: PromptEncoder = MessageEncoder(ChatConfig())
    engine: Engine = RepliesEngine(load_replies(arguments.replies) if arguments.replies else {})
    if arguments.export_prompts and isinstance(engine, RepliesEngine):
        out, seed = arguments.export_prompts, arguments.seed
        print(f"{export_prompts(corpora, arguments.data_dir / GSM8K, engine, encoder, out, seed)} prompts")
        return
    config = make_config(name_model(arguments.replies) if arguments.replies else arguments.model.name)
    if not arguments.replies:
        engine_config: EngineConfig = VllmEngineConfig(max_model_len=8192)
        if arguments.url:
            engine_config = ServerEngineConfig(url=arguments.url)
        config = make_config(arguments.model.name, engine_config)
        engine, encoder = build_engine(config.engine, config.chat, arguments.model)
    if arguments.known:
        rows, known = read(arguments.data_dir / GSM8K), load_measured(arguments.known, config.name)
        lines = list(join_platinum(rows, ask_platinum(rows, engine, encoder), known))
    else:
        lines = list(measure(corpora, engine, encoder, config, arguments.measured))
    engine.close()
    print("\n".join(lines))
    if arguments.json:
        arguments.json.write_text(json.dumps(lines, indent=1) + "\n")


if __name__ == "__main__":
    main()
