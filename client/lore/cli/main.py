"""Entry point of the command `lore`.

Only picks the way in: `ping` and `hook` have budgets of a few milliseconds and take their own
roads without argparse or json; every other verb goes through `dispatch`.
"""

import sys


def main(argv: "list[str] | None" = None) -> int:
    """Run one command line (default: the process's own); returns the exit code."""
    words = sys.argv[1:] if argv is None else argv
    if words and words[0] == "ping":
        from lore.cli.ping import run_quickly

        code = run_quickly(words[1:])
        if code is not None:
            return code
    if words and words[0] == "hook":
        from lore.hooks.entry import run as run_hook

        code = run_hook(words[1:])
        if code is not None:
            return code
    from lore.cli.dispatch import run

    return run(words)


if __name__ == "__main__":
    sys.exit(main())
