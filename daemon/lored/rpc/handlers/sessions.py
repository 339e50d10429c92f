"""Past sessions: thin over services.sessions and services.forget."""

from typing import Any

from lored.services.app import App, Call

Map = dict[str, Any]


async def sessions(app: App, call: Call, params: Map) -> Map:
    """Past sessions, newest first."""
    found: Map = await app.get("sessions").list(params, call)
    return found


async def session(app: App, call: Call, params: Map) -> Map:
    """One session whole."""
    found: Map = await app.get("sessions").one(params["id"], call)
    return found


async def session_messages(app: App, call: Call, params: Map) -> Map:
    """A span of messages."""
    found: Map = await app.get("sessions").messages(params)
    return found


async def forget_session(app: App, call: Call, params: Map) -> Map:
    """Sessions and all that was derived from them."""
    found: Map = await app.get("forget").sessions(params, call)
    return found


HANDLERS = {
    "sessions": sessions,
    "session": session,
    "session_messages": session_messages,
    "forget_session": forget_session,
}
