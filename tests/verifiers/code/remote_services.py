"""A local server that answers by script, and a clock that does not sleep, for the tests of the remote back end."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from truegold.verifiers.sandbox.execution import Program

PYTHON = Program("python", "print(int(input()) + 1)")
CPP = Program("cpp", "int main() {}")
OK = {"status": "Finished", "execution_time": 0.02, "return_code": 0, "stdout": "4\n", "stderr": ""}


@dataclass
class Answer:
    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class FakeTime:
    """Sleeps no time, and remembers how long it should have."""

    pauses: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


class Server:
    """Answers every request by `answer`, and remembers the requests."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answer: Callable[[dict[str, Any]], Answer] = lambda request: Answer({})
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body go in one packet.
            wbufsize = -1

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                request = {"path": self.path, "body": body, "authorization": self.headers.get("Authorization")}
                outer.requests.append(request)
                answer = outer.answer(request)
                content = answer.content()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *arguments: object) -> None:
                """A client that hangs up is part of the tests."""

        self._http = Quiet(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def script(self, *answers: Answer) -> None:
        """One answer after the other; the last one from then on."""
        left = list(answers)
        self.answer = lambda request: left.pop(0) if len(left) > 1 else left[0]

    def stop(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def fused(run: Any = None, compiled: Any = None, **more: Any) -> Answer:
    failed = any(part and part.get("return_code") != 0 for part in (run, compiled))
    status = "Failed" if failed else "Success"
    return Answer({"status": status, "message": "", "compile_result": compiled, "run_result": run, "files": {}, **more})
