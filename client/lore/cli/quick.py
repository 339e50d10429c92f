"""One request on one connection, as cheaply as a process can: for `ping` and the hooks.

Without the client class, json or argparse. Never starts a daemon.
"""

import time

from lore import launch
from lore.errors import Internal, Unavailable
from lore.paths import Paths
from lore.wire import fault
from lore.wire.codec import Codec, encode_request
from lore.wire.messages import FramingError, Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def ask(
    where: Paths,
    calls: "list[tuple[str, dict[str, Any]]]",
    deadline: float,
) -> "dict[str, Any]":
    """Send ``calls`` in one write and return the answer to the last of them.

    All are waited for, since hanging up would cancel those that still run; an error in any is
    raised. ``deadline`` is a monotonic instant. Raises `Unavailable` when nobody listens, the
    daemon hangs up, or the time is over.
    """
    stream = launch.find(where, deadline)
    if stream is None:
        raise Unavailable(f"no memory daemon listens at {where.socket}; run: lore up")
    try:
        requests = [encode_request(i, name, params) for i, (name, params) in enumerate(calls, 1)]
        stream.send(b"".join(requests), deadline)
        codec = Codec("client")
        results: dict[int, object] = {}
        while len(results) < len(calls):
            data = stream.receive(deadline)
            if not data:
                raise Unavailable("the daemon hung up; see: lore status")
            for message in codec.feed(data):
                if not isinstance(message, Response):
                    continue
                if message.error is not None:
                    raise fault.from_wire(message.error)
                results[message.id] = message.result
        last = results.get(len(calls))
        return dict(last) if isinstance(last, dict) else {}
    except FramingError as error:
        raise Internal(f"the daemon broke the protocol: {error.reason}") from None
    except OSError:
        waited = "in time" if time.monotonic() >= deadline else "(connection lost)"
        raise Unavailable(f"the daemon does not answer {waited}; see: lore logs") from None
    finally:
        stream.close()
