"""Sessions as a reader needs them who writes or checks questions: record keys and short texts.

    python -m tests.bench.quality.show                          the sessions
    python -m tests.bench.quality.show SESSION [--chars N]      one session
    python -m tests.bench.quality.show --record KEY ...         whole records

The collection is indexed anew each time, which takes some seconds.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.quality import history, places
from lored.core.clock import to_wire


def main() -> int:
    """Print; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.quality.show")
    parser.add_argument("session", nargs="?", help="a session's id, or its beginning")
    parser.add_argument("--chars", type=int, default=300, help="of each text")
    parser.add_argument("--record", nargs="+", default=[], metavar="KEY")
    chosen = parser.parse_args()
    if not places.transcripts().is_dir():
        print(places.missing(places.transcripts()), file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="lore-bench-") as name:
        read = history.memory(history.index(places.transcripts(), Path(name)), [])
    for session in read.sessions:
        if chosen.record:
            for turn in session.turns:
                if turn.key in chosen.record:
                    print(f"{session.key}\n{turn.key} {turn.role}\n{turn.text}\n")
        elif chosen.session is None:
            print(f"{session.key}  {len(session.turns)} messages")
        elif session.key.startswith(chosen.session):
            print(session.key)
            for turn in session.turns:
                at = to_wire(turn.at) if turn.at is not None else "-"
                said = " ".join(turn.text.split())
                print(f"{turn.key}  {turn.role}  {at}  {said[: chosen.chars]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
