"""Compares the shards of a large set of problems on Ray, as tasks of a Prefect flow.

The data of the workers is put into the object store of each machine once and read there without a copy; the keys lie in
files that every machine has to see. The outcome is that of threads, whatever the number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from truegold.flows.server import prefect_api
from truegold.pipeline.near import Searcher, ShardLinks, ShardRunner
from truegold.verifiers import SetupError


def on_ray(address: str | None) -> ShardRunner:
    """Return a runner on the Ray cluster of this address; None starts one on this machine, for as long as it is needed.

    The runner raises SetupError where Ray is not installed.
    """

    def run_shards(searcher: Searcher) -> Iterator[ShardLinks]:
        with prefect_api():
            try:
                import ray
                from prefect_ray import RayTaskRunner
            except ImportError as error:
                hint = "Install it: pip install 'truegold[ray]'."
                raise SetupError(f"Ray cannot be used ({error}).", hint) from error
            yield from _compare(searcher, RayTaskRunner(address=address), ray)

    return run_shards


def _compare(searcher: Searcher, runner: Any, ray: Any) -> list[ShardLinks]:
    from prefect import flow, task
    from prefect.cache_policies import NO_CACHE

    @task(task_run_name="shard-{shard}", cache_policy=NO_CACHE, persist_result=False)
    def links(searcher: Searcher, shard: int) -> ShardLinks:
        return searcher.links(shard)

    @flow(name="truegold-dedup-shards", task_runner=runner, persist_result=False)
    def compare() -> list[ShardLinks]:
        # The task runner hands a reference over as the object that it refers to.
        reference = ray.put(searcher)
        futures = [links.submit(reference, shard) for shard in range(searcher.candidates.shards)]
        return [future.result() for future in futures]

    shard_links: list[ShardLinks] = compare()
    return shard_links
