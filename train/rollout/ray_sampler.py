"""A sampler (a process with vLLM) of a training, on a GPU or node that Ray chooses, possibly of another machine.

    trainer  <- pipe ->  thread in the trainer's process  <- calls of Ray ->  actor  <- pipe ->  process with vLLM

The thread passes messages on unchanged. If the actor, its process or its node is lost, the trainer's pipe is closed,
like after the death of a local process.
"""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.engines.vllm_ray import resources
from truegold.pipeline.running.ray_cluster import join_cluster
from truegold.train.rollout import sampler_child
from truegold.train.rollout.sampler_child import SamplerSetup

LISTEN_S = 1.0
"""The longest time in seconds that the actor waits for messages of its process in one call."""
LOOK_EVERY_S = 0.02
"""Seconds between two checks for messages of the trainer."""


class _Actor:
    """The actor, which runs a sampler in a child process."""

    def __init__(self, setup: SamplerSetup) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, child = context.Pipe()
        context.Process(target=sampler_child.main, args=(child, os.getpid(), setup), daemon=True).start()
        child.close()

    def send(self, message: bytes) -> None:
        """Pass a message on to the process."""
        self._connection.send_bytes(message)

    def receive(self) -> list[bytes]:
        """Return the messages of the process, or an empty list after `LISTEN_S`. Raises EOFError if it has ended."""
        messages: list[bytes] = []
        while self._connection.poll(0 if messages else LISTEN_S):
            messages.append(self._connection.recv_bytes())
        return messages


def serve(connection: Connection, setup: SamplerSetup) -> None:
    """Connect the trainer, at the other end of `connection`, with a new actor, until one of them ends."""
    engine = setup.engine
    assert isinstance(engine, VllmEngineConfig)
    actor = None
    try:
        ray, _ = join_cluster(engine.ray_address, "engine.ray_address")
        alone = engine.model_copy(update={"data_parallel_size": 1, "ray_address": None, "weights_dir": None})
        # Two calls at a time: one waits for messages of the process, another one sends messages of the trainer.
        make: Any = ray.remote(max_concurrency=2, **resources(ray.cluster_resources(), engine))(_Actor)
        actor = make.remote(replace(setup, engine=alone))
        _pass_on(ray, actor, connection)
    except EOFError:
        # The trainer has ended.
        pass
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        connection.send(("failed", lines[-1]))
    finally:
        connection.close()
        if actor is not None:
            ray.kill(actor)


def _pass_on(ray: Any, actor: Any, connection: Connection) -> None:
    """Pass messages on in both directions until one side ends, with EOFError or an error of Ray."""
    arriving = actor.receive.remote()
    while True:
        done, _ = ray.wait([arriving], timeout=LOOK_EVERY_S)
        if done:
            for message in ray.get(arriving):
                connection.send_bytes(message)
            arriving = actor.receive.remote()
        while connection.poll():
            ray.get(actor.send.remote(connection.recv_bytes()))
