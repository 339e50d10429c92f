"""Adds golden bytes for methods and messages that have none yet; never changes what is there.

    python tests/compat/write_golden.py

A line of wire-1.jsonl is {"name", "message", "hex"}: the message as a value and the bytes that
protocol 1 has for it. Old lines stay for ever, since old clients and daemons do.
"""

import json
from pathlib import Path
from typing import Any

import msgpack

from lore.errors import BY_CODE
from lore.wire import fault
from lore.wire.methods import METHODS, Method, Param

FILE = Path(__file__).with_name("wire-1.jsonl")

_SAMPLES: dict[str, Any] = {
    "text": "naïve ✓ text",
    "int": 300,
    "number": 0.25,
    "bool": True,
    "list": ["a", "b:c"],
    "date": "2026-05-28T10:30:00Z",
    "map": {"key": "value"},
    "ops": [{"op": "forget", "id": "F1"}],
    "any": [1, 1],
}


def sample(param: Param) -> Any:
    return param.choices[-1] if param.choices else _SAMPLES[param.type]


def request(number: int, method: Method) -> list[Any]:
    return [0, number, method.name, [{param.name: sample(param) for param in method.params}]]


def messages() -> dict[str, list[Any]]:
    """Every message that must have golden bytes, by name."""
    found = {f"request {one.name}": request(n, one) for n, one in enumerate(METHODS, 1)}
    found["request without parameters"] = [0, 0, "ping", []]
    found["request from Lua without parameters"] = [0, 4294967295, "ping", [[]]]
    found["notification"] = [2, "event", [{"subscription": "1", "seq": 1, "topic": "facts"}]]
    found["notification of loss"] = [2, "events.lost", [{"count": 9, "revision": "r:1"}]]
    found["response"] = [1, 7, None, {"pong": True, "list": [], "map": {}, "n": -1, "x": 0.5}]
    found["response with the largest integers"] = [1, 8, None, {"n": [2**53 - 1, 1 - 2**53]}]
    for number, (code, kind) in enumerate(BY_CODE.items(), 100):
        error = kind("fact F9: not in this workspace", {"id": "F9"})
        for form in ("pair", "map"):
            found[f"error {code} as {form}"] = [1, number, fault.to_wire(error, form), None]
    return found


def load() -> list[dict[str, Any]]:
    """The lines of the file."""
    if not FILE.exists():
        return []
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    known = {line["name"] for line in load()}
    with FILE.open("a", encoding="utf-8") as file:
        for name, message in messages().items():
            if name not in known:
                line = {"name": name, "message": message, "hex": msgpack.packb(message).hex()}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                print(f"added {name}")


if __name__ == "__main__":
    main()
