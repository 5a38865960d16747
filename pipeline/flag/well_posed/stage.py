"""Stage `well_posed`: flags the problems that a language model finds impossible to answer.

The row `{"prompt": "A square has sides 3 and 4 ...", ...}` gets a row in `flags.parquet`, beside those of `flag`

    {"reason": "model_contradiction", "detector": "well_posed", "confidence": 0.5, "blocks": false,
     "evidence": "{\\"model\\": \\"Qwen3-8B\\", \\"replies\\": [\\"... NO\\", \\"... YES\\"]}", ...}

The confidence is a half because it is not known: models differ, and yours is to be measured
(`benchmarks/well_posed.py`). So its flags hold a row back only where `blocks` names their step. Rows are neither
changed nor dropped. Held-out rows are asked about like others. One batch of rows is held in memory; a killed stage
begins again.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from truegold.pipeline.config.stages import Step, WellPosedConfig
from truegold.pipeline.engines import build_engine
from truegold.pipeline.flag.well_posed.check import Answers, Problem, check_problems
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport, stage_function
from truegold.pipeline.tables.ledger import FLAG_SCHEMA, FLAGS_FILE, FlagRecord, Ledger, flag_record
from truegold.pipeline.tables.rows import Row, TableWriter, count_rows, read_shards, read_table

DETECTOR = "well_posed"
UNKNOWN_CONFIDENCE = 0.5


@stage_function(version=1, isolated=True)
def well_posed(inputs: Mapping[str, Path], config: WellPosedConfig, out_dir: Path, progress: Progress) -> StageReport:
    """Ask the checkpoint in the folder `model`, which a scripted engine does without, about `rows`.

    Writes `rows.parquet` as it was, `flags.parquet` with the flags of the input `flags` first, and the ledger.
    """
    total = count_rows(inputs["rows"])
    counts: Counter[str] = Counter()
    progress.start("loading the model")
    engine, encoder = build_engine(config.engine, config.chat, inputs.get("model"))
    progress.start("asking", total)
    with Ledger(out_dir, "well_posed") as ledger, TableWriter(out_dir / FLAGS_FILE, FLAG_SCHEMA) as flags:
        for record in read_table(inputs["flags"], FlagRecord):
            flags.write(record)
        for shard in read_shards(inputs["rows"], config.batch_size):
            problems = [Problem(f"{row['source']}:{row['source_row']}", row["prompt"], row["gold"]) for row in shard]
            for row, answers in zip(shard, check_problems(problems, engine, encoder, config), strict=True):
                counts["not asked"] += not answers.passed
                for step, passed in answers.passed.items():
                    counts[f"{step}: {'undecided' if passed is None else 'decided'}"] += 1
                if answers.failed is not None:
                    flags.write(_flag(row, answers.failed, answers, config))
                    ledger.flag(row, answers.failed, detector=DETECTOR, model=config.name)
            progress.advance(len(shard))
    engine.close()
    shutil.copyfile(inputs["rows"], out_dir / "rows.parquet")
    return StageReport(total, total, dict(ledger.counts), {"model": config.name, "asked": dict(sorted(counts.items()))})


def _flag(row: Row, step: Step, answers: Answers, config: WellPosedConfig) -> FlagRecord:
    return flag_record(
        row,
        step,
        detector=DETECTOR,
        evidence={"model": config.name, "replies": list(answers.replies[step])},
        confidence=UNKNOWN_CONFIDENCE,
        blocks=step in config.blocks,
    )
