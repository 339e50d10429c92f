"""Aider: `.aider.chat.history.md` in the directory where it runs.

Markdown without ids: `# aider chat started at` begins a run, which is a session here; lines
with `#### ` are the user's, those with `> ` are Aider's own, the rest is the model. In a code
fence of an answer all lines are the answer's. Times are local and only stated per run.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final

from lored.core.transcripts.conversation import say
from lored.core.transcripts.files import Alone
from lored.core.transcripts.knowledge import add_tokens, learn, learn_first, learn_time
from lored.core.transcripts.lines import clean_text
from lored.core.transcripts.records import MESSAGE_CHARS, Action, Record, Role
from lored.core.transcripts.texts import count_or_none

_START: Final = re.compile(rb"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_MODEL: Final = re.compile(r"(?:Main model|Model): (\S{1,200})")
_COUNT: Final = r"([\d.]+)(k|M)?"
_TOKENS: Final = re.compile(rf"Tokens: {_COUNT} sent(?:.*?)?, {_COUNT} received")
_COST: Final = re.compile(r"\$([\d.]+) session")
_EDIT: Final = re.compile(r"(?:Applied edit to|Creating empty file|Added file) (.{1,1000})")
_COMMIT: Final = re.compile(r"Commit ([0-9a-f]{7,40}) (.{0,500})")
_RUN: Final = re.compile(r"Running (.{1,2000})")
_FENCE: Final = re.compile(r"\s{0,3}(`{3,}|~{3,})")


class Aider(Alone):
    """Line parser of Aider's chat history."""

    agent = "aider"
    version = 1

    def session_id(self, path: str, head: bytes) -> str | None:
        """The first run of the file; later runs are told under names of their own."""
        if not path.endswith(".md"):
            return None
        start = _START.search(head)
        return _name(path, start[1].decode() if start else "start")

    def begin(self, path: str) -> dict[str, Any]:
        folder = path.replace("\\", "/").rpartition("/")[0]
        return {"path": path, "cwd": folder, "run": None, "mode": "", "text": [], "size": 0, "n": 0}

    def parse(self, state: dict[str, Any], line: bytes, offset: int) -> Iterable[Record]:
        out: list[Record] = []
        text = clean_text(line.rstrip(b"\r").replace(b"\0", b"").decode("utf-8", "replace"))
        if offset > state.get("end", offset):
            _line(state, b"", "", out)  # blank lines may be left out by the reader
        state["end"] = offset + len(line) + 1
        _line(state, line, text, out)
        return out


def _line(state: dict[str, Any], line: bytes, text: str, out: list[Record]) -> None:
    start = _START.match(line)
    notice = text.startswith("> ") or text.rstrip() == ">"
    if start:
        _flush(state, out)
        _begin_run(state, start[1].decode())
    elif state.get("fence") and not (notice and _TOKENS.search(text)):
        _add(state, "assistant", text, out)
    elif text.startswith("####"):
        _add(state, "user", text[4:].removeprefix(" "), out)
    elif notice:
        _flush(state, out)
        _notice(state, text[1:].strip(), out)
    elif text.strip() or state["mode"] == "assistant":
        _add(state, "assistant", text, out)
    elif state["mode"] == "user":
        _flush(state, out)


def _name(path: str, stamp: str) -> str:
    folder = path.replace("\\", "/").rpartition("/")[0]
    place = blake2b(folder.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f"{place}:{stamp.replace(' ', 'T')}"


def _begin_run(state: dict[str, Any], stamp: str) -> None:
    name = _name(state["path"], stamp)
    if "session" not in state:
        state["session"] = name
    state["run"] = None if name == state["session"] else name
    state["n"] = 0
    try:
        # The machine that wrote it is this one, so its zone is ours.
        moment = datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S").astimezone(UTC)
        state["at"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        state["at"] = None


def _add(state: dict[str, Any], mode: str, text: str, out: list[Record]) -> None:
    if state["mode"] != mode:
        _flush(state, out)
        state["mode"] = mode
        state["fence"] = None
    if state["size"] < MESSAGE_CHARS:
        state["text"].append(text[:MESSAGE_CHARS])
        state["size"] += len(text) + 1
    if mode == "assistant":
        fence = _FENCE.match(text)
        if fence:
            opened = state.get("fence")
            if not opened:
                state["fence"] = fence[1]
            elif fence[1].startswith(opened) and not text.strip().strip("`~"):
                state["fence"] = None


def _flush(state: dict[str, Any], out: list[Record]) -> None:
    """Tells the text collected so far as a message."""
    lines, mode = state["text"], state["mode"]
    state["text"], state["mode"], state["size"], state["fence"] = [], "", 0, None
    if mode == "user":
        lines = [line.rstrip() for line in lines]
    text = "\n".join(lines).strip("\n")
    if not text.strip():
        return
    _present(state, out)
    state["n"] += 1
    role: Role = "user" if mode == "user" else "assistant"
    key = f"{state['run'] or state['session']}:{state['n']}"
    say(
        state,
        out,
        role,
        key,
        text,
        at=state.get("at"),
        session=state["run"],
    )


def _present(state: dict[str, Any], out: list[Record]) -> None:
    """Tells the run itself, once something happened in it."""
    if "session" not in state:
        state["session"] = _name(state["path"], "start")
    learn_first(state, out, state["run"], cwd=state["cwd"])
    learn_time(state, out, state.get("at"), state["run"])
    if state.get("model"):
        learn(state, out, state["run"], model=state["model"])


def _notice(state: dict[str, Any], text: str, out: list[Record]) -> None:
    """A line of Aider itself."""
    model = _MODEL.match(text)
    if model:
        state["model"] = model[1]
        return
    tokens, cost = _TOKENS.search(text), _COST.search(text)
    if tokens:
        _present(state, out)
        add_tokens(
            state,
            out,
            {"input": _count(tokens[1], tokens[2]), "output": _count(tokens[3], tokens[4])},
            state["run"],
        )
    if cost:
        _present(state, out)
        learn(state, out, state["run"], cost_usd=_number(cost[1]))
    edit, commit, run = _EDIT.match(text), _COMMIT.match(text), _RUN.match(text)
    if edit or commit or run:
        _present(state, out)
        state["n"] += 1
        key = f"{state['run'] or state['session']}:{state['n']}"
        action = Action(key, "command", "aider", status="ok", session=state["run"])
        if edit:
            action.kind, action.target = "edit", edit[1].strip()
        elif commit:
            action.command, action.commit = f"git commit -m {commit[2].strip()!r}", commit[1]
        elif run:
            action.command, action.status = run[1].strip(), "unknown"
        action.started_at = state.get("at")
        out.append(action)


def _number(text: str) -> float | None:
    try:
        return float(text.rstrip("."))
    except ValueError:
        return None


def _count(text: str, unit: str | None) -> int | None:
    number = _number(text)
    if number is None:
        return None
    return count_or_none(round(number * {"k": 1_000, "M": 1_000_000}.get(unit or "", 1)))


PARSER = Aider()
