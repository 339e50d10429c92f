"""opencode: hooks are a JavaScript module in its plugins folder (opencode.ai/docs/plugins)."""

from __future__ import annotations

import json

from lore.install.places import Place

_MODULE = """\
// Written by `lore install`, removed by `lore uninstall`.
// Gives each session the memory's context once, and tells the memory when one rests.
import { execFile } from "node:child_process"

const COMMAND = %(command)s
const ENV = %(env)s
const LIMIT_MS = 1000

function hook(event, directory, input) {
  return new Promise((resolve) => {
    const options = { cwd: directory, timeout: LIMIT_MS, env: { ...process.env, ...ENV } }
    const child = execFile(COMMAND, ["hook", "opencode", event], options, (error, stdout) =>
      resolve(error ? "" : stdout.trim()),
    )
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(input))
  })
}

export const LoreMemory = async ({ directory }) => {
  const given = new Map()
  return {
    "experimental.chat.system.transform": async (input, output) => {
      const id = input?.sessionID ?? ""
      if (!given.has(id))
        given.set(id, hook("session-start", directory, { session_id: id, cwd: directory }))
      const text = await given.get(id)
      if (text) output.system.push(text)
    },
    event: async ({ event }) => {
      if (event?.type === "session.idle" || event?.type === "session.compacted")
        await hook("stop", directory, { cwd: directory })
      if (event?.type === "session.deleted") given.delete(event?.properties?.info?.id ?? "")
    },
  }
}
"""


def plugin(place: Place) -> str:
    """The module's text for this machine."""
    return _MODULE % {"command": json.dumps(place.command), "env": json.dumps(place.carried)}
