"""Compares texts on Ray, one task for each shard (a part of the candidate pairs of a deduplication).

    truegold dedup --data train.jsonl --out DIR --ray local         on_ray(None)
    truegold dedup --data train.jsonl --out DIR --ray head:6379     on_ray("head:6379")

The data of the search (`Searcher`) is put into the object store of each machine once, and is read there without a copy.
The result is the same as with threads, for any number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator

from truegold.pipeline.near.related_pairs import Links, Searcher, ShardRunner
from truegold.pipeline.running.ray_cluster import joined_cluster, map_on_ray


def on_ray(address: str | None) -> ShardRunner:
    """Return a runner of shards on the Ray cluster at this address (`join_cluster`).

    The runner raises SetupError if there is no cluster.
    """

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
