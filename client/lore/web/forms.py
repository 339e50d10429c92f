"""What a form does: each POST is one change through the socket, told back with its undo.

After a change the browser is sent back to the page it came from, which shows a notice. Refusals
of the daemon are shown there in the same way. Only addresses below our own path are gone back
to.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from lore.errors import Invalid, LoreError
from lore.web import site
from lore.web.gate import FORM, SESSION
from lore.web.memory import Map, Memory

Form = dict[str, str]
Deed = Callable[[Memory, Form], Awaitable[tuple[str, Map]]]


def scope_of(place: str) -> Map:
    """The parameters that name a place: `global`, or the id of a workspace."""
    if place == "global":
        return {"scope": "global"}
    return {"scope": "workspace", "workspace": place}


def _needed(form: Form, *names: str) -> list[str]:
    for name in names:
        if not form.get(name, "").strip():
            raise Invalid(f"the form lacks its field {name!r}")
    return [form[name].strip() for name in names]


async def _apply(memory: Memory, form: Form, **op: Any) -> Map:
    op = {key: value for key, value in op.items() if value}
    if form.get("note", "").strip():
        op["note"] = form["note"].strip()
    place = scope_of(_needed(form, "place")[0])
    return await memory.call("apply", ops=[op], **place)


async def resolve(memory: Memory, form: Form) -> tuple[str, Map]:
    """One side of a conflict wins."""
    name, winner = _needed(form, "id", "winner")
    done = await _apply(memory, form, op="resolve", id=name, winner=winner)
    return f"{name} is settled: {winner} holds.", done


async def dismiss(memory: Memory, form: Form) -> tuple[str, Map]:
    """No conflict after all."""
    (name,) = _needed(form, "id")
    return f"{name} is dismissed: both facts stay.", await _apply(
        memory, form, op="dismiss", id=name
    )


async def supersede(memory: Memory, form: Form) -> tuple[str, Map]:
    """A newer fact replaces an older."""
    pair = form.get("pair", "").split()
    old, new = pair if len(pair) == 2 else _needed(form, "old", "new")
    return f"{new} replaces {old}.", await _apply(memory, form, op="supersede", old=old, new=new)


async def dispute(memory: Memory, form: Form) -> tuple[str, Map]:
    """Two facts are flagged as a conflict."""
    pair = form.get("pair", "").split()
    a, b = pair if len(pair) == 2 else _needed(form, "fact_a", "fact_b")
    severity = form.get("severity", "")
    done = await _apply(memory, form, op="conflict", fact_a=a, fact_b=b, severity=severity)
    return f"{a} and {b} are flagged as a conflict.", done


async def keep(memory: Memory, form: Form) -> tuple[str, Map]:
    """Collisions were looked at; all facts stay."""
    (name,) = _needed(form, "id")
    return f"{name} and what it stands against stay as they are.", await _apply(
        memory, form, op="processed", ids=[name]
    )


async def forget(memory: Memory, form: Form) -> tuple[str, Map]:
    """A fact is forgotten; it can be taken back."""
    (name,) = _needed(form, "id")
    return f"{name} is forgotten.", await _apply(memory, form, op="forget", id=name)


async def restore(memory: Memory, form: Form) -> tuple[str, Map]:
    """A forget is taken back."""
    (name,) = _needed(form, "id")
    return f"{name} is back.", await _apply(memory, form, op="restore", id=name)


async def verify(memory: Memory, form: Form) -> tuple[str, Map]:
    """A fact was checked and still holds."""
    (name,) = _needed(form, "id")
    return f"{name} was checked and still holds.", await _apply(memory, form, op="verify", id=name)


async def update(memory: Memory, form: Form) -> tuple[str, Map]:
    """A fact gets a new text; the old one stays as its history."""
    name, text = _needed(form, "id", "text")
    done = await _apply(memory, form, op="update", id=name, content=text)
    return f"{done['results'][0]['id']} replaces {name}.", done


async def remember(memory: Memory, form: Form) -> tuple[str, Map]:
    """A fact is stated."""
    (text,) = _needed(form, "text")
    done = await _apply(
        memory,
        form,
        op="remember",
        content=text,
        entities=_listed(form, "entities"),
        tags=_listed(form, "tags"),
        kind=form.get("kind", ""),
        source_ref=form.get("source_ref", "").strip(),
        source="user",
    )
    made = done["results"][0]
    if not made["created"]:
        return f"{made['id']} says that already.", done
    count = made.get("collision_count", 0)
    more = f" It stands against {count} other{'s' if count > 1 else ''}: see Conflicts."
    return f"{made['id']} is remembered.{more if count else ''}", done


async def undo(memory: Memory, form: Form) -> tuple[str, Map]:
    """A batch or one entry of the change log is taken back."""
    name, place = _needed(form, "id", "place")
    await memory.call("undo", id=name, **scope_of(place))
    return f"{name} is taken back.", {}


DEEDS: dict[str, Deed] = {
    "resolve": resolve,
    "dismiss": dismiss,
    "supersede": supersede,
    "conflict": dispute,
    "keep": keep,
    "forget": forget,
    "restore": restore,
    "verify": verify,
    "update": update,
    "remember": remember,
    "undo": undo,
}


def _listed(form: Form, name: str) -> list[str]:
    return [part.strip() for part in form.get(name, "").split(",") if part.strip()]


async def do(request: Request) -> Response:
    """Run one deed and go back."""
    here = site.of(request)
    form: Form = request.scope[FORM]
    deed = DEEDS.get(request.path_params["deed"])
    try:
        if deed is None:
            raise Invalid(f"no such change: {request.path_params['deed']}")
        said, done = await deed(here.memory, form)
        notice = {"text": said, "kind": "done"}
        if done.get("batch"):
            notice |= {"undo": str(done["batch"]), "place": form.get("place", "")}
    except LoreError as error:
        notice = {"text": error.message, "kind": "failed"}
    request.scope[SESSION].notice = notice
    return RedirectResponse(here.base + _back(form.get("back", "")), 303)


def _back(address: str) -> str:
    """An address below our base, or the conflicts page."""
    plain = address.isprintable() and address.isascii() and not address.startswith(("/", "\\"))
    return address if plain and address and ".." not in address else "conflicts"


ROUTE = Route("/do/{deed}", do, methods=["POST"])
