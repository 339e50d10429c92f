"""Foreign SQLite databases: what columns there are, and values that hold JSON.

A schema changes with every version of its program: columns are looked up, never assumed, and
rows are read by name.
"""

from typing import Any

import orjson

from lored.core.transcripts.lines import clean_value


def columns(connection: Any) -> dict[str, set[str]]:
    """Columns of each table of a foreign database."""
    names = [
        row[0]
        for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if isinstance(row[0], str)
    ]
    return {
        name: {row[1] for row in connection.execute("SELECT * FROM pragma_table_info(?)", (name,))}
        for name in names
    }


def row_of(
    connection: Any, tables: dict[str, set[str]], table: str, where: str, values: tuple[Any, ...]
) -> dict[str, Any]:
    """The first matching row as a map."""
    names = sorted(tables.get(table, ()))
    if not names:
        return {}
    listed = ", ".join(f'"{name}"' for name in names)
    row = connection.execute(f'SELECT {listed} FROM "{table}" WHERE {where}', values).fetchone()
    return dict(zip(names, row, strict=True)) if row else {}


def decoded(value: Any) -> Any:
    """JSON of a text column, None when it is none."""
    if not isinstance(value, str | bytes):
        return None
    try:
        return clean_value(orjson.loads(value))
    except (ValueError, RecursionError):
        return None
