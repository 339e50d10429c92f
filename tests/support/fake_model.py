"""A model that says one sentence, for real agents: serves the endpoints of Anthropic, OpenAI
(responses) and Gemini on loopback while it runs a command, and writes down what it was asked.

    python fake_model.py LOG COMMAND...     (the command finds the address in FAKE_MODEL)
"""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SENTENCE = "The fake model took note of that."


class Model(BaseHTTPRequestHandler):
    """Answers every request for words with the same ones."""

    protocol_version = "HTTP/1.1"
    log = ""

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""

    def do_GET(self) -> None:
        self._reply("application/json", b'{"data": [], "models": []}')

    def do_HEAD(self) -> None:
        self._reply("text/plain", b"")

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        asked = json.loads(self.rfile.read(size) or b"{}")
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(json.dumps({"path": self.path, "asked": asked}) + "\n")
        if "/messages" in self.path:
            self._stream(anthropic())
        elif self.path.endswith("/responses"):
            self._stream(openai())
        else:
            self._reply(
                "text/event-stream", b"data: " + json.dumps(gemini()).encode() + b"\r\n\r\n"
            )

    def _stream(self, events: list[dict[str, Any]]) -> None:
        lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
        self._reply("text/event-stream", "".join(lines).encode())

    def _reply(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def anthropic() -> list[dict[str, Any]]:
    """A message as a stream of the Messages API."""
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "content": [],
        "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }  # fmt: skip
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    return [
        {"type": "message_start", "message": message},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": SENTENCE},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]


def openai() -> list[dict[str, Any]]:
    """A message as a stream of the Responses API."""
    text = {"type": "output_text", "text": SENTENCE, "annotations": []}
    item = {
        "type": "message", "id": "m1", "role": "assistant", "status": "completed",
        "content": [text],
    }  # fmt: skip
    usage = {
        "input_tokens": 5, "output_tokens": 7, "total_tokens": 12,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    whole = {"id": "r1", "object": "response", "model": "fake", "usage": usage}
    return [
        {
            "type": "response.created",
            "response": {**whole, "status": "in_progress", "output": []},
        },
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {**whole, "status": "completed", "output": [item]},
        },
    ]


def gemini() -> dict[str, Any]:
    """A message of `streamGenerateContent`."""
    content = {"role": "model", "parts": [{"text": SENTENCE}]}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage}


def main() -> int:
    """Serve while the command runs; its exit code."""
    Model.log, *command = sys.argv[1:]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    words = [word.replace("FAKE_MODEL", address) for word in command]
    env = {**os.environ, "ANTHROPIC_BASE_URL": address, "GOOGLE_GEMINI_BASE_URL": address}
    return subprocess.run(words, env=env, stdin=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
