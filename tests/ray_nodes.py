"""A Ray cluster of two nodes on this machine, as a program: `lose` on its input takes the second node away when that
works; the end of its input ends the cluster."""

from __future__ import annotations

import sys
import time


def main() -> None:
    """Print the address of the cluster, and do what the input says."""
    import ray
    from ray._private.state import available_resources_per_node
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    print(cluster.address, flush=True)
    for line in sys.stdin:
        assert line == "lose\n"
        while available_resources_per_node().get(second.node_id, {}).get("CPU", 0) >= 1:
            time.sleep(0.05)
        cluster.remove_node(second, allow_graceful=False)
        print("lost", flush=True)
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
