"""Readers of public data sets, each into `Memory`. None of the data is in this repository
but DevMemBench (MIT); see README.md for where to get the others.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lored.core.clock import parse_instant, to_micros

from .memories import Memory, Question, Session, Turn

LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}


def locomo(path: Path) -> Iterator[Memory]:
    """LoCoMo (snap-research/locomo, data/locomo10.json): categories 1 to 4 with evidence.

    A turn is `speaker: text`, as a reader of the chat sees it; the first speaker is the user.
    """
    for number, sample in enumerate(json.loads(path.read_text(encoding="utf-8"))):
        talk = sample["conversation"]
        people = (talk["speaker_a"], talk["speaker_b"])
        sessions = []
        for index in sorted(int(k[8:]) for k in talk if re.fullmatch(r"session_\d+", k)):
            began = _locomo_instant(talk[f"session_{index}_date_time"])
            turns = [
                Turn(
                    turn["dia_id"],
                    "user" if turn["speaker"] == people[0] else "assistant",
                    f"{turn['speaker']}: {turn['text']}",
                    began + place * 1_000_000,
                )
                for place, turn in enumerate(talk[f"session_{index}"])
            ]
            sessions.append(Session(f"D{index}", turns))
        known = {turn.key for session in sessions for turn in session.turns}
        questions = []
        for asked in sample["qa"]:
            evidence = " ".join(asked.get("evidence", ()))
            gold = [f"D{int(a)}:{int(b)}" for a, b in re.findall(r"D(\d+):(\d+)", evidence)]
            gold = [key for key in dict.fromkeys(gold) if key in known]
            if asked["category"] in LOCOMO_CATEGORIES and gold:
                questions.append(
                    Question(
                        asked["question"],
                        LOCOMO_CATEGORIES[asked["category"]],
                        gold,
                        list(dict.fromkeys(key.split(":")[0] for key in gold)),
                    )
                )
        yield Memory(f"conversation {number}", sessions, questions, people)


def _locomo_instant(text: str) -> int:
    return to_micros(datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC))


def devmembench(folder: Path) -> Iterator[Memory]:
    """DevMemBench (prosperitypirate/opencode-memory, benchmark/): 25 coding sessions, gold by
    session; questions of abstention are left out of recall."""
    sessions, projects = [], set()
    for item in json.loads((folder / "sessions.json").read_text(encoding="utf-8")):
        at = parse_instant(item["metadata"]["date"])
        projects.add(item["metadata"]["project"])
        turns = [
            Turn(f"{item['sessionId']}:{place}", turn["role"], turn["content"], at)
            for place, turn in enumerate(item["messages"])
        ]
        sessions.append(Session(item["sessionId"], turns))
    questions = [
        Question(item["question"], item["questionType"], sessions=item["haystackSessionIds"])
        for item in json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    ]
    answerable = [q for q in questions if q.sessions and q.category != "abstention"]
    yield Memory("devmembench", sessions, answerable, projects=tuple(sorted(projects)))


def longmemeval(path: Path) -> Iterator[Memory]:
    """LongMemEval (longmemeval_s.json or _oracle.json): one memory per question, gold by
    session and, where marked, by turn."""
    for item in json.loads(path.read_text(encoding="utf-8")):
        if str(item["question_id"]).endswith("_abs"):
            continue
        sessions, gold = [], []
        named = zip(
            item["haystack_session_ids"],
            item["haystack_dates"],
            item["haystack_sessions"],
            strict=True,
        )
        for key, date, turns in named:
            at = _longmemeval_instant(date)
            session = Session(str(key), [])
            for place, turn in enumerate(turns):
                session.turns.append(Turn(f"{key}:{place}", turn["role"], turn["content"], at))
                if turn.get("has_answer"):
                    gold.append(f"{key}:{place}")
            sessions.append(session)
        question = Question(
            item["question"],
            item["question_type"],
            gold,
            [str(key) for key in item["answer_session_ids"]],
        )
        yield Memory(str(item["question_id"]), sessions, [question])


def _longmemeval_instant(text: str) -> int | None:
    found = re.match(r"(\d{4})/(\d\d)/(\d\d) \(\w+\) (\d\d):(\d\d)", text)
    if not found:
        return parse_instant(text)
    return to_micros(datetime(*map(int, found.groups()), tzinfo=UTC))  # type: ignore[arg-type]


def codememo(folder: Path) -> Iterator[Memory]:
    """CodeMemo (laynepro/codememo-benchmark): questions over Claude Code transcripts, a folder
    per project with `questions.json` and `*.jsonl` transcripts; gold by session."""
    from lored.core.transcripts import PARSERS
    from lored.core.transcripts.records import Message

    parser: Any = PARSERS["claude-code"] if "claude-code" in PARSERS else PARSERS["claude"]
    for asked in sorted(folder.rglob("questions*.json")):
        sessions = []
        for path in sorted(asked.parent.rglob("*.jsonl")):
            state = parser.begin(str(path))
            session, offset = Session(path.stem, []), 0
            for line in path.read_bytes().splitlines(keepends=True):
                for record in parser.parse(state, line.rstrip(b"\n"), offset):
                    if isinstance(record, Message) and record.role in ("user", "assistant"):
                        at = parse_instant(record.at)
                        key = f"{path.stem}:{record.key}"
                        session.turns.append(Turn(key, record.role, record.text, at))
                offset += len(line)
            sessions.append(session)
        items = json.loads(asked.read_text(encoding="utf-8"))
        items = items["questions"] if isinstance(items, dict) else items
        questions = []
        for item in items:
            evidence = item.get("evidence") or item.get("evidence_sessions") or []
            names = [e if isinstance(e, str) else str(e.get("session_id", "")) for e in evidence]
            gold = [s.key for s in sessions if any(name and s.key in name for name in names)]
            if gold:
                kind = str(item.get("category") or item.get("question_type") or "all")
                questions.append(Question(item["question"], kind, sessions=gold))
        yield Memory(asked.parent.name, sessions, questions)
