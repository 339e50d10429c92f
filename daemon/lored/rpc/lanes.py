"""Who runs next: per-client queues served in turn, one lane for each class of methods.

A client may send 32 requests at once, but the stores have one writer thread and two or three
readers, and what they compute shares one interpreter lock. Were every request started on
arrival, a client that floods would put its 32 in front of everybody else's one. So each lane
has a few slots, a client holds one of them (of the short classes), and whoever was served
longest ago is next: a newcomer waits for about one request and shares the machine with one.

It follows that the writes of a client happen in the order sent.

Who cannot be served in time hears it at once: from the number of jobs ahead and the time that a
slot was held lately a lane foresees how long a newcomer waits, and dispatch refuses it as
`busy` rather than let it wait for nothing.
"""

from collections import deque
from typing import Final, Protocol
from weakref import WeakKeyDictionary

from lore.wire.limits import CLIENTS
from lore.wire.methods import Method

SLOTS: Final = {
    # class: (slots of the lane, of these for one client)
    "quick": (4, 1),  # two or three readers a store, one ahead to keep them fed
    "search": (6, 1),  # the readers of two stores, some ahead
    "write": (8, 1),  # a group that shares one sync of the disk, see store/writer.py
    "long": (16, 8),  # mostly waiting; bounded only against abuse
    "session": (16, 2),  # looking after the daemon: never behind the work
    "greeting": (CLIENTS, 1),  # never waits: a `hello` refused as busy is no conversation at all
}

LEARNT: Final = 0.1
"""Weight of the newest job in the mean time that a slot is held: some twenty count."""

_SESSION: Final = frozenset({"subscribe", "status", "health", "metrics"})


def lane_of(method: Method) -> str:
    """The lane that a method's requests run in."""
    if method.name == "hello":
        return "greeting"
    return "session" if method.name in _SESSION else method.deadline


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
        self._waiting: dict[Owner, deque[Job]] = {}
        self._queued = 0
        self._turn = 0
        self._served: WeakKeyDictionary[Owner, int] = WeakKeyDictionary()
        """Number of the last turn that each client had."""
        self.held_seconds = 0.0
        """For how long a job holds its slot, lately and on average."""

    @property
    def depth(self) -> dict[str, int]:
        """Requests running and waiting now."""
        return {"running": self._busy, "waiting": self._queued}

    def foresee(self, owner: Owner) -> float:
        """Seconds that a new job of this client would wait for its slot.

        Each turn round serves every waiting client once, so of the others' jobs only as many
        count for each as this client has of its own, and its own take their turns in sequence.
        """
        if self._is_free_for(owner):
            return 0.0
        own = self._running.get(owner, 0) + len(self._waiting.get(owner, ()))
        ahead = min(self._queued, len(self._waiting) * (own + 1))
        return self.held_seconds * max((ahead + 1) / self._slots, own / self._share)

    def learn(self, seconds: float) -> None:
        """A job held its slot for so long."""
        self.held_seconds += (seconds - self.held_seconds) * LEARNT

    def submit(self, job: Job) -> None:
        """Start the job now if its turn has come, else keep it."""
        owner = job.owner
        if self._is_free_for(owner):
            self._begin(job)
        else:
            self._waiting.setdefault(owner, deque()).append(job)
            self._queued += 1

    def withdraw(self, job: Job) -> bool:
        """Take a waiting job out; False when it is not waiting."""
        queue = self._waiting.get(job.owner)
        if queue is None or job not in queue:
            return False
        queue.remove(job)
        self._queued -= 1
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
            ready = [owner for owner in self._waiting if self._fits(owner)]
            if not ready:
                return
            owner = min(ready, key=lambda one: self._served.get(one, 0))
            queue = self._waiting[owner]
            job = queue.popleft()
            self._queued -= 1
            if not queue:
                del self._waiting[owner]
            self._begin(job)

    def _is_free_for(self, owner: Owner) -> bool:
        return owner not in self._waiting and self._fits(owner)

    def _fits(self, owner: Owner) -> bool:
        return (
            self._busy < self._slots
            and self._running.get(owner, 0) < self._share
            and owner.may_start
        )

    def _begin(self, job: Job) -> None:
        self._busy += 1
        self._turn += 1
        self._served[job.owner] = self._turn
        self._running[job.owner] = self._running.get(job.owner, 0) + 1
        job.start()


def make_lanes() -> dict[str, Lane]:
    """All lanes by name."""
    return {name: Lane(*bounds) for name, bounds in SLOTS.items()}
