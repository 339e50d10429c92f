"""What is known of each mirrored file, for `status` and the degraded modes."""

import time
from typing import Any

from lored.core import clock
from lored.store.facts.intake import Intake


class MirrorState:
    """Per scope (None: the global one) the last sync and its outcome."""

    def __init__(self) -> None:
        self._of: dict[str | None, dict[str, Any]] = {}

    def failed(self, scope: str | None, error: Exception) -> None:
        """The file could not be used; what was known of it stays."""
        self._of.setdefault(scope, {})["error"] = str(error) or type(error).__name__

    def synced(self, scope: str | None, path: str, report: Intake, lines: int) -> None:
        """File and store say the same; the file has ``lines`` lines of facts."""
        self._of[scope] = {
            "path": path,
            "facts": lines,
            "problems": report.problems[:20],
            "renumbered": report.renumbered,
            "not_in_file": report.detached,
            "synced_at": _now(),
        }

    def went_on(self, scope: str | None, lines: int) -> None:
        """Changes of the store were written to the file, which has ``lines`` lines now."""
        self._of[scope] |= {"facts": lines, "synced_at": _now()}
        self._of[scope].pop("error", None)

    def lines(self, scope: str | None) -> int:
        """Lines of facts in the file as of the last sync."""
        return int(self._of[scope]["facts"])

    def error(self, scope: str | None) -> str | None:
        """Why the file could not be used at last; None when it was."""
        found: str | None = self._of.get(scope, {}).get("error")
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Per file: path, facts, problems, error."""
        return [
            {"workspace": scope, **state}
            for scope, state in self._of.items()
            if state.get("facts") or state.get("error") or state.get("problems")
        ]

    def degraded(self) -> list[dict[str, str]]:
        """Files that cannot be kept in step, and lines that nobody can read."""
        found = []
        for state in self._of.values():
            if state.get("error"):
                found.append(
                    {
                        "name": "mirror",
                        "reason": f"facts.jsonl is not kept in step: {state['error']}",
                        "remedy": "make it readable and writable, or set mirror_workspaces",
                    }
                )
            elif state.get("problems"):
                found.append(
                    {
                        "name": "mirror",
                        "reason": f"{state['path']}: {state['problems'][0]}"
                        f" ({len(state['problems'])} lines kept as they are)",
                        "remedy": "correct or remove the line",
                    }
                )
        return found


def _now() -> str:
    return clock.to_wire(int(time.time()) * clock.SECOND)
