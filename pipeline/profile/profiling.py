"""Profiles the rows of a table: plans samples, collects their verdicts, and writes tables of rows and pass rates.

The rows are divided into parts of 5,000. A part is finished when all of its rows have their samples. Random rows of all
parts, the pilot, are sampled first. The stopping rule is learned from the pilot. The files are:

    scratch/work-3f2a.../rule.json           the stopping rule from the pilot (`stopping_rule`)
                         verdicts/pilot/     verdicts on rows of the pilot
                         verdicts/00017/     verdicts on the other rows of an unfinished part
                         parts/00017/        rows, samples and pass rates of a finished part

Only the rows of the pilot and of a few unfinished parts are in memory.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.engines import SamplingParams
from truegold.pipeline.engines.chat import encode_row
from truegold.pipeline.judge.model import Judge
from truegold.pipeline.judge.opinions import SecondOpinion
from truegold.pipeline.profile.drawing import SAMPLE_SCHEMA, Drawing, RowRequest, SampleRow, SamplingCost
from truegold.pipeline.profile.judging import Judging, VerdictRecord
from truegold.pipeline.profile.sample_store import CompletionSource, SampleStore, prompt_key
from truegold.pipeline.profile.schedule import PILOT_ROWS, Draw, SampledRow, Schedule, Selection
from truegold.pipeline.profile.stopping_rule import Cell, SavedRule
from truegold.pipeline.profile.summary import summarise
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.record_log import Position, RecordLog
from truegold.pipeline.tables.ledger import DROPPED_SCHEMA
from truegold.pipeline.tables.rows import (
    PROFILE_SCHEMA,
    ProfileRow,
    Row,
    TableWriter,
    count_rows,
    read_rows,
    read_table,
    row_reference,
)

PART_ROWS = 5_000
"""The number of rows in a part."""
PILOT = "pilot"


class _Kept(NamedTuple):
    """The place of a verdict on disk, and the values that planning needs."""

    log: str
    position: Position
    prompt: str
    score: float | None
    answer: str | None


class ProfileParts:
    """The verdicts, finished parts and stopping rule of a profile, over all its attempts."""

    def __init__(self, folder: Path) -> None:
        """Load the state that earlier attempts left in a folder."""
        self._folder, self._parts, self._rule_path = folder, folder / "parts", folder / "rule.json"
        self._logs: dict[str, RecordLog] = {}
        self._verdicts: dict[int, dict[int, _Kept]] = {}
        """Verdicts by row and sample."""
        self._parts.mkdir(parents=True, exist_ok=True)
        (folder / "verdicts").mkdir(exist_ok=True)
        self.rule = SavedRule.read(self._rule_path)
        """The stopping rule, or None before the end of the pilot."""
        self.finished = {int(path.name) for path in self._parts.iterdir() if path.name.isdecimal()}
        """The numbers of the finished parts."""
        self.kept = 0
        """The number of verdicts on rows of unfinished parts that earlier attempts left."""
        for path in sorted((folder / "verdicts").iterdir()):
            if path.name.isdecimal() and int(path.name) in self.finished:
                shutil.rmtree(path)
                continue
            for position, record in self._log(path.name).scan():
                if self.part_of(record["row"]) not in self.finished:
                    self._keep(path.name, position, record)
                    self.kept += 1

    @staticmethod
    def part_of(row: int) -> int:
        """Return the number of the part of a row."""
        return row // PART_ROWS

    @staticmethod
    def rows_of(part: int) -> range:
        """Return the row indices of a part. The last part of a table may have fewer rows than this range."""
        return range(part * PART_ROWS, (part + 1) * PART_ROWS)

    def samples(self) -> Iterator[tuple[str, int]]:
        """Yield the store keys of the judged samples in unfinished parts."""
        for of_row in self._verdicts.values():
            for sample, kept in of_row.items():
                yield kept.prompt, sample

    def judged(self, row: int, sample: int) -> tuple[float | None, str | None] | None:
        """Return the score and the answer of a sample, or None if it is not judged."""
        kept = self._verdicts.get(row, {}).get(sample)
        return None if kept is None else (kept.score, kept.answer)

    def keep(self, verdict: VerdictRecord, *, is_pilot: bool) -> None:
        """Store a verdict."""
        name = PILOT if is_pilot else f"{self.part_of(verdict['row']):05d}"
        self._keep(name, self._log(name).append(verdict), verdict)

    def verdicts(self, row: int) -> Iterator[VerdictRecord]:
        """Yield the verdicts on a row's samples, in order."""
        for _, kept in sorted(self._verdicts.get(row, {}).items()):
            yield self._log(kept.log).read(kept.position)

    def keep_rule(self, rule: SavedRule) -> None:
        """Store the stopping rule. Later attempts continue with this rule, without a pilot."""
        self.rule = rule
        rule.write(self._rule_path)

    def finish(self, part: int, write: Callable[[Path], None]) -> None:
        """Write the tables of a part by calling `write` with a folder, and delete the verdicts on its rows."""
        aside = self._parts / f"{part:05d}.tmp"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        write(aside)
        aside.rename(self.folder_of(part))
        self.finished.add(part)
        for row in self.rows_of(part):
            self._verdicts.pop(row, None)
        if (log := self._logs.pop(f"{part:05d}", None)) is not None:
            log.clear()

    def folder_of(self, part: int) -> Path:
        """Return the folder of a finished part."""
        return self._parts / f"{part:05d}"

    def clear(self) -> None:
        """Delete the whole state."""
        self.close()
        shutil.rmtree(self._folder)
        for folder in (self._parts, self._folder / "verdicts"):
            folder.mkdir(parents=True)
        self.rule, self.kept = None, 0
        self.finished.clear()
        self._verdicts.clear()

    def close(self) -> None:
        """Close all files."""
        for log in self._logs.values():
            log.close()
        self._logs.clear()

    def _log(self, name: str) -> RecordLog:
        if name not in self._logs:
            self._logs[name] = RecordLog(self._folder / "verdicts" / name)
        return self._logs[name]

    def _keep(self, name: str, position: Position, verdict: Any) -> None:
        kept = _Kept(name, position, verdict["prompt"], verdict["score"], verdict["extracted"])
        self._verdicts.setdefault(verdict["row"], {})[verdict["sample"]] = kept


TOO_LONG = "prompt_too_long_for_model"
NOT_SAMPLED = "not_sampled"
"""The drop reason of a row that got no sample because the budget was spent."""
SHOWN_EVERY_S = 1.0
"""The seconds between two reports of progress."""


class DroppedRow(Row):
    """A row of a finished part."""

    drop_reason: str | None
    """The reason why the row has no profile, or None for a profiled row."""


@dataclass
class _OpenPart:
    """The rows of an unfinished part that have been read."""

    rows: list[tuple[int, Row, SampledRow | None]] = field(default_factory=list)
    """Tuples of (index in the file, row, state of the samples). The state is None if the prompt is too long."""
    open: int = 0
    """The number of rows that still need samples."""


class ProfileSamples:
    """The samples of the rows in one file. Parts are written as soon as all of their rows are done."""

    def __init__(
        self,
        rows: Path,
        config: ProfileConfig,
        source: CompletionSource,
        store: SampleStore,
        work: ProfileParts,
        spent: RecordLog,
        progress: Progress,
    ) -> None:
        """Continue from earlier attempts: their samples in `store`, verdicts in `work` and spent tokens in `spent`. If
        a judged sample is missing from the store, all verdicts are deleted, because a new sample may differ from the
        old one."""
        self._rows, self._config, self._source, self._store, self._progress = rows, config, source, store, progress
        self._work, self._spent_log = work, spent
        self._spent = sum(record["tokens"] for _, record in spent.scan() if _sample_key(record) in store)
        if gone := sum(key not in store for key in work.samples()):
            progress.note(f"{gone:,} samples that were judged before are gone; they are sampled again")
            work.clear()
        self._open: dict[int, _OpenPart] = {}
        self._problems = count_rows(rows)
        self._adaptive_rows = 0
        """The number of rows for which the stopping rule chooses the number of samples."""
        self._done = sum(count_rows(work.folder_of(part) / "rows.parquet") for part in work.finished)
        self._judged_before = work.kept + sum(
            count_rows(work.folder_of(part) / "samples.parquet") for part in work.finished
        )
        self._counts_before: dict[Cell, Counter[tuple[int, int]]] = {}
        for part in work.finished:
            for cell, counts in count_passes(work.folder_of(part)).items():
                self._counts_before.setdefault(cell, Counter()).update(counts)
        self._planned = self._judged_before - work.kept
        """The number of samples that the schedule has asked for."""
        self._shown = 0
        """The number of samples in the last report of progress."""
        self._shown_at = 0.0
        self._drawing = Drawing(source, config.seed, progress)
        self._drawing.cost.kept = self._judged_before
        self._drawing.cost.finished = self._planned

    @property
    def cost(self) -> SamplingCost:
        """The cost of the samples in this process."""
        return self._drawing.cost

    def draw(self, judge: Judge | None, opinion: SecondOpinion | None = None) -> Schedule:
        """Draw and judge the missing samples, and return the finished schedule. The engine starts when it is needed."""
        if self._judged_before:
            self._progress.note(f"{self._judged_before:,} samples were judged before; continuing from there")
        config = self._config
        self._schedule = self._plan()
        self._stop_in_time()
        leave_unread_out = config.unread == "left_out"
        judging = self._judging = Judging(config, config.workers, judge, opinion, leave_unread_out=leave_unread_out)
        sampling = SamplingParams(
            config.temperature,
            config.top_p,
            config.max_tokens,
            self._source.encoder.stop_token_ids,
            logprobs=config.logprobs,
            stop_loops=config.stop_loops,
        )

        def start_progress() -> None:
            self._progress.start("samples", self._expected)
            self._progress.advance(self._shown)

        self._progress.start("judging", self._expected)
        try:
            self._drawing.run(self, self._store, judging, sampling, start_progress)
            self._finish_parts()
            self._show_progress(at_once=True)
            for line in judging.unread.finish():
                self._progress.note(line)
        finally:
            judging.close()
            self._drawing.close()
        return self._schedule

    @property
    def finished(self) -> bool:
        """True if all rows have their samples."""
        return self._schedule.finished

    def draws(self, count: int) -> list[Draw]:
        """Return at most `count` samples to draw or to judge next; see `DrawPlan`."""
        self._show_progress()
        open_draws: list[Draw] = []
        while len(open_draws) < count:
            if not (draws := self._schedule.draws(count - len(open_draws))):
                break
            self._planned += len(draws)
            for sampled, sample in draws:
                if (judged := self._work.judged(sampled.index, sample)) is None:
                    open_draws.append((sampled, sample))
                else:
                    self._drawing.cost.finished += 1
                    self._schedule.record(sampled, *judged)
        self._finish_parts()
        return open_draws

    def record(self, draw: Draw, verdict: VerdictRecord | None) -> None:
        """Store a verdict, and plan the next samples of its row."""
        assert verdict is not None
        sampled, _ = draw
        self._work.keep(verdict, is_pilot=sampled.index in self._pilot)
        self._schedule.record(sampled, verdict["score"], verdict["extracted"])
        self._finish_parts()
        for line in self._judging.unread.take_lines():
            self._progress.note(line)

    def spend(self, request: RowRequest, tokens: int) -> None:
        """Record the tokens of a sample, and stop sampling if the budget is spent."""
        self._show_progress()
        if self._config.budget_tokens is not None:
            key = {"prompt": request.sampled.prompt_key, "sample": request.sample}
            self._spent_log.append({**key, "tokens": tokens})
            self._spent += tokens
            self._stop_in_time()

    def _stop_in_time(self) -> None:
        budget = self._config.budget_tokens
        if budget is not None and self._spent >= budget and not self._schedule.stopped:
            self._progress.note(f"the budget of {budget:,} tokens is spent; no row gets more")
            self._schedule.stop(lambda sampled, sample: (sampled.prompt_key, sample) in self._store)

    @property
    def _expected(self) -> int:
        """The expected number of samples by the latest stopping rule. Before the first rule, the minimum number."""
        if self._schedule.finished or self._schedule.stopped:
            return self._planned
        rule, config = self._schedule.allocation, self._config
        each = config.first_samples or config.samples if rule is None else rule.expected_samples
        whole = (self._problems - self._adaptive_rows) * config.samples
        return max(self._planned, whole + round(self._adaptive_rows * each))

    def _show_progress(self, *, at_once: bool = False) -> None:
        """Report progress in samples, because most rows may be finished only at the end."""
        cost, now = self.cost, time.monotonic()
        if now - self._shown_at < SHOWN_EVERY_S and not at_once:
            return
        steps, self._shown, self._shown_at = cost.finished - self._shown, cost.finished, now
        pace = f", {cost.tokens_per_second:,.0f} tokens/s" if cost.tokens else ""
        pilot = "pilot, " * self._schedule.is_piloting
        done = f"{pilot}{self._done + self._schedule.settled:,} of {self._problems:,} problems done"
        self._progress.advance(steps, f"({done}{pace})", self._expected)

    def counts(self) -> dict[Cell, Counter[tuple[int, int]]]:
        """Return the number of finished training rows, by (source, domain) and by (judged samples, passes)."""
        counts = {cell: Counter(known) for cell, known in self._counts_before.items()}
        for cell, known in self._schedule.counts.items():
            counts.setdefault(cell, Counter()).update(known)
        return counts

    def parts(self) -> Iterator[Path]:
        """Yield the folder of each part, in the order of the rows."""
        return map(self._work.folder_of, sorted(self._work.finished))

    def _samples(self, sampled: SampledRow) -> Iterator[SampleRow]:
        config, row = self._config, sampled.row
        for verdict in self._work.verdicts(sampled.index):
            sample = verdict["sample"]
            completion = self._store.read(sampled.prompt_key, sample)
            yield {
                **row_reference(row),
                "split": row["split"],
                "sample": sample,
                "completion": verdict["completion"],
                "prompt_ids": list(sampled.prompt),
                "token_ids": list(completion.token_ids),
                "logprobs": list(completion.logprobs),
                "finish_reason": completion.finish_reason,
                "temperature": config.temperature,
                "top_p": config.top_p,
                "max_tokens": config.max_tokens,
                "seed": self._drawing.seed(sampled.prompt_key, sample),
                "score": verdict["score"],
                "reason": verdict["reason"],
                "extracted": verdict["extracted"],
                "evidence": verdict["evidence"],
            }

    def _plan(self) -> Schedule:
        config, rule = self._config, self._work.rule
        first = min(config.first_samples or config.samples, config.samples)
        in_pilot: list[tuple[int, Row]] = []
        training_rows = 0 if rule is None else rule.training_rows
        if rule is None and first < config.samples:
            chosen = set(random.Random(config.seed).sample(range(self._problems), min(PILOT_ROWS, self._problems)))
            for index, row in enumerate(read_rows(self._rows)):
                if row["split"] != "heldout":
                    training_rows += 1
                    in_pilot += [(index, row)] if index in chosen else []
        self._adaptive_rows = training_rows
        indices = {index for index, _ in in_pilot}
        self._pilot = indices if rule is None else rule.planned.keys()
        others = ((index, row) for index, row in enumerate(read_rows(self._rows)) if index not in indices)
        return Schedule(
            list(self._sampled_rows(in_pilot)),
            self._sampled_rows(others),
            first,
            config.samples,
            config.suspect_agreement,
            training_rows,
            Selection(config.group_size, config.rows_to_select, config.quotas, config.zero_share),
            config.seed,
            rule=rule,
            on_settled=self._note_settled,
        )

    def _sampled_rows(self, rows: Iterable[tuple[int, Row]]) -> Iterator[SampledRow]:
        """Yield the rows of unfinished parts whose prompts are short enough for the model."""
        for index, row in rows:
            if (part_index := self._work.part_of(index)) in self._work.finished:
                continue
            part = self._open.setdefault(part_index, _OpenPart())
            prompt = tuple(encode_row(self._source.encoder, row))
            if len(prompt) < self._source.max_model_len:
                sampled = SampledRow(row, index, prompt, prompt_key(prompt))
                part.rows.append((index, row, sampled))
                part.open += 1
                yield sampled
            else:
                part.rows.append((index, row, None))

    def _note_settled(self, sampled: SampledRow) -> None:
        self._open[self._work.part_of(sampled.index)].open -= 1

    def _finish_parts(self) -> None:
        """Write the tables of finished parts. The stopping rule is stored first, since a later attempt needs it."""
        rule = self._schedule.rule
        if rule is not None and self._work.rule is None:
            self._work.keep_rule(rule)
        for part_index, part in list(self._open.items()):
            rows = self._work.rows_of(part_index)
            if not part.open and len(part.rows) == min(rows.stop, self._problems) - rows.start:
                self._work.finish(part_index, partial(self._write_part, part))
                del self._open[part_index]

    def _write_part(self, part: _OpenPart, folder: Path) -> None:
        with (
            TableWriter(folder / "rows.parquet", DROPPED_SCHEMA) as rows,
            TableWriter(folder / "samples.parquet", SAMPLE_SCHEMA) as samples,
            TableWriter(folder / "profile.parquet", PROFILE_SCHEMA) as profiles,
        ):
            for _, row, sampled in sorted(part.rows, key=itemgetter(0)):
                of_row = [] if sampled is None else list(self._samples(sampled))
                why = TOO_LONG if sampled is None else NOT_SAMPLED
                rows.write({**row, "drop_reason": None if of_row else why})
                if of_row:
                    profiles.write(summarise(row, of_row))
                for sample in of_row:
                    samples.write(sample)


def count_passes(folder: Path) -> dict[Cell, Counter[tuple[int, int]]]:
    """Return the number of training rows in a finished part, by (source, domain) and by (judged samples, passes)."""
    counts: dict[Cell, Counter[tuple[int, int]]] = {}
    rows = read_table(folder / "rows.parquet", DroppedRow, ["source", "domain", "split", "drop_reason"])
    summaries = read_table(folder / "profile.parquet", ProfileRow, ["judged", "passes"])
    for row, summary in zip((row for row in rows if row["drop_reason"] is None), summaries, strict=True):
        if row["split"] != "heldout":
            counts.setdefault((row["source"], row["domain"]), Counter())[summary["judged"], summary["passes"]] += 1
    return counts


def _sample_key(record: Mapping[str, Any]) -> tuple[str, int]:
    return record["prompt"], record["sample"]
