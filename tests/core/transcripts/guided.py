"""Coverage-guided fuzzing of one parser by atheris: `python guided.py PARSER SECONDS`.

Starts from lines (or documents) of the samples. Any exception, or anything told that
`test_fuzz.check` refuses, ends it with the input in a file `crash-...` of the working
directory. Run by `test_guided.py` for a moment; by hand for as long as you like.
"""

import sys
from pathlib import Path
from typing import Any

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["lored.core.transcripts"]):
    from lored.core.transcripts import PARSERS

from core.transcripts.test_fuzz import DOCUMENTS, LINES, check

SEEDS = 40
BYTES = 30_000


def main() -> None:
    """Fuzz until the time is over."""
    name, seconds = sys.argv[1], sys.argv[2]
    parser: Any = PARSERS[name]
    lines = hasattr(parser, "parse")
    documents = [(path, data) for kind, path, data in DOCUMENTS if kind == name]
    seeds = LINES[name] if lines else documents
    path = seeds[0][0]

    def one(data: bytes) -> None:
        if lines:
            state = parser.begin(path)
            records = [r for part in data.split(b"\n") for r in parser.parse(state, part, 0)]
        else:
            records = list(parser.parse_document(path, data))
        check(records, len(data))

    folder = Path("seeds")
    folder.mkdir(exist_ok=True)
    for number, (_, data) in enumerate(seeds[:: max(1, len(seeds) // SEEDS)]):
        (folder / str(number)).write_bytes(data[:BYTES])
    options = [f"-max_total_time={seconds}", f"-max_len={BYTES}", "-rss_limit_mb=2048"]
    atheris.Setup([sys.argv[0], *options, str(folder)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
