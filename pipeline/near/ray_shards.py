"""The shards of a deduplication compared on Ray, each of them in a task.

    truegold dedup --data train.jsonl --out DIR --ray local         on_ray(None)
    truegold dedup --data train.jsonl --out DIR --ray head:6379     on_ray("head:6379")

The data of the workers is put into the object store of each machine once and read there without a copy; the keys lie in
files that every machine has to see. The outcome is that of threads, for any number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator

from truegold.pipeline.near.related_pairs import Links, Searcher, ShardRunner
from truegold.pipeline.running.ray_cluster import joined_cluster, map_on_ray


def on_ray(address: str | None) -> ShardRunner:
    """Return a runner on the Ray cluster of this address, None as in `join_cluster`; it raises SetupError if there is
    none."""

    def run_shards(searcher: Searcher) -> Iterator[Links]:
        with joined_cluster(address, "--ray") as ray:
            waiting: dict[int, Links] = {}
            next_shard = 0
            for shard, links in map_on_ray(ray, Searcher.links, range(searcher.shards), (searcher,)):
                waiting[shard] = links
                while next_shard in waiting:
                    yield waiting.pop(next_shard)
                    next_shard += 1

    return run_shards
