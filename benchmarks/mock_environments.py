"""Measures a thousand mock environments with the real sampler in one process: memory, and waiting of the sampler.

    python benchmarks/turns.py WORK
    python benchmarks/mock_environments.py WORK/sft/checkpoint [--episodes 1000] [--json FILE] [--write PAGE.md]

The cold start of the shop (`examples/shop.py`) plays shops while a recorder records their answers. Then one process
plays a single episode with the mock environment, and another process plays `--episodes` episodes at once, of the same
shops with other seeds. Reported are the peak memory of each process, the share of time in which the sampler waited for
environments, and the time of a turn. Memory of the engine's key-value cache grows with use, independent of the
environments.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from publishing import publish, say

EXAMPLE = Path(__file__).parents[1] / "examples" / "shop.py"
SHOPS = 125
RECORDED = 8
"""Episodes of each shop that are recorded."""
MAX_TOKENS = 24
HEAD = """The tiny model after the shop's cold start, episodes of 125 shops as they were recorded, all at once beside
vLLM in one process, whose memory is given whole.

```
python benchmarks/turns.py WORK
python benchmarks/mock_environments.py WORK/sft/checkpoint --write benchmarks/results/mock_environments.md
```

"""


class Recorded:
    """Makes shops that are written down."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self) -> Any:
        from truegold.train.turns.mock import Recorder

        sys.path.insert(0, str(EXAMPLE.parent))
        import shop

        return Recorder(shop.Shop(), self.path)


def play(model: Path, recording: Path, episodes: int, *, is_recorded: bool) -> dict[str, Any]:
    """Play episodes in this process with real or mock shops, and return the measurements."""
    from truegold.pipeline.config.engines import ChatConfig, VllmEngineConfig
    from truegold.pipeline.engines.base import SamplingParams
    from truegold.pipeline.engines.chat import load_encoder
    from truegold.pipeline.engines.cpu_memory import release_cache
    from truegold.pipeline.engines.vllm_local import VllmEngine
    from truegold.train.config.turns import TurnsConfig
    from truegold.train.turns.episodes import Episode, EpisodeRunner
    from truegold.train.turns.mock import MockEnvironment
    from truegold.train.turns.template import TurnTemplate

    sys.path.insert(0, str(EXAMPLE.parent))
    import shop

    encoder = load_encoder(model, ChatConfig())
    engine = VllmEngine(model, VllmEngineConfig(dtype="float32", max_model_len=256, cpu_kv_cache_gib=1))
    template = TurnTemplate(encoder.tokenizer, encoder.stop_token_ids)
    sampling = SamplingParams(max_tokens=MAX_TOKENS, stop_token_ids=encoder.stop_token_ids)
    config = TurnsConfig(environment=f"{EXAMPLE}:Shop")
    make = (lambda: MockEnvironment(str(recording))) if is_recorded else Recorded(recording)
    runner = EpisodeRunner(engine, template, config, make)
    rows: list[Any] = [{"id": f"shop-{shown}", "prompt": shop.row(shown)["question"]} for shown in range(SHOPS)]
    before = _memory()
    began = time.monotonic()
    played = [Episode(rows[index % SHOPS], index % SHOPS, index // SHOPS) for index in range(episodes)]
    runner.run(played, sampling, ("recorded" if is_recorded else "recording",), version=0)
    seconds = time.monotonic() - began
    figures = {
        "seconds": seconds,
        "turns": sum(episode.turns for episode in played),
        "waited_share": runner.waited_share,
        "endings": dict(Counter(str(episode.ending) for episode in played)),
        "before_mib": before["VmRSS"],
        "after_mib": _memory()["VmRSS"],
        "most_mib": _memory()["VmHWM"],
    }
    engine.llm.collective_rpc(release_cache)
    figures["cache_mib"] = figures["after_mib"] - _memory()["VmRSS"]
    if is_recorded:
        steps = sum((Counter(episode.step_counts) for episode in played), Counter())
        figures["real_share"] = steps["recorded"] / steps.total()
    return figures


def _memory() -> dict[str, float]:
    """Return what this process holds, and the most that it has held, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return {name: int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")}


def _play_apart(model: Path, recording: Path, episodes: int, *, is_recorded: bool) -> dict[str, Any]:
    """Play episodes in a separate process."""
    command = [sys.executable, __file__, str(model), "--child", str(recording), "--episodes", str(episodes)]
    command += ["--recorded"] if is_recorded else []
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    say(f"{episodes} episodes, {'recorded' if is_recorded else 'recording'}: {figures}")
    return figures


def _report(measured: Mapping[str, dict[str, Any]]) -> str:
    lines = [
        "| episodes at once | most memory of the process | of it key-value cache "
        "| more than with one, without the cache | sampler without work | turns | seconds "
        "| steps answered as recorded |",
        "|---" * 8 + "|",
    ]
    alone = measured["1"]["most_mib"] - measured["1"]["cache_mib"]
    for name, run in measured.items():
        cells = [
            name,
            f"{run['most_mib']:,.0f} MiB",
            f"{run['cache_mib']:,.0f} MiB",
            f"{run['most_mib'] - run['cache_mib'] - alone:,.0f} MiB",
            f"{run['waited_share']:.1%}",
            f"{run['turns']:,}",
            f"{run['seconds']:.1f}",
            f"{run['real_share']:.1%}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="CHECKPOINT")
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--recorded", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="keep the figures here")
    parser.add_argument("--write", type=Path, help="write the table into this Markdown file")
    arguments = parser.parse_args()
    if arguments.child is not None:
        figures = play(arguments.model, arguments.child, arguments.episodes, is_recorded=arguments.recorded)
        print(json.dumps(figures))
        return
    with tempfile.TemporaryDirectory(prefix="truegold-mock-") as folder:
        recording = Path(folder) / "shop.jsonl"
        _play_apart(arguments.model, recording, SHOPS * RECORDED, is_recorded=False)
        measured = {
            str(count): _play_apart(arguments.model, recording, count, is_recorded=True)
            for count in (1, arguments.episodes)
        }
    publish(measured, HEAD + _report(measured), arguments.json, arguments.write, "Recorded environments at once")


if __name__ == "__main__":
    _main()
