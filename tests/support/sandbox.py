"""Runs a command where Unix sockets are refused: `python sandbox.py COMMAND ...`.

A seccomp filter, as agents' sandboxes use, answers socket(AF_UNIX, ...) with EPERM. Linux on
x86-64 and arm64 only; exits with 77 where no filter can be set.
"""

import ctypes
import os
import platform
import struct
import sys

CANNOT = 77
_SOCKET_CALL = {"x86_64": 41, "aarch64": 198}
_AF_UNIX, _EPERM = 1, 1
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def refuse_unix_sockets() -> bool:
    """Set the filter for this process and all it starts; False where that cannot be."""
    number = _SOCKET_CALL.get(platform.machine())
    if sys.platform != "linux" or number is None:
        return False
    steps = (
        (_LOAD, 0, 0, 0),  # the number of the system call
        (_JUMP_IF_EQUAL, 0, 3, number),
        (_LOAD, 0, 0, 16),  # the low half of its first argument, the family
        (_JUMP_IF_EQUAL, 0, 1, _AF_UNIX),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    )
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    program = _Program(len(steps), code)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0) == 0)


if __name__ == "__main__":
    if not refuse_unix_sockets():
        sys.exit(CANNOT)
    os.execvp(sys.argv[1], sys.argv[1:])
