"""Compares a profile with bare vLLM in tokens per CPU-second.

    python benchmarks/profile_sampling.py throughput RUN [--rows 512] [--samples 8] [--max-tokens 96] [--texts]

RUN is the folder of a run that has been profiled: its rows, model, chat and engine are taken. Each side of a comparison
is a process of its own, whose CPU time counts from the moment its engine is loaded to that before it is ended. Bare
vLLM is one call of `LLM.generate` with the same prompts, seeds and sampling parameters; the profile decodes, judges and
writes its tables as well. With `--texts` the bare call returns texts too, as it does by default, not token ids alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.engines import build_encoder, build_engine
from truegold.pipeline.engines.base import Engine, sample_seed
from truegold.pipeline.engines.vllm_local import VllmEngine
from truegold.pipeline.profile import sample_store
from truegold.pipeline.profile import stage as profile_stage
from truegold.pipeline.profile.sample_store import prompt_key
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.tables.rows import read_rows, write_rows


def cpu_seconds() -> float:
    """Return the CPU time of this process and its ended children."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def settings(run: Path, **changes: Any) -> tuple[ProfileConfig, Path]:
    """Return how the run's profile was made, with changes, and the folder of its model."""
    record = json.loads((run / "profile" / "stage.json").read_text())
    known = {name: value for name, value in record["config"].items() if name in ProfileConfig.model_fields}
    model = run / "sft" / "checkpoint" if (run / "sft" / "checkpoint").exists() else run / "model" / "checkpoint"
    return ProfileConfig.model_validate({**known, **changes}), model


def some_rows(run: Path, count: int, folder: Path) -> Path:
    """Write the run's first training rows into the folder, and return the path."""
    rows = [row for row in read_rows(run / "profile" / "rows.parquet") if row["split"] != "heldout"]
    write_rows(folder / "rows.parquet", rows[:count])
    return folder / "rows.parquet"


def profile(inputs: dict[str, Path], config: ProfileConfig, out: Path) -> dict[str, float]:
    """Profile the rows; return tokens and CPU seconds after the engine was loaded."""
    loaded: list[float] = []
    build = sample_store.build_engine

    def timed(*arguments: Any) -> tuple[Engine, Any]:
        built = build(*arguments)
        loaded.append(cpu_seconds())
        return built

    closing: list[float] = []
    close = VllmEngine.close

    def timed_close(engine: VllmEngine) -> None:
        began = cpu_seconds()
        close(engine)
        closing.append(cpu_seconds() - began)

    sample_store.build_engine, VllmEngine.close = timed, timed_close  # type: ignore[method-assign]
    out.mkdir()
    report = profile_stage.profile(inputs, config, out, NullProgress())
    return {"tokens": report.facts["sampling"]["tokens"], "cpu_s": cpu_seconds() - loaded[0] - closing[0]}


def generate(rows: Path, model: Path, config: ProfileConfig, *, texts: bool) -> dict[str, float]:
    """Sample the same completions with one call of vLLM, as a user would write it."""
    from vllm import SamplingParams

    encoder = build_encoder(config.engine, config.chat, model)
    engine, _ = build_engine(config.engine, config.chat, model)
    assert isinstance(engine, VllmEngine)
    loaded = cpu_seconds()
    prompts = [encoder.encode(row["prompt"]) for row in read_rows(rows)]
    prompts = [prompt for prompt in prompts if len(prompt) < engine.max_model_len]
    sampling = [
        SamplingParams(
            temperature=config.temperature,
            top_p=config.top_p,
            max_tokens=min(config.max_tokens, engine.max_model_len - len(prompt)),
            stop_token_ids=list(encoder.stop_token_ids),
            seed=sample_seed(config.seed, prompt_key(prompt), sample),
            logprobs=0 if config.logprobs else None,
            detokenize=texts,
        )
        for prompt in prompts
        for sample in range(config.samples)
    ]
    repeated = [{"prompt_token_ids": prompt} for prompt in prompts for _ in range(config.samples)]
    outputs = engine.llm.generate(repeated, sampling, use_tqdm=False)
    return {"tokens": sum(len(output.outputs[0].token_ids) for output in outputs), "cpu_s": cpu_seconds() - loaded}


def throughput(arguments: argparse.Namespace) -> None:
    """Measure both sides in turn, and print the ratio."""
    ratios = []
    for repeat in range(arguments.repeats):
        rates = {}
        for side in ("profile", "generate"):
            command = [sys.executable, "-P", __file__, side, str(arguments.run), f"--rows={arguments.rows}"]
            command += [f"--samples={arguments.samples}"]
            command += [f"--max-tokens={arguments.max_tokens}"] if arguments.max_tokens else []
            command += ["--texts"] if arguments.texts else []
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            figures = json.loads(done.stdout.splitlines()[-1])
            rates[side] = figures["tokens"] / figures["cpu_s"]
            print(f"{repeat} {side}: {figures['tokens']:,} tokens, {figures['cpu_s']:.1f} s", flush=True)
        ratios.append(rates["profile"] / rates["generate"])
    print(f"tokens per CPU-second, profile / generate: median {median(ratios):.3f} of {sorted(ratios)}")


def main() -> None:
    """Run the chosen comparison, or one side of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("throughput", "profile", "generate"))
    parser.add_argument("run", type=Path)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--samples", type=int, default=8, help="of each row")
    parser.add_argument("--max-tokens", type=int, help="the run's where left out")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--texts", action="store_true", help="let the bare call return texts")
    arguments = parser.parse_args()
    if arguments.what == "throughput":
        throughput(arguments)
    else:
        changes = {"max_tokens": arguments.max_tokens} if arguments.max_tokens else {}
        config, model = settings(arguments.run, samples=arguments.samples, first_samples=None, **changes)
        with tempfile.TemporaryDirectory() as folder:
            rows = some_rows(arguments.run, arguments.rows, Path(folder))
            if arguments.what == "profile":
                figures = profile({"rows": rows, "model": model}, config, Path(folder) / "out")
            else:
                figures = generate(rows, model, config, texts=arguments.texts)
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
