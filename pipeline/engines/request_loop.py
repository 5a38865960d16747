"""Runs many requests of an engine at once, in an event loop in a separate thread.

loop = RequestLoop()
for request, completion in loop.stream(take, room=lambda: 32, complete=ask):     # in the order of completion
    ...
loop.close(disconnect)
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from truegold.pipeline.engines.base import POLL_S, Completion, Request, TakeRequests

T = TypeVar("T")


class RequestLoop:
    """An event loop in a separate thread, which runs coroutines for the calling thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="requests", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop, and return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self, disconnect: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel all tasks, run `disconnect` as the last one, and stop the loop."""

        async def end() -> None:
            # A cancelled task may start another one, such as closing a connection. So repeat until no task is left. Let
            # each task take its first step before it is cancelled, because anyio warns of coroutines that never ran.
            while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            await disconnect()

        if not self._loop.is_closed():
            self.run(end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def stream(
        self,
        take: TakeRequests,
        room: Callable[[], int],
        complete: Callable[[Request], Coroutine[Any, Any, Completion]],
    ) -> Iterator[tuple[Request, Completion]]:
        """Complete requests as `Engine.stream` describes. `room` returns the number of requests that may be pending."""
        running: dict[Future[Completion], Request] = {}
        finished: queue.SimpleQueue[Future[Completion]] = queue.SimpleQueue()
        error: BaseException | None = None
        try:
            while error is None or running:
                requests = take(max(0, room() - len(running))) if error is None else None
                if not running and requests is None:
                    break
                for request in requests or ():
                    future = asyncio.run_coroutine_threadsafe(complete(request), self._loop)
                    running[future] = request
                    future.add_done_callback(finished.put)
                try:
                    future = finished.get(timeout=POLL_S)
                except queue.Empty:
                    continue
                request = running.pop(future)
                if future.cancelled():
                    continue
                if future.exception() is None:
                    yield request, future.result()
                elif error is None:
                    # The error is raised later. First, completions that have finished meanwhile are yielded.
                    error = future.exception()
                    _cancel(running)
        finally:
            _cancel(running)
        if error is not None:
            raise error


def _cancel(futures: dict[Future[Completion], Request]) -> None:
    for future in futures:
        future.cancel()
