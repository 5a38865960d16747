"""Processes the parts of tables on a Ray cluster, with one task for each part.

    with ray_runner(RayConfig(address="head:6379"), run_dir) as run_on_ray:
        reports = run_parts(work, parts, progress, "cleaning", run_on_ray)

Tasks read and write files on a file system that all nodes share. Before the first task, `ray_runner` checks that every
node can access it. If a process or node is lost, Ray runs its task again.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

from truegold.pipeline.config.base import RayConfig
from truegold.pipeline.running.parts import WORKERS, Part, PartWork, Runner, run_part, unfinished
from truegold.pipeline.running.progress import NullProgress, Progress
from truegold.pipeline.running.workers import Whereabouts, WorkerKilled
from truegold.verifiers import SetupError

T = TypeVar("T")

MAX_RETRIES = 3
"""The number of times that Ray retries a task whose process or node was lost."""
LONGEST_PROBE_S = 120.0
"""The timeout of the check of a node, in seconds."""
PROBE = "seen-by-nodes"
"""A temporary folder in the run's folder. Each node writes a file there, which proves that it can access the folder."""


def join_cluster(address: str | None, setting: str) -> tuple[Any, bool]:
    """Join the Ray cluster at this address. Return the module `ray`, and whether this process had joined before.

    For None, join the cluster on this machine, or start one. `setting` is the name of the setting with the address, for
    errors. Raises SetupError if Ray is not installed or there is no cluster at the address.
    """
    try:
        import ray
    except ImportError as error:
        raise SetupError("Ray is not installed.", "Install it: pip install 'truegold[ray]'.") from error
    if ray.is_initialized():
        return ray, True
    terminated = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, include_dashboard=False)
    except ConnectionError as error:
        raise SetupError(
            f"There is no Ray cluster at {address}: {str(error).splitlines()[0]}",
            f"Start it (`ray start --head`), or leave {setting} out for this machine alone.",
        ) from error
    if signal.getsignal(signal.SIGTERM) is not terminated:  # Restore the handler that Ray replaced.
        signal.signal(signal.SIGTERM, terminated)
    return ray, False


@contextmanager
def joined_cluster(address: str | None, setting: str) -> Iterator[Any]:
    """Join a cluster (`join_cluster`), yield the module `ray`, and leave the cluster if it was joined here."""
    ray, had_joined = join_cluster(address, setting)
    try:
        yield ray
    finally:
        if not had_joined:
            ray.shutdown()


@contextmanager
def ray_runner(config: RayConfig, run_dir: Path) -> Iterator[Runner]:
    """Yield a runner of parts on a cluster. Raises SetupError if a node cannot do the work."""
    with joined_cluster(config.address, "run.ray.address") as ray:
        _check_nodes(ray, config, run_dir)
        yield partial(_run_on_ray, ray, config)


def map_on_ray(
    ray: Any, function: Callable[..., Any], tasks: Iterable[T], shared: tuple[Any, ...] = (), **options: Any
) -> Iterator[tuple[T, Any]]:
    """Yield each task with the result of `function(*shared, task)`, in the order in which tasks end.

    At most two tasks for each CPU of the cluster are pending. `shared` is sent to each machine once. Raises the errors
    of the function. If Ray gives a task up, raises WorkerKilled after all other tasks have ended.
    """
    remote: Any = ray.remote(max_retries=MAX_RETRIES, **options)(function)
    references = [ray.put(value) for value in shared]
    waiting, under_way = deque(tasks), dict[Any, T]()
    losses = []
    try:
        while waiting or under_way:
            while waiting and len(under_way) < 2 * ray.cluster_resources().get("CPU", 1):
                task = waiting.popleft()
                under_way[remote.remote(*references, task)] = task
            (done,), _ = ray.wait(list(under_way), num_returns=1)
            task = under_way.pop(done)
            try:
                returned = ray.get(done)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from error
            except ray.exceptions.RayError as error:
                losses.append(str(error).strip().splitlines()[0])
            else:
                yield task, returned
    finally:
        for reference in under_way:
            ray.cancel(reference, force=True)
    if losses:
        raise WorkerKilled(
            f"The processes of {len(losses)} tasks on Ray were lost repeatedly, perhaps for lack of memory. "
            f"{losses[-1]}",
            "Set run.ray.memory_gb, so that fewer tasks run on a node.",
        )


def _run_on_ray(ray: Any, config: RayConfig, work: PartWork, parts: Sequence[Part], progress: Progress) -> None:
    """Do the work in tasks of a cluster.

    As in `run_locally`, a part that kills its process is retried once, with verifiers in separate processes.
    """
    options: dict[str, Any] = {} if config.memory_gb is None else {"memory": int(config.memory_gb * 2**30)}
    for inner_workers in (1, 2):
        alone = replace(work, config=work.config.model_copy(update={WORKERS: inner_workers}))
        tasks = map_on_ray(ray, _do_part, unfinished(work, parts), (Whereabouts.here(), alone), num_cpus=1, **options)
        try:
            for part, _ in tasks:
                progress.advance(part.count_rows())
        except WorkerKilled:
            if inner_workers == 2:
                raise
        else:
            return


def _do_part(whereabouts: Whereabouts, work: PartWork, part: Part) -> None:
    whereabouts.enter()
    run_part(work, part, NullProgress())


def _check_nodes(ray: Any, config: RayConfig, run_dir: Path) -> None:
    """Raise SetupError if a node cannot access the run's folder, or has another version of truegold.

    Also raises SetupError if no node has enough memory for a task.
    """
    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    memory = max((node["Resources"].get("memory", 0) for node in nodes), default=0)
    if not nodes:
        raise SetupError("The Ray cluster has no CPUs.", "Add a node: ray start --address HEAD.")
    if config.memory_gb is not None and config.memory_gb * 2**30 > memory:
        raise SetupError(
            f"run.ray.memory_gb is {config.memory_gb:g}, and no node of the Ray cluster has more than "
            f"{memory / 2**30:.1f} GB for tasks."
        )
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    folder, token = run_dir / PROBE, token_hex(8)
    folder.mkdir(exist_ok=True)
    (folder / token).write_text(token)
    probe: Any = ray.remote(num_cpus=0)(_probe)
    try:
        answers = {}
        for node in nodes:
            strategy = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ask = probe.options(scheduling_strategy=strategy)
            answers[ask.remote(Whereabouts.here(), version("truegold"), folder, token, node["NodeID"])] = node
        for answer, node in answers.items():
            try:
                fault = ray.get(answer, timeout=LONGEST_PROBE_S)
            except ray.exceptions.RayError as error:
                fault = f"could not be checked: {str(error).strip().splitlines()[-1]}"
            if fault is None and not (folder / node["NodeID"]).exists():
                fault = f"does not see {run_dir.absolute()}: the file that it wrote there is not visible here"
            if fault is not None:
                raise SetupError(
                    f"The node {node['NodeManagerAddress']} of the Ray cluster {fault}.",
                    "Every node needs the same truegold, and the run's folder and the working directory under the same "
                    "paths, such as on NFS or Lustre.",
                )
    finally:
        for path in folder.iterdir():
            path.unlink(missing_ok=True)
        folder.rmdir()


def _probe(whereabouts: Whereabouts, truegold: str, folder: Path, token: str, node: str) -> str | None:
    """Return the reason why this node cannot do the work. If it can, write a file as a proof, and return None."""
    if (installed := version("truegold")) != truegold:
        return f"has truegold {installed}, and this machine {truegold}"
    try:
        whereabouts.enter()
        if (folder / token).read_text() != token:
            return f"sees another folder at {folder.absolute()}"
        (folder / node).touch()
    except (OSError, SetupError) as error:
        return f"does not see the run's folder: {error}"
    return None
