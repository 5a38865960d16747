"""The command `truegold init`, which writes a commented configuration that is valid as it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from truegold.flows.console import print_line
from truegold.verifiers import ConfigError

STARTER = """\
# A truegold run: truegold run {file}
# Any setting can be overridden: truegold run {file} --set data.limit=200
name: {name}

data:
  path: {data}
  # preset: gsm8k             # gsm8k, math, humaneval, mbpp, apps, codecontests, verl, trl ...; found by the columns
  # columns:                  # or say which column is which
  #   prompt: question
  #   gold: {{column: answer, extract: "after ####"}}
  #   solution: answer
  # verifier: math            # or choice, exact, your_package.module:object, path/to/file.py:object
  heldout: 0.1                # share of rows kept back for evaluation
  # limit: 200

model:
  path: {model}

chat:
  user: |-
    {{prompt}}
    Put your final answer in \\boxed{{}}.

profile:
  samples: 8                  # completions per problem
  max_tokens: 512

select:
  min_teaching: 0.2           # rows of which fewer groups are expected to teach are dropped
  # max_rows: 20000
  # target: balanced          # or open-r1, skywork, curriculum, or bands of pass rates with their shares

# sft: {{}}                     # SFT cold start on the verified worked solutions

train:
  steps: 100
  prompts_per_step: 32
  group_size: 8
  sampling:                   # max_tokens comes from the profile's right completions
    refills: 1                # once more from the reserve, for groups that are all right or all wrong
  optimizer:
    lr: 1.0e-6
    zero_stage: 1
  # launch: {{ranks: 8}}        # training processes, one for each GPU
"""
"""The configuration that `truegold init` writes: short, commented, and valid as it stands."""


def run_name(path: Path) -> str:
    """Return a name for the run of a configuration file: its own, without what a folder's name should not have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._") or "run"


def init(
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("truegold.yaml"),
    data: Annotated[str, typer.Option(help="The data file.")] = "train.jsonl",
    model: Annotated[str, typer.Option(help="A checkpoint's folder or a hub name.")] = "Qwen/Qwen3-0.6B",
) -> None:
    """Write a commented starter configuration."""
    if path.exists():
        raise ConfigError(f"{path} exists already.", "Give another name.")
    # JSON's texts are YAML's as well, whatever is in them.
    name, data_text, model_text = (json.dumps(text, ensure_ascii=False) for text in (run_name(path), data, model))
    path.write_text(STARTER.format(file=path, name=name, data=data_text, model=model_text), encoding="utf-8")
    print_line(f"wrote {path}; next: truegold run {path} --dry-run")
