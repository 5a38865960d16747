"""Which problems are worth training on: rows, curation, profiling, selection and the report.

Each stage is a module with a function of its own name, `stage(inputs, config, out_dir, progress) -> StageReport`, from
files to files; `truegold.pipeline.stage` runs and caches them. `truegold.pipeline.engines` is where completions come
from, `truegold.pipeline.rules` where the flagging rules are.
"""
