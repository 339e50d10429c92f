"""`fact`: one fact: what it says, since when, who said so, what it replaced, what disputes it."""

from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from lore.web import plots, site
from lore.web.forms import scope_of
from lore.web.memory import Map


async def fact(request: Request) -> Response:
    """The page, with the forms that correct the fact."""
    memory = site.of(request).memory
    place, name = request.path_params["place"], request.path_params["name"]
    where = scope_of(place)
    found = await memory.call("fact", id=name, **where)
    one: Map = found["fact"]
    chain = await memory.call("fact_history", id=name, **where)
    history: list[Map] = chain["history"]
    return site.page(
        request,
        "fact.html",
        title=f"{one['id']}: {one['text'][:60]}",
        here="facts",
        topics=("facts", "conflicts"),
        fact=one,
        place=place,
        history=history,
        chart=plots.validity(history, datetime.now(UTC)),
        conflicts=found.get("conflicts", []),
        collisions=found.get("collisions", []),
        session=found.get("session"),
        log=list(reversed(chain["log"])),
    )
