"""The event bus inside the daemon: services publish, subscriptions listen.

Owns nothing but the list of listeners. A listener is called on the event loop, must not
block and must not raise; queues and their bounds belong to the listener.
"""

from collections.abc import Callable
from typing import NamedTuple


class Event(NamedTuple):
    """One thing that happened: topic (`facts`, `conflicts`, `sessions`, `progress`,
    `status`), wire-ready payload, the workspace id it belongs to (None: all), and the
    connection that asked for it, where that matters."""

    topic: str
    payload: dict[str, object]
    workspace: str | None
    origin: object | None = None


Listener = Callable[[Event], None]


class Events:
    """The bus."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; the returned function takes it away again."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def publish(
        self,
        topic: str,
        payload: dict[str, object],
        workspace: str | None = None,
        *,
        origin: object | None = None,
    ) -> None:
        """Tell every listener, in the order they came."""
        event = Event(topic, payload, workspace, origin)
        for listener in tuple(self._listeners):
            listener(event)
