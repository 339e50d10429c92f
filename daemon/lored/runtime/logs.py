"""Structured logs: one line a record, to the journal or to a rotated file of mode 0600.

Every record has an event name and `key=value` pairs; both structlog and the standard logging
of libraries end here. Memory text never appears at `info` and above: parameters are not
logged, and of an exception only type and place are, its message only at `debug` (or when it
comes from the database driver or the operating system, whose messages hold no user text).

Under the journal (stderr is the stream that JOURNAL_STREAM names) a line begins with `<N>`,
the syslog priority, and has no time, since the journal adds both. Otherwise lines go to the
file, and to stderr too when that is a terminal.
"""

import asyncio
import contextlib
import json
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping, MutableMapping
from types import TracebackType
from typing import Any, Final

import structlog

FILE_BYTES: Final = 4 << 20
"""A log file is rotated beyond this; at info a busy day writes about 1 MiB."""

FILES_KEPT: Final = 3
"""Rotated files kept beside the current one."""

LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_PRIORITY: Final = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}
"""Names of structlog to priorities of syslog(3)."""

FRAMES: Final = 12
"""Innermost frames of an exception that are logged."""

LOCK_SECONDS: Final = 0.5
"""Longest wait for another writer of the log; the forced end must get through."""


def under_journal(env: Mapping[str, str], fd: int = 2) -> bool:
    """Whether descriptor ``fd`` is the journal's stream (systemd.exec(5), JOURNAL_STREAM)."""
    device, _, inode = env.get("JOURNAL_STREAM", "").partition(":")
    try:
        found = os.fstat(fd)
        return (found.st_dev, found.st_ino) == (int(device), int(inode))
    except (OSError, ValueError):
        return False


class Sink:
    """Where lines end: never raises, so that a full disk costs log lines and nothing else."""

    def __init__(self, path: str, *, journal: bool, terminal: bool) -> None:
        self.path, self.journal, self.terminal = path, journal, terminal
        self._fd = -1
        self._lock = threading.Lock()

    def write(self, level: str, text: str) -> None:
        """One record; ``text`` has no line break."""
        if self.journal:
            with contextlib.suppress(OSError):
                os.write(2, f"<{_PRIORITY[level]}>{text}\n".encode("utf-8", "replace"))
            return
        now = time.time()
        stamp = (
            time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1e3) % 1000:03}Z"
        )
        line = f"{stamp} {level:<7} {text}\n".encode("utf-8", "replace")
        if not self._lock.acquire(timeout=LOCK_SECONDS):
            return
        try:
            with contextlib.suppress(OSError):
                self._append(line)
            if self.terminal:
                with contextlib.suppress(OSError):
                    os.write(2, line)
        finally:
            self._lock.release()

    def reopen(self) -> None:
        """Open the file anew at the next record (somebody may have moved it)."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def _append(self, line: bytes) -> None:
        if self._fd < 0:
            self._fd = os.open(
                self.path,
                os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o600,
            )
        elif os.fstat(self._fd).st_size + len(line) > FILE_BYTES:
            os.close(self._fd)
            self._fd = -1
            for number in range(FILES_KEPT, 0, -1):
                older = f"{self.path}.{number - 1}" if number > 1 else self.path
                with contextlib.suppress(FileNotFoundError):
                    os.replace(older, f"{self.path}.{number}")
            self._append(line)
            return
        os.write(self._fd, line)


def render(level: str, event: MutableMapping[str, Any], *, debug: bool) -> str:
    """One record as a line: the event's name, then its pairs, values quoted where needed."""
    error = event.pop("exc_info", None)
    parts = [_plain(str(event.pop("event", "")))]
    parts += [f"{key}={_quote(value)}" for key, value in event.items() if value is not None]
    if error:
        exception = sys.exc_info()[1] if error is True else error
        if isinstance(exception, tuple):
            exception = exception[1]
        if isinstance(exception, BaseException):
            parts.append(describe_exception(exception, debug=debug))
    return " ".join(parts)


def describe_exception(exception: BaseException, *, debug: bool) -> str:
    """Type, place and (where that is safe) message of an exception, as pairs."""
    kind = type(exception).__qualname__
    parts = [f"error={kind}"]
    # The driver is loaded after the first log lines; without it there are no errors of it.
    driver_error = getattr(sys.modules.get("lored.store.driver"), "Error", OSError)
    if debug or isinstance(exception, (OSError, driver_error)):
        parts.append(f"message={_quote(str(exception))}")
    parts.append(f"at={_quote(_places(exception.__traceback__))}")
    cause = exception.__cause__
    if cause is not None:
        parts.append(f"cause={type(cause).__qualname__}")
        parts.append(f"cause_at={_quote(_places(cause.__traceback__))}")
    return " ".join(parts)


def _places(trace: TracebackType | None) -> str:
    frames = traceback.extract_tb(trace)[-FRAMES:]
    return " < ".join(
        f"{os.path.basename(os.path.dirname(f.filename))}/{os.path.basename(f.filename)}"
        f":{f.lineno} {f.name}"
        for f in reversed(frames)
    )


def _plain(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)


def _quote(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else str(value)
    if text and text.isprintable() and not any(c in text for c in ' "='):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


class _Logger:
    """The innermost logger of structlog: gets finished lines."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def msg(self, *, level: str, text: str) -> None:
        self._sink.write(level, text)

    debug = info = warning = error = critical = exception = fatal = msg


class _Library(logging.Handler):
    """Records of libraries that log through the standard module."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self._sink = sink

    def emit(self, record: logging.LogRecord) -> None:
        """One record of a library."""
        level = record.levelname.lower()
        event: dict[str, Any] = {"event": record.name, "exc_info": record.exc_info}
        with contextlib.suppress(Exception):  # a wrong format string of a library
            event["text"] = record.getMessage()
        text = render(level, event, debug=logging.getLogger().level <= logging.DEBUG)
        self._sink.write(level if level in _PRIORITY else "info", text)


def configure(sink: Sink, level: str) -> None:
    """Send everything from ``level`` up to ``sink``; may be called again with another level."""
    number = LEVELS[level]
    debug = number <= LEVELS["debug"]

    def finish(_: Any, method: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
        name = {"exception": "error", "fatal": "critical", "warn": "warning"}.get(method, method)
        return {"level": name, "text": render(name, event, debug=debug)}

    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, finish],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=lambda *_: _Logger(sink),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers[:] = [_Library(sink)]
    root.setLevel(max(number, logging.INFO) if not debug else logging.DEBUG)
    # aiosqlite logs every statement with its values at debug: memory text, and a flood.
    logging.getLogger("aiosqlite").setLevel(logging.WARNING)


def report_loop_errors(loop: asyncio.AbstractEventLoop) -> None:
    """Log what the event loop catches in our form; its own prints values of exceptions."""
    log = structlog.get_logger()

    def handle(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        log.error("loop", text=context.get("message"), exc_info=context.get("exception"))

    loop.set_exception_handler(handle)
