"""`export`, `import`, `backup`, `restore`, `verify`, `maintain`, `metrics`: care of the stores."""

from __future__ import annotations

import os
import sys
from time import monotonic
from typing import Any

from lore.cli.arguments import Arg, Usage, Verb
from lore.cli.invocation import Invocation
from lore.cli.progress import Progress
from lore.cli.render import Screen, clean, counted, one_line
from lore.cli.times import size


def export(inv: Invocation) -> int:
    """Write the facts to standard output or to a file, page by page."""
    o = inv.options
    pages: list[str] = []
    done, total, began = 0, 0, monotonic()
    answer: dict[str, Any] = {"next": None}
    with Progress("export", quiet=inv.screen.json) as bar:
        while not pages or answer.get("next") is not None:
            answer = inv.call("export", format=o.format, after=answer.get("next"))
            pages.append(str(answer.get("text", "")))
            done += int(answer.get("facts") or 0)
            total = int(answer.get("total") or total)
            rate = done / (monotonic() - began)
            left = {"rate": rate, "eta_s": (total - done) / rate} if rate else {}
            bar.show({"operation": "export", "unit": "facts", "done": done, "total": total, **left})
    whole = "".join(page if not page or page.endswith("\n") else page + "\n" for page in pages)
    if o.output:
        write_whole(o.output, whole)
        data = {"path": os.path.abspath(o.output), "bytes": len(whole.encode())}
        return inv.show(data, lambda s: s.say(f"{data['path']}: {size(data['bytes'])}"))
    if inv.screen.json:
        inv.screen.document("lore.export/1", {"text": whole})
    else:
        sys.stdout.write(whole)
    return 0


def write_whole(path: str, text: str) -> None:
    """Write a file whole or not at all; raises `Usage` when the place cannot be written."""
    draft = f"{path}.{os.getpid()}.part"
    try:
        with open(draft, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:
        raise Usage(f"{path}: {error.strerror}") from None


def import_(inv: Invocation) -> int:
    """Take facts in from another memory's files."""
    o = inv.options
    path = os.path.abspath(os.path.expanduser(o.path))
    if not os.path.exists(path):
        raise Usage(f"{o.path}: no such file or folder")
    answer = inv.call_long(
        "import",
        "import",
        "nothing was taken in (or all, at the very end); the same command tells",
        path=path,
        format=o.format,
        dry_run=o.dry_run,
    )

    def text(screen: Screen) -> None:
        if o.dry_run:
            screen.say(screen.paint("dry run: nothing was changed", "dim"))
        show_import(screen, answer)

    return inv.show(answer, text)


def show_import(screen: Screen, answer: dict[str, Any]) -> None:
    """What came in, what did not and why; only what there was."""
    told = [
        f"{int(answer.get(key) or 0):,} {words}"
        for key, words in IMPORTED
        if answer.get(key) or key == "created"
    ]
    screen.say(f"{counted(int(answer.get('read', 0)), 'fact')} read as {answer.get('format')}:")
    screen.say(f"  {', '.join(told)}")
    _listed(screen, "not taken in", answer.get("problems") or [])
    collisions = answer.get("collisions") or []
    _listed(screen, "about the same thing as other facts", collisions)
    if collisions:
        screen.say(screen.paint("lore snapshot pending shows what to settle", "dim"))
    if answer.get("batch"):
        screen.say(screen.paint(f"lore undo {answer['batch']} takes it all back", "dim"))


IMPORTED = (
    ("created", "taken in"),
    ("merged", "merged with the same text"),
    ("already_there", "there already"),
    ("forgotten_before", "forgotten for good before"),
    ("conflicts", "conflicts opened"),
)


def _listed(screen: Screen, name: str, items: list[Any]) -> None:
    """A count with the first entries; nothing for none."""
    if not items:
        return
    screen.say(f"{name}: {len(items)}")
    for item in items[:10]:
        screen.say(screen.paint(f"  {_entry(item)}", "dim"))
    if len(items) > 10:
        screen.say(screen.paint(f"  … and {len(items) - 10} more (--json has all)", "dim"))


def show_counts(screen: Screen, answer: dict[str, Any]) -> None:
    """Figures of an answer, one a line; lists as their length, with the first entries."""
    for key, value in answer.items():
        name = key.replace("_", " ")
        if isinstance(value, list):
            _listed(screen, name, value)
        elif isinstance(value, dict):
            screen.say(f"{name}: {_entry(value)}")
        elif key not in ("revision", "uuid"):
            screen.say(f"{name}: {one_line(str(value))}")


def _entry(item: Any) -> str:
    if not isinstance(item, dict):
        return one_line(str(item))
    fact = item.get("fact")
    if isinstance(fact, dict):
        return one_line(f"{fact.get('id')} {fact.get('text')}")
    plain = (f"{key} {value}" for key, value in item.items() if not isinstance(value, dict | list))
    return one_line(", ".join(plain))


def backup(inv: Invocation) -> int:
    """Copy the precious stores now."""
    path = inv.options.path and os.path.abspath(os.path.expanduser(inv.options.path))
    answer = inv.call_long("backup", "backup", "no backup was written", path=path)

    def text(screen: Screen) -> None:
        files = answer.get("files", [])
        total = sum(int(item.get("bytes", 0)) for item in files if isinstance(item, dict))
        screen.say(f"{answer.get('path', 'done')}: {len(files)} stores, {size(total)}")
        for one in answer.get("left_out", ()):
            screen.say(f"left out: {clean(str(one['reason']))}")

    return inv.show(answer, text)


def restore(inv: Invocation) -> int:
    """Put a backup back, after a question on a terminal."""
    o = inv.options
    path = os.path.abspath(os.path.expanduser(o.path))
    if not os.path.isdir(path):
        raise Usage(f"{o.path}: no such backup folder; they are in {inv.paths.backups_dir}")
    inv.confirm(f"Put {path} back? What is there now is set aside.", o.yes)
    answer = inv.call_long(
        "restore",
        "restore",
        "the daemon puts all stores back or none; lore status says when it is done",
        path=path,
    )
    return inv.show(answer, lambda screen: show_counts(screen, answer))


def verify(inv: Invocation) -> int:
    """Check the stores; exit code 3 when something is wrong."""
    answer = inv.call_long(
        "verify",
        "verify",
        "what was repaired stays so; the same command checks all again"
        if inv.options.fix
        else "nothing was changed",
        deep=inv.options.deep,
        fix=inv.options.fix,
    )
    inv.show(answer, lambda screen: show_checks(screen, answer.get("checks", [])))
    return 0 if answer.get("ok", True) else 3


def show_checks(screen: Screen, checks: list[dict[str, Any]]) -> None:
    """One line a check: ok, fixed or what is wrong, and the remedy."""
    for check in checks:
        if check.get("ok"):
            mark, colour = "ok   ", "green"
        elif check.get("fixed"):
            mark, colour = "fixed", "yellow"
        else:
            mark, colour = "WRONG", "red"
        detail = f": {one_line(str(check['detail']))}" if check.get("detail") else ""
        screen.say(f"{screen.paint(mark, colour)}  {one_line(str(check.get('name', '')))}{detail}")
        if check.get("remedy") and not check.get("ok"):
            screen.say(f"       {one_line(str(check['remedy']))}")


def maintain(inv: Invocation) -> int:
    """Care that is due, now."""
    answer = inv.call_long(
        "maintain", "maintain", "each step stands for itself; the rest comes by itself"
    )
    steps = answer.get("steps", [])

    def text(screen: Screen) -> None:
        screen.say(*([one_line(_entry(step)) for step in steps] or ["nothing was due"]))

    return inv.show(answer, text)


def metrics(inv: Invocation) -> int:
    """OpenMetrics text as it comes."""
    answer = inv.call("metrics")
    return inv.show(answer, lambda screen: screen.say(clean(str(answer.get("text", ""))).rstrip()))


_YES = Arg("--yes", "-y", kind="flag", help="do not ask")

VERBS = (
    Verb(
        "export",
        export,
        (
            Arg("--format", choices=("jsonl", "markdown"), help="default: jsonl"),
            Arg("--output", "-o", metavar="FILE", help="instead of stdout", complete="file"),
        ),
        scopes=("global",),
        examples=("lore export > facts.jsonl", "lore export --format markdown -o facts.md"),
    ),
    Verb(
        "import",
        import_,
        (
            Arg("PATH", help="file or folder", complete="file"),
            Arg(
                "--format",
                choices=("recursive", "remind", "markdown", "jsonl"),
                help="default: found out from the file",
            ),
            Arg("--dry-run", kind="flag", help="only say what would come"),
        ),
        scopes=("global",),
        examples=("lore import ~/.recursive/memory/facts.jsonl --global --dry-run",),
    ),
    Verb(
        "backup",
        backup,
        (Arg("PATH", kind="maybe", help="a new folder; default: ours", complete="folder"),),
        examples=("lore backup", "lore backup /media/disk/lore-2026-05-28"),
    ),
    Verb(
        "restore",
        restore,
        (Arg("PATH", help="backup folder", complete="folder"), _YES),
        examples=("lore restore ~/.local/share/lore/backups/20260528T020000Z",),
    ),
    Verb(
        "verify",
        verify,
        (
            Arg("--deep", kind="flag", help="compare with the transcripts: slow"),
            Arg("--fix", kind="flag", help="repair what can be repaired"),
        ),
        examples=("lore verify", "lore verify --deep --fix"),
    ),
    Verb("maintain", maintain, examples=("lore maintain",)),
    Verb("metrics", metrics, examples=("lore metrics",)),
)
