"""`workspace`: which workspace a path belongs to, why, and how to change that."""

from __future__ import annotations

import os
import re

from lore.cli.arguments import Arg, Usage, Verb
from lore.cli.invocation import Invocation
from lore.cli.render import Screen, one_line
from lore.cli.times import ago

_ID = re.compile(r"[0-9a-f]{12}")


def _place(name: str | None) -> str | None:
    """An id as it is, a path made absolute."""
    if name is None or _ID.fullmatch(name):
        return name
    return os.path.abspath(os.path.expanduser(name))


def workspace(inv: Invocation) -> int:
    """explain, list, alias, split."""
    o = inv.options
    action, path, target = o.action or "explain", o.path, o.target
    if action not in ACTIONS:  # `lore workspace PATH` explains that path
        action, path, target = "explain", action, None
    if action == "alias" and target is None:
        raise Usage("workspace alias: give PATH and the workspace whose memory it joins")
    if action == "list":
        return _list(inv)
    answer = inv.call(
        "workspace", action=action, path=_place(path) or inv.workspace, target=_place(target)
    )

    def text(screen: Screen) -> None:
        if answer.get("id"):
            screen.say(
                f"{screen.paint(answer['id'], 'cyan', 'bold')}  {one_line(str(answer['root']))}"
            )
        screen.say(f"  {one_line(str(answer.get('how', '')))}")
        if answer.get("worktree"):
            screen.say(f"  work tree: {one_line(str(answer['worktree']))}")
        for other in answer.get("aliases", ()):
            screen.say(f"  also: {one_line(str(other))}")
        if answer.get("moved_from"):
            screen.say(
                f"  moved from {one_line(str(answer['moved_from']))}; "
                "`lore workspace alias` joins the two"
            )

    return inv.show(answer, text)


def _list(inv: Invocation) -> int:
    answer = inv.call("workspace", action="list")
    found = answer.get("workspaces", [])

    def text(screen: Screen) -> None:
        screen.table(
            [
                (
                    str(item.get("id", "")),
                    f"{item.get('facts', 0):,}",
                    f"{item.get('sessions', 0):,}",
                    ago(item.get("last_at")),
                    str(item.get("root", "")),
                )
                for item in found
            ],
            head=("id", "facts", "sessions", "last active", "folder"),
            shrink=4,
        )

    return inv.show(answer, text, found=bool(found), empty="no workspace is known yet")


ACTIONS = ("explain", "list", "alias", "split")

VERBS = (
    Verb(
        "workspace",
        workspace,
        (
            Arg("ACTION", kind="maybe", help="explain (default), list, alias, split, or a path"),
            Arg("PATH", kind="maybe", help="default: the current directory", complete="folder"),
            Arg("TARGET", kind="maybe", help="for alias: whose memory it joins", complete="folder"),
        ),
        examples=(
            "lore workspace",
            "lore workspace list",
            "lore workspace alias ~/new/place 4670b3ed396d",
        ),
    ),
)
