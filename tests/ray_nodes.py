"""A Ray cluster of two nodes on this machine, as a program: `lose` on its input takes the first one away that is at
work; the end of its input ends the cluster."""

from __future__ import annotations

import sys
import time
from typing import Any


def main() -> None:
    """Print the address of the cluster, and do what the input says."""
    import ray
    from ray._private.state import available_resources_per_node
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False)
    print(cluster.address, flush=True)
    for line in sys.stdin:
        assert line == "lose\n"
        while not (at_work := _at_work(nodes, available_resources_per_node())):
            time.sleep(0.05)
        cluster.remove_node(at_work[0], allow_graceful=False)
        print("lost", flush=True)
    ray.shutdown()
    cluster.shutdown()


def _at_work(nodes: list[Any], available: dict[str, dict[str, float]]) -> list[Any]:
    return [node for node in nodes if node.node_id in available and available[node.node_id].get("CPU", 0) < 1]


if __name__ == "__main__":
    main()
