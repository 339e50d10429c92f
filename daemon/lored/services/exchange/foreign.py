"""Reading another memory from the file system: which form it has, and its statements.

The form is found from what lies at the path: a Remind database or store folder, a facts.jsonl
or an export of ours, Markdown. Everything blocks and is bounded; foreign SQLite files are
opened read-only.
"""

import json
import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from lore.errors import Invalid, NotFound
from lored.core.imports import markdown, recursive, remind
from lored.core.imports.incoming import Harvest
from lored.store import driver
from lored.store.driver import Connection

FILE_BYTES: Final = 256 << 20
"""Largest file read."""

FILES: Final = 200_000
"""Rows of a table, files of a Remind store or Markdown folder."""

DEPTH: Final = 6
"""Folders below the path that are looked into for Markdown."""

_REMIND_TABLES: Final = ("facts", "episodes", "concepts", "conflicts")


def gather(path: str, form: str | None) -> Harvest:
    """Read what lies at ``path``. Raises `NotFound` and `Invalid` with what was expected."""
    if not os.path.exists(path):
        raise NotFound(f"import: {path} does not exist")
    form = form or _form(path)
    if form == "remind":
        return _remind(path)
    if form == "markdown":
        return _markdown(path)
    if os.path.isdir(path):
        inside = [f"{path}/memory/facts.jsonl", f"{path}/.recursive/memory/facts.jsonl"]
        path = next((one for one in inside if os.path.isfile(one)), f"{path}/facts.jsonl")
    harvest = recursive.read(_bytes(path))
    if harvest.problems and not harvest.facts:
        raise Invalid(
            f"import: {path} has no record of a facts.jsonl: {harvest.problems[0]};"
            " `--format markdown` reads plain text"
        )
    harvest.format = form
    return harvest


def _form(path: str) -> str:
    if os.path.isdir(path):
        if os.path.isfile(f"{path}/schema.json") or os.path.isfile(f"{path}/remind.db"):
            return "remind"
        for inside in ("facts.jsonl", "memory/facts.jsonl", ".recursive/memory/facts.jsonl"):
            if os.path.isfile(f"{path}/{inside}"):
                return "recursive"
        if os.path.isdir(f"{path}/.remind"):
            return "remind"
        return "markdown"
    with open(path, "rb") as file:
        head = file.read(16)
    if head == b"SQLite format 3\0":
        return "remind"
    return "markdown" if path.lower().endswith((".md", ".markdown")) else "recursive"


def _bytes(path: str) -> bytes:
    try:
        size = os.stat(path).st_size
        if size > FILE_BYTES:
            raise Invalid(f"import: {path} has {size} bytes, more than {FILE_BYTES}")
        with open(path, "rb") as file:
            return file.read(FILE_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"import: {path} does not exist") from None
    except OSError as error:
        raise Invalid(f"import: {path}: {error.strerror}") from None


def _remind(path: str) -> Harvest:
    if os.path.isdir(f"{path}/.remind"):
        path += "/.remind"
    zone = datetime.now().astimezone().tzinfo
    if zone is None:
        raise Invalid("import: the local time zone is unknown")
    if os.path.isdir(path) and os.path.isfile(f"{path}/schema.json"):
        return remind.read({name: _json_rows(f"{path}/{name}") for name in _REMIND_TABLES}, zone)
    if os.path.isdir(path):
        path += "/remind.db"
    try:
        connection = driver.connect(path, read_only=True)
    except driver.Error as error:
        raise Invalid(f"import: {path}: {error}") from None
    try:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        if "facts" not in tables or "episodes" not in tables:
            raise Invalid(f"import: {path} is a database, but not Remind's (no facts, episodes)")
        return remind.read(
            {name: list(_sql_rows(connection, name)) for name in _REMIND_TABLES if name in tables},
            zone,
        )
    except driver.DatabaseError as error:
        raise Invalid(f"import: {path}: {error}") from None
    finally:
        connection.close()


def _sql_rows(connection: Connection, table: str) -> Iterator[dict[str, Any]]:
    cursor = connection.execute(f'SELECT * FROM "{table}" LIMIT {FILES}')
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield {
            name: value
            for name, value in zip(names, row, strict=True)
            if not isinstance(value, bytes)
        }


def _json_rows(folder: str) -> list[dict[str, Any]]:
    if not os.path.isdir(folder):
        return []
    rows = []
    for name in sorted(os.listdir(folder))[:FILES]:
        if not name.endswith(".json"):
            continue
        try:
            found = json.loads(_bytes(f"{folder}/{name}"))
        except (ValueError, RecursionError):
            continue
        record = found.get("record") if isinstance(found, dict) else None
        if isinstance(record, dict) and "id" in record:
            rows.append(record)
    return rows


def _markdown(path: str) -> Harvest:
    if not os.path.isdir(path):
        return markdown.read(_bytes(path), path)
    harvest, read = Harvest("markdown"), 0
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        if folder.count("/") - path.rstrip("/").count("/") >= DEPTH:
            folders.clear()
        for name in sorted(names):
            if name.lower().endswith((".md", ".markdown")):
                part = markdown.read(_bytes(f"{folder}/{name}"), f"{folder}/{name}")
                harvest.facts += part.facts
                harvest.problems += part.problems
                read += 1
    if not read:
        raise NotFound(
            f"import: nothing to read in {path} (facts.jsonl, a Remind store or Markdown files)"
        )
    return harvest
