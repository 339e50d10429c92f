"""Where the data of others would be; README.md here says where to get each."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[3]
SET = ROOT / "tests" / "data" / "history"
"""Our own questions over coding sessions; the sessions are in `transcripts`."""
SAMPLES = ROOT / "tests" / "data" / "transcripts"
"""The few sessions that are in the repository, in the same layout."""


def shared() -> Path:
    """The folder that `LORE_SHARED_DATA` names, or the one beside the repository."""
    return Path(os.environ.get("LORE_SHARED_DATA") or ROOT.parent / "shared" / "data")


def retrieval() -> Path:
    """Public question sets."""
    return shared() / "retrieval"


def transcripts() -> Path:
    """Real sessions of agents, laid out as home directories by agent, with MANIFEST.tsv."""
    return shared() / "transcripts"


def missing(path: Path) -> str:
    """The reason of a row that could not be measured."""
    return f"{path.name} is not in {path.parent}; see tests/bench/quality/README.md"
