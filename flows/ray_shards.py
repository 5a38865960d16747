"""The shards of a deduplication compared on Ray, each of them as a task of a Prefect flow.

    truegold dedup --data train.jsonl --out DIR --ray local              on_ray(None)
    truegold dedup --data train.jsonl --out DIR --ray ray://head:10001   on_ray("ray://head:10001")

The data of the workers is put into the object store of each machine once and read there without a copy; the keys lie in
files that every machine has to see. The outcome is that of threads, for any number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from truegold.flows.server import prefect_api
from truegold.verifiers import SetupError

if TYPE_CHECKING:
    from truegold.pipeline.near.related_pairs import Links, Searcher, ShardRunner


def on_ray(address: str | None) -> ShardRunner:
    """Return a runner on the Ray cluster of this address; None starts one on this machine, for as long as it is needed.

    The runner raises SetupError where Ray is not installed.
    """

    def run_shards(searcher: Searcher) -> Iterator[Links]:
        with prefect_api():
            try:
                import ray
                from prefect_ray import RayTaskRunner
            except ImportError as error:
                hint = "Install it: pip install 'truegold[ray]'."
                raise SetupError(f"Ray cannot be used ({error}).", hint) from error
            yield from _compare_shards(searcher, RayTaskRunner(address=address), ray)

    return run_shards


def _compare_shards(searcher: Searcher, runner: Any, ray: Any) -> list[Links]:
    from prefect import flow, task
    from prefect.cache_policies import NO_CACHE

    @task(task_run_name="shard-{shard}", cache_policy=NO_CACHE, persist_result=False)
    def links(searcher: Searcher, shard: int) -> Links:
        return searcher.links(shard)

    @flow(name="truegold-dedup-shards", task_runner=runner, persist_result=False)
    def compare() -> list[Links]:
        # The task runner hands a reference over as the object that it refers to.
        reference = ray.put(searcher)
        futures = [links.submit(reference, shard) for shard in range(searcher.shards)]
        return [future.result() for future in futures]

    shard_links: list[Links] = compare()
    return shard_links
