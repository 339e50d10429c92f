"""Records of one file -> rows that the daemon only has to write.

Order of work for each record: secrets out, then the summary fold sees it, then its stored and
index forms are made. So no secret reaches a summary, an index or a vector. Everything here is
bounded: a batch by `full`, a fold state by its owner.

Sessions other than the file's own may occur (a file can hold lines of several); what the
daemon knows of each is asked for once, by ``known``.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo
from typing import Any, Final

import msgpack
import orjson

from lored.core import summary
from lored.core.batches import (
    ActionRow,
    Batch,
    CompactionRow,
    MessageRow,
    Place,
    RollbackRow,
    Row,
    SidecarSeen,
    Stated,
    record_key,
)
from lored.core.clock import to_wire
from lored.core.outputs import output_form
from lored.core.redact import redact, scan
from lored.core.session_fields import changes, instant, merge, wire_fields
from lored.core.stored_text import encode
from lored.core.tokens import context_form, index_form
from lored.core.transcripts.records import (
    Action,
    Compaction,
    Damage,
    Message,
    Record,
    Rollback,
    SessionPatch,
)
from lored.embed.base import Embedder, quantize
from lored.ingest.books import Book, Known, is_echo

BATCH_ROWS: Final = 512
"""Rows of one transaction, some 50 ms of writing: each costs an index flush and a commit too."""
BATCH_BYTES: Final = 1 << 20
"""Text of one transaction, for the same reason."""

ROLES: Final = {"user": 0, "assistant": 1, "tool": 2, "summary": 3, "context": 4}
SPOKEN: Final = frozenset(("user", "assistant", "summary"))
"""What was said, as against what a tool printed or a program injected: only this has vectors
and is context for what follows."""

PREVIOUS_CHARS: Final = 300
"""Kept of a message as context of the next (`tokens.CONTEXT_CHARS`)."""


class Harvest:
    """Collects the records of one file."""

    def __init__(
        self,
        agent: str,
        session: str,
        known: Callable[[str], Known],
        *,
        excluded: Callable[[str], bool],
        redacting: bool,
        embedder: Embedder | None,
        at: int | None,
        now: int,
        zone: tzinfo,
    ) -> None:
        """``known`` tells what the daemon knows of a native session id, ``excluded`` whether
        sessions in a working directory are unwanted. ``at``: instant of the record before,
        which records without a time inherit; ``now``: microseconds UTC; ``zone``: whose days
        summaries name."""
        self._agent = agent
        self._session = session
        self._ask = known
        self._excluded = excluded
        self._redacting = redacting
        self._embedder = embedder
        self.at = at
        self._now = now
        self._zone = zone
        self._books: dict[str, Book] = {}
        self._outputs: dict[str, tuple[str, bool]] = {}  # by action, whose record comes after
        self._clear()

    def _clear(self) -> None:
        self._outputs.clear()
        self._touched: dict[str, None] = {}
        self._rows: list[Row] = []
        self._spoken: list[tuple[int, str]] = []
        self._stated: list[Stated] = []
        self._spent: dict[bytes, tuple[str, dict[str, int]]] = {}
        self._damage: dict[str, int] = {}
        self._redactions: dict[str, int] = {}
        self._records = 0
        self._bytes = 0

    @property
    def idle(self) -> bool:
        """Whether nothing was taken since the beginning of the job."""
        return not self._books

    def full(self) -> bool:
        """Whether to cut the batch after this record: not between an output and its action."""
        full = len(self._rows) >= BATCH_ROWS or self._bytes >= BATCH_BYTES
        return full and (not self._outputs or len(self._rows) >= 2 * BATCH_ROWS)

    @property
    def barred(self) -> bool:
        """Whether nothing of the file's own session is wanted."""
        book = self._books.get(self._session)
        return book is not None and book.known.barred

    def damage(self, reason: str, count: int = 1) -> None:
        """Count damage that the reader itself met."""
        self._damage[reason] = self._damage.get(reason, 0) + count

    def take(self, records: Iterable[Record]) -> None:
        """Add the records of one line, document or database row group."""
        record: Any  # told apart by type below: this loop runs for every record there is
        self._records += 1
        for record in records:
            kind = type(record)
            if isinstance(record, Damage):
                self.damage(record.reason)
                continue
            name = record.session or self._session
            book = self._books.get(name) or self._open(name)
            if kind is SessionPatch and record.cwd and self._excluded(record.cwd):
                self._bar(name, book)
            known = book.known
            if known.barred:
                continue
            self._touched[name] = None
            if kind is SessionPatch:
                if record.title or record.prompt_title or record.titles:
                    self._clean(record, "title", "prompt_title", "titles")
                if record.tokens and book.last is not None:
                    self._spend(name, book, record.tokens)
                merge(book.patch, changes(record))
            elif kind is Message:
                if record.extra and is_echo(record, known, self._now):
                    continue
                self._message(name, book, record)
            elif kind is Action:
                self._action(name, record)
            elif kind is Compaction:
                self._compaction(name, record)
            elif kind is Rollback:
                key = record_key(self._agent, record.from_key) if record.from_key else None
                self._rows.append(RollbackRow(name, record.turns, key, record.part, record.offset))
            book.records.append(record)

    def _spend(self, name: str, book: Book, totals: dict[str, int]) -> None:
        """Note what the latest message cost, and what followed it."""
        assert book.last is not None
        _, spent = self._spent.setdefault(book.last, (name, {}))
        for kind, count in book.spend(totals).items():
            spent[kind] = spent.get(kind, 0) + count

    def _open(self, name: str) -> Book:
        """The book of a new session; without a name (a file that does not say) of no use."""
        known = self._ask(name) if name else Known({}, {}, barred=True)
        book = self._books[name] = Book(known)
        return book

    def _bar(self, name: str, book: Book) -> None:
        """Drop what was collected of a session that turns out to be excluded."""
        book.known.barred = True
        book.records, book.patch = [], {}
        self._touched.pop(name, None)
        kept = [(i, row) for i, row in enumerate(self._rows) if row.session != name]
        moved = {old: new for new, (old, _) in enumerate(kept)}
        self._rows = [row for _, row in kept]
        self._spoken = [(moved[i], text) for i, text in self._spoken if i in moved]

    def cut(self, place: Place, *, last: bool, sidecars: Sequence[SidecarSeen] = ()) -> Batch:
        """The batch of all records since the last cut, with the summaries as of now: so a
        summary is never behind what is stored, wherever the reading is cut."""
        folds: dict[str, tuple[bytes, str]] = {}
        patches: dict[str, dict[str, Any]] = {}
        for name in tuple(self._touched):
            book = self._books[name]
            named = book.patch.get("cwd") or book.known.fields.get("cwd")
            if not named and self._excluded(""):
                self._bar(name, book)
        for name in self._touched:
            book = self._books[name]
            summary.fold(book.known.fold, book.records)
            book.records = []
            if book.patch:
                patches[name] = book.patch
                merge(book.known.fields, book.patch)
                book.patch = {}
            folds[name] = (msgpack.packb(book.known.fold), self._render(book))
        rows = self._rows
        for (index, _), vector in zip(self._spoken, self._vectors(), strict=True):
            row = rows[index]
            assert isinstance(row, MessageRow)
            rows[index] = row._replace(vector=vector)
        batch = Batch(
            self._session,
            place,
            rows,
            patches,
            folds,
            self._damage,
            self._redactions,
            list(sidecars),
            self._records,
            last,
            self._embedder.model.name if self._embedder is not None else "",
            [one for one in self._stated if not self._books[one.session].known.barred],
            self._spent,
        )
        self._clear()
        return batch

    def _render(self, book: Book) -> str:
        found = summary.render(book.known.fold, wire_fields(book.known.fields), self._zone)
        return orjson.dumps(found).decode()

    def _vectors(self) -> list[bytes | None]:
        if self._embedder is None or not self._spoken:
            return [None] * len(self._spoken)
        return list(quantize(self._embedder.embed([text for _, text in self._spoken])))

    def _secretless(self, text: str) -> str:
        if not self._redacting or not text:
            return text
        text, counts = redact(text)
        for rule, count in counts.items():
            self._redactions[rule] = self._redactions.get(rule, 0) + count
        return text

    def _clean(self, record: Any, *names: str) -> None:
        for name in names:
            value = getattr(record, name)
            if isinstance(value, str):
                setattr(record, name, self._secretless(value))
            elif isinstance(value, list):
                setattr(record, name, [self._secretless(item) for item in value])
            elif isinstance(value, dict):
                setattr(record, name, {k: self._secretless(item) for k, item in value.items()})

    def _instant(self, text: str | None) -> int | None:
        found = instant(text)
        if found is not None:
            self.at = found
        return self.at

    def _message(self, name: str, book: Book, record: Message) -> None:
        told = record.text
        record.text = text = self._secretless(told)
        at = self._instant(record.at)
        if record.at is None and at is not None:
            record.at = to_wire(at)
        spoken = record.role in SPOKEN
        words = context = ""
        if spoken:
            words = index_form(text)
            context = context_form(at, book.known.previous, text)
            book.known.previous = text[-PREVIOUS_CHARS:]
            if text:
                self._spoken.append((len(self._rows), text))
        elif record.role == "tool":
            words = output_form(text)
            if "action" in record.extra:
                self._outputs[record.extra["action"]] = (record.key, text is told)
        self._bytes += len(text) + len(words)
        book.last = record_key(self._agent, record.key)
        self._rows.append(
            MessageRow(
                name,
                book.last,
                record.key,
                ROLES[record.role],
                at,
                encode(text),
                record.truncated_bytes,
                1 if record.rolled_back else 0,
                record.replaces,
                words,
                context,
                None,
            )
        )

    def _action(self, name: str, record: Action) -> None:
        output, is_clean = self._outputs.pop(record.key, (None, False))
        message = record_key(self._agent, record.message_key) if record.message_key else None
        if said := record.extra.get("states"):
            self._stated.append(
                Stated(
                    name,
                    message,
                    instant(record.started_at),
                    said["text"],
                    said["entities"],
                    self._redacting and bool(scan(said["text"])),
                )
            )
        record.target = self._secretless(record.target) if record.target else None
        record.command = self._secretless(record.command) if record.command else None
        excerpt = record.output_excerpt
        if excerpt and not is_clean:
            record.output_excerpt = excerpt = self._secretless(excerpt)
        self._bytes += len(excerpt or "") + len(record.command or "")
        self._rows.append(
            ActionRow(
                name,
                record_key(self._agent, f"action\0{record.key}"),
                message,
                record_key(self._agent, output) if output else None,
                record.kind,
                record.tool,
                record.target,
                record.command,
                record.status,
                record.exit_code,
                instant(record.started_at),
                instant(record.ended_at),
                encode(excerpt) if excerpt and output is None else None,  # else in its message
                record.commit,
            )
        )

    def _compaction(self, name: str, record: Compaction) -> None:
        self._clean(record, "summary", "kept_facts", "next_steps")
        self._bytes += len(record.summary)
        self._rows.append(
            CompactionRow(
                name,
                record_key(self._agent, f"compaction\0{record.key}"),
                self._instant(record.at),
                record.summary,
                orjson.dumps(record.kept_facts).decode(),
                orjson.dumps(record.next_steps).decode(),
            )
        )
