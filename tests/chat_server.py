"""A local server that speaks `/chat/completions`, and does what real ones do on bad days."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from vllm_servers import FakeServer

Said = Callable[[list[dict[str, str]]], Any]
"""Makes of the messages a reply's text, or bytes, a status, a (status, headers, text), or None to hang up."""


class ChatServer(FakeServer):
    """Answers what `say` makes of the messages; `bad_days` are sent first, one for each request."""

    def __init__(self, say: Said, bad_days: Sequence[Any] = (), *, usage: bool = True, slow_s: float = 0.0) -> None:
        self.say, self.bad_days, self.usage, self.slow_s = say, list(bad_days), usage, slow_s
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        super().__init__()

    def answer(self, handler: Any, body: dict[str, Any]) -> None:
        """Answer one request."""
        with self._lock:
            self.bodies.append(body)
            self.keys.append(handler.headers.get("Authorization"))
            self.in_flight += 1
            self.most_in_flight = max(self.in_flight, self.most_in_flight)
            bad = self.bad_days.pop(0) if self.bad_days else ...
        time.sleep(self.slow_s)
        said = self.say(body["messages"]) if bad is ... else bad
        with self._lock:
            self.in_flight -= 1
        status, headers = 200, {}
        if isinstance(said, tuple):
            status, headers, said = said
        elif isinstance(said, int):
            status, said = said, b'{"error": {"message": "no"}}'
        if said is None:
            handler.close_connection = True
            return
        if isinstance(said, str):
            choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
            reply: dict[str, Any] = {"object": "chat.completion", "model": body["model"], "choices": [choice]}
            if self.usage:
                reply["usage"] = {"prompt_tokens": 100, "completion_tokens": 10}
            said = json.dumps(reply).encode()
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(headers.get("Content-Length", len(said))))
        handler.end_headers()
        handler.wfile.write(said)
