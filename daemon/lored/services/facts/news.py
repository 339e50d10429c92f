"""What subscribers are told about a transaction: made inside it, told right after its commit.

Nothing is awaited between the commit and the telling, so the events of a store come in the order
of its commits.
"""

from collections.abc import Sequence

from lored.services.app import App
from lored.services.facts.scopes import Target
from lored.services.facts.views import Map, View
from lored.store.driver import Connection
from lored.store.facts import conflicts, rows

News = tuple[str, Map]
"""Topic and payload of an event."""


def gather(
    conn: Connection, view: View, touched: dict[int, str], disputed: dict[int, str]
) -> list[News]:
    """The events about facts (internal id -> action) and conflicts (number -> action) as they
    are now."""
    facts = rows.by_ids(conn, touched)
    shown = zip(facts, view.facts(conn, list(facts.values())), strict=True)
    found = [one for number in disputed if (one := conflicts.by_id(conn, number)) is not None]
    disputes = zip(found, view.conflicts(conn, found), strict=True)
    return [
        *(("facts", {"action": touched[fact_id], "fact": fact}) for fact_id, fact in shown),
        *(("conflicts", {"action": disputed[row.id], "conflict": one}) for row, one in disputes),
    ]


def tell(app: App, target: Target, news: Sequence[News]) -> None:
    """Publish ``news`` about a store."""
    for topic, payload in news:
        app.events.publish(topic, payload, target.workspace)
