"""A snapshot as text for people and prompts. Collisions carry the lines that `apply` takes.

What was stored is data of others: terminal sequences and invisible characters are left out.
"""

from typing import Any

from lored.core.excerpts import harmless
from lored.services.facts.views import Map

TEXT_CHARS = 300
"""Of one fact; the rest is a call of `fact` away."""


def render(answer: Map) -> str:
    """The views of an answer of `snapshot`, one block each, in the order asked."""
    blocks = []
    for key, value in answer.items():
        if key in ("timestamp", "scopes", "text") or not isinstance(value, dict):
            continue
        lines = [f"# {key.removeprefix('error:')}"]
        if "error" in value:
            lines.append(f"error: {value['error']}")
        else:
            lines += _view(value)
        blocks.append("\n".join(lines))
    return harmless("\n\n".join(blocks)) + "\n"


def fact_line(fact: Map) -> str:
    """`F3 text (since 2026-05-28, alice; tool:redis)`, marked when it is not active."""
    text = " ".join(str(fact["text"]).split())
    if len(text) > TEXT_CHARS:
        text = text[:TEXT_CHARS].rsplit(" ", 1)[0] + f"… [fact {fact['id']}]"
    about = [f"since {fact['valid_from'][:10]}"]
    if fact.get("valid_to"):
        about.append(f"until {fact['valid_to'][:10]}")
    if fact.get("asserted_by"):
        about.append(str(fact["asserted_by"]))
    if fact.get("source_ref"):
        about.append(str(fact["source_ref"]))
    labels = ", ".join(fact.get("entities") or fact.get("tags") or ())
    state = "" if fact.get("active", True) else f"[{fact.get('state', 'inactive')}] "
    if fact.get("superseded_by"):
        state = f"[superseded by {fact['superseded_by']}] "
    flags = "".join(f" ⚠ {name}" for name in fact.get("conflicts", ()))
    if fact.get("unverified"):
        flags += f" (unverified: {fact['unverified']['reason']})"
    tail = "; ".join(part for part in (", ".join(about), labels) if part)
    scope = "global:" if fact["scope"] == "global" else ""
    return f"{scope}{fact['id']} {state}{text} ({tail}){flags}"


def collision_lines(item: Map) -> list[str]:
    """A collision: the fact, why, and the ready commands."""
    lines = [f"  collides with {fact_line(item['fact'])}", f"    {item['why']}"]
    return lines + [f"    {command}" for command in item["commands"]]


def conflict_lines(item: Map) -> list[str]:
    """A conflict with both facts and, while it is open, the commands that end it."""
    note = f": {item['note']}" if item.get("note") else ""
    lines = [f"{item['id']} {item['status']}, {item['severity']}{note}"]
    lines += [f"  {fact_line(item[side])}" for side in ("fact_a", "fact_b")]
    if item["status"] == "open":
        lines.append(f"    resolve id={item['id']} winner={item['fact_a']['id']}")
        lines.append(f"    dismiss id={item['id']}")
    return lines


def _view(view: Map) -> list[str]:
    lines: list[str] = []
    for key, value in view.items():
        if isinstance(value, list):
            lines += _items(key, value)
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            lines.append(f"{key}: {value}")
    return lines


def _items(key: str, items: list[Any]) -> list[str]:
    if key in ("facts", "active_facts", "superseded_facts"):
        return _facts(key, items)
    if key == "conflicts":
        return [line for item in items for line in conflict_lines(item)]
    if key == "clusters":
        return [f"{one['id']} {one['title']} ({one['active_count']} facts)" for one in items]
    if key == "entities":
        return [_entity(one) for one in items]
    if key == "scopes":
        return [_counts(one) for one in items if isinstance(one, dict)]
    return []


def _facts(key: str, items: list[Any]) -> list[str]:
    lines = [] if key == "facts" or not items else [f"{key.replace('_', ' ')}:"]
    for item in items:
        lines.append(fact_line(item.get("fact", item)))
        for collision in item.get("collisions", ()):
            lines += collision_lines(collision)
    return lines


def _entity(one: Any) -> str:
    if isinstance(one, str):
        return one
    names = f", also {', '.join(one['aliases'])}" if one.get("aliases") else ""
    return f"{one['entity']}: {one['count']} active of {one['fact_count']} facts{names}"


def _counts(one: Map) -> str:
    parts = [
        f"{name.replace('_', ' ')} {count}"
        for name, count in one.items()
        if count and name != "scope"
    ]
    return f"{one.get('scope', '')}: {', '.join(parts) or 'nothing'}"
