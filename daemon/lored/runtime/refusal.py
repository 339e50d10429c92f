"""Why a daemon did not start: one sentence for people and an exit code for supervisors.

Owns the exit codes of `lored` (those of BSD sysexits.h, which systemd prints by name). The
unit file lists the permanent ones in `RestartPreventExitStatus`.
"""

from typing import Final

OK: Final = 0
BAD_STORE: Final = 65
"""A store is corrupt, foreign or newer than this release (EX_DATAERR)."""
SOFTWARE: Final = 70
"""A defect of ours (EX_SOFTWARE)."""
ALREADY_RUNNING: Final = 75
"""Another daemon of this user holds the lock (EX_TEMPFAIL)."""
BAD_SETUP: Final = 78
"""Configuration, directories, file system or Python packages do not fit (EX_CONFIG)."""


class Refused(Exception):
    """The daemon will not start. ``message`` is one sentence with the remedy, ``code`` one of
    the exit codes above."""

    def __init__(self, message: str, code: int = BAD_SETUP) -> None:
        super().__init__(message)
        self.message, self.code = message, code
