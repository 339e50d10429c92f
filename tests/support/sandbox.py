"""Run a command where the kernel refuses Unix sockets, as agents' sandboxes do (seccomp).

`python sandbox.py COMMAND...`: installs a filter under which `socket(AF_UNIX, ...)` fails with
EPERM, then becomes the command. Linux on x86-64 and arm64.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LD_W_ABS, JEQ_K, RET_K = 0x20, 0x15, 0x06
ALLOW, ERRNO_EPERM = 0x7FFF0000, 0x00050000 | errno.EPERM
ARCHITECTURES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""AUDIT_ARCH constant and number of the `socket` call (linux/audit.h, asm/unistd.h)."""

SUPPORTED = sys.platform == "linux" and platform.machine() in ARCHITECTURES


def refuse_unix_sockets() -> None:
    """Put this process, and what it becomes, into the sandbox."""
    arch, call = ARCHITECTURES[platform.machine()]
    program = [
        (LD_W_ABS, 0, 0, 4),  # seccomp_data.arch
        (JEQ_K, 0, 4, arch),
        (LD_W_ABS, 0, 0, 0),  # seccomp_data.nr
        (JEQ_K, 0, 2, call),
        (LD_W_ABS, 0, 0, 16),  # low half of args[0]: the address family
        (JEQ_K, 1, 0, 1),  # AF_UNIX
        (RET_K, 0, 0, ALLOW),
        (RET_K, 0, 0, ERRNO_EPERM),
    ]
    code = b"".join(struct.pack("=HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(code)
    header = struct.pack("@HxxxxxxP", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(header), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_SECCOMP")


if __name__ == "__main__":
    refuse_unix_sockets()
    os.execv(sys.argv[1], sys.argv[1:])
