"""Memory programs of others on the same memory: each in its own Python, in its own process.

Who runs the bench installs them: a variable names a Python that has the package, otherwise the
row says so. They are fed through their own ways of adding and asked through their own search,
one entry a message; a long output of a tool is cut, as embedding it takes them hours. Nothing
is downloaded: both get the vectors of our MiniLM, which is the model that both use by default
(theirs in float32), the one through its seam for embedders, the other as the file that it
would have fetched.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import lored.embed

from .memories import Memory
from .ours import Models

MODELS = Path(lored.embed.__file__).parent / "models"
PROGRAMS = Path(__file__).parent / "programs"
TOOL_CHARS = 800
"""Of a tool's output; what people and models said is given whole."""

PATIENCE = 3_600
"""Seconds for one program and one memory."""

Found = list[tuple[list[str], list[str]]]
"""Per question turn keys and their sessions, best first."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A program: its name, the variable that names its Python, its script, the package."""

    name: str
    variable: str
    script: str
    package: str

    @property
    def python(self) -> str | None:
        """Its Python, if there is one."""
        return os.environ.get(self.variable)

    @property
    def reason(self) -> str:
        """Of a row that was not run."""
        return f"not installed: {self.variable} names no Python with {self.package}"


PEERS = (
    Peer("MemPalace", "LORE_MEMPALACE_PYTHON", "ask_mempalace.py", "mempalace"),
    Peer("Remind", "LORE_REMIND_PYTHON", "ask_remind.py", "remind-mcp==0.12.4"),
)


def entries(memory: Memory) -> list[dict[str, str]]:
    """What a peer is given to remember."""
    return [
        {
            "key": turn.key,
            "session": session.key,
            "role": turn.role,
            "text": turn.text[:TOOL_CHARS] if turn.role in ("tool", "context") else turn.text,
        }
        for session in memory.sessions
        for turn in session.turns
        if turn.text.strip()
    ]


def ask(peer: Peer, memory: Memory, questions: Sequence[str], limit: int, models: Models) -> Found:
    """The answers of ``peer``, up to ``limit`` entries each. Raises RuntimeError with its last
    words when it fails."""
    given = entries(memory)
    with tempfile.TemporaryDirectory(prefix="lore-bench-") as name:
        home = Path(name)
        task = {"entries": given, "questions": list(questions), "limit": limit}
        if peer.script == "ask_remind.py":
            texts = list(dict.fromkeys([*(item["text"] for item in given), *questions]))
            rows = models.embed(texts, f"{memory.name} plain")
            task["vectors"] = {t: r.tolist() for t, r in zip(texts, rows, strict=True)}
        else:
            _lay_out_model(home)
        (home / "task.json").write_text(json.dumps(task), "utf-8")
        env = {"HOME": name, "PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            [str(peer.python), str(PROGRAMS / peer.script), name],
            env=env | {"ANONYMIZED_TELEMETRY": "False"},
            cwd=name,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        answer = home / "answer.json"
        if done.returncode or not answer.is_file():
            raise RuntimeError(f"{peer.name}: {done.stderr.strip()[-300:]}")
        found = json.loads(answer.read_text("utf-8"))
    session_of = memory.session_of
    return [(keys, [session_of[key] for key in keys]) for keys in found]


def _lay_out_model(home: Path) -> None:
    """Our MiniLM where chromadb keeps the one that it downloads (chromadb 1.x,
    `ONNXMiniLM_L6_V2`): the names it checks for, of which it reads two."""
    folder = home / ".cache" / "chroma" / "onnx_models" / "all-MiniLM-L6-v2" / "onnx"
    folder.mkdir(parents=True)
    for name in ("config.json", "special_tokens_map.json", "tokenizer_config.json"):
        (folder / name).write_text("{}", "utf-8")
    (folder / "vocab.txt").touch()
    shutil.copyfile(MODELS / "minilm-q8.onnx", folder / "model.onnx")
    shutil.copyfile(MODELS / "minilm-tokenizer.json", folder / "tokenizer.json")
