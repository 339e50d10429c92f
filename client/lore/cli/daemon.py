"""`down`, `restart`, `status`, `logs`: the daemon as a process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from lore import launch
from lore.cli.arguments import Arg, Usage, Verb
from lore.cli.indexing import show_roots
from lore.cli.invocation import Answer, Invocation
from lore.cli.progress import progress_line
from lore.cli.render import Screen, clean, counted, one_line
from lore.cli.times import ago, seconds, size
from lore.errors import Unavailable

GONE_SECONDS = 8.0
"""Longest wait for the daemon's end: it promises to exit within 5 s, whatever hangs."""

FOLLOW_SECONDS = 0.25
"""Pause between two looks at the log with --follow."""


def down(inv: Invocation) -> int:
    """Stop the daemon; not running is as good."""
    pid = stop(inv)
    data = {"stopped": pid is not None, **({"pid": pid} if pid else {})}
    text = f"stopped (pid {pid}); the next call starts it again" if pid else "it was not running"
    return inv.show(data, lambda screen: screen.say(text))


def restart(inv: Invocation) -> int:
    """Stop and start, and say with which version."""
    from lore.client import Client

    stop(inv)
    with Client(name="lore", where=inv.paths) as client:
        answer = client.call("status")
    return inv.show(
        {"pid": answer.get("pid"), "version": answer.get("version")},
        lambda screen: screen.say(f"lored {answer.get('version')} runs (pid {answer.get('pid')})"),
    )


def stop(inv: Invocation) -> int | None:
    """Drain the running daemon and wait for its end; its pid, or None when there was none.

    Raises `Unavailable` when it does not end in time, naming the pid.
    """
    from lore.client import Client

    if launch.find(inv.paths) is None:
        return None
    with Client(name="lore", start=False, where=inv.paths) as client:
        pid = client.call("status").get("pid")
        client.call("drain", {"reason": "lore down"})
    if not isinstance(pid, int):
        return None
    deadline = time.monotonic() + GONE_SECONDS
    while not _gone(pid):
        if time.monotonic() > deadline:
            raise Unavailable(f"the daemon (pid {pid}) did not end; see {inv.paths.log_file}")
        time.sleep(0.02)
    return pid


def _gone(pid: int) -> bool:
    """Whether the process has ended; one that only waits to be reaped has."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False


def status(inv: Invocation) -> int:
    """Everything about the daemon; exit code 4 when it does not run."""
    if not inv.options.direct and launch.find(inv.paths) is None:
        raise Unavailable(f"no memory daemon listens at {inv.paths.socket}; run: lore up")
    answer = inv.call("status")
    return inv.show(answer, lambda screen: show_status(screen, answer))


def show_status(screen: Screen, answer: Answer) -> None:
    """Figures in a column, roots as a table, then what is degraded and how to mend it."""
    head = [f"lored {answer.get('version', '?')}"]
    if answer.get("direct"):
        head.append("no daemon: the stores are read directly")
    elif answer.get("pid"):
        head.append(f"pid {answer['pid']}")
    if answer.get("started_at"):
        head.append(f"started {ago(answer['started_at'])}")
    screen.say(screen.paint("  ".join(head), "bold"))
    rows = [(name, str(answer[name])) for name in ("realm", "socket", "data") if answer.get(name)]
    stores = [
        f"{s.get('root') or s.get('name')} {size(s.get('bytes', 0))}"
        for s in answer.get("stores", ())
    ]
    rows += [("stores", ", ".join(stores))] if stores else []
    if isinstance(answer.get("index"), dict):
        rows.append(("index", index_line(answer["index"])))
    parts = {**answer, "requests": answer.get("queues")}
    rows += [(name, line) for name, form in SHOWN if (line := form(parts.get(name)))]
    rows += [("running", progress_line(one)) for one in answer.get("operations") or ()]
    for label, value in rows:
        screen.say(f"  {screen.paint(f'{label:10}', 'dim')}{clean(value)}")
    roots = answer.get("roots")
    if isinstance(roots, list) and roots:
        screen.say("")
        show_roots(screen, roots)
    show_degraded(screen, answer.get("degraded", []))


def index_line(index: Answer) -> str:
    """What the index is doing, in one line."""
    progress = index.get("progress") or {}
    parts = [str(index.get("state", ""))]
    if parts[0] not in ("idle", "") and progress.get("bytes_total"):
        done, total = progress.get("bytes_done", 0), progress["bytes_total"]
        parts.append(f"{done / total:.0%} of {size(total)}")
    if progress.get("messages"):
        parts.append(f"{counted(progress['messages'], 'message')} read")
    if index.get("queue"):
        parts.append(f"{counted(index['queue'], 'file')} to read")
    if progress.get("latency_ms") is not None:
        parts.append(f"last change searchable after {seconds(progress['latency_ms'] / 1000)}")
    return ", ".join(parts)


def _vectors(embedding: Any) -> str:
    """The model, and how many texts still wait for their vectors."""
    if not isinstance(embedding, dict):
        return ""
    waiting = embedding.get("vectors_waiting") or 0
    left = f"{counted(waiting, 'text')} left to embed" if waiting else "all texts embedded"
    return f"model {embedding.get('model', '?')}, {left}"


def _requests(queues: Any) -> str:
    """What runs and waits beside this very call; empty when nothing does."""
    busy = []
    for name, lane in queues.items() if isinstance(queues, dict) else ():
        running, waiting = int(lane.get("running", 0)), int(lane.get("waiting", 0))
        if name != "session" and (running or waiting):
            busy.append(f"{name} {running} running, {waiting} waiting")
    return "; ".join(busy)


def _memory(memory: Any) -> str:
    if not isinstance(memory, dict):
        return ""
    parts = (
        f"{name.removesuffix('_bytes')} {size(value)}"
        for name, value in memory.items()
        if isinstance(value, int)
    )
    return ", ".join(parts)


def _spool(spool: Any) -> str:
    """Writes that wait in files or were refused; empty when there are none."""
    if not isinstance(spool, dict) or not (spool.get("files") or spool.get("refused")):
        return ""
    waiting, refused = int(spool.get("files", 0)), int(spool.get("refused", 0))
    return f"{counted(waiting, 'file')} waiting, {refused:,} refused, in {spool.get('folder', '')}"


def _backup(backup: Any) -> str:
    if not isinstance(backup, dict) or not backup.get("count"):
        return ""
    age = backup.get("age_s")
    made = f", newest {seconds(float(age))} old" if age is not None else ""
    return f"{counted(int(backup['count']), 'backup')}{made}"


SHOWN: tuple[tuple[str, Callable[[Any], str]], ...] = (
    ("embedding", _vectors),
    ("requests", _requests),
    ("memory", _memory),
    ("spool", _spool),
    ("backup", _backup),
)
"""Parts of `status` shown in text, in this order; `--json` has everything."""


def show_degraded(screen: Screen, reasons: list[Any]) -> None:
    """Each degraded mode with its remedy."""
    for reason in reasons:
        if isinstance(reason, dict):
            text = str(reason.get("reason") or reason.get("message") or reason.get("name"))
            remedy = str(reason.get("remedy", ""))
        else:
            text, remedy = str(reason), ""
        screen.say(screen.paint(f"degraded: {one_line(text)}", "yellow"))
        if remedy:
            screen.say(f"  {one_line(remedy)}")


def logs(inv: Invocation) -> int:
    """The end of the log, and with ``--follow`` what comes."""
    o = inv.options
    path = inv.paths.log_file
    try:
        lines, end = _tail(path, o.lines if o.lines is not None else 50)
    except FileNotFoundError:
        raise Usage(
            f"no log at {path}; a daemon under systemd writes to the journal: "
            "journalctl --user -u lored"
        ) from None
    if inv.screen.json:
        inv.screen.document("lore.logs/1", {"path": path, "lines": lines})
        return 0
    inv.screen.say(*(clean(line) for line in lines))
    if o.follow:
        inv.screen.out.flush()
        for line in _follow(path, end):
            inv.screen.say(clean(line))
            inv.screen.out.flush()
    return 0


def _tail(path: str, count: int) -> tuple[list[str], int]:
    """The last ``count`` whole lines, read from the end, and the offset behind them."""
    with open(path, "rb") as file:
        size = start = file.seek(0, os.SEEK_END)
        found = b""
        while start > 0 and found.count(b"\n") <= count:
            start = max(0, start - 65_536)
            file.seek(start)
            found = file.read(size - start)
    whole, _, rest = found.rpartition(b"\n")
    lines = whole.decode("utf-8", "replace").split("\n") if whole else []
    return lines[-count:] if count > 0 else [], size - len(rest)


def _follow(path: str, offset: int) -> Iterator[str]:
    """Lines from ``offset`` on as they come, also after the file was rotated; ends only with
    Ctrl-C."""
    file = open(path, "rb")  # noqa: SIM115 - replaced at each rotation
    file.seek(offset)
    rest = b""
    try:
        while True:
            piece = file.read(65_536)
            if piece:
                *whole, rest = (rest + piece).split(b"\n")
                yield from (line.decode("utf-8", "replace") for line in whole)
                continue
            try:
                if os.stat(path).st_ino != os.fstat(file.fileno()).st_ino:
                    file.close()
                    file, rest = open(path, "rb"), b""  # noqa: SIM115
                    continue
            except FileNotFoundError:
                pass
            time.sleep(FOLLOW_SECONDS)
    finally:
        file.close()


VERBS = (
    Verb("down", down, examples=("lore down",)),
    Verb("restart", restart, examples=("lore restart",)),
    Verb("status", status, examples=("lore status", "lore status --json | jq .data.degraded")),
    Verb(
        "logs",
        logs,
        (
            Arg("--lines", "-l", kind="int", metavar="N", help="how many, default 50"),
            Arg("--follow", "-f", kind="flag", help="go on showing what comes"),
        ),
        examples=("lore logs -l 200", "lore logs -f"),
    ),
)
