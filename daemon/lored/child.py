"""A child process of the daemon on a socket pair: its standard input and output are our stream.

Started by `subprocess.Popen`, which on Linux uses vfork and runs nothing but system calls
in the child. asyncio's own way (under uvloop: fork in libuv) must not be used here: the
daemon has threads, and a forked child that meets a lock one of them held never reaches its
exec; the loop then waits for it for ever (seen in 1 of 20 starts on a loaded machine).
"""

import asyncio
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Final

POLL_SECONDS: Final = 0.01
"""Between two looks at whether a child that was told to end has ended."""

KILL_SECONDS: Final = 5.0
"""From SIGKILL to the end; longer only in a system call that cannot be interrupted."""


class Child:
    """A running child. ``reader`` and ``writer`` are its output and input, ``errors`` its
    standard error where that was asked for."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        errors: asyncio.StreamReader | None,
        errors_writer: asyncio.StreamWriter | None,
    ) -> None:
        self._process = process
        self.reader, self.writer, self.errors = reader, writer, errors
        self._errors_writer = errors_writer
        self.pid = process.pid

    @classmethod
    async def start(
        cls,
        arguments: Sequence[str],
        env: Mapping[str, str] | None,
        *,
        limit: int,
        errors: bool = False,
    ) -> "Child":
        """Start a program; ``limit``: bytes of its output that wait for us; ``errors``: take its
        standard error, else it shares ours. Raises OSError."""
        ours, theirs = socket.socketpair()
        our_errors, their_errors = socket.socketpair() if errors else (None, None)
        try:
            process = _spawn(arguments, env, theirs, their_errors)
        except BaseException:
            for end in (ours, our_errors):
                if end is not None:
                    end.close()
            raise
        finally:
            theirs.close()
            if their_errors is not None:
                their_errors.close()
        reader, writer = await asyncio.open_unix_connection(sock=ours, limit=limit)
        if our_errors is None:
            return cls(process, reader, writer, None, None)
        error_reader, error_writer = await asyncio.open_unix_connection(sock=our_errors)
        return cls(process, reader, writer, error_reader, error_writer)

    @property
    def returncode(self) -> int | None:
        """Its exit code once it has ended (negative: the signal)."""
        return self._process.poll()

    def end_input(self) -> None:
        """Its input ends here; what it still says can be read."""
        if not self.writer.is_closing():
            self.writer.write_eof()

    async def ended(self, seconds: float) -> bool:
        """Whether it ends within ``seconds``."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while self._process.poll() is None:
            if loop.time() > deadline:
                return False
            await asyncio.sleep(POLL_SECONDS)
        return True

    def close(self) -> None:
        """Close our ends."""
        self.writer.close()
        if self._errors_writer is not None:
            self._errors_writer.close()

    async def kill(self, seconds: float = KILL_SECONDS) -> bool:
        """End it by force; False when the system does not let it go (it hangs in a call on a
        dead mount): it is then left to the system."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        gone = await self.ended(seconds)
        self.writer.close()  # its last words on `errors` can still be read
        return gone


def _spawn(
    arguments: Sequence[str],
    env: Mapping[str, str] | None,
    stream: socket.socket,
    errors: socket.socket | None,
) -> "subprocess.Popen[Any]":
    return subprocess.Popen(
        list(arguments),
        env=None if env is None else dict(env),
        stdin=stream.fileno(),
        stdout=stream.fileno(),
        stderr=None if errors is None else errors.fileno(),
    )
