"""Which session roots are read and what is left out: defaults, configuration, choices made.

Precedence: places known to the parsers < `sources` and `exclude` of config.toml < choices made
at run time (`sources`, `exclude` calls). Those are kept in `sources.json` beside the stores,
not in one of them: a store that is rebuilt must not forget what the user excluded.
"""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lore import realms
from lore.errors import Invalid, NotFound
from lored.core.transcripts import Root, default_roots
from lored.ingest.discover import RootSpec
from lored.ingest.exclusion import Exclusion, check
from lored.ingest.formats import register_all
from lored.services.settings import Settings

FILE_BYTES: Final = 1 << 20
"""Most read of `sources.json`; ours is some hundred bytes."""


@dataclass(frozen=True, slots=True)
class SourceRoot:
    """A root and why it is there: `default`, `environment`, `config`, `added`, or `workspace`
    for one inside a project."""

    spec: RootSpec
    enabled: bool
    origin: str


class Sources:
    """The roots and rules in force. Methods that change something write the file first."""

    def __init__(
        self,
        path: str,
        settings: Settings,
        env: Mapping[str, str],
        home: str,
        *,
        realm: str = "",
    ) -> None:
        self._path, self._realm = path, realm
        self._settings = settings
        self._env, self._home = env, home
        self._chosen: dict[str, Any] = {"enabled": {}, "roots": [], "removed": [], "exclude": []}
        self.custom = list(settings.sources.get("custom", ()))
        """Mappings of files that no parser of ours knows (`core.transcripts.generic`)."""
        self.projects: dict[tuple[str, str], Root] = {}
        """Places inside workspaces (`projects`)."""
        self.problem = ""
        """Why `sources.json` could not be read; indexing then stays off: an exclude rule may
        be missing."""

    def load(self) -> dict[str, str]:
        """Read `sources.json` (a missing one is empty) and register formats: those of installed
        packages and the mappings of the configuration. Returns name -> why one cannot be used."""
        problems = register_all(self.custom)
        self._read_file()
        return problems

    def _read_file(self) -> None:
        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.loads(file.read(FILE_BYTES))
            self._chosen = {
                "enabled": {str(k): bool(v) for k, v in found.get("enabled", {}).items()},
                "roots": [[str(a), str(p)] for a, p in found.get("roots", [])],
                "removed": [[str(a), str(p)] for a, p in found.get("removed", [])],
                "exclude": [check(str(rule)) for rule in found.get("exclude", [])],
            }
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, AttributeError, Invalid) as error:
            self.problem = f"{self._path} cannot be read ({error}); repair or remove it"

    def _save(self, chosen: dict[str, Any]) -> None:
        data = json.dumps(chosen, indent=1, ensure_ascii=False)
        draft = self._path + ".new"
        with open(draft, "w", encoding="utf-8", opener=_private) as file:
            file.write(data + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self._path)
        self._chosen = chosen

    def roots(self) -> list[SourceRoot]:
        """All roots, enabled or not; whether they exist is not looked at."""
        found: dict[tuple[str, str], SourceRoot] = {}
        patterns: dict[str, tuple[str, ...]] = {}
        removed = {tuple(item) for item in self._chosen["removed"]}
        for root in default_roots(self._env, self._home):
            patterns[root.agent] = (*patterns.get(root.agent, ()), *root.patterns)
            path = os.path.normpath(root.path)
            if (root.agent, path) not in removed and (root.agent, path) not in found:
                # XDG_* says where all programs keep things, not that this agent is there.
                moved = root.env_var is not None and not root.env_var.startswith("XDG_")
                origin = "environment" if moved else "default"
                spec = RootSpec(root.agent, path, tuple(root.patterns))
                found[root.agent, path] = SourceRoot(spec, self._enabled(root.agent), origin)
        for agent, path, origin in (*self._configured(), *self._added()):
            if agent not in patterns:
                continue
            spec = RootSpec(agent, path, tuple(dict.fromkeys(patterns[agent])), added=True)
            found.setdefault((agent, path), SourceRoot(spec, self._enabled(agent), origin))
        for (agent, path), place in self.projects.items():
            if (agent, path) not in removed:
                spec = RootSpec(agent, path, tuple(place.patterns))
                inside = SourceRoot(spec, self._enabled(agent), "workspace")
                found.setdefault((agent, path), inside)
        return list(found.values())

    def _configured(self) -> list[tuple[str, str, str]]:
        return [
            (agent, self._clean(path), "config")
            for agent, options in self._settings.sources.items()
            if isinstance(options, dict)
            for path in options.get("roots", [])
        ]

    def _added(self) -> list[tuple[str, str, str]]:
        return [(agent, path, "added") for agent, path in self._chosen["roots"]]

    def _clean(self, path: str) -> str:
        if path == "~" or path.startswith("~/"):
            path = self._home + path[1:]
        return os.path.normpath(path)

    def _enabled(self, agent: str) -> bool:
        options = self._settings.sources.get(agent)
        default = options.get("enabled", True) if isinstance(options, dict) else True
        return bool(self._chosen["enabled"].get(agent, default))

    def agents(self) -> list[str]:
        """All agents with a known format."""
        return sorted({root.agent for root in default_roots(self._env, self._home)})

    def change(
        self,
        *,
        enable: str | None = None,
        disable: str | None = None,
        add: str | None = None,
        remove: str | None = None,
    ) -> None:
        """Switch agents on or off, add or drop roots (`AGENT=PATH`). Raises `Invalid` or
        `NotFound` before anything is written."""
        chosen = json.loads(json.dumps(self._chosen))
        for agent, value in ((enable, True), (disable, False)):
            if agent is not None:
                self._check_agent(agent)
                chosen["enabled"][agent] = value
        if add is not None:
            item = list(self._pair(add))
            if not os.path.isdir(item[1]):
                raise Invalid(f"source {add!r}: {item[1]} is not a directory")
            if item in chosen["removed"]:
                chosen["removed"].remove(item)
            elif item not in chosen["roots"]:
                chosen["roots"].append(item)
        if remove is not None:
            agent, path = self._pair(remove)
            if [agent, path] in chosen["roots"]:
                chosen["roots"].remove([agent, path])
            elif any(root.spec[:2] == (agent, path) for root in self.roots()):
                chosen["removed"].append([agent, path])
            else:
                raise NotFound(f"no source {remove!r}; `lore sources` lists them")
        self._save(chosen)

    def _pair(self, text: str) -> tuple[str, str]:
        agent, equals, path = text.partition("=")
        if not equals or not path:
            raise Invalid(f"source {text!r}: use AGENT=PATH, for example claude-code=/srv/claude")
        self._check_agent(agent)
        path = self._clean(path)
        if not path.startswith("/"):
            raise Invalid(f"source {text!r}: the path must be absolute")
        return agent, self._whole_root(agent, path)

    def _whole_root(self, agent: str, path: str) -> str:
        """``path``, or its parent when it names the folder inside a root that holds the
        sessions (`~/.claude/projects` instead of `~/.claude`)."""
        name = os.path.basename(path)
        for root in default_roots(self._env, self._home):
            if root.agent == agent and any(p.startswith(name + "/") for p in root.patterns):
                return os.path.dirname(path)
        return path

    def _check_agent(self, agent: str) -> None:
        known = self.agents()
        if agent not in known:
            raise Invalid(f"unknown agent {agent!r}; known: {', '.join(known)}")

    def rules(self) -> list[str]:
        """All exclude rules, those of the configuration first."""
        fixed = [check(rule) for rule in self._settings.exclude]
        for folder, realm in realms.parse(self._settings.realms):
            fixed.append(f"realm:{'own' if realm == self._realm else 'other'}:{folder}")
        return list(dict.fromkeys([*fixed, *self._chosen["exclude"]]))

    def exclusion(self) -> Exclusion:
        """The rules in force."""
        return Exclusion.parse(self.rules())

    def exclude(self, *, add: str | None = None, remove: str | None = None) -> None:
        """Add or drop a rule. Raises `Invalid`, or `NotFound` for a rule that is not there or
        stands in the configuration."""
        chosen = json.loads(json.dumps(self._chosen))
        if add is not None:
            rule = check(add)
            if rule not in chosen["exclude"]:
                chosen["exclude"].append(rule)
        if remove is not None:
            rule = check(remove)
            if rule in chosen["exclude"]:
                chosen["exclude"].remove(rule)
            elif rule in self.rules():
                raise Invalid(f"rule {rule!r} stands in config.toml; remove it there")
            else:
                raise NotFound(f"no exclude rule {rule!r}; `lore exclude` lists them")
        self._save(chosen)


def _private(path: str, flags: int) -> int:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return os.open(path, flags, 0o600)
