"""Snapshot: several views of the facts in one call, as maps and as text.

A scope is `name` or `name:value`, split at the first colon. What is unknown or not there is
an entry with an `error`, never an exception: the other views are still worth having. Asked
about another time (`as_of`, `known_at`), the views of facts answer for that time.
"""

from typing import Final

from lore.errors import Invalid, LoreError
from lored.core.clock import to_wire
from lored.services.app import App, Call
from lored.services.facts import snapshot_text
from lored.services.facts.scopes import for_read
from lored.services.facts.snapshot_views import VIEWS, Ask
from lored.services.facts.views import Map
from lored.services.moments import now

SCOPES_MAX: Final = 32
"""Views of one call."""


class Snapshots:
    """The service ``snapshots``."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def snapshot(self, call: Call, params: Map) -> Map:
        """All views that `scopes` names, keyed by their full text."""
        scopes = [scope.strip() for scope in params["scopes"] if scope.strip()]
        if not scopes:
            raise Invalid(f"scopes: name at least one of {', '.join(VIEWS)}")
        if len(scopes) > SCOPES_MAX:
            raise Invalid(f"scopes: {len(scopes)} views, one call may have {SCOPES_MAX}")
        at = now()
        ask = Ask(self._app, call, params, await for_read(self._app, call, params), at)
        answer: Map = {"timestamp": to_wire(at), "scopes": scopes}
        for scope in dict.fromkeys(scopes):
            name, _, value = scope.partition(":")
            name, value = name.strip().lower(), value.strip()
            make = VIEWS.get(name)
            if make is None:
                answer[f"error:{scope}"] = {
                    "error": f"unknown scope {scope!r}: known are {', '.join(VIEWS)}"
                }
                continue
            try:
                answer[scope] = await make(ask, value)
            except LoreError as error:
                answer[scope] = {"error": error.message}
        if params.get("format") == "text":
            answer["text"] = snapshot_text.render(answer)
        return answer
