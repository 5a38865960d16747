"""Local servers that answer like vLLM, and do what real ones do on bad days.

Tokens are bytes (`ByteEncoder`). A completion depends on the prompt and the seed alone, as that of a real server does.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from truegold.pipeline.engines.chat import ByteEncoder

MODEL = "m"
MAX_MODEL_LEN = 4096

Reply = dict[str, Any]


def text_of(prompt: list[int], seed: int) -> str:
    """Return what the model says."""
    return f"it is \\boxed{{{random.Random(f'{prompt} {seed}').randint(0, 9)}}}"


def sound_reply(body: Mapping[str, Any], weights: int = 0) -> Reply:
    """Return what a vLLM server answers to the request."""
    prompt = body["prompt"]
    text = text_of(prompt, body.get("seed") or weights)
    token_ids = [*text.encode(), ByteEncoder.END][: body["max_tokens"]]
    ended = token_ids[-1] == ByteEncoder.END
    choice: Reply = {
        "index": 0,
        "text": bytes(token for token in token_ids if token < ByteEncoder.END).decode(),
        "finish_reason": "stop" if ended else "length",
        "token_ids": token_ids,
        "prompt_token_ids": prompt,
        "logprobs": {"token_logprobs": [-0.5] * len(token_ids)} if body.get("logprobs") is not None else None,
    }
    if body.get("prompt_logprobs") is not None:
        draw = random.Random(weights)
        known = [{str(token): {"logprob": -8 * draw.random(), "rank": 1}} for token in prompt[1:]]
        choice["prompt_logprobs"] = [None, *known]
    usage = {"prompt_tokens": len(prompt), "completion_tokens": len(token_ids)}
    return {"object": "text_completion", "model": body["model"], "choices": [choice], "usage": usage}


class FakeServer:
    """A server in a thread. What `behave` makes of a request and its reply is sent: an object, bytes, or a status."""

    def __init__(self, behave: Callable[[FakeServer, Reply], Any] | None = None, weights: int = 0) -> None:
        self.behave = behave
        self.weights = weights
        self.model: object = MODEL
        self.max_model_len: object = MAX_MODEL_LEN
        self.requests = 0
        """Requests for completions, those with which a pool compares weights left out."""
        self.in_flight = self.most_in_flight = 0
        self.served: list[tuple[str, int]] = []
        self.dead = False
        self.breaks_after: int | None = None
        """After how many tokens it breaks off the replies that it streams; None where it does not."""
        self.starts = 0
        self.loaded: str | None = None
        """The name of the folder whose weights it was told to load since its start."""
        self._lock = threading.Lock()
        self._start(0)
        self.port = int(self._http.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def _start(self, port: int) -> None:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

            def do_GET(self) -> None:
                """Answer for health and models."""
                if fake.dead:
                    self.close_connection = True
                elif self.path == "/health":
                    self.reply(200, b"")
                elif self.path.startswith("/server_info"):
                    self.reply(200, json.dumps({"vllm_config": {"instance_id": f"{fake.starts}"}}).encode())
                else:
                    models = {"data": [{"id": fake.model, "max_model_len": fake.max_model_len}]}
                    self.reply(200, json.dumps(models).encode())

            def do_POST(self) -> None:
                """Answer with a completion."""
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path == "/collective_rpc":
                    fake.loaded = Path(body["kwargs"]["weights_path"]).name
                    assert list(Path(body["kwargs"]["weights_path"]).glob("*.safetensors"))
                    self.reply(200, b"")
                    return
                try:
                    fake.answer(self, body)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def reply(self, status: int, content: bytes) -> None:
                """Send a whole reply."""
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_: Any) -> None:
                """Say nothing of clients that have gone."""

        self._http = Quiet(("127.0.0.1", port), Handler)
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, handler: Any, body: Reply) -> None:
        """Answer one request."""
        reply: Any = sound_reply(body, self.weights)
        if "prompt_logprobs" not in body:
            with self._lock:
                self.requests += 1
                self.in_flight += 1
                self.most_in_flight = max(self.in_flight, self.most_in_flight)
            try:
                reply = reply if self.behave is None else self.behave(self, reply)
            finally:
                with self._lock:
                    self.in_flight -= 1
        if isinstance(reply, dict) and body.get("stream"):
            self._stream(handler, reply)
        elif isinstance(reply, int):
            handler.reply(reply, b'{"error": {"message": "no"}}')
        elif reply is None:
            handler.close_connection = True
        else:
            handler.reply(200, reply if isinstance(reply, bytes) else json.dumps(reply).encode())

    def _stream(self, handler: Any, reply: Reply) -> None:
        """Send a reply token by token, and break off after `breaks_after` of them."""
        (choice,) = reply["choices"]
        handler.send_response(200)
        handler.end_headers()
        handler.close_connection = True
        tokens, logprobs = choice["token_ids"], choice["logprobs"]
        for index, token in enumerate(tokens[: self.breaks_after]):
            part = {
                "index": 0,
                "text": chr(token) if token < ByteEncoder.END else "",
                "token_ids": [token],
                "logprobs": logprobs and {"token_logprobs": logprobs["token_logprobs"][index : index + 1]},
                "finish_reason": choice["finish_reason"] if index + 1 == len(tokens) else None,
                "prompt_token_ids": None if index else choice["prompt_token_ids"],
            }
            handler.wfile.write(b"data: " + json.dumps({**reply, "usage": None, "choices": [part]}).encode() + b"\n\n")
        if self.breaks_after is None:
            handler.wfile.write(b"data: " + json.dumps({**reply, "choices": []}).encode() + b"\n\ndata: [DONE]\n\n")

    def die(self) -> None:
        """Take no further connection, and break off those that are open."""
        with self._lock:
            if not self.dead:
                self.dead, self.behave = True, lambda *_: None
                self._ending = threading.Thread(target=self.stop)
                self._ending.start()

    def rise(self) -> None:
        """Serve again."""
        self._ending.join()
        self.dead, self.behave = False, None
        self.restart()
        self._start(self.port)

    def restart(self) -> None:
        """Forget what was loaded, as a server that is started again so soon that nobody has missed it."""
        self.starts, self.loaded = self.starts + 1, None

    def stop(self) -> None:
        """End the server."""
        self._http.shutdown()
        self._http.server_close()


def slow(seconds: float) -> Callable[[FakeServer, Reply], Reply]:
    """Return what answers so much later."""

    def behave(_: FakeServer, reply: Reply) -> Reply:
        time.sleep(seconds)
        return reply

    return behave
