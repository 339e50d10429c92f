"""The revision token: which stores a client has seen, and how far.

Text of the form `<uuid>:<number>[,<uuid>:<number>]`, one pair a facts store (global first,
then the workspace). The uuid is the store's own, so a token tells when a store was replaced.
Clients keep it and hand it back to `changes`; they do not take it apart.
"""

import os

from lore.errors import Invalid
from lored.services.app import App
from lored.store import migrate

_MOST_STORES = 16
"""Pairs accepted in one token; two are made here."""


async def token(app: App, workspace_id: str | None) -> str:
    """The token of now for the global store and, if it has one, the workspace's."""
    pairs = [await _pair(app, None)]
    if workspace_id and os.path.exists(app.registry.workspace_path(workspace_id)):
        pairs.append(await _pair(app, workspace_id))
    return ",".join(pairs)


async def _pair(app: App, workspace_id: str | None) -> str:
    async with app.registry.facts(workspace_id) as database:
        return f"{database.uuid}:{await database.read(migrate.revision)}"


def parse(text: str) -> dict[str, int]:
    """uuid -> revision. Raises `Invalid` for what is no token."""
    found: dict[str, int] = {}
    for pair in text.split(",")[:_MOST_STORES]:
        name, colon, number = pair.partition(":")
        if not (colon and name and number.isdecimal() and len(number) < 16):
            raise Invalid(
                "since: not a revision; use the one from hello, an answer or an event",
                {"parameter": "since"},
            )
        found[name] = int(number)
    return found
