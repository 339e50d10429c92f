"""Who runs next: per-client queues served round robin, one lane for each class of methods.

A client may send 32 requests at once, but the stores have one writer thread and two or three
readers. Were every request started on arrival, a client that floods would put its 32 in front
of everybody else's one. So each lane has a few slots, a client may hold only part of them,
and the clients that wait take turns. The slots keep the threads of the stores busy and no
more, so that a newcomer waits for about one request of others.

As a client holds one slot of the write lane at most, its writes happen in the order sent.
"""

from collections import OrderedDict, deque
from typing import Final, Protocol

SLOTS: Final = {
    # class: (slots of the lane, of these for one client)
    "quick": (4, 2),  # two or three readers a store, one ahead to keep them fed
    "search": (3, 2),  # CPU-bound on the readers of one store
    "write": (2, 1),  # one in the writer, one preparing; order within a client
    "long": (16, 8),  # mostly waiting; bounded only against abuse
}


class Owner(Protocol):
    """A client, as far as a lane is concerned."""

    @property
    def may_start(self) -> bool:
        """False while it does not read its answers."""


class Job(Protocol):
    """One request that waits for a slot."""

    @property
    def owner(self) -> Owner:
        """Whose turn it takes."""

    def start(self) -> None:
        """Run; `Lane.release` must follow once it has ended."""


class Lane:
    """The slots of one class and the clients that wait for them."""

    def __init__(self, slots: int, share: int) -> None:
        self._slots, self._share = slots, share
        self._running: dict[Owner, int] = {}
        self._busy = 0
        self._waiting: OrderedDict[Owner, deque[Job]] = OrderedDict()

    @property
    def depth(self) -> dict[str, int]:
        """Requests running and waiting now."""
        return {"running": self._busy, "waiting": sum(map(len, self._waiting.values()))}

    def submit(self, job: Job) -> None:
        """Start the job now if its turn has come, else keep it."""
        owner = job.owner
        if owner not in self._waiting and self._fits(owner):
            self._begin(job)
        else:
            self._waiting.setdefault(owner, deque()).append(job)

    def withdraw(self, job: Job) -> bool:
        """Take a waiting job out; False when it is not waiting."""
        queue = self._waiting.get(job.owner)
        if queue is None or job not in queue:
            return False
        queue.remove(job)
        if not queue:
            del self._waiting[job.owner]
        return True

    def release(self, owner: Owner) -> None:
        """A started job of this client has ended."""
        self._busy -= 1
        left = self._running[owner] - 1
        if left:
            self._running[owner] = left
        else:
            del self._running[owner]
        self.advance()

    def advance(self) -> None:
        """Start what can start; call when a client reads again."""
        while self._busy < self._slots:
            owner = next((o for o in self._waiting if o.may_start and self._fits(o)), None)
            if owner is None:
                return
            queue = self._waiting.pop(owner)
            job = queue.popleft()
            if queue:
                self._waiting[owner] = queue  # to the end of the round
            self._begin(job)

    def _fits(self, owner: Owner) -> bool:
        return (
            self._busy < self._slots
            and self._running.get(owner, 0) < self._share
            and owner.may_start
        )

    def _begin(self, job: Job) -> None:
        self._busy += 1
        self._running[job.owner] = self._running.get(job.owner, 0) + 1
        job.start()


def make_lanes() -> dict[str, Lane]:
    """One lane for each deadline class."""
    return {name: Lane(*bounds) for name, bounds in SLOTS.items()}
