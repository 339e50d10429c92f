"""What a tool call is: its kind, target and command, and what its result says.

One home of the tool names of all agents. A name is looked up without its MCP server prefix
and without letter case; an unknown tool is `other` unless its arguments name a command.
"""

import re
import shlex
from dataclasses import dataclass, field
from typing import Any, Final

from lored.core.transcripts.lines import clean_value
from lored.core.transcripts.records import ActionKind
from lored.core.transcripts.texts import text_or_none

import orjson  # isort: skip

COMMAND_CHARS: Final = 4_000
TARGETS: Final = 40
"""Most files of one patch that become actions of their own."""

_NAMES: Final[dict[ActionKind, str]] = {
    "edit": "edit multiedit write notebookedit write_file replace create_file edit_file"
    " search_replace write_to_file replace_in_file apply_diff apply_patch insert_content create"
    " str_replace str_replace_editor str_replace_based_edit_tool fs_write patch code_action"
    " text_editor editedexistingfile newfilecreated delete_file delete insert undo_edit"
    " write_to_file replace_file_content multi_replace_file_content strreplace append_file"
    " editfile createfile filechange multi_edit fswrite insert_edit_into_file editor",
    "command": "bash shell exec_command local_shell run_shell_command run_command execute_command"
    " run_in_terminal terminal execute powershell execute_bash run_terminal_cmd shell_command exec"
    " bashoutput write_stdin unified_exec bash_tool execute_pwsh executebash container.exec"
    " run_terminal_command read_bash write_bash run_commands",
    "search": "grep glob ls list find search_file_content list_directory grep_search file_search"
    " codebase_search search_files list_files ripgrep rg list_dir find_by_name toolsearch"
    " tool_search search list_code_definition_names finder codebase_search_agent view_code_item",
    "read": "read read_file read_files view read_many_files view_file fs_read notebookread"
    " view_image open_file readfile view_file_outline read_lines cat fsread read_notebook_cell",
    "web": "webfetch websearch web_fetch web_search google_web_search fetch search_web"
    " browser_action read_url_content read_web_page fetch_webpage url_fetch fetch_content",
    "agent": "task agent spawn_agent delegate subagent new_task send_input send_message"
    " wait_agent dispatch_agent start_subagent run_subagent use_subagent codebase_investigator",
}
_KINDS: Final[dict[str, ActionKind]] = {
    name: kind for kind, names in _NAMES.items() for name in names.split()
}
_TARGET_KEYS: Final = (
    "file_path",
    "filePath",
    "path",
    "absolute_path",
    "notebook_path",
    "target_file",
    "TargetFile",
    "AbsolutePath",
    "filename",
    "url",
    "Url",
    "query",
    "Query",
    "pattern",
    "Pattern",
    "SearchPath",
    "DirectoryPath",
    "dir_path",
    "relative_workspace_path",
    "regex",
    "description",
    "subagent_type",
    "prompt",
    "message",
    "skill",
)
_COMMAND_KEYS: Final = ("command", "cmd", "CommandLine", "script", "chars")
_PATCH_FILE: Final = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)
_TEST: Final = re.compile(
    r"^\s*(?:async def test_\w|def test_\w|#\[(?:tokio::)?test\b|@Test\b|func Test\w"
    r"|(?:it|test)(?:\.\w+)?\(\s*['\"`])",
    re.MULTILINE,
)
_COMMIT: Final = re.compile(r"^\[[^\]\n]{1,200}? ([0-9a-f]{7,40})\] ", re.MULTILINE)
_EXIT: Final = re.compile(
    r"(?:^|\n)\s*(?:Process exited with code|Exit code:?|exit code:?|exit_code[=:]"
    r"|Command (?:failed|exited) with (?:exit )?(?:code|status)|<exited with exit code"
    r"|Command exited with code|exited with code)\s*(-?\d{1,5})"
)
_PATCHES: Final = frozenset({"apply_patch", "patch"})


@dataclass(slots=True)
class Deed:
    """What a tool call does. `extra`: lines added and removed, tests added by an edit."""

    kind: ActionKind
    target: str | None = None
    command: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def short_name(tool: str) -> str:
    """The tool's own name: `mcp__files__read_file`, `files.read_file`, `developer__shell` lose
    the server."""
    return tool.rsplit("__", 1)[-1].rsplit("/", 1)[-1]


def parse_arguments(value: Any) -> Any:
    """Arguments as a map: some formats write them as JSON in a string."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return clean_value(orjson.loads(value))
        except (ValueError, RecursionError):
            return value
    return value


def describe(tool: str, arguments: Any) -> list[Deed]:
    """What a call of ``tool`` does: one deed, or one per file for a patch."""
    arguments = parse_arguments(arguments)
    name = short_name(tool).lower()
    kind: ActionKind = _KINDS.get(name) or "other"
    if isinstance(arguments, str):
        if "*** Begin Patch" in arguments:
            return _patch(arguments)
        if kind == "command":
            return [Deed(kind, command=arguments[:COMMAND_CHARS] or None)]
        return [Deed(kind, target=arguments[:300] or None)]
    if not isinstance(arguments, dict):
        return [Deed(kind)]
    command = _command(arguments)
    if command is not None and "*** Begin Patch" in command:
        return _patch(command)
    if name in _PATCHES:
        text = arguments.get("input") or arguments.get("patch") or arguments.get("patchText")
        if isinstance(text, str):
            return _patch(text)
    if name == "text_editor" or name.startswith("str_replace"):
        kind = "read" if arguments.get("command") == "view" else "edit"
        command = None
    elif name in ("fs_write", "fswrite"):
        command = None
    elif kind == "other" and command is not None and "command" in arguments:
        kind = "command"
    if kind == "command":
        return [Deed(kind, command=command)]
    target = next(
        (text for key in _TARGET_KEYS if key in arguments and (text := _target(arguments[key]))),
        None,
    )
    if kind == "edit":
        return [Deed(kind, target=target, extra=_edit_size(arguments))]
    if name == "grep" and isinstance(arguments.get("pattern"), str):
        target = arguments["pattern"][:300]
    return [Deed(kind, target=target)]


def change_size(text: str) -> dict[str, int]:
    """Lines added and removed and tests added, of a unified diff or patch."""
    added = removed = 0
    gained: list[str] = []
    lost: list[str] = []
    for line in text.split("\n"):
        if line[:1] == "+" and line[:3] != "+++":
            added += 1
            gained.append(line[1:])
        elif line[:1] == "-" and line[:3] != "---":
            removed += 1
            lost.append(line[1:])
    return _sizes(added, removed, "\n".join(gained), "\n".join(lost))


def find_commit(output: str) -> str | None:
    """The commit that `git commit` (merge, cherry-pick, revert) reports having made."""
    match = _COMMIT.search(output[:20_000])
    return match[1] if match else None


def makes_commit(command: str | None) -> bool:
    """Whether a command line can make a commit."""
    return bool(command) and "git" in command and bool(_COMMITS.search(command))  # type: ignore[operator,arg-type]


def find_exit_code(output: str) -> int | None:
    """The exit code that a tool's output states in its first or last lines."""
    match = _EXIT.search(output[:400]) or _EXIT.search(output[-200:])
    return int(match[1]) if match else None


def unwrap_command(parts: Any) -> str | None:
    """A command line of an argument list; `bash -lc SCRIPT` is SCRIPT."""
    if isinstance(parts, str):
        return parts[:COMMAND_CHARS] or None
    if not isinstance(parts, list) or not parts:
        return None
    words = [part for part in parts if isinstance(part, str)]
    if len(words) == 3 and words[1] in ("-lc", "-c", "-Command", "/c"):
        return words[2][:COMMAND_CHARS] or None
    if len(words) == 2 and words[0].endswith("apply_patch"):
        return words[1][: COMMAND_CHARS * 50]
    return shlex.join(words)[:COMMAND_CHARS] or None


_COMMITS: Final = re.compile(r"\bgit\b[^|;&]*\b(?:commit|merge|cherry-pick|revert|am)\b")


def _command(arguments: dict[str, Any]) -> str | None:
    several = arguments.get("commands")
    if isinstance(several, list):
        lines = [line for line in several if isinstance(line, str)]
        return "\n".join(lines)[:COMMAND_CHARS] or None
    for key in _COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, list):
            return unwrap_command(value)
        if isinstance(value, str) and value:
            limit = COMMAND_CHARS * 50 if "*** Begin Patch" in value else COMMAND_CHARS
            return value[:limit]
    return None


def _target(value: Any) -> str | None:
    if isinstance(value, list) and value and isinstance(value[0], str):
        value = value[0]
    return text_or_none(value, 1_024)


def _edit_size(arguments: dict[str, Any]) -> dict[str, int]:
    gained: list[str] = []
    lost: list[str] = []
    edits = arguments.get("edits")
    for edit in [arguments, *(edits if isinstance(edits, list) else [])]:
        if not isinstance(edit, dict):
            continue
        for keys, texts in ((_NEW_KEYS, gained), (_OLD_KEYS, lost)):
            text = next((edit[key] for key in keys if isinstance(edit.get(key), str)), "")
            if text:
                texts.append(text)
    new, old = "\n".join(gained), "\n".join(lost)
    added = new.count("\n") + 1 if new else 0
    return _sizes(added, old.count("\n") + 1 if old else 0, new, old)


_NEW_KEYS: Final = (
    "new_string",
    "newString",
    "new_str",
    "content",
    "file_text",
    "new_source",
    "contents",
    "newText",
    "new_text",
    "ReplacementContent",
    "CodeContent",
    "replace",
)
_OLD_KEYS: Final = (
    "old_string",
    "oldString",
    "old_str",
    "oldText",
    "old_text",
    "TargetContent",
    "search",
)


def _sizes(added: int, removed: int, new: str, old: str) -> dict[str, int]:
    sizes = {"added": added, "removed": removed}
    tests = len(_TEST.findall(new)) - len(_TEST.findall(old)) if "est" in new or "it(" in new else 0
    if tests > 0:
        sizes["tests"] = tests
    return sizes


def _patch(text: str) -> list[Deed]:
    heads = list(_PATCH_FILE.finditer(text))[:TARGETS]
    deeds = []
    for index, head in enumerate(heads):
        end = heads[index + 1].start() if index + 1 < len(heads) else len(text)
        extra: dict[str, Any] = change_size(text[head.end() : end])
        if head[1] != "Update":
            extra["change"] = head[1].lower()
        deeds.append(Deed("edit", target=head[2][:1_024], extra=extra))
    return deeds or [Deed("edit")]
