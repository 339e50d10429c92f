"""Run by Remind's Python: each message is an episode, questions go to the part of its recall
that finds episodes (facts and concepts need a model or an agent that states them).

    python ask_remind.py FOLDER      FOLDER/task.json -> FOLDER/answer.json
"""

import asyncio
import json
import sys
from pathlib import Path

from remind.interface import MemoryInterface
from remind.providers.base import EmbeddingProvider
from remind.store import SQLAlchemyMemoryStore

folder = Path(sys.argv[1])
task = json.loads((folder / "task.json").read_text("utf-8"))


class Given(EmbeddingProvider):
    """The vectors that came with the task."""

    dimensions, name, model = 384, "given", "given"

    async def embed(self, text):
        return task["vectors"][text]

    async def embed_batch(self, texts):
        return [task["vectors"][text] for text in texts]


async def main():
    store = SQLAlchemyMemoryStore(f"sqlite:///{folder}/remind.db")
    memory = MemoryInterface(Given(), store)
    memory.remember_nearby_k = 0  # what it shows of its neighbours at each entry
    keys = {}
    for item in task["entries"]:
        done = await memory.remember(item["text"], episode_type="observation")
        keys[done.episode_id] = item["key"]
    answers = []
    for question in task["questions"]:
        found = await memory.retriever.retrieve_episodes_by_embedding(question, k=task["limit"])
        answers.append([keys[hit.episode.id] for hit in found])
    (folder / "answer.json").write_text(json.dumps(answers), "utf-8")


asyncio.run(main())
