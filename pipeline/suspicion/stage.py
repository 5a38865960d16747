"""Stage `suspect`: computes for each row the probability that it is at fault.

    rows.parquet + samples.jsonl  ->  suspicion.parquet: id "17", suspicion 0.93, tier "review", suggestion "26", ...

The evidence is answers of models to the problem (samples), flags of rules that call the problem ill-posed, and the
verdict of a model that was asked about the row. The suspicion of a row without evidence is null. The stage does not
change or drop rows; `tier` is a recommendation (`joined`). If a row's verifier runs programs, answers are not compared
with each other. A sample names its row by the row's id in its source (`meta.source_id`), or by truegold's id.

    {"id": "17", "system": "model-a", "answer": "26"}                 an answer
    {"id": "17", "system": "model-a", "response": "So \\\\boxed{26}"}    a whole response, judged by the row's verifier
    {"id": "17", "extracted": "26", "score": 0.0}                     samples.parquet of a profile, already judged

    {"id": "17", "system": "policy", "step": 40, "extracted": "26", "score": 0.0}       completions of a training

A sample without a system gets the system of its file, or "-". Samples without an id are counted as rejected, samples
with an unknown id as left out.

Samples refer to the problems of a table by names:

    row   source's id   truegold's id   problem   names
    0     "17"          9f0c...         0         "17", 9f0c...
    1     "18"          51aa...         1         51aa...         "18" is not a name, since two problems share it
    2     "18"          77de...         2         77de...
    3     "17"          9f0c...         0         "17", 9f0c...   a copy of row 0

Texts are on disk. Memory holds 40 bytes for each row. Names are compared by hashes of 64 bits: among ten million names,
two have the same hash with a probability of 3e-6.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, overload

import numpy as np
import orjson
import xxhash

from truegold.pipeline.config.stages import SuspicionConfig
from truegold.pipeline.near.arrays import Ints, OnDisk, places_in
from truegold.pipeline.running.progress import Progress, paced
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.sources.data_files import at_hand, open_file
from truegold.pipeline.sources.places import place_url
from truegold.pipeline.sources.records import Reject
from truegold.pipeline.suspicion.answer_classes import LabelledProblem, Sample
from truegold.pipeline.suspicion.assess import Assessment, Fit, assess
from truegold.pipeline.suspicion.doubts import DoubtCounter, finds_lacking
from truegold.pipeline.suspicion.joined import NOTHING_ELSE, UNKNOWN_MODEL, AskedVerdict, OtherEvidence, SuspicionTier
from truegold.pipeline.suspicion.votes import AnswerVotes, VoteCounter
from truegold.pipeline.tables.conversation import read_compared_rows
from truegold.pipeline.tables.ledger import FlagRecord
from truegold.pipeline.tables.measured_flags import ILL_POSED_RULES
from truegold.pipeline.tables.reasons import (
    ANSWERS_FILE,
    ANSWERS_SCHEMA,
    SUSPICION_FILE,
    SUSPICION_SCHEMA,
    AskedModel,
    AskedRecord,
    read_asked_model,
)
from truegold.pipeline.tables.rows import KEY, TableWriter, count_rows, dump_json, read_rows, read_table
from truegold.verifiers import InputError
from truegold.verifiers.columns import NAMES, text_of


class RowKeys:
    """Finds the problem for a name. Rows with the same key are copies, and share a problem."""

    def __init__(self, rows: Path, *, by_source_id: bool) -> None:
        """Read the names of the rows.

        `by_source_id` is true if samples may refer to rows by the ids of their source. Samples that truegold drew refer
        to rows only by truegold's ids, because rows of several sources may share source ids.
        """
        self._by_source_id = by_source_id
        total = count_rows(rows)
        pairs = ((_hash(source_id(row)), _hash(row["id"])) for row in read_rows(rows, ["id", "meta"]))
        named = np.fromiter(pairs, np.dtype((np.uint64, 2)), total)
        source_ids, ids = (named[:, 0], named[:, 1]) if by_source_id else (named[:, 1], named[:, 1])
        order = np.lexsort((ids, source_ids))
        same_name = source_ids[order][1:] == source_ids[order][:-1]
        differ = same_name & (ids[order][1:] != ids[order][:-1])
        shared = np.unique(source_ids[order][1:][differ])
        self._shared: set[int] = set(shared.tolist())
        keys = np.where(np.isin(source_ids, shared), ids, source_ids)
        _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        rank = places_in(np.argsort(first))
        self.problem: Ints = rank[inverse]
        """The number of each row's problem. Problems are numbered in order of first appearance."""
        self.is_repeated = np.zeros(len(first), dtype=bool)
        """Whether each problem has several rows."""
        self.is_repeated[rank[counts > 1]] = True
        # Keys come before source ids. So a key wins over an equal source id.
        names, problems = np.concatenate([keys, ids]), np.concatenate([self.problem, self.problem])
        names, position = np.unique(names, return_index=True)
        self._names, self._problem_of_name = names, problems[position].astype(np.int32)

    @property
    def shared(self) -> int:
        """The number of source ids that different problems share. Samples cannot refer to a problem by a shared id."""
        return len(self._shared)

    def key_of(self, row: Mapping[str, Any]) -> str:
        """Return the name by which samples refer to a row."""
        key = source_id(row) if self._by_source_id else str(row["id"])
        return str(row["id"]) if self._shared and _hash(key) in self._shared else key

    def get(self, name: str, /) -> int | None:
        """Return the number of the problem with this name, or None for an unknown name."""
        name_hash = np.uint64(_hash(name))
        position = int(self._names.searchsorted(name_hash))
        if position == len(self._names) or self._names[position] != name_hash:
            return None
        return int(self._problem_of_name[position])


def source_id(row: Mapping[str, Any]) -> str:
    """Return the id of a row in its source, or else truegold's id."""
    known_id = json.loads(row["meta"]).get("source_id") if row["meta"] else None
    return str(row["id"] if known_id is None else known_id)


def _hash(name: str) -> int:
    return xxhash.xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"))


class ProblemFile(Sequence[LabelledProblem]):
    """A sequence of problems in a temporary file, which is deleted with the object."""

    def __init__(self, problems: Iterable[LabelledProblem], folder: Path) -> None:
        data, ends = OnDisk(np.uint8, folder), [0]
        for problem in problems:
            fields = (
                problem.id,
                problem.gold,
                problem.prompt,
                problem.solution,
                problem.verifier,
                problem.verifier_args,
                problem.source,
            )
            data.extend(np.frombuffer(orjson.dumps(fields), np.uint8))
            ends.append(len(data))
        self._data, self._ends = data.array.data, np.array(ends)

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> LabelledProblem: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[LabelledProblem]: ...

    def __getitem__(self, index: int | slice) -> LabelledProblem | Sequence[LabelledProblem]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        fields = orjson.loads(self._data[self._ends[index] : self._ends[index + 1]])
        key, gold, prompt, solution, verifier, arguments, source = fields
        return LabelledProblem(key, gold, prompt, solution, sys.intern(verifier), arguments, sys.intern(source))

    def __iter__(self) -> Iterator[LabelledProblem]:
        return map(self.__getitem__, range(len(self)))


COLUMNS = ["id", "prompt", "gold", "verifier", "verifier_args", "solution", "source", "source_row", "meta"]

# Columns that may have a sample's id. If a sample has several of them, the first one with a text is used.
ID_COLUMNS = ("id", "item", "item_id", "problem_id")
SYSTEM_COLUMNS = NAMES["system"]
ANSWER_COLUMNS = NAMES["extracted"]
STEP_COLUMN = "step"
MAX_STEP = 2**31 - 1
"""The largest step: steps are stored as 32-bit integers."""
SAMPLE_SUFFIXES = (".parquet", ".jsonl", ".csv")
RESPONSE_COLUMNS = ("response", "completion", "text")
MAX_ROW_BYTES = 64 * 2**20
"""The maximum number of bytes of a line. A longer line is rejected without being read into memory."""
NO_SYSTEM = "-"
"""The system of samples without a system."""
NOT_ASKED = "not asked"
"""The outcome of a row that the model was not asked about."""


@stage_function(version=6, judges="rows")
def suspect(inputs: Mapping[str, Path], config: SuspicionConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Write `suspicion.parquet`. Raises InputError if no sample belongs to a row.

    `inputs` has `rows`; optionally `flags`, `asked` (the verdicts of a model), and `samples 0`, `samples 1`, ... in the
    order of `config.files`.
    """
    counts: Counter[str] = Counter()
    files = [
        SampleFile(inputs[f"samples {index}"], source.system, source.step) for index, source in enumerate(config.files)
    ]
    in_files = chain.from_iterable(read_samples(file, counts) for file in files)
    samples: Iterator[Sample] = iter(paced(in_files, progress, "reading samples")) if files else iter(())
    known = read_others(inputs.get("flags"), inputs.get("asked"))
    tiers, facts = score_rows(inputs["rows"], samples, known, config.workers, out_dir, by_source_id=True)
    if counts["read"] and facts["samples_of_unknown_rows"] + counts["rejected"] >= counts["read"]:
        names = ", ".join(str(file.path) for file in files)
        keys = ", ".join(islice((source_id(row) for row in read_rows(inputs["rows"], ["id", "meta"])), 3))
        if facts["shared_ids"]:
            raise InputError(
                f"{names}: the samples name rows by ids that different rows of the data share.",
                "Give each row an id of its own.",
            )
        raise InputError(
            f"{names}: none of its {counts['read']:,} samples names a row of the data.",
            f"The data's ids are such as {keys}.",
        )
    total = count_rows(inputs["rows"])
    return StageReport(total, total, tiers, facts | {"samples": counts["read"], "samples_rejected": counts["rejected"]})


@dataclass(frozen=True, slots=True)
class EvidenceOfRows:
    """The evidence on rows other than samples, by row id. Rows with the same content have the same id."""

    by_row: Mapping[str, OtherEvidence] = field(default_factory=dict)
    asked_model: AskedModel = UNKNOWN_MODEL


def read_others(flags: Path | None, asked: Path | None) -> EvidenceOfRows:
    """Return the evidence in a table of flags and in a table of a model's verdicts."""
    by_row: dict[str, OtherEvidence] = {}
    if flags is not None:
        for flag in read_table(flags, FlagRecord, ["id", "reason"]):
            if flag["reason"] in ILL_POSED_RULES:
                known = by_row.get(flag["id"], NOTHING_ELSE)
                by_row[flag["id"]] = replace(known, rules=known.rules | {flag["reason"]})
    if asked is None:
        return EvidenceOfRows(by_row)
    for record in read_table(asked, AskedRecord, ["id", "outcome", "verdict"]):
        if record["outcome"] != NOT_ASKED:
            verdict = AskedVerdict(record["outcome"], record["verdict"])
            by_row[record["id"]] = replace(by_row.get(record["id"], NOTHING_ELSE), asked=verdict)
    return EvidenceOfRows(by_row, read_asked_model(asked))


def score_rows(
    rows: Path, samples: Iterable[Sample], known: EvidenceOfRows, workers: int, out_dir: Path, *, by_source_id: bool
) -> tuple[dict[str, int], dict[str, Any]]:
    """Write suspicion.parquet and answers.parquet for a table of rows.

    Returns the number of rows by tier, and the facts for a report. `by_source_id`: see `RowKeys`.
    """
    keys = RowKeys(rows, by_source_id=by_source_id)
    others: dict[str, OtherEvidence] = {}
    problems = ProblemFile(_read_problems(rows, keys, known, others), out_dir)
    counter, doubts = VoteCounter(problems, workers, keys), DoubtCounter(keys)
    counter.add(doubts.watch(samples))
    votes = counter.count()
    for problem, counted in doubts.log_ratios().items():
        key = problems[problem].id
        others[key] = replace(others.get(key, NOTHING_ELSE), doubts=counted)
    fit, assessments = assess(problems, votes, others, known.asked_model)
    totals = _Totals()
    _write_tables(out_dir, rows, keys, _with_answers(map(totals.add, assessments), counter.answers(votes)))
    facts = _facts(fit, totals, votes.systems)
    facts |= {"samples_of_unknown_rows": votes.unknown_items, "shared_ids": keys.shared}
    return {f"tier:{tier}": totals.tiers[str(tier)] for tier in SuspicionTier}, facts


def _read_problems(
    rows: Path, keys: RowKeys, known: EvidenceOfRows, others: dict[str, OtherEvidence]
) -> Iterator[LabelledProblem]:
    """Yield each problem of a table once, and store its evidence other than samples in `others`."""
    seen = 0
    for row, problem in zip(read_compared_rows(rows, COLUMNS), map(int, keys.problem), strict=True):
        if problem < seen:
            continue
        seen += 1
        key, verifier, arguments = keys.key_of(row), row["verifier"] or "math", row["verifier_args"] or "{}"
        if row["id"] in known.by_row:
            others[key] = known.by_row[row["id"]]
        yield LabelledProblem(
            key, row["gold"], row["prompt"], row["solution"], verifier, arguments, row["source"] or ""
        )


Findings = tuple[Assessment, list[AnswerVotes]]
"""The assessment of a problem, and the classes of answers to this problem."""


def _with_answers(assessments: Iterable[Assessment], answers: Iterator[AnswerVotes]) -> Iterator[Findings]:
    """Yield each assessment with the answers to its problem. Assessments and answers come in the order of problems."""
    ahead = next(answers, None)
    for problem, assessment in enumerate(assessments):
        own_answers: list[AnswerVotes] = []
        while ahead is not None and ahead.item == problem:
            own_answers.append(ahead)
            ahead = next(answers, None)
        yield assessment, own_answers


def _write_tables(out_dir: Path, rows: Path, keys: RowKeys, findings: Iterator[Findings]) -> None:
    """Write the assessment and the answers of each row's problem. `findings` come in the order of problems."""
    repeated: dict[int, Findings] = {}
    seen = 0
    with (
        TableWriter(out_dir / SUSPICION_FILE, SUSPICION_SCHEMA) as suspicion,
        TableWriter(out_dir / ANSWERS_FILE, ANSWERS_SCHEMA) as answer_table,
    ):
        for row, problem in zip(read_rows(rows, list(KEY)), map(int, keys.problem), strict=True):
            location = {"source": row["source"], "source_row": row["source_row"]}
            if problem < seen:
                assessment, answers = repeated[problem]
            else:
                seen += 1
                assessment, answers = next(findings)
                if keys.is_repeated[problem]:
                    repeated[problem] = assessment, answers
            suspicion.write(
                {
                    "id": assessment.id,
                    "row_id": row["id"],
                    **location,
                    "suspicion": assessment.suspicion,
                    "ill_posed": assessment.ill_posed,
                    "label_wrong": assessment.label_wrong,
                    "tier": str(assessment.tier),
                    "evidence": dump_json(assessment.evidence),
                    "suggestion": assessment.suggestion,
                }
            )
            for answer in answers:
                known = {"spellings": answer.spellings, "votes": answer.votes, "systems": answer.systems}
                answer_table.write({"id": row["id"], **location, "kind": answer.kind, **known})


def summary_lines(facts: Mapping[str, Any], counts: Mapping[str, int]) -> list[str]:
    """Return the summary of the stage for the terminal."""
    lines = ["no samples were given"]
    if facts["samples"]:
        lines = [
            f"{facts['samples']:,} samples of {len(facts['systems'])} systems for {facts['items_with_samples']:,} items"
        ]
    if not facts["items_known"]:
        return [f"{lines[0]}: suspicion is empty"]
    lines.append(
        f"suspicion: {counts['tier:drop']:,} drop, {counts['tier:review']:,} review, {counts['tier:keep']:,} keep"
    )
    for share, name in (("expected_faulty", "faulty labels"), ("wrong_labels", "labels that are plainly wrong")):
        if facts[share] is not None:
            lines.append(f"expected share of {name}: {facts[share]:.1%}")
    if facts["shared_ids"]:
        lines.append(f"{facts['shared_ids']:,} ids are shared by rows of different content: samples cannot name these")
    left_out = facts["samples_of_unknown_rows"] + facts["samples_rejected"]
    if left_out:
        lines.append(f"{left_out:,} samples were left out: their ids are not in the data, or they could not be read")
    return lines


@dataclass(slots=True)
class _Totals:
    """Running totals over the assessments."""

    tiers: Counter[str] = field(default_factory=Counter)
    known: int = 0
    """The number of problems with a suspicion."""
    answered: int = 0
    """The number of problems with answers."""
    measured: int = 0
    """The number of problems whose suspicion rests on samples or on a measured model."""
    suspicion: float = 0.0
    """The sum of the suspicions of the problems in `measured`."""

    def add(self, assessment: Assessment) -> Assessment:
        """Count an assessment, and return it."""
        self.tiers[str(assessment.tier)] += 1
        if assessment.suspicion is not None:
            self.known += 1
            self.answered += assessment.label_wrong is not None
            if assessment.is_measured:
                self.measured += 1
                self.suspicion += assessment.suspicion
        return assessment


def _facts(fit: Fit, totals: _Totals, systems: list[str]) -> dict[str, Any]:
    return {
        "items_known": totals.known,
        "items_with_samples": totals.answered,
        "expected_faulty": round(totals.suspicion / totals.measured, 4) if totals.measured else None,
        "wrong_labels": None if fit.wrong_labels is None or not totals.answered else round(fit.wrong_labels, 4),
        "systems": {
            name: {
                "agrees_with_labels": round(float(fit.agreement[index]), 4),
                "right": round(float(fit.strength[index]), 4),
                "ability": round(float(fit.ability.theta[index]), 3),
                "counts_as": round(float(fit.learnt.system_weight[index]), 3),
            }
            for index, name in enumerate(systems)
        },
        "neighbours": fit.half_width,
    }


@dataclass(frozen=True, slots=True)
class SampleFile:
    """A file of samples, with a system and a step for samples that have none."""

    path: Path
    system: str | None = None
    step: int | None = None


def sample_files(arguments: Sequence[str]) -> list[SampleFile]:
    """Return the sample files for arguments such as `PATH`, `SYSTEM=PATH` and `SYSTEM@STEP=PATH`.

    A folder stands for its files. If several files are given without a system, each file is a separate system.
    """
    files: list[SampleFile] = []
    for argument in arguments:
        name, separator, path = argument.partition("=")
        if not separator or Path(argument).exists() or place_url(argument):
            name, path = argument if len(arguments) > 1 else "", argument
        system, marker, step = name.rpartition("@")
        if not (marker and step.isdecimal() and int(step) <= MAX_STEP):
            system, step = name, ""
        file = SampleFile(at_hand(path), system or None, int(step) if step else None)
        files += _files_of(file) if file.path.is_dir() else [file]
    return files


def _files_of(folder: SampleFile) -> list[SampleFile]:
    paths = sorted(path for path in folder.path.iterdir() if path.suffix in SAMPLE_SUFFIXES)
    if not paths:
        raise InputError(f"{folder.path} holds no file of samples.", f"Files of {', '.join(SAMPLE_SUFFIXES)} are read.")
    return [replace(folder, path=path) for path in paths]


def read_samples(file: SampleFile, counts: Counter[str]) -> Iterator[Sample]:
    """Yield the samples of a file, and count the rows `read` and `rejected` in `counts`.

    Raises InputError if the first record lacks a column that every sample needs.
    """
    opened = open_file(file.path, "auto", MAX_ROW_BYTES)
    checked = False
    for record in opened.records:
        counts["read"] += 1
        if isinstance(record, Reject):
            counts["rejected"] += 1
            continue
        values = record.values
        if not checked:
            _check_columns(values, f"{opened.location}, {opened.unit} {record.row_number}", file)
            checked = True
        item_id = _first_text(values, ID_COLUMNS)
        if item_id is None:
            counts["rejected"] += 1
            continue
        score, response = values.get("score"), _first_text(values, RESPONSE_COLUMNS)
        judged = "score" in values and (score is None or isinstance(score, int | float))
        yield Sample(
            item_id,
            _first_text(values, SYSTEM_COLUMNS) or file.system or NO_SYSTEM,
            answer=_first_text(values, ANSWER_COLUMNS),
            response=None if judged else response,
            score=float(score) if judged and score is not None else None,
            judged=judged,
            step=_step(values.get(STEP_COLUMN), file.step),
            doubts=None if response is None else finds_lacking(response),
        )


def _step(value: Any, of_file: int | None) -> int | None:
    """Return the step of a sample, or the step of its file if the sample has no valid step."""
    is_step = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_STEP
    return value if is_step else of_file


def _check_columns(values: Mapping[str, Any], location: str, file: SampleFile) -> None:
    required = {"id": ID_COLUMNS, "answer or response": (*ANSWER_COLUMNS, *RESPONSE_COLUMNS)}
    missing = [content for content, names in required.items() if not set(names) & values.keys()]
    if missing:
        raise InputError(
            f"{location}: a sample needs the columns {' and '.join(missing)}; it has {', '.join(map(str, values))}.",
            'Each row is one sample: {"id": ..., "system": ..., "answer": ...}, with response instead of answer where '
            "the answer has not been extracted.",
        )
    by_a_model = {"score", *SYSTEM_COLUMNS, *RESPONSE_COLUMNS, STEP_COLUMN}
    if file.system is None and not by_a_model & values.keys() and set(NAMES["prompt"]) & values.keys():
        raise InputError(
            f"{location}: this is a row of data, and its answer may be gold: it names no system and no response.",
            f"If a model gave the answers, name it: --samples MODEL={file.path}",
        )


def _first_text(values: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        if (text := text_of(values.get(name))) is not None:
            return text
    return None
