"""A server of OpenAI's protocol whose answers a test decides."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[dict[str, Any]], Any]
"""Body of a request -> a text, a whole body, or a pair of a status and a body or raw bytes."""


class Stub:
    """What was asked of it, and how."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.bodies: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.running = self.most_running = 0
        self.lock = threading.Lock()
        self.url = ""
        self.names = ["m"]
        """Of the models that it lists."""
        self.listed: tuple[int, Any] | None = None
        """Status and body in place of that list."""


def completion(text: Any, **choice: Any) -> dict[str, Any]:
    """A body with one choice."""
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}} | choice],
        "usage": {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4},
    }


class QuietServer(ThreadingHTTPServer):
    """A server that says nothing of clients that leave."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing."""


@contextmanager
def serving(answer: Answer, *, slow: float = 0.0) -> Iterator[Stub]:
    """The stub, listening on a port of its own."""
    stub = Stub(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            models = [{"id": name, "object": "model", "created": 0, "owned_by": "x"} for name in stub.names]
            self.send(*stub.listed or (200, {"object": "list", "data": models}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with stub.lock:
                stub.bodies.append(body)
                stub.keys.add(self.headers["Authorization"])
                stub.running += 1
                stub.most_running = max(stub.most_running, stub.running)
            time.sleep(slow)
            told = stub.answer(body)
            with stub.lock:
                stub.running -= 1
            found: Any = completion(told) if isinstance(told, str) else told
            status, sent = found if isinstance(found, tuple) else (200, found)
            self.send(status, sent)

        def send(self, status: int, body: Any) -> None:
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

    server = QuietServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    stub.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
