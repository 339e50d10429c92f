"""The queue of write functions of one store, and their commits in groups.

Syncing a commit takes a disk several milliseconds, in which the writer could do nothing else;
so functions that wait are run one after the other in one transaction and synced together. Each
is acknowledged after that commit. A function that fails takes back its own changes only: the
first of a group by ending the transaction, the others by a savepoint. Where SQLite itself ended
the transaction (disk full, I/O error), or the commit fails, nothing of the group is stored and
all of it hears the reason.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar

from lored.store.driver import Connection

T = TypeVar("T")

GROUP_WRITES: Final = 32
"""Functions committed together at most: what one failing commit may take with it."""

GROUP_SECONDS: Final = 0.005
"""After this a group takes no further function: about what the sync costs, so that waiting for
company at most doubles the first one's time."""

Runner = Callable[[Callable[[Connection], None]], Awaitable[None]]


class _Job:
    """One write function and what came of it."""

    __slots__ = ("error", "fn", "future", "result")

    def __init__(self, fn: Callable[[Connection], Any], future: "asyncio.Future[Any]") -> None:
        self.fn, self.future = fn, future
        self.result: Any = None
        self.error: BaseException | None = None


class Writer:
    """Runs write functions of one store in the order given, on the thread of its writer."""

    def __init__(
        self, run: Runner, lost: Callable[[], None], met: Callable[[BaseException], None]
    ) -> None:
        """``run`` gives a function the writer connection, on its thread; ``lost`` is called
        there when functions that had ended well were taken back: whoever keeps in memory what
        a later one of the group read drops it; ``met`` is told what functions raise."""
        self._run, self._lost, self._met = run, lost, met
        self._waiting: deque[_Job] = deque()
        self._task: asyncio.Task[None] | None = None
        self.pending = 0
        """Functions waiting or running."""
        self.commits = 0
        """Transactions committed."""

    async def write(self, fn: Callable[[Connection], T]) -> T:
        """The result of ``fn`` once it is committed. A caller that stops waiting does not stop
        the function."""
        job = _Job(fn, asyncio.get_running_loop().create_future())
        job.future.add_done_callback(self._done)
        self.pending += 1
        self._waiting.append(job)
        if self._task is None:
            self._task = asyncio.ensure_future(self._work())
        result: T = await asyncio.shield(job.future)
        return result

    def _done(self, future: "asyncio.Future[Any]") -> None:
        self.pending -= 1
        if not future.cancelled():
            future.exception()  # a caller that went away must not leave it unretrieved

    async def drain(self) -> None:
        """Wait until nothing waits or runs."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        """Group after group, until nobody waits."""
        try:
            while self._waiting:
                group: list[_Job] = []
                try:
                    await self._run(partial(self._commit, group))
                except BaseException as error:  # the thread is gone: nobody will answer
                    group += self._waiting
                    self._waiting.clear()
                    for job in group:
                        job.error = job.error or error
                for job in group:
                    self._settle(job)
        finally:
            self._task = None

    def _settle(self, job: _Job) -> None:
        if job.error is None:
            if not job.future.done():
                job.future.set_result(job.result)
            return
        self._met(job.error)
        if not job.future.done():
            job.future.set_exception(job.error)

    def _commit(self, group: list[_Job], connection: Connection) -> None:
        """One transaction, on the writer's thread: everything taken is put into ``group``."""
        open_jobs: list[_Job] = []
        end = time.monotonic() + GROUP_SECONDS
        while self._waiting and len(group) < GROUP_WRITES:
            if group and time.monotonic() > end:
                break
            job = self._waiting.popleft()
            group.append(job)
            try:
                if not open_jobs:
                    connection.execute("BEGIN IMMEDIATE")
                    job.result = job.fn(connection)
                else:
                    connection.execute("SAVEPOINT one_of_a_group")
                    job.result = job.fn(connection)
                    connection.execute("RELEASE one_of_a_group")
                open_jobs.append(job)
            except BaseException as error:
                job.error = error
                self._take_back(connection, open_jobs, error)
        if open_jobs:
            try:
                connection.execute("COMMIT")
                self.commits += 1
            except BaseException as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._fail(open_jobs, error)

    def _take_back(self, connection: Connection, before: list[_Job], error: BaseException) -> None:
        """Undo the function that failed, and keep those ``before`` it if SQLite did."""
        if not before or not connection.in_transaction:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._fail(before, error)
            return
        connection.execute("ROLLBACK TO one_of_a_group")
        connection.execute("RELEASE one_of_a_group")

    def _fail(self, jobs: list[_Job], error: BaseException) -> None:
        if not jobs:
            return
        for job in jobs:
            job.error = error
        jobs.clear()
        self._lost()
