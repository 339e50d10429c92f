"""Opening a conversation: connect (or start), say hello, settle versions.

The rule of versions: a daemon speaks protocols N and N-1, so most pairs just work. A client
that is newer than the daemon asks it to drain and starts its own version instead, unless its
installation has no daemon to start, or somebody tried that within the last hour (two
installations of one user must not restart the daemon in turn: the stamp file is the cap). An
older client never replaces a daemon. What cannot work says which side to upgrade.
"""

import os
import time

from lore import __version__, launch
from lore.errors import Busy, Incompatible, Internal, LoreError, Unavailable
from lore.paths import Paths
from lore.transport import Stream
from lore.wire import fault
from lore.wire.codec import Codec, encode_request
from lore.wire.limits import PROTOCOL_MAX, PROTOCOL_MIN
from lore.wire.messages import FramingError, Message, Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HELLO_SECONDS = 5.0
"""Longest wait for the answer to hello (the daemon answers it before any other work)."""

BUSY_SECONDS = 5.0
"""How long a daemon with too many clients is asked again: most of them stay for one call."""

BUSY_PAUSE_MS = 500
"""Before the first further try; each next one comes later."""

DRAIN_SECONDS = 6.0
"""Longest wait for an older daemon to be gone; it promises to exit within 5 s."""

REPLACE_INTERVAL_S = 3600.0
"""Least time between two replacements of a daemon by newer clients."""


class Link:
    """An open conversation: the stream, its codec and what the daemon said in hello."""

    __slots__ = ("codec", "next_id", "pending", "server", "starting", "stream")

    def __init__(self, stream: Stream) -> None:
        self.stream, self.codec = stream, Codec("client")
        self.server: dict[str, Any] = {}
        self.starting = False
        """The daemon said that it still opens its stores: its first answer may take a while."""
        self.next_id = 1
        self.pending: list[Message] = []
        """Messages that came together with an answer and are not looked at yet."""

    def take_id(self) -> int:
        """The id of the next request; ids run from 1 and begin again after 2^31."""
        taken = self.next_id
        self.next_id = taken % (1 << 31) + 1
        return taken

    def read(self, deadline: "float | None") -> list[Message]:
        """The next messages, at least one. Raises `TimeoutError`; `EOFError` when the daemon
        hung up; another `OSError`; `Internal` for bytes that are not the protocol."""
        if self.pending:
            messages, self.pending = self.pending, []
            return messages
        while True:
            data = self.stream.receive(deadline)
            if not data:
                raise EOFError
            try:
                messages = self.codec.feed(data)
            except FramingError as error:
                self.stream.close()
                raise Internal(f"the daemon broke the protocol: {error.reason}") from None
            if messages:
                return messages

    def ask(self, method: str, params: "dict[str, Any]", deadline: float) -> object:
        """One call on a link that nobody else uses yet; other messages stay pending."""
        message_id = self.take_id()
        self.stream.send(encode_request(message_id, method, params), deadline)
        others: list[Message] = []
        while True:
            for message in self.read(deadline):
                if not isinstance(message, Response) or message.id != message_id:
                    others.append(message)
                    continue
                self.pending = others + self.pending
                if message.error is not None:
                    raise fault.from_wire(message.error)
                return message.result


def open_link(
    paths: Paths,
    hello: "dict[str, Any]",
    *,
    start: bool = True,
    deadline: "float | None" = None,
    start_seconds: "float | None" = None,
) -> Link:
    """A link with hello said and versions settled.

    `hello` holds the caller's own words (client, workspace, session_id). With `start` false
    nothing is started or replaced and nothing waits beyond `deadline` (a monotonic instant).
    Raises `Unavailable`, `Incompatible`, or what the daemon answers (`busy`).
    """
    link = _greet(paths, hello, start, deadline, start_seconds)
    if (
        start
        and is_newer(__version__, str(link.server.get("version", "")))
        and _may_replace(paths)
        and _drain(link, paths)
    ):
        link = _greet(paths, hello, start, deadline, start_seconds)
    _check_protocol(link)
    return link


def _greet(
    paths: Paths,
    hello: "dict[str, Any]",
    start: bool,
    deadline: "float | None",
    start_seconds: "float | None",
) -> Link:
    """Connect and say hello; once more after a daemon that was just going down, and again for
    `BUSY_SECONDS` while it has too many clients."""
    words = {"version": __version__, "protocol": [PROTOCOL_MIN, PROTOCOL_MAX], "errors": "map"}
    last_try, refusals, end = False, 0, time.monotonic() + BUSY_SECONDS
    while True:
        if start:
            stream = launch.find_or_start(paths, start_seconds)
        else:
            found = launch.find(paths, deadline)
            if found is None:
                raise launch.absent(paths, "this call may not start one")
            stream = found
        link = Link(stream)
        limit = time.monotonic() + HELLO_SECONDS
        try:
            answer = link.ask("hello", {**words, **hello}, min(limit, deadline or limit))
        except (EOFError, OSError) as error:
            link.stream.close()
            if isinstance(error, TimeoutError):
                raise Unavailable(
                    f"the daemon at {paths.socket} does not answer; see: lore status"
                ) from None
            if last_try or not start:
                raise Unavailable("the daemon hung up at hello; try again") from None
        except LoreError as error:
            link.stream.close()
            if isinstance(error, Busy):
                refusals += 1
                _pause(error, refusals, min(end, deadline or end))
                continue
            if last_try or not start or error.code != "shutting_down":
                raise
            _wait_gone(paths)
        else:
            link.server = answer if isinstance(answer, dict) else {}
            link.starting = link.server.get("starting") is True
            return link
        last_try = True


def _pause(refusal: Busy, tries: int, end: float) -> None:
    """Wait for a place among the clients of the daemon; raises ``refusal`` where that leads
    beyond ``end``. (Before hello is answered an error is a pair, without data.)"""
    from lore.policy import pause_after

    pause = pause_after(Busy(refusal.message, {"retry_after_ms": BUSY_PAUSE_MS}), tries)
    if pause is None or time.monotonic() + pause >= end:
        raise refusal
    time.sleep(pause)


def _check_protocol(link: Link) -> None:
    spoken = link.server.get("protocol")
    if not isinstance(spoken, int) or not PROTOCOL_MIN <= spoken <= PROTOCOL_MAX:
        version = link.server.get("version", "unknown")
        link.stream.close()
        raise Incompatible(
            f"daemon {version} answers in protocol {spoken}, client {__version__} speaks "
            f"{PROTOCOL_MIN} to {PROTOCOL_MAX}; upgrade the older one, then run: lore restart"
        )


def is_newer(ours: str, theirs: str) -> bool:
    """Whether version `ours` (like 1.2.3) comes after `theirs`; False if either is no version."""
    try:
        return _numbers(ours) > _numbers(theirs)
    except ValueError:
        return False


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _may_replace(paths: Paths) -> bool:
    """Whether this installation can start its own daemon and none was replaced lately; if so
    the attempt is stamped."""
    if os.environ.get("LORE_NO_SPAWN", "") not in ("", "0"):
        return False
    from lore import spawn

    if not spawn.can_start_own():
        return False
    stamp = paths.state_dir + "/replaced"
    try:
        if abs(time.time() - os.stat(stamp).st_mtime) < REPLACE_INTERVAL_S:
            return False
    except OSError:
        pass
    try:
        with open(stamp, "w", encoding="ascii") as file:
            file.write(__version__ + "\n")
    except OSError:
        return False
    return True


def _drain(link: Link, paths: Paths) -> bool:
    """Ask the daemon to finish, and wait until it is gone; False if it refuses (the link is
    good then)."""
    deadline = time.monotonic() + DRAIN_SECONDS
    try:
        link.ask("drain", {"reason": f"client {__version__} replaces it"}, deadline)
        while True:
            link.read(deadline)
    except LoreError:
        return False
    except (EOFError, OSError):
        pass
    link.stream.close()
    _wait_gone(paths)
    return True


def _wait_gone(paths: Paths) -> None:
    from lore import spawn

    deadline = time.monotonic() + DRAIN_SECONDS
    for _ in launch.pauses(deadline):
        if spawn.holder(paths) is None:
            return
