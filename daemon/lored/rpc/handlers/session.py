"""hello, ping, cancel, subscribe, unsubscribe, changes, drain: the conversation itself.

Plain functions answer at once on the loop; the others run in a lane.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Final

from lore.errors import Conflict, Incompatible, Invalid, NotFound
from lore.wire import limits
from lored import __version__
from lored.services.app import App, Call

if TYPE_CHECKING:
    from lored.rpc.connection import Connection

REVISION_SECONDS: Final = 0.3
"""For the revision in the answer to hello; a free reader takes 0.2 ms."""


def _connection(call: Call) -> "Connection":
    connection: Connection = call.connection
    return connection


async def hello(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Settle protocol, error form, order and defaults of the connection."""
    connection = _connection(call)
    if connection.greeted:
        raise Conflict("hello was said already on this connection; open another one")
    protocol = _settle_protocol(params["protocol"], params["client"])
    connection.greeted = True
    connection.protocol = protocol
    connection.client = params["client"][:80]
    connection.client_version = params.get("version", "")[:40]
    connection.error_form = params.get("errors", "pair")
    connection.ordered = params.get("ordered", False)
    connection.workspace = params.get("workspace")
    connection.session_id = params.get("session_id")
    return {
        "version": __version__,
        "protocol": protocol,
        "instance": connection.server.instance,
        "revision": await _revision(app),
        "starting": None if connection.dispatcher.is_open else True,
        "limits": {
            "request_bytes": limits.REQUEST_BYTES,
            "response_bytes": limits.RESPONSE_BYTES,
            "depth": limits.DEPTH,
            "container_entries": limits.CONTAINER_ENTRIES,
            "inflight_requests": limits.INFLIGHT_REQUESTS,
            "subscriptions": limits.SUBSCRIPTIONS,
            "subscription_events": limits.SUBSCRIPTION_EVENTS,
            "deadlines": dict(limits.DEADLINES),
        },
    }


async def _revision(app: App | None) -> str | None:
    """The token of now; absent while the store cannot say (too busy, damaged, not open yet):
    greeting must neither wait nor fail."""
    if app is None:
        return None
    from lored.services.facts import revisions

    try:
        return await asyncio.wait_for(revisions.token(app, None), REVISION_SECONDS)
    except Exception:  # whoever asks for facts hears the reason
        return None


def _settle_protocol(offered: object, client: str) -> int:
    """The newest protocol both sides speak."""
    if not (
        isinstance(offered, list)
        and len(offered) == 2
        and all(type(one) is int for one in offered)
        and offered[0] <= offered[1]
    ):
        raise Invalid("hello: protocol must be [min, max], two integers", {"parameter": "protocol"})
    low, high = offered
    best: int = min(high, limits.PROTOCOL_MAX)
    if best < max(low, limits.PROTOCOL_MIN):
        older = "the daemon" if low > limits.PROTOCOL_MAX else client[:80]
        raise Incompatible(
            f"{client[:80]} speaks protocol {low} to {high}, lored {__version__} speaks "
            f"{limits.PROTOCOL_MIN} to {limits.PROTOCOL_MAX}; upgrade {older}",
            {"protocol": [limits.PROTOCOL_MIN, limits.PROTOCOL_MAX]},
        )
    return best


def ping(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Prove that daemon and loop live."""
    return {"pong": True, "version": __version__, "protocol": call.connection.protocol}


def cancel(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Say whether the request was stopped; that happened when this message was decoded."""
    return {"cancelled": _connection(call).cancelled}


async def subscribe(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Begin to hear events: of the workspace named here or in hello, else of all."""
    from lored.services.facts import revisions

    connection = _connection(call)
    workspace = await app.workspaces.resolve(params.get("workspace") or call.workspace)
    workspace_id = workspace.id if workspace else None
    added = connection.server.subscriptions.add(connection, params["topics"], workspace_id)
    return {"subscription": added.id, "revision": await revisions.token(app, workspace_id)}


def unsubscribe(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """End a subscription of this connection."""
    connection = _connection(call)
    wanted = params["subscription"]
    if not connection.server.subscriptions.remove(connection, wanted):
        raise NotFound(f"no subscription {wanted[:80]!r} on this connection")
    return {"unsubscribed": wanted}


def drain(app: App, call: Call, params: dict[str, Any]) -> dict[str, Any]:
    """Finish and exit: for `lore down` and for a newer client that brings its own daemon.

    An older client never replaces a daemon.
    """
    connection = _connection(call)
    if not connection.greeted:
        raise Invalid("drain: say hello with your version first")
    if _numbers(connection.client_version) < _numbers(__version__):
        raise Incompatible(
            f"{connection.client} {connection.client_version or '(no version)'} is older than "
            f"lored {__version__} and may not replace it; upgrade the client"
        )
    connection.server.on_drain(f"{connection.client}: {params.get('reason', 'asked to')}"[:200])
    return {"draining": True}


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: 1.2.3rc1 -> (1, 2, 3); none: ()."""
    numbers = []
    for part in version.split("."):
        digits = ""
        for character in part:
            if not character.isdecimal():
                break
            digits += character
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)


HANDLERS = {
    "hello": hello,
    "ping": ping,
    "cancel": cancel,
    "subscribe": subscribe,
    "unsubscribe": unsubscribe,
    "drain": drain,
}
