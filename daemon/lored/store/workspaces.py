"""Rows about workspaces in the global store."""

from lored.store.driver import Connection

Row = tuple[str, str, str, int | None, int | None]
"""id, root, how, device, inode."""


def load(connection: Connection) -> tuple[list[Row], dict[str, str], set[str]]:
    """All workspaces, the aliases (path -> id) and the splits."""
    rows = connection.execute("SELECT id, root, how, device, inode FROM workspaces").fetchall()
    aliases = connection.execute("SELECT path, workspace FROM workspace_aliases").fetchall()
    splits = connection.execute("SELECT path FROM workspace_splits").fetchall()
    return [tuple(row) for row in rows], dict(aliases), {row[0] for row in splits}


def put(connection: Connection, row: Row, now: int) -> None:
    """Record a workspace; a known one gets its new device and inode."""
    connection.execute(
        "INSERT INTO workspaces(id, root, how, device, inode, first_seen_at) "
        "VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET "
        "how = excluded.how, device = excluded.device, inode = excluded.inode",
        (*row, now),
    )


def put_alias(connection: Connection, path: str, workspace: str) -> None:
    """Let ``path`` share the memory of ``workspace``; it is no longer split off."""
    connection.execute("DELETE FROM workspace_splits WHERE path = ?", (path,))
    connection.execute(
        "INSERT INTO workspace_aliases(path, workspace) VALUES(?, ?) "
        "ON CONFLICT(path) DO UPDATE SET workspace = excluded.workspace",
        (path, workspace),
    )


def put_split(connection: Connection, path: str) -> None:
    """Make ``path`` a workspace of its own; an alias of it ends."""
    connection.execute("DELETE FROM workspace_aliases WHERE path = ?", (path,))
    connection.execute("INSERT OR IGNORE INTO workspace_splits(path) VALUES(?)", (path,))
