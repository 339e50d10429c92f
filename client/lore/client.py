"""The blocking client. Messages and sockets belong to handshake.Link, starting a daemon to
launch.py, the rules of waiting and repeating to policy.py.
"""

import time

from lore import handshake, paths, realms
from lore.calls import Calls
from lore.errors import Busy, Internal, LoreError, ShuttingDown, Timeout, Unavailable
from lore.policy import (
    MARGIN_SECONDS,
    QUICK_SECONDS,
    STARTING_SECONDS,
    EventQueue,
    Lost,
    hello_words,
    may_repeat,
    pause_after,
    seconds_of,
)
from lore.wire import fault
from lore.wire.codec import encode_request
from lore.wire.messages import Message, Notification, Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Self


class Client(Calls):
    """A connection to this user's memory daemon, which is started if there is none.

    Connects at once and again by itself when the daemon was restarted. A context manager; for
    one thread at a time. Every method of the table can be called by name, with keyword
    parameters, and returns the result map.

    - `workspace`: default workspace (a path in it, or its id) of all calls; None: global only.
    - `name`: the program that calls, for the daemon's log. `session_id`: the agent's session.
    - `timeout`: seconds for one call; default the daemon's deadline for the method plus 1.
    - `start`: whether a daemon may be started and, if older, replaced.
    - `start_timeout`: seconds a start may take (default launch.START_SECONDS).
    - `budget`: seconds for everything this object ever does; implies `start=False`. For hooks.
    - `where`: the paths to use, default those of the realm that `workspace`, else the current
      directory, belongs to.

    Raises `Unavailable` (with ``data['sandboxed']`` where sockets are refused),
    `Incompatible`, and in calls every class of `lore.errors`.
    """

    def __init__(
        self,
        *,
        workspace: "str | None" = None,
        name: str = "lore-python",
        session_id: "str | None" = None,
        timeout: "float | None" = None,
        start: bool = True,
        start_timeout: "float | None" = None,
        budget: "float | None" = None,
        where: "paths.Paths | None" = None,
    ) -> None:
        self._deadline = None if budget is None else time.monotonic() + budget
        self._start = start and budget is None
        self._start_timeout, self._timeout = start_timeout, timeout
        self._paths = where or realms.here(workspace)
        self._hello = hello_words(name, workspace, session_id)
        self._events = EventQueue()
        self._link: handshake.Link | None = self._open()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def server(self) -> "dict[str, Any]":
        """What the daemon said in hello: version, protocol, instance, revision, limits."""
        return self._live().server

    def close(self) -> None:
        """Hang up; a later call connects again."""
        if self._link is not None:
            self._link.stream.close()
            self._link = None

    def call(
        self,
        method: str,
        params: "dict[str, Any] | None" = None,
        *,
        timeout: "float | None" = None,
        on_event: "Callable[[dict[str, Any]], None] | None" = None,
    ) -> "dict[str, Any]":
        """Call `method` by its wire name and return the result map.

        `timeout` in seconds, else the client's, else the method's own deadline. A call that the
        daemon refuses as busy is repeated within that time. `on_event` is given the events of
        this connection's subscriptions that come while the answer is awaited; each gives the
        answer its whole time anew. Raises the typed errors of `lore.errors`; `Timeout` leaves
        the connection usable.
        """
        named, seconds = params or {}, timeout or self._timeout
        began, tries = time.monotonic(), 0
        while True:
            try:
                return self._call(method, named, seconds, on_event)
            except Busy as refusal:
                tries += 1
                pause = pause_after(refusal, tries)
                end = began + (timeout or self._timeout or seconds_of(method))
                if self._deadline is not None:
                    end = min(end, self._deadline)
                left = end - time.monotonic()
                if pause is None or pause >= left:
                    raise
                time.sleep(pause)
                if seconds is not None:  # else the next try gets the method's own time anew
                    seconds = left - pause

    def _call(
        self,
        method: str,
        named: "dict[str, Any]",
        seconds: "float | None",
        on_event: "Callable[[dict[str, Any]], None] | None",
    ) -> "dict[str, Any]":
        """One call, once more where the connection was lost and that is safe."""
        for last_try in (False, True):
            link = self._live()
            try:
                return self._ask(link, method, named, seconds, on_event)
            except ShuttingDown:
                self.close()
                if last_try or not self._start:
                    raise
            except Lost as lost:
                self.close()
                if last_try or not (lost.unseen or may_repeat(method, named)):
                    raise lost.as_unavailable(method) from None
            except LoreError:
                raise
            except BaseException:
                self.close()  # interrupted: a message may be half written
                raise
        raise AssertionError("unreachable: the last try returns or raises")

    def events(
        self,
        topics: "Sequence[str]" = (),
        *,
        workspace: "str | None" = None,
        timeout: "float | None" = None,
    ) -> "Iterator[dict[str, Any]]":
        """Iterate over events: maps with subscription, seq, topic and the topic's payload.

        With `topics` (facts, sessions, conflicts, progress, status) a subscription is opened
        now and closed with the iterator; without, events of subscriptions made by calls are
        given. Ends after `timeout` seconds without an event. Where events were lost, an event
        with the topic `events.lost` and the revision tells to ask `changes`; that is also
        what a reconnection gives.
        """
        if not topics:
            return self._iterate(None, timeout)
        params: dict[str, Any] = {"topics": list(topics)}
        if workspace is not None:
            params["workspace"] = workspace
        return self._iterate(_Subscription(self, params), timeout)

    def _iterate(
        self, subscription: "_Subscription | None", timeout: "float | None"
    ) -> "Iterator[dict[str, Any]]":
        link = self._link
        try:
            while True:
                deadline = self._until(timeout)
                while not self._events:
                    try:
                        if link is None or link is not self._link:
                            raise EOFError
                        self._sort(link.read(deadline))
                    except TimeoutError:
                        return
                    except (EOFError, OSError):
                        if subscription is None:
                            raise Unavailable("the daemon hung up; subscribe again") from None
                        self._events.mark_renewed(subscription.open())
                        link = self._link
                yield self._events.popleft()
        finally:
            if subscription is not None and link is self._link is not None:
                subscription.close()

    def _open(self) -> handshake.Link:
        return handshake.open_link(
            self._paths,
            self._hello,
            start=self._start,
            deadline=self._deadline,
            start_seconds=self._start_timeout,
        )

    def _live(self) -> handshake.Link:
        """The open link; opened again when there is none or the daemon hung up meanwhile."""
        link = self._link
        if link is not None and not link.pending and link.stream.is_dead():
            self.close()
            link = None
        if link is None:
            link = self._link = self._open()
        return link

    def _until(self, seconds: "float | None") -> "float | None":
        """The monotonic instant at which a wait of `seconds` ends, within the budget."""
        if seconds is None:
            return self._deadline
        instant = time.monotonic() + seconds
        return instant if self._deadline is None else min(instant, self._deadline)

    def _is_spent(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _ask(
        self,
        link: handshake.Link,
        method: str,
        params: "dict[str, Any]",
        timeout: "float | None",
        on_event: "Callable[[dict[str, Any]], None] | None",
    ) -> "dict[str, Any]":
        message_id = link.take_id()
        data = encode_request(message_id, method, params)
        # Most answers come within the shortest deadline; only a longer wait is worth loading
        # the method table for the real one.
        started = time.monotonic()
        deadline = self._until(QUICK_SECONDS if timeout is None else timeout)
        may_extend = timeout is None
        try:
            link.stream.send(data, deadline)
        except TimeoutError:
            self.close()
            raise Timeout(f"{method}: the daemon does not read; see: lore status") from None
        except OSError as error:
            raise Lost(unseen=True) from error
        while True:
            try:
                messages = link.read(deadline)
            except TimeoutError:
                waited = time.monotonic() - started
                if may_extend and not self._is_spent():
                    may_extend = False
                    patience = STARTING_SECONDS if link.starting else 0.0
                    deadline = self._until(seconds_of(method) + patience - waited)
                    continue
                self._cancel(link, message_id)
                raise Timeout(f"{method}: no answer within {waited:.3g} s") from None
            except (EOFError, OSError):
                raise Lost(unseen=False) from None
            answer = self._sort(messages, message_id)
            while on_event is not None and self._events:
                on_event(self._events.popleft())
                deadline = self._until(timeout or seconds_of(method))
                may_extend = False
            if answer is None:
                continue
            link.starting = False
            if answer.error is not None:
                raise fault.from_wire(answer.error)
            if not isinstance(answer.result, dict):
                raise Internal(f"{method}: the daemon answered {type(answer.result).__name__}")
            return answer.result

    def _cancel(self, link: handshake.Link, message_id: int) -> None:
        """Ask the daemon to stop a call nobody waits for; its answers find no taker."""
        try:
            cancel = encode_request(link.take_id(), "cancel", {"id": message_id})
            link.stream.send(cancel, self._until(MARGIN_SECONDS))
        except OSError:
            self.close()

    def _sort(self, messages: "list[Message]", wanted: "int | None" = None) -> "Response | None":
        """Keep events for `events`, drop answers that came too late, return the wanted one."""
        found = None
        for message in messages:
            if isinstance(message, Response):
                if message.id == wanted:
                    found = message
            elif isinstance(message, Notification):
                self._events.take_in(message)
        return found


class _Subscription:
    """A subscription that `events` made, so that it can make it again and end it."""

    def __init__(self, client: Client, params: "dict[str, Any]") -> None:
        self._client, self._params, self._id = client, params, ""
        self.open()

    def open(self) -> object:
        """Subscribe on the client's connection; returns the store's revision."""
        answer = self._client.call("subscribe", self._params)
        self._id = answer.get("subscription", "")
        return answer.get("revision")

    def close(self) -> None:
        """Unsubscribe; if that fails hang up, which ends subscriptions as well."""
        try:
            self._client.call("unsubscribe", {"subscription": self._id})
        except LoreError:
            self._client.close()
