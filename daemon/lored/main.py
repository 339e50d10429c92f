"""The command `lored`, and the composition root: which services a daemon has, in which order.

`lored run` is the daemon in the foreground; whoever starts it (a client, systemd, launchd)
puts it in the background. `lored check` says whether it could start, and starts nothing.
"""

import argparse
import os
import sys

from lored import __version__

SERVICES = (
    # (name in App.services, "module:Class"), in start order; they stop in reverse.
    ("embedding", "lored.services.search.embedding:Embedding"),
    ("facts", "lored.services.facts.front:Facts"),
    ("triage", "lored.services.facts.triage:Triage"),
    ("snapshots", "lored.services.facts.snapshot:Snapshots"),
    ("mirror", "lored.services.exchange.mirror:Mirror"),
    ("sessions", "lored.services.sessions.reading:Sessions"),
    ("indexing", "lored.services.indexing.indexer:Indexing"),
    ("recall", "lored.services.search.recall:Recall"),
    ("reindexing", "lored.services.search.reindexing:Reindexing"),
    ("context", "lored.services.search.context:Context"),
    ("forget", "lored.services.sessions.forget:Forget"),
    ("strays", "lored.services.sessions.strays:Strays"),
    ("rewriting", "lored.services.sessions.rewriting:Rewriting"),
    ("importing", "lored.services.exchange.importing:Importing"),
    ("redaction", "lored.services.care.redaction:Redaction"),
    ("retention", "lored.services.sessions.retention:Retention"),
    ("backup", "lored.services.care.backup:Backup"),
    ("upkeep", "lored.services.care.upkeep:Upkeep"),
    ("spool", "lored.runtime.spool:Spool"),
    ("health", "lored.services.care.health:Health"),
)


def main(argv: "list[str] | None" = None) -> int:
    """Entry point; returns the exit code (see runtime/refusal.py)."""
    parser = argparse.ArgumentParser(
        prog="lored", description="The memory daemon. Its client is the command `lore`."
    )
    parser.add_argument("--version", action="version", version=f"lored {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("run", help="serve in the foreground until SIGTERM")
    verbs.add_parser("check", help="check settings, folders and stores; start nothing")
    chosen = parser.parse_args(argv)
    # Before numpy: a product of a few hundred rows is no work for two, and OpenBLAS lets the
    # second one spin, half as much processor time again for a search.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # structlog imports rich where it is installed, for a console that the daemon does not
    # have: a quarter of the whole start.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    try:
        if chosen.verb == "check":
            from lored.runtime import check

            return check.run()
        from lored.runtime import daemon
    except ImportError as error:
        print(
            f"lored: cannot start: {error.name or error} is missing; "
            "run: pip install 'lored[daemon]'",
            file=sys.stderr,
        )
        return 78
    return daemon.run(SERVICES)


if __name__ == "__main__":
    sys.exit(main())
