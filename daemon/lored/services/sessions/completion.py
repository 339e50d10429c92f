"""One question to an OpenAI-compatible endpoint, over HTTP, with hard bounds.

Blocking: to be called in a thread. `Endpoint.stop` from another thread ends a call at once.
Redirects are not followed, and a key goes over plain HTTP only to this machine.
"""

import http.client
import ssl
import time
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import orjson

from lore.errors import Invalid

ANSWER_BYTES: Final = 256 << 10
"""Of a response body; two lines of text need 2 KB."""
_LOCAL: Final = frozenset(("localhost", "127.0.0.1", "::1"))
_STEP: Final = 16 << 10


class Answer(NamedTuple):
    """The text, and the tokens that prompt and answer took together."""

    text: str
    tokens: int


class EndpointError(Exception):
    """The endpoint failed. ``retry_after``: seconds that it asked for; ``hopeless``: trying again
    without a change of the settings cannot help (wrong key, wrong model)."""

    def __init__(
        self, message: str, *, retry_after: float | None = None, hopeless: bool = False
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.hopeless = hopeless


class Endpoint:
    """Where to ask. Raises `Invalid` for an address that cannot be used."""

    def __init__(self, url: str, model: str, key: str | None) -> None:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https") or not host:
            raise Invalid(f"rewrite_url {url!r} is not an http(s) address")
        if parts.scheme == "http" and host not in _LOCAL:
            raise Invalid(f"rewrite_url {url!r}: plain http only to this machine; use https")
        if parts.username or parts.password:
            raise Invalid("rewrite_url: put the key into rewrite_key_env, not into the address")
        if not model:
            raise Invalid("rewrite_model is not set")
        self._secure = parts.scheme == "https"
        self._host, self._port = host, parts.port
        self._path = parts.path.rstrip("/") + "/chat/completions"
        self._model, self._key = model, key
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, system: str, user: str, *, most_tokens: int, seconds: float) -> Answer:
        """Ask and wait, at most ``seconds`` in all. Raises `EndpointError`."""
        deadline = time.monotonic() + seconds
        body = orjson.dumps(
            {
                "model": self._model,
                "messages": [
                    {"role": "system", "content": system},
                    {"role": "user", "content": user},
                ],
                "max_tokens": most_tokens,
                "temperature": 0,
                "stream": False,
            }
        )
        headers = {"Content-Type": "application/json", "User-Agent": "lored"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        connection = self._connect(seconds)
        self._connection = connection
        try:
            connection.request("POST", self._path, body, headers)
            self._wait_at_most(connection, deadline)
            response = connection.getresponse()
            raw = self._read(connection, response, deadline)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise EndpointError(f"{type(error).__name__}: {error}") from error
        finally:
            self._connection = None
            connection.close()
        if response.status != 200:
            raise _refusal(response, raw)
        return _read_answer(raw, len(body))

    def stop(self) -> None:
        """End a call that is under way in another thread."""
        connection = self._connection
        if connection is not None and connection.sock is not None:
            try:
                connection.sock.shutdown(2)
            except OSError:
                return

    def _connect(self, seconds: float) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=seconds, context=context
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=seconds)

    def _wait_at_most(self, connection: http.client.HTTPConnection, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        if connection.sock is not None:
            connection.sock.settimeout(left)

    def _read(
        self,
        connection: http.client.HTTPConnection,
        response: http.client.HTTPResponse,
        deadline: float,
    ) -> bytes:
        """The body, within `ANSWER_BYTES` and the deadline, however slowly it drips."""
        pieces: list[bytes] = []
        size = 0
        while True:
            self._wait_at_most(connection, deadline)
            piece = response.read1(_STEP)
            if not piece:
                return b"".join(pieces)
            size += len(piece)
            if size > ANSWER_BYTES:
                raise EndpointError(f"the answer is larger than {ANSWER_BYTES} bytes")
            pieces.append(piece)


def _refusal(response: http.client.HTTPResponse, raw: bytes) -> EndpointError:
    status = response.status
    after = response.getheader("Retry-After") or ""
    return EndpointError(
        f"HTTP {status}",
        retry_after=float(after) if after.isascii() and after.isdigit() else None,
        hopeless=status in (400, 401, 403, 404, 405, 422),
    )


def _read_answer(raw: bytes, asked_bytes: int) -> Answer:
    try:
        value = orjson.loads(raw)
        text = value["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError):
        raise EndpointError("the answer is not a chat completion") from None
    if not isinstance(text, str):
        raise EndpointError("the answer holds no text")
    return Answer(text, _tokens(value, asked_bytes + len(text.encode())))


def _tokens(value: dict[str, Any], size: int) -> int:
    """What the endpoint counted, or a guess (4 bytes each) where it does not say; never less
    than the guess by more than half, since a wrong count must not open the budget."""
    usage = value.get("usage")
    stated = usage.get("total_tokens") if isinstance(usage, dict) else None
    guess = size // 4
    return max(stated, guess // 2) if isinstance(stated, int) and stated > 0 else guess
