"""Run by MemPalace's Python: each message is filed as its integrations file live turns (pieces
of 800 characters, as its miner cuts them), questions go to `search_memories`.

    python ask_mempalace.py FOLDER      FOLDER/task.json -> FOLDER/answer.json
"""

import json
import sys
from pathlib import Path

from mempalace.convo_miner import CHUNK_SIZE, file_conversation_exchange
from mempalace.palace import get_collection
from mempalace.searcher import search_memories

folder = Path(sys.argv[1])
task = json.loads((folder / "task.json").read_text("utf-8"))
palace = str(folder / "palace")
drawers = get_collection(palace, create=True)
for item in task["entries"]:
    text = item["text"]
    for start in range(0, len(text), CHUNK_SIZE):
        file_conversation_exchange(
            drawers,
            wing="bench",
            room=item["role"],
            text=text[start : start + CHUNK_SIZE],
            source_file=item["key"],
            agent="bench",
        )
answers = []
for question in task["questions"]:
    found = search_memories(question, palace, n_results=2 * task["limit"])
    if "results" not in found:
        raise SystemExit(f"no results: {found}")
    keys = list(dict.fromkeys(hit["source_path"] for hit in found["results"]))
    answers.append(keys[: task["limit"]])
(folder / "answer.json").write_text(json.dumps(answers), "utf-8")
