"""A mount that never answers, in a mount namespace of its own, then a program within it.

    unshare -m python deadmount.py FOLDER PROGRAM ...

Opens /dev/fuse, mounts it at FOLDER and never serves it: every look into FOLDER hangs, as on
a network mount whose server is gone. The descriptor is inherited by PROGRAM; when that ends,
the kernel lets everybody go. Needs the right to mount.
"""

import ctypes
import os
import sys


def main() -> None:
    """Mount, then become the program."""
    folder = sys.argv[1]
    libc = ctypes.CDLL(None, use_errno=True)
    private = 1 << 18  # MS_PRIVATE, with MS_REC: nothing of this is seen outside
    libc.mount(b"none", b"/", None, private | (1 << 14), None)
    fd = os.open("/dev/fuse", os.O_RDWR)
    os.set_inheritable(fd, True)
    options = f"fd={fd},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}".encode()
    if libc.mount(b"dead", os.fsencode(folder), b"fuse.dead", 0, options) != 0:
        print(os.strerror(ctypes.get_errno()), file=sys.stderr)
        sys.exit(77)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
