"""`web`: look at the memory in a browser. Leads to its own package."""

from __future__ import annotations

import os
import sys

from lore.cli.arguments import Arg, Usage, Verb
from lore.cli.invocation import Invocation
from lore.errors import Unavailable

IDLE_MINUTES = 30.0


def web(inv: Invocation) -> int:
    """Serve the view until Ctrl-C, or until nobody looks any more."""
    o, screen = inv.options, inv.screen
    idle = IDLE_MINUTES if o.idle is None else o.idle
    if o.direct:
        raise Usage("lore web needs the daemon; --direct has none")
    if not idle > 0:
        raise Usage(f"--idle {idle:g}: give minutes above 0")
    try:
        from lore.web.entry import run
    except ImportError as error:
        raise Unavailable(
            f"the web view needs {error.name}; run: pip install 'lored[web]'"
        ) from None

    def tell(link: str) -> None:
        if screen.json:
            screen.document("lore.web/1", {"url": link, "idle_minutes": idle})
        else:
            screen.say(link)
            screen.note(
                "The link works once. Ctrl-C ends the view; it ends by itself after "
                f"{idle:g} min without a look."
            )
        screen.out.flush()

    why = run(
        where=inv.paths, workspace=inv.workspace, port=o.port or 0, idle_minutes=idle, tell=tell
    )
    try:
        screen.note("" if why == "SIGINT" else f"lore web ended: {why}")
    except OSError:
        # The terminal is gone. Nobody reads what Python would still flush at the end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
    return 0


VERBS = (
    Verb(
        "web",
        web,
        (
            Arg("--port", kind="int", metavar="N", help="loopback port; default: any free one"),
            Arg(
                "--idle",
                kind="number",
                metavar="MINUTES",
                help="end after this long without a look; default 30",
            ),
        ),
        examples=(
            "lore web",
            "ssh -L 8765:127.0.0.1:8765 devbox lore web --port 8765",
        ),
    ),
)
