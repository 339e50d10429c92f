"""What each tool does: arguments in, wire calls, text and structured result out.

Knows the daemon's client and the text forms, nothing of the SDK.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from lore.aio import Client
from lore.cli.render import clean
from lore.errors import Invalid, LoreError, NotFound
from lore.mcp import catalogue, compact, text

Map = dict[str, Any]

DEEDS = ("file", "command", "commit", "failed")
"""Arguments of `recall` that find sessions without words."""

_FACT_ID = re.compile(r"(?:fact:|global:|workspace:)*F?\d{1,9}", re.IGNORECASE)


class Tools:
    """The seven tools over one connection, which is opened on the first call.

    ``workspace`` is the default of all calls; ``agent`` the connected client's name, noted as
    the origin of what it states.
    """

    def __init__(self, workspace: str | None, session_id: str | None = None) -> None:
        self.agent = ""
        self._client = Client(workspace=workspace, name="lore-mcp", session_id=session_id)
        self._table: dict[str, Callable[[Map], Awaitable[tuple[str, Map]]]] = {
            "recall": self._recall,
            "remember": self._remember,
            "triage": self._triage,
            "snapshot": self._snapshot,
            "sessions": self._sessions,
            "forget": self._forget,
            "context": self._context,
        }

    async def close(self) -> None:
        """Hang up."""
        await self._client.close()

    async def call(self, name: str, given: Map) -> Map:
        """A tool's result in the protocol's form. A refusal of the daemon is a result with
        `isError`, which the model can read and act on; an unknown tool raises `NotFound`."""
        run = self._table.get(name)
        if run is None and name not in catalogue.ALIASES:
            raise NotFound(f"no tool {name!r}")
        try:
            body, data = await (run(given) if run is not None else self._alias(name, given))
        except LoreError as error:
            refusal = f"{error.code}: {error.message}"
            return {"content": [{"type": "text", "text": refusal}], "isError": True}
        content = [{"type": "text", "text": body}]
        return {"content": content, "isError": False, "structuredContent": data}

    async def ask(self, method: str, params: Map) -> Map:
        """One wire call; None values are left out."""
        given = {key: value for key, value in params.items() if value is not None}
        return await self._client.call(method, given)

    async def _recall(self, given: Map) -> tuple[str, Map]:
        wanted = given.pop("id", None)
        if wanted is not None:
            return await self.one(wanted, given.get("workspace"))
        if not given.get("query") and not any(given.get(name) for name in DEEDS):
            raise Invalid(
                "recall: give `query` (words), a deed (file, command, commit, failed) or `id`"
                " (F3, or a session id)"
            )
        answer = await self.ask("recall", {"limit": 8, **given})
        return text.hits(answer), compact.hits(answer)

    async def one(self, wanted: str, workspace: str | None = None) -> tuple[str, Map]:
        """Everything about one fact or session, by whichever id it is."""
        if _FACT_ID.fullmatch(wanted):
            answer = await self.ask("fact", {"id": wanted, "workspace": workspace})
            return text.whole_fact(answer), compact.whole_fact(answer)
        answer = await self.ask("session", {"id": wanted})
        return text.whole_session(answer), compact.whole_session(answer)

    async def _remember(self, given: Map) -> tuple[str, Map]:
        origin = {"source": "agent"}
        if self.agent and "asserted_by" not in given:
            origin["asserted_by"] = self.agent
        answer = await self.ask("remember_fact", {**origin, **given})
        return text.remembered(answer), compact.stated(answer)

    async def _triage(self, given: Map) -> tuple[str, Map]:
        if not given.get("ops"):
            workspace = given.get("workspace")
            answer = await self.ask("conflicts", {"workspace": workspace})
            found = answer.get("conflicts", [])
            lines = [text.conflict_line(item) for item in found]
            body = "\n".join([text.ORIGIN, *lines]) if lines else "No open conflicts."
            return body, compact.hits(answer)
        answer = await self.ask("apply", given)
        lines = []
        for number, result in enumerate(answer.get("results", ()), 1):
            fields = result.items() if isinstance(result, dict) else ()
            plain = [f"{k}={v}" for k, v in fields if not isinstance(v, dict | list)]
            lines.append(f"{number}. {text.brief(' '.join(plain))}")
            lines += text.collisions(result) if isinstance(result, dict) else []
        if given.get("dry_run"):
            lines.append("Dry run: nothing was changed.")
        return "\n".join(lines), answer

    async def _snapshot(self, given: Map) -> tuple[str, Map]:
        answer = await self.ask("snapshot", {**given, "format": "text"})
        body = clean(str(answer.get("text", "")))
        return f"{text.ORIGIN}\n{body}", {"text": body}

    async def _sessions(self, given: Map) -> tuple[str, Map]:
        wanted, span = given.pop("id", None), given.pop("messages", None)
        if wanted is None:
            answer = await self.ask("sessions", {"limit": 10, **given})
            lines = [text.session_line(item) for item in answer.get("sessions", ())]
            body = "\n".join([text.ORIGIN, *lines]) if lines else "No such sessions."
            return body, compact.hits(answer)
        if span is None:
            answer = await self.ask("session", {"id": wanted})
            return text.whole_session(answer), compact.whole_session(answer)
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", span)
        if match is None:
            raise Invalid(f"messages {span!r}: give positions such as 0-20")
        last = int(match[2] or match[1])
        params = {"id": wanted, "from": int(match[1]), "to": last}
        answer = await self.ask("session_messages", params)
        return text.messages(answer), compact.messages(answer)

    async def _forget(self, given: Map) -> tuple[str, Map]:
        answer = await self.ask("forget_fact", given)
        name = (answer.get("fact") or {}).get("id", given.get("id"))
        if given.get("undo"):
            return f"{name} is back.", {"id": name, "forgotten": False}
        note = f"{name} is forgotten; forget with undo=true takes that back."
        return note, {"id": name, "forgotten": True}

    async def _context(self, given: Map) -> tuple[str, Map]:
        answer = await self.ask("context", given)
        body = clean(str(answer.get("text", ""))).rstrip()
        note = f"{text.ORIGIN}\n{body}" if body else "Nothing is relevant here."
        return note, {"text": body}

    async def _alias(self, name: str, given: Map) -> tuple[str, Map]:
        answer = await self.ask(name, given)
        if "facts" in answer or "sessions" in answer:
            return text.hits(answer), answer
        if name in ("remember_fact", "update_fact"):
            return text.remembered({"fact": answer.get("new", {}), **answer}), answer
        if name == "conflicts":
            lines = [text.conflict_line(item) for item in answer.get("conflicts", ())]
            return "\n".join([text.ORIGIN, *lines]) if lines else "No open conflicts.", answer
        import json

        return json.dumps(answer, ensure_ascii=False), answer
