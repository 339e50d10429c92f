"""`lore hook AGENT EVENT`: reads the agent's input, asks the daemon, prints what it says.

The one rule above all others: an agent is never held up and never sees an error. Whatever goes
wrong, the exit code is 0 and nothing is printed. The time is limited three times: the deadline
of the call, an alarm that ends this process, and the limit in the agent's own configuration
(`lore install` writes it), for the case that Python itself hangs.

Without a daemon a session start asks for one in the background and goes on without memory.
"""

import os
import sys
import time

from lore.hooks import events, optout
from lore.ignore import ignored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BUDGET_SECONDS = 0.150
"""From the start of the process to its end. `LORE_HOOK_SECONDS` changes it, for machines on
which Python alone takes that long."""

LONGEST_SECONDS = 2.0
"""What that variable may ask for: the limit that `lore install` writes for the agent."""

RESERVE_SECONDS = 0.015
"""Of it, for printing and the end of the interpreter."""

LEAST_SECONDS = 0.030
"""What the call gets even where Python's own start has eaten the budget (a loaded machine)."""

INPUT_BYTES = 8 << 20
"""Largest input read: a tool call can hold a whole file."""

PROMPT_BYTES = 768
"""Budget of what is said at each prompt and before each tool call; a session start has the
daemon's own default (1 KiB)."""


def run(words: "list[str]") -> "int | None":
    """Run one hook; always 0, or None when the words are not `AGENT EVENT`."""
    if len(words) != 2 or words[0].startswith("-") or words[1].startswith("-"):
        return None
    deadline = time.monotonic() + max(
        _budget_seconds() - RESERVE_SECONDS - _age_seconds(), LEAST_SECONDS
    )
    if not optout.switched_off(os.environ):
        silence = events.silence(words[0])
        _arm(deadline, silence)
        try:
            text = _answer(words[0], words[1], deadline)
        except Exception:  # not contextlib.suppress: every import counts here
            text = ""
        # Before printing, so that an answer is never cut, and before the interpreter ends,
        # which gives the alarm back its deadly default.
        _disarm()
        _say(text or silence)
    return 0


def _say(text: str) -> None:
    if not text:
        return
    try:
        os.write(1, text.encode("utf-8", "replace"))
    except OSError:
        return  # the agent has gone


def _budget_seconds() -> float:
    try:
        return min(float(os.environ.get("LORE_HOOK_SECONDS", "")), LONGEST_SECONDS)
    except ValueError:
        return BUDGET_SECONDS


def _age_seconds() -> float:
    """How long this process has lived; a guess where the system does not say."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError, IndexError):
        return 0.040


def _arm(deadline: float, silence: str) -> None:
    """End the process at the deadline, wherever it is, with nothing but ``silence`` said."""
    import signal

    def end(*_: object) -> None:
        _say(silence)
        os._exit(0)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, max(deadline - time.monotonic(), 0.001))


def _disarm() -> None:
    import signal

    signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(agent: str, name: str, deadline: float) -> str:
    """What to print for an event; empty for nothing."""
    event = events.known(name)
    given = events.Input(_read_input(deadline), _current_folder())
    if event is None or given.cwd is None or ignored(given.cwd, agent):
        return ""
    if event == events.REST:
        paths = [given.transcript] if given.transcript else []
        _call("index", {"paths": paths} if paths else {}, agent, given, deadline)
        return ""
    params: dict[str, Any] = {"workspace": given.cwd}
    if given.session:
        params["session_id"] = given.session
    if event == events.START:
        if given.resumed:  # what was said at its start is in the session already
            return ""
    elif given.subject is None:
        return ""
    else:
        params |= {"query": given.subject, "budget_bytes": PROMPT_BYTES}
    text = _call("context", params, agent, given, deadline).get("text")
    return events.answer(agent, event, text) if isinstance(text, str) and text.strip() else ""


def _call(
    method: str, params: "dict[str, Any]", agent: str, given: events.Input, deadline: float
) -> "dict[str, Any]":
    """One call with a hello before it, in one write; starts a daemon for later if none is there."""
    from lore import __version__, realms
    from lore.cli import quick
    from lore.errors import Unavailable
    from lore.wire.limits import PROTOCOL_MAX, PROTOCOL_MIN

    hello = {
        "client": f"hook-{agent}",
        "version": __version__,
        "protocol": [PROTOCOL_MIN, PROTOCOL_MAX],
    }
    where = realms.here(given.cwd)
    try:
        return quick.ask(where, [("hello", hello), (method, params)], deadline)
    except Unavailable:
        if "context" in method and os.environ.get("LORE_NO_SPAWN", "") in ("", "0"):
            _start_for_later(where.realm)
        raise


def _start_for_later(realm: str) -> None:
    """Start the realm's daemon from a process of its own, which keeps the rules of starting
    (spawn lock, systemd); nobody waits for it."""
    quiet = os.open(os.devnull, os.O_RDWR)
    os.posix_spawn(
        sys.executable,
        [sys.executable, "-P", "-m", "lore.cli.main", "call", "ping"],
        {**os.environ, "LORE_REALM": realm},
        file_actions=[(os.POSIX_SPAWN_DUP2, quiet, fd) for fd in (0, 1, 2)],
        setpgroup=0,
    )


def _current_folder() -> "str | None":
    try:
        return os.getcwd()
    except OSError:
        return None


def _read_input(deadline: float) -> "dict[str, Any]":
    """The event's JSON from standard input; empty when there is none or it is not a map."""
    import select
    from json import loads

    if os.isatty(0):
        return {}
    pieces: list[bytes] = []
    size = 0
    while size < INPUT_BYTES:
        # Half the time at most: the agent may keep its end open.
        ready, _, _ = select.select([0], [], [], max((deadline - time.monotonic()) / 2, 0))
        piece = os.read(0, 1 << 16) if ready else b""
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
    try:
        fields = loads(b"".join(pieces))
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
