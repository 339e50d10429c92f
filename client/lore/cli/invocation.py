"""One run of one verb: its options, its screen and, on first need, a way to the memory.

Owns the connection. Verbs say what they want with `call`; whether a daemon answers or the
stores are read directly is decided here and nowhere else.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Protocol, Self

from lore import paths, realms
from lore.cli import table
from lore.cli.arguments import Usage, spell
from lore.cli.render import Screen
from lore.errors import Invalid, Unavailable
from lore.wire.methods import BY_NAME

Answer = dict[str, Any]

DONE, NOTHING, USAGE, REFUSED, NO_DAEMON, DEFECT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
"""Exit codes of a verb; `dispatch` says what each means."""

LIMIT_MOST = 200
"""Highest `--limit` that the daemon takes."""

LISTED = 50
"""Entries of a list without pages, unless --limit says otherwise."""

_WORKSPACE_ID = re.compile(r"[0-9a-f]{12}")


class Backend(Protocol):
    """What answers calls: the daemon's client, or the stores themselves."""

    def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_event: Callable[[Answer], None] | None = None,
    ) -> Any: ...

    def close(self) -> None: ...


class Invocation:
    """Verb, parsed options, screen; a context manager that closes what it opened."""

    def __init__(self, verb: str, options: argparse.Namespace, screen: Screen) -> None:
        self.verb, self.options, self.screen = verb, options, screen
        self._backend: Backend | None = None
        self._paths: paths.Paths | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._backend is not None:
            self._backend.close()
            self._backend = None

    @property
    def paths(self) -> paths.Paths:
        """Where socket, stores and logs of this environment are."""
        if self._paths is None:
            self._paths = realms.here(self.workspace)
        return self._paths

    @property
    def workspace(self) -> str | None:
        """The workspace asked for: an id, or an absolute path; default the current directory.

        Raises `Usage` for a path that does not exist.
        """
        named: str | None = self.options.workspace
        if named and _WORKSPACE_ID.fullmatch(named):
            return named
        if named:
            path = os.path.abspath(os.path.expanduser(named))
            if not os.path.exists(path):
                raise Usage(f"--workspace {named}: no such path")
            return path
        try:
            return os.getcwd()
        except OSError:
            return None  # the current directory was removed: only global facts remain

    @property
    def backend(self) -> Backend:
        """The connection, opened on first use; in a sandbox without sockets the stores."""
        if self._backend is None:
            self._backend = self._open()
        return self._backend

    def _open(self) -> Backend:
        if self.options.direct:
            return self._open_direct()
        from lore.client import Client

        try:
            return Client(
                workspace=self.workspace,
                name="lore",
                timeout=self.options.timeout,
                where=self.paths,
            )
        except Unavailable as error:
            if not error.data.get("sandboxed"):
                raise
            self.screen.note("lore: sockets are refused here; reading the stores directly")
            return self._open_direct()

    def _open_direct(self) -> Backend:
        from lore.cli import direct

        return direct.Direct(self.paths, self.workspace)

    def call(
        self,
        method: str,
        *,
        within: float | None = None,
        on_event: Callable[[Answer], None] | None = None,
        **params: Any,
    ) -> Answer:
        """One call. None, False and empty lists are left out; `--global` and `--everywhere`
        are added where the method knows them. ``within``: seconds to wait when `--timeout` says
        nothing; default: the method's own. ``on_event``: as for `Client.call`. Raises the typed
        errors of `lore.errors`."""
        known = {param.name for param in BY_NAME[method].params}
        if self.options.__dict__["global"] and "scope" in known:
            params.setdefault("scope", "global")
        if self.options.everywhere and "everywhere" in known:
            params.setdefault("everywhere", True)
        given = {k: v for k, v in params.items() if v is not None and v is not False and v != []}
        limit = self.options.timeout or within
        answer = self.backend.call(method, given, timeout=limit, on_event=on_event)
        return answer if isinstance(answer, dict) else {"result": answer}

    def call_long(self, method: str, label: str, resume: str, **params: Any) -> Answer:
        """One call that may take long, with its progress on standard error. Ctrl-C hangs up,
        which ends the work; ``resume`` then says what is left and how to go on."""
        from lore.cli.progress import Progress
        from lore.client import Client

        with Progress(label, quiet=self.screen.json) as bar:
            try:
                if isinstance(self.backend, Client):
                    self.backend.call("subscribe", {"topics": ["progress"]})
                return self.call(method, on_event=bar.hear, **params)
            except KeyboardInterrupt:
                bar.close()
                self.screen.note(f"lore: stopped; {resume}")
                raise

    def again(self, **changed: object) -> str:
        """This command line with some options changed, to be shown as the next step."""
        return spell(table.load(self.verb), self.options, **changed)

    def tell_cut(self, shown: int, limit: int) -> None:
        """Say how to see more of a list without pages that may have been cut at ``limit``."""
        if shown >= limit:
            longer = f"; {self.again(limit=LIMIT_MOST)} shows more" if limit < LIMIT_MOST else ""
            self.screen.note(self.screen.paint(f"the first {shown}{longer}", "dim"))

    def confirm(self, question: str, agreed: bool) -> None:
        """Ask before what cannot be taken back; without a terminal `--yes` must be given.
        Raises `Usage` unless the answer is yes."""
        import sys

        if agreed:
            return
        if self.screen.json or not sys.stdin.isatty():
            raise Usage(f"{question} Say so with --yes")
        self.screen.err.write(f"{question} [y/N] ")
        self.screen.err.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Usage("left as it was")

    def show(
        self, data: Any, text: Callable[[Screen], None], *, found: bool = True, empty: str = ""
    ) -> int:
        """Print an answer in the form asked for; returns `DONE`, or `NOTHING` for an empty one.

        ``text`` prints the form for people; ``empty`` is the note for an empty answer.
        """
        if self.screen.json:
            self.screen.document(f"lore.{self.verb}/1", data)
        elif isinstance(data, dict) and "queued" in data:
            self.screen.say(f"kept in the spool ({data['queued']}); the daemon takes it in later")
        elif found:
            text(self.screen)
        elif empty:
            self.screen.note(empty)
        return DONE if found else NOTHING


def joined(words: Iterable[str]) -> str:
    """Words of the command line as one text; `-` alone reads standard input."""
    text = " ".join(words)
    return standard_input().rstrip("\n") if text == "-" else text


def standard_input() -> str:
    """All of it as text. Raises `Invalid` for what is not UTF-8, whatever the locale is: the
    text layer of Python would raise in one locale and let half characters through in another."""
    import sys

    return decoded(sys.stdin.buffer.read(), "standard input")


def decoded(data: bytes, name: str) -> str:
    """Bytes of a file or pipe called ``name`` as text, lines ended by LF; raises `Invalid`."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(f"{name}: not valid UTF-8 at byte {error.start}") from None
    return text.replace("\r\n", "\n")
