"""From a request to a handler and back: method table, parameters, deadline, error form.

A request is answered exactly once, by whichever comes first: its handler, its deadline, a
`cancel`, or the drain. A handler that is a plain function answers at once on the loop and
must not wait; one that is a coroutine function runs as a task in the lane of its method's
class. The deadline counts from arrival, waiting included, and cancels the handler; the
answer does not wait for the handler to obey. A long operation that moves gets its deadline
anew. Notifications run like requests, unanswered.

A request that would not be done within its deadline is refused as `busy` when it comes, with
the time after which to try again; one whose turn has not come by `BEGIN_SHARE` of its deadline,
against all expectation, is refused then. So `busy` always means that nothing was begun, and a
write that was begun has time to be acknowledged.
"""

import asyncio
import difflib
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import structlog

from lore.errors import Busy, Internal, Invalid, Limit, LoreError, ShuttingDown, Timeout
from lore.wire.limits import DEADLINES
from lore.wire.methods import BY_NAME, Method
from lored.rpc.counters import Counters
from lored.rpc.lanes import Lane, lane_of, make_lanes
from lored.rpc.parameters import FORMS
from lored.services.app import App, Call

if TYPE_CHECKING:
    from lored.rpc.connection import Connection

Handler = Callable[[App, Call, dict[str, Any]], Awaitable[dict[str, Any]] | dict[str, Any]]

EARLY: Final = frozenset({"ping", "hello"})
"""Answered while the daemon still opens its stores; other requests wait for that."""

SLOW_SECONDS: Final = 1.0
"""A request slower than this is logged at info even when it went well."""

OBEY_SECONDS: Final = 1.0
"""For a cancelled handler to end; an interrupted search takes a millisecond."""

ADMIT_SHARE: Final = 0.6
"""Part of the deadline that a request may be expected to wait when it comes: the estimate is
the past's, and what takes longer than expected should still be done in time."""

BEGIN_SHARE: Final = 0.7
"""Part of the deadline after which a request that still waits is not begun any more."""

RETRY_MS: Final = 50
"""Least time after which a refused client should come again."""

log = structlog.get_logger()


class Route:
    """What there is to know about a method, looked up once a request."""

    __slots__ = ("at_once", "form", "handler", "lane", "method")

    def __init__(self, method: Method, handler: Handler | None, lane: Lane) -> None:
        self.method, self.handler, self.lane = method, handler, lane
        self.form = FORMS[method.name]
        self.at_once = handler is not None and not inspect.iscoroutinefunction(handler)


class Pending:
    """One request on its way: who asked, for what, and its single answer."""

    __slots__ = (
        "answered",
        "arrived",
        "begun",
        "call",
        "holds_slot",
        "id",
        "method",
        "owner",
        "params",
        "route",
        "task",
        "timer",
    )

    def __init__(
        self,
        owner: "Connection",
        message_id: int | None,
        route: Route,
        params: dict[str, Any],
        call: Call,
    ) -> None:
        self.owner, self.id, self.route, self.params, self.call = (
            owner,
            message_id,
            route,
            params,
            call,
        )
        self.method = route.method
        self.arrived = time.monotonic()
        self.begun = 0.0
        self.answered = False
        self.holds_slot = False
        self.task: asyncio.Task[dict[str, Any]] | None = None
        self.timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Run the handler as a task (its lane gave it a slot)."""
        self.owner.dispatcher.run(self)


class Dispatcher:
    """Runs requests of all connections."""

    def __init__(self, instance: str) -> None:
        self.app: Any = None
        """The `App`, once open."""
        self.is_open = False
        """Whether more than `EARLY` can be answered."""
        self.counters = Counters()
        self.lanes = make_lanes()
        self.draining = False
        self.on_fault: Callable[[str, str], None] = lambda name, remedy: None
        """Told of each degraded mode that a call ran into (name, remedy)."""
        self._routes: dict[str, Route] = {}
        self._failure: LoreError | None = None
        self._translate: Callable[[BaseException], LoreError | None] = lambda error: None
        self._prefix = instance[:6]
        self._serial = 0
        self._loop = asyncio.get_running_loop()

    def handle_by(self, handlers: dict[str, Handler]) -> None:
        """Answer methods by these functions."""
        self._routes = {
            name: Route(method, handlers.get(method.name), self.lanes[lane_of(method)])
            for name, method in BY_NAME.items()
        }

    def open(self, app: App, handlers: dict[str, Handler]) -> None:
        """All parts are there: from now on every method is answered."""
        from lored.rpc.faults import translate  # loads the database driver

        self.app, self._translate = app, translate
        self.handle_by(handlers)
        self.is_open = True

    def fail(self, failure: LoreError) -> None:
        """The parts will never be there: answer everything with the reason."""
        self._failure = failure
        self.is_open = True

    def accept(
        self, owner: "Connection", message_id: int | None, name: str, given: dict[str, Any]
    ) -> None:
        """Take one request (``message_id`` None: a notification) of a connection."""
        route = self._routes.get(name)
        call: Call | None = None
        try:
            if self._failure is not None:
                raise self._failure
            if route is None or route.handler is None or route.method.since > owner.protocol:
                raise self._unknown(name)
            if self.draining and name != "ping":
                raise ShuttingDown("the daemon is stopping; connect again")
            params = route.form.read(given)
            self._serial += 1
            call = Call(
                f"{self._prefix}-{self._serial:x}",
                owner.client,
                owner.workspace,
                owner.session_id,
                owner,
            )
            if route.at_once:
                result: Any = route.handler(self.app, call, params)
                owner.send_result(message_id, result)
                self.counters.count_at_once(route.method.name)
                return
        except LoreError as error:
            self.counters.count(route.method.name if route else "unknown", error.code, 0.0)
            owner.send_error(message_id, error)
            return
        except Exception as error:
            self.counters.count(name, "internal", 0.0)
            owner.send_error(message_id, self._defect(name, call, error))
            return
        seconds = DEADLINES[route.method.deadline]
        wait = route.lane.foresee(owner)
        if wait > seconds * ADMIT_SHARE:
            self.counters.count(route.method.name, Busy.code, 0.0)
            owner.send_error(message_id, _busy(route, wait))
            return
        pending = Pending(owner, message_id, route, params, call)
        owner.begin(pending)
        route.lane.submit(pending)
        if pending.timer is None:  # it waits for its turn
            pending.timer = self._loop.call_later(seconds * BEGIN_SHARE, self._not_begun, pending)

    @staticmethod
    def _unknown(name: str) -> Invalid:
        near = difflib.get_close_matches(name, BY_NAME, 1)
        hint = f"did you mean {near[0]}?" if near else "see PROTOCOL.md for the methods"
        return Invalid(f"unknown method {name[:80]}; {hint}")

    def run(self, pending: Pending) -> None:
        """Start the handler of a request whose turn has come."""
        pending.begun = time.monotonic()
        if pending.timer is not None:
            pending.timer.cancel()
        left = pending.arrived + DEADLINES[pending.method.deadline] - pending.begun
        pending.timer = self._loop.call_later(left, self._expire, pending)
        work: Any = pending.route.handler(self.app, pending.call, pending.params)  # type: ignore[misc]
        pending.holds_slot = True
        pending.task = self._loop.create_task(work)
        pending.task.add_done_callback(lambda task: self._ended(pending, task))

    def _ended(self, pending: Pending, task: "asyncio.Task[dict[str, Any]]") -> None:
        error = None if task.cancelled() else task.exception()
        if not pending.answered:
            if task.cancelled():
                self.refuse(pending, Timeout("the request was cancelled inside the daemon"))
            elif error is None:
                self._answer(pending, task.result())
            else:
                self.refuse(pending, self._explain(pending, error))
        self._release(pending)

    def _release(self, pending: Pending) -> None:
        if pending.holds_slot:
            pending.holds_slot = False
            pending.route.lane.learn(time.monotonic() - pending.begun)
            pending.route.lane.release(pending.owner)

    def _answer(self, pending: Pending, result: dict[str, Any]) -> None:
        try:
            pending.owner.send_result(pending.id, result)
        except Limit as error:
            self.refuse(pending, error)
        except Invalid as error:  # the result is not plain data
            self.refuse(pending, self._defect(pending.method.name, pending.call, error))
        else:
            self._settle(pending, "ok")

    def refuse(self, pending: Pending, error: LoreError) -> None:
        """Answer with an error, once."""
        if not pending.answered:
            pending.owner.send_error(pending.id, error)
            self._settle(pending, error.code)

    def _settle(self, pending: Pending, outcome: str) -> None:
        pending.answered = True
        if pending.timer is not None:
            pending.timer.cancel()
        seconds = time.monotonic() - pending.arrived
        name = pending.method.name
        self.counters.count(name, outcome, seconds)
        told = pending.method.mutates or outcome != "ok" or seconds > SLOW_SECONDS
        emit = log.info if told else log.debug
        emit(
            "call",
            method=name,
            outcome=outcome,
            ms=seconds * 1000,
            client=pending.owner.client,
            request=pending.call.request_id,
        )
        pending.owner.finish(pending)

    def _explain(self, pending: Pending, error: BaseException) -> LoreError:
        if isinstance(error, LoreError):
            return error
        known = self._translate(error)
        if known is None:
            return self._defect(pending.method.name, pending.call, error)
        name = str(known.data.get("degraded", ""))
        if name:
            self.on_fault(name, known.message)
            request = pending.call.request_id
            log.warning("fault", degraded=name, request=request, exc_info=error)
        return known

    @staticmethod
    def _defect(method: str, call: Call | None, error: BaseException) -> Internal:
        request_id = call.request_id if call else ""
        log.error("defect", method=method, request=request_id, exc_info=error)
        return Internal(
            f"a defect of lored; its log has it under request {request_id} (lore logs)",
            {"request_id": request_id},
        )

    def _expire(self, pending: Pending) -> None:
        seconds = DEADLINES[pending.method.deadline]
        operation = pending.call.operation
        if operation is not None and operation.has_moved():
            pending.timer = self._loop.call_later(seconds, self._expire, pending)
            return
        self.stop(
            pending,
            Timeout(
                f"{pending.method.name}: no answer within {seconds:g} s; try again or narrow it"
            ),
        )

    def _not_begun(self, pending: Pending) -> None:
        self.stop(pending, _busy(pending.route, pending.route.lane.foresee(pending.owner)))

    def stop(self, pending: Pending, error: LoreError) -> None:
        """Answer with an error now, and take the request off its lane or cancel its handler."""
        self.refuse(pending, error)
        if pending.task is not None:
            pending.task.cancel()
            self._loop.call_later(OBEY_SECONDS, self._abandon, pending)
        else:
            pending.route.lane.withdraw(pending)

    def _abandon(self, pending: Pending) -> None:
        """A handler that does not obey its cancellation loses its slot: a few of them must
        not stop everybody's requests of that class."""
        if pending.holds_slot:
            request = pending.call.request_id
            log.error("handler_hangs", method=pending.method.name, request=request)
            self._release(pending)


def _busy(route: Route, wait: float) -> Busy:
    """The refusal of a request that was not begun and would have waited for ``wait`` seconds. It
    may come again when the queue is down to what is admitted, or half its deadline later."""
    admitted = DEADLINES[route.method.deadline] * ADMIT_SHARE
    after = max(RETRY_MS, int(min(wait - admitted, admitted) * 1000))
    return Busy(
        f"{route.method.name}: too many requests wait; nothing was done, try again in {after} ms",
        {"retry_after_ms": after},
    )
