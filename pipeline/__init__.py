"""Which problems are worth training on: rows, curation, profiling, selection and the report.

Each stage of a run has a folder here, named after it, whose function goes from files to a folder of files
(`truegold.pipeline.running.stage` runs and caches them). `docs/architecture.md` follows a row through them.
"""
