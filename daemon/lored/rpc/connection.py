"""One client: bytes in, requests to dispatch, answers and events out, all within bounds.

Reading. Bytes are decoded in small pieces and only as far as they can be worked on: while
32 requests are unanswered, or the client does not read what we send, decoding stops after a
few requests ahead and then reading stops, so that the kernel's buffer fills and the client
waits. A `cancel` takes effect when it is decoded, ahead of its turn. One request is begun in
one turn of the loop: more, and one client's burst raises the others' p95 beyond 3x.

Order. Until `hello` says otherwise requests run one after the other and answers keep their
order: a bare Neovim closes the channel on any other order. `hello` and `subscribe` always run
alone, since what follows depends on them.

Writing. More than 8 MiB unread output aborts the connection: the memory is ours. (A single
answer may have that size when nothing else waits.)

Closing. A connection that says nothing within 5 s, breaks the framing, or belongs to another
user is closed. When the client ends its side, what it asked is still answered. When it has
gone, the handlers of its requests are cancelled (not of its notifications: whoever sends one
does not wait for it) and its subscriptions end.
"""

import asyncio
import select
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import structlog

from lore.errors import Busy, Invalid, Limit, LoreError, Timeout
from lore.wire.codec import Codec, encode_notification
from lore.wire.limits import (
    HELLO_SECONDS,
    INFLIGHT_REQUESTS,
    PROTOCOL_MIN,
    UNREAD_OUTPUT_BYTES,
)
from lore.wire.messages import BadMessage, FramingError, Message, Notification, Request, Response
from lored.rpc.answers import error_bytes, prune, result_bytes
from lored.rpc.bounds import AHEAD, CLOSE_SECONDS, PIECE, SOFT_OUTPUT_BYTES
from lored.rpc.dispatch import EARLY, Dispatcher, Pending
from lored.rpc.peer import peer_uid

if TYPE_CHECKING:
    from lored.rpc.server import Server
    from lored.rpc.subscriptions import Subscription

_ALONE: Final = frozenset({"hello", "subscribe"})

log = structlog.get_logger()


class Connection(asyncio.Protocol):
    """The server's end of one connection."""

    def __init__(self, server: "Server") -> None:
        self.server = server
        self.dispatcher: Dispatcher = server.dispatcher
        self.client = "anonymous"
        self.client_version = ""
        self.protocol = PROTOCOL_MIN
        self.workspace: str | None = None
        self.session_id: str | None = None
        self.greeted = False
        self.ordered = True
        self.error_form = "pair"
        self.subscriptions: dict[str, Subscription] = {}
        self.pending: dict[int, Pending] = {}
        self._unnamed: set[Pending] = set()
        self._transport: asyncio.Transport | None = None
        self._codec = Codec("daemon")
        self._input: deque[memoryview] = deque()
        self._decoded: deque[Message] = deque()
        self._doomed: set[int] = set()
        self._outcomes: deque[bool] = deque()
        self.cancelled = False
        """Outcome of the `cancel` whose turn it is; read by its handler."""
        self._broken: FramingError | None = None
        self._alone = False
        self._scheduled = False
        self._paused_output = False
        self._paused_input = False
        self._ended = False
        self._refused = False
        self._timer: asyncio.TimerHandle | None = None

    # -- life -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Check who it is and whether there is room."""
        self._transport = transport
        try:
            uid = peer_uid(transport.get_extra_info("socket"))
        except OSError:
            uid = -1
        if uid != self.server.uid:
            log.warning("foreign_peer", uid=uid)
            self.dispatcher.counters.refused += 1
            transport.abort()
            return
        transport.set_write_buffer_limits(high=SOFT_OUTPUT_BYTES)
        self._refused = not self.server.admit(self)
        self._timer = asyncio.get_running_loop().call_later(HELLO_SECONDS, self.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel what it asked and forget it."""
        self._transport = None
        self._input.clear()
        self._decoded.clear()
        if self._timer is not None:
            self._timer.cancel()
        for pending in tuple(self.pending.values()):
            self.dispatcher.stop(pending, Timeout("the client has gone"))
        self.server.dismiss(self)

    def abort(self) -> None:
        """Close at once, unsent output included."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Close once the output is read, or after `CLOSE_SECONDS`."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(CLOSE_SECONDS, self.abort)

    def eof_received(self) -> bool:
        """The client has ended its side: answer what is open, then close.

        A client that has gone altogether looks the same to a reader, but not to poll(2).
        """
        self._ended = True
        if self._transport is None or self.is_idle:
            return False
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), 0)
        return not any(event & select.POLLHUP for _, event in poll.poll(0))

    @property
    def is_idle(self) -> bool:
        """Nothing asked is unanswered."""
        return not (self.pending or self._unnamed or self._decoded or self._input)

    # -- reading --------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take bytes; begin what may begin."""
        if self._timer is not None and not self._refused:
            self._timer.cancel()
            self._timer = None
        if self._broken is not None:
            return
        if len(data) > PIECE or self._input or len(self._decoded) >= AHEAD:
            view = memoryview(data)
            self._input.extend(view[at : at + PIECE] for at in range(0, len(view), PIECE))
        elif self._decoded or self._scheduled:
            self._decode(data)
        else:
            self._decode(data)
            # The usual case, without the general one's care: one request, free to begin.
            if len(self._decoded) == 1 and not self._ended and self._may_begin():
                self._handle(self._decoded.popleft())
                return
        if not self._scheduled:
            self._pump()

    def _decode(self, piece: bytes | memoryview) -> None:
        try:
            messages = self._codec.feed(piece)
        except FramingError as error:
            # What came complete before is still answered; then the connection closes.
            log.info("broken_stream", client=self.client, reason=error.reason)
            self.dispatcher.counters.broken += 1
            self._input.clear()
            self._broken, self._ended = error, True
            messages = error.before
        for message in messages:
            if _is_cancel(message):
                self._outcomes.append(self._cancel(message.params.get("id")))
            self._decoded.append(message)

    def _may_begin(self) -> bool:
        """Whether the first decoded message may be handled now."""
        first = self._decoded[0]
        if not self.dispatcher.is_open and not (type(first) is Request and first.method in EARLY):
            return False
        if self._alone or self._paused_output:
            return False
        open_requests = len(self.pending) + len(self._unnamed)
        return open_requests == 0 if self.ordered else open_requests < INFLIGHT_REQUESTS

    def _pump(self) -> None:
        """Decode on demand, begin one request, and set the pace of reading."""
        self._scheduled = False
        while self._input and (
            not self._decoded or (len(self._decoded) < AHEAD and not self._may_begin())
        ):
            self._decode(self._input.popleft())
        if self._decoded and self._may_begin():
            self._handle(self._decoded.popleft())
        if self._transport is None or self._transport.is_closing():
            return
        if self._may_begin() if self._decoded else self._input:
            self._schedule()
        if bool(self._input) is not self._paused_input:
            self._paused_input = not self._paused_input
            if self._paused_input:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()
        if self._ended and self.is_idle:
            self._finish_stream()

    def _finish_stream(self) -> None:
        error = self._broken
        if error is not None and error.request_id is not None:
            kind = Limit if error.code == "limit" else Invalid
            self.send_error(error.request_id, kind(error.reason))
        self.close()

    def wake(self) -> None:
        """Something that its requests waited for has come."""
        if self._transport is not None:
            self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _handle(self, message: Message) -> None:
        if _is_cancel(message):
            self.cancelled = self._outcomes.popleft()
        if type(message) is Request:
            if self._refused:
                self.send_error(message.id, Busy(self.server.full_message))
                self.close()
            elif message.id in self.pending:
                log.info("broken_stream", client=self.client, reason="message id used twice")
                self.abort()
            elif message.id in self._doomed:
                self._doomed.discard(message.id)
                self.send_error(message.id, Timeout("cancelled by the client"))
            else:
                self._alone = message.method in _ALONE
                self.dispatcher.accept(self, message.id, message.method, message.params)
                self._alone = self._alone and message.id in self.pending
        elif type(message) is Notification:
            if not self._refused:
                self.dispatcher.accept(self, None, message.method, message.params)
        elif type(message) is BadMessage:
            log.info("bad_message", client=self.client, reason=message.reason)
            if message.id is not None:
                self.send_error(message.id, Invalid(message.reason))
        elif type(message) is Response:
            log.info("bad_message", client=self.client, reason="a response to nothing")

    # -- requests -------------------------------------------------------------------------

    @property
    def may_start(self) -> bool:
        """Whether its waiting requests may run: not while it does not read."""
        return not self._paused_output

    def begin(self, pending: Pending) -> None:
        """A request of this connection is open now."""
        if pending.id is None:
            self._unnamed.add(pending)
        else:
            self.pending[pending.id] = pending

    def finish(self, pending: Pending) -> None:
        """A request has its answer."""
        if pending.id is None:
            self._unnamed.discard(pending)
        else:
            self.pending.pop(pending.id, None)
        if pending.method.name in _ALONE:
            self._alone = False
            for subscription in self.subscriptions.values():
                subscription.open()
        if self._transport is None:
            return
        if self._decoded or self._input or self._ended:
            self._schedule()

    def _cancel(self, target: object) -> bool:
        if type(target) is not int:
            return False
        pending = self.pending.get(target)
        if pending is not None:
            self.dispatcher.stop(pending, Timeout("cancelled by the client"))
            return True
        waits = any(type(message) is Request and message.id == target for message in self._decoded)
        if waits:
            self._doomed.add(target)
        return waits

    # -- writing --------------------------------------------------------------------------

    def send_result(self, message_id: int | None, result: dict[str, Any]) -> None:
        """Answer. Raises `Limit` or `Invalid` (nothing is sent then)."""
        if message_id is not None:
            self._send(result_bytes(message_id, result))

    def send_error(self, message_id: int | None, error: LoreError) -> None:
        """Refuse."""
        if message_id is not None:
            self._send(error_bytes(message_id, error, self.error_form))

    def send_event(self, name: str, params: dict[str, Any]) -> None:
        """Send one notification. Raises `Limit` or `Invalid` (nothing is sent then)."""
        self._send(encode_notification(name, prune(params)))

    def _send(self, data: bytes) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        transport.write(data)
        unread = transport.get_write_buffer_size()
        if unread > UNREAD_OUTPUT_BYTES and unread > len(data):
            log.warning("unread_output", client=self.client, bytes=unread)
            self.dispatcher.counters.overrun += 1
            transport.abort()

    def pause_writing(self) -> None:
        """The client does not read."""
        self._paused_output = True

    def resume_writing(self) -> None:
        """It reads again."""
        self._paused_output = False
        for lane in self.dispatcher.lanes.values():
            lane.advance()
        for subscription in tuple(self.subscriptions.values()):
            subscription.flush()
        self._schedule()


def _is_cancel(message: Message) -> TypeGuard[Request | Notification]:
    kind = type(message)
    return (kind is Request or kind is Notification) and message.method == "cancel"  # type: ignore[union-attr]
