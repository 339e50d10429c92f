"""Any OpenAI-compatible `/v1/embeddings` endpoint, local or not. Off unless configured.

Runs in the model process, so neither a slow nor a dead endpoint holds up the daemon. Failing
calls open a breaker; a day has a budget; both are errors in words that `status` shows while
search goes on without this model.
"""

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from lored.embed.base import Float32, Model, normalise

TEXT_CHARS: Final = 8_000
"""About 2,000 tokens; every known endpoint takes that much."""

TIMEOUT_SECONDS: Final = 20.0

BREAKER_FAILURES: Final = 3
BREAKER_SECONDS: Final = 60.0
"""After this many failures in a row the endpoint is left alone for so long."""

BUDGET_CHARS: Final = 40_000_000
"""Characters sent in 24 hours, about 10 million tokens: a bound on what a mistake costs."""

ANSWER_BYTES: Final = 64 << 20


class EndpointDown(Exception):
    """The endpoint cannot be used now; the message says why and until when."""


class HttpEmbedder:
    """A client of one endpoint and model; asks it once at the start for the dimension."""

    batch = 32

    def __init__(self, url: str, name: str, key: str | None) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"embed_http_url {url!r} is not an http(s) address")
        self._url, self._name, self._key = url, name, key
        self._failures = 0
        self._closed_until = 0.0
        self._spent: list[tuple[float, int]] = []
        probe = self._ask(["dimension"])
        self.model = Model(f"http:{name}", probe.shape[1])

    @classmethod
    def from_environment(cls) -> "HttpEmbedder":
        """From what `services.search.embedding` puts into the environment of the model process."""
        key_name = os.environ.get("LORE_EMBED_HTTP_KEY_ENV", "")
        return cls(
            os.environ["LORE_EMBED_HTTP_URL"],
            os.environ.get("LORE_EMBED_HTTP_MODEL", ""),
            os.environ.get(key_name) if key_name else None,
        )

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Float32:
        """float32[n, dimension], unit rows. Raises `EndpointDown`."""
        vectors = self._ask([text[:TEXT_CHARS] or " " for text in texts])
        if vectors.shape[1] != self.model.dimension:
            raise EndpointDown(
                f"{self._url} now gives {vectors.shape[1]} dimensions, not {self.model.dimension}"
            )
        return vectors

    def _ask(self, texts: Sequence[str]) -> Float32:
        now = time.monotonic()
        if now < self._closed_until:
            raise EndpointDown(
                f"{self._url} failed {self._failures} times; next try in "
                f"{self._closed_until - now:.0f} s"
            )
        self._pay(sum(map(len, texts)), now)
        try:
            found = self._call(texts)
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._failures += 1
            if self._failures >= BREAKER_FAILURES:
                self._closed_until = now + BREAKER_SECONDS
            raise EndpointDown(f"{self._url}: {error}") from error
        self._failures = 0
        return found

    def _pay(self, chars: int, now: float) -> None:
        self._spent = [(at, spent) for at, spent in self._spent if now - at < 86_400]
        if sum(spent for _, spent in self._spent) + chars > BUDGET_CHARS:
            raise EndpointDown(f"the day's budget of {BUDGET_CHARS:,} characters is used up")
        if self._spent and now - self._spent[-1][0] < 60:
            at, spent = self._spent.pop()
            self._spent.append((at, spent + chars))
        else:
            self._spent.append((now, chars))

    def _call(self, texts: Sequence[str]) -> Float32:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        body = json.dumps({"model": self._name, "input": list(texts)}).encode()
        request = urllib.request.Request(self._url, body, headers)  # noqa: S310 - checked above
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
            data: list[dict[str, Any]] = json.loads(answer.read(ANSWER_BYTES))["data"]
        rows = sorted(data, key=lambda row: row.get("index", 0))
        if len(rows) != len(texts):
            raise ValueError(f"{len(rows)} vectors for {len(texts)} texts")
        return normalise(np.array([row["embedding"] for row in rows], dtype=np.float32))
