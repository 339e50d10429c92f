"""Promises that something will be searchable: which files each ticket still waits for."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from lore.errors import NotFound

TICKETS: Final = 256
"""Tickets remembered; kept ones go first."""


@dataclass(slots=True)
class Ticket:
    """Files whose reading is awaited. ``listed``: no more will be added; ``failed``: files that
    cannot be read, now or lately."""

    pending: set[str] = field(default_factory=set)
    listed: bool = False
    files: int = 0
    failed: int = 0
    sessions: set[int] = field(default_factory=set)
    messages: int = 0

    @property
    def kept(self) -> bool:
        """Whether nothing is awaited any more."""
        return self.listed and not self.pending


class Tickets:
    """All tickets of this daemon."""

    def __init__(self) -> None:
        self._tickets: dict[str, Ticket] = {}
        self._number = 0
        self._waiters: set[asyncio.Future[None]] = set()

    def issue(self) -> tuple[str, Ticket]:
        """A new ticket and its name."""
        while len(self._tickets) >= TICKETS:
            kept = next((name for name, one in self._tickets.items() if one.kept), None)
            del self._tickets[kept or next(iter(self._tickets))]
        self._number += 1
        name, ticket = f"t{self._number}", Ticket()
        self._tickets[name] = ticket
        return name, ticket

    def read(self, path: str, *, failed: bool, sessions: set[int], messages: int) -> None:
        """A file was read to its end, or given up."""
        for ticket in self._tickets.values():
            if path in ticket.pending:
                ticket.pending.discard(path)
                ticket.files += 1
                ticket.failed += failed
                ticket.sessions |= sessions
                ticket.messages += messages
        self.check()

    def stored(self, path: str, sessions: set[int], messages: int) -> None:
        """A part of a file was stored."""
        for ticket in self._tickets.values():
            if path in ticket.pending:
                ticket.sessions |= sessions
                ticket.messages += messages

    def drop(self, paths: set[str]) -> None:
        """These files will not be read."""
        for ticket in self._tickets.values():
            ticket.pending -= paths
        self.check()

    def check(self) -> None:
        """Wake those who wait for a ticket that is kept now."""
        if any(ticket.kept for ticket in self._tickets.values()):
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(None)

    async def wait(self, name: str) -> dict[str, Any]:
        """Until the ticket is kept; what was read for it. Raises `NotFound`."""
        ticket = self._tickets.get(name)
        if ticket is None:
            raise NotFound(f"no ticket {name!r}; `index` gives a new one")
        loop = asyncio.get_running_loop()
        while not ticket.kept:
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiters.add(waiter)
            try:
                await waiter
            finally:
                self._waiters.discard(waiter)
        return {
            "done": True,
            "files": ticket.files,
            "failed": ticket.failed,
            "sessions": len(ticket.sessions),
            "messages": ticket.messages,
        }
