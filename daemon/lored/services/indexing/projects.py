"""Sessions that agents keep inside projects: which known workspaces have any.

Such places are not searched for on the disk; the workspaces that sessions and facts were seen
in are asked, at each sweep. A place that was found once stays a root until the daemon ends.
Looked at in a thread, since a workspace may lie on a dead mount: then nothing new is found.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Final

from lored.core.transcripts import Root, workspace_roots

LOOK_SECONDS: Final = 5.0
"""Two questions to the file system per workspace; a thousand take some milliseconds."""


class Projects:
    """Places inside known workspaces."""

    def __init__(self, workspaces: Callable[[], list[str]]) -> None:
        """``workspaces`` gives the directories of all known workspaces."""
        self._workspaces = workspaces
        self._looking: asyncio.Future[list[Root]] | None = None
        self.found: dict[tuple[str, str], Root] = {}

    async def look(self) -> None:
        """Ask the workspaces; sweeps that come at once share one question."""
        if self._looking is None:
            folders = self._workspaces()
            self._looking = asyncio.ensure_future(asyncio.to_thread(_look, folders))
        looking = self._looking
        done, _ = await asyncio.wait([looking], timeout=LOOK_SECONDS)
        if done:
            for root in looking.result():
                self.found.setdefault(root[:2], root)
            self._looking = None if self._looking is looking else self._looking


def _look(folders: list[str]) -> list[Root]:
    """The places in ``folders`` that are there."""
    return [
        root
        for folder in folders
        for root in workspace_roots(folder)
        for pattern in root.patterns
        if os.path.lexists(os.path.join(root.path, pattern.split("/", 1)[0]))
    ]
