"""`context`, `hook`, `mcp`: what agents run. The last two only lead to their own packages."""

from __future__ import annotations

import os

from lore.cli.arguments import Arg, Verb
from lore.cli.invocation import Invocation
from lore.cli.render import Screen, clean, one_line
from lore.hooks import events


def context(inv: Invocation) -> int:
    """Print the block for an agent's prompt; nothing when nothing is relevant."""
    o = inv.options
    answer = inv.call(
        "context",
        workspace=inv.workspace,
        budget_bytes=o.budget,
        parts=[part for part in ("facts", "episodes") if getattr(o, part)],
        query=o.query,
    )

    def text(screen: Screen) -> None:
        block = clean(str(answer.get("text", ""))).rstrip()
        if block:
            screen.say(block)
        if o.receipt:
            receipt = answer.get("receipt") or {}
            for part, items in receipt.items() if isinstance(receipt, dict) else ():
                screen.note(screen.paint(f"{part}: {one_line(str(items))}", "dim"))

    return inv.show(answer, text)


def hook(inv: Invocation) -> int:
    """Only reached with flags; `lore hook AGENT EVENT` takes its own short road."""
    from lore.hooks.entry import run

    return run([inv.options.agent, inv.options.event]) or 0


def mcp(inv: Invocation) -> int:
    """Serve until the agent closes our input."""
    from lore.mcp.entry import project_folder, run

    workspace = inv.workspace if inv.options.workspace else project_folder()
    aliases = inv.options.aliases or os.environ.get("LORE_MCP_ALIASES", "") not in ("", "0")
    return run(aliases=aliases, workspace=workspace)


VERBS = (
    Verb(
        "context",
        context,
        (
            Arg("--budget", kind="int", metavar="BYTES", help="most bytes, default 1024"),
            Arg("--facts", kind="flag", help="only facts"),
            Arg("--episodes", kind="flag", help="only past sessions"),
            Arg("--query", "-q", metavar="WORDS", help="what the prompt is about"),
            Arg("--receipt", kind="flag", help="say on stderr what was chosen and why"),
        ),
        examples=("lore context", "lore context --budget 2048 --query 'cache permissions'"),
    ),
    Verb(
        "hook",
        hook,
        (
            Arg("AGENT", help="whose hook this is", complete="agent"),
            Arg("EVENT", help=f"{', '.join(events.names())}, or the agent's own name for it"),
        ),
        examples=("lore hook claude-code session-start < event.json",),
    ),
    Verb(
        "mcp",
        mcp,
        (Arg("--aliases", kind="flag", help="also the tools of Recursive and Remind by name"),),
        examples=("claude mcp add --scope user lore -- lore mcp",),
    ),
)
