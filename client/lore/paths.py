"""Where everything lives: ONE function for client and daemon, decided from environment and uid.

Pure except for `lstat` on the runtime directory; never creates anything. The order for the
socket is: `LORE_SOCKET`; under `LORE_HOME` if set; `$XDG_RUNTIME_DIR` if absolute, ours and
0700; `/run/user/<uid>` if it exists and is ours; else a 0700 folder in the state directory.
TMPDIR and abstract sockets are never used: both let client and daemon disagree or let others
in. A realm (`LORE_REALM`, or a rule: realms.py) moves data, state and socket to names of its own.
"""

import os
import stat
import sys

from lore.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SOCKET_PATH_LIMIT = 103 if sys.platform == "darwin" else 107
"""Bytes in sun_path without the NUL (Linux unix(7) 108, macOS 104)."""


class Paths:
    """The resolved locations; plain strings, all absolute."""

    __slots__ = (
        "backups_dir",
        "config_dir",
        "config_file",
        "data_dir",
        "global_db",
        "lock",
        "log_file",
        "pointer",
        "realm",
        "runtime_dir",
        "sessions_db",
        "socket",
        "spawn_lock",
        "spool_dir",
        "state_dir",
        "workspaces_dir",
    )

    def __init__(
        self, *, config: str, data: str, state: str, runtime: str, socket: str, realm: str
    ) -> None:
        self.realm = realm
        self.config_dir = config
        self.config_file = config + "/config.toml"
        self.data_dir = data
        self.global_db = data + "/global.db"
        self.workspaces_dir = data + "/workspaces"
        self.sessions_db = data + "/sessions.db"
        self.backups_dir = data + "/backups"
        self.state_dir = state
        self.log_file = state + "/lored.log"
        self.spool_dir = state + "/spool"
        # The locks guard the data, so they stand where the data is, not in the runtime
        # directory, which may differ between two shells of one user.
        self.lock = state + "/lored.lock"
        self.spawn_lock = state + "/spawn.lock"
        self.pointer = state + "/socket.path"
        self.runtime_dir = runtime
        self.socket = socket


def resolve(env: "Mapping[str, str] | None" = None) -> Paths:
    """Resolve all locations from an environment (default: the process's own).

    Raises `Invalid` when no home can be found, a path is relative, the realm's name is not
    a plain word, or the socket path is longer than `SOCKET_PATH_LIMIT` bytes.
    """
    if env is None:
        env = os.environ
    realm = env.get("LORE_REALM", "")
    if realm:
        check_realm("LORE_REALM", realm)
    leaf = "lore" + (f"-{realm}" if realm else "")
    home = env.get("LORE_HOME")
    if home:
        _check_absolute("LORE_HOME", home)
        base = home.rstrip("/") + (f"/realms/{realm}" if realm else "")
        config, data = home.rstrip("/") + "/config", base + "/data"
        state, runtime = base + "/state", base + "/run"
    else:
        config = _xdg(env, "XDG_CONFIG_HOME", ".config") + "/lore"
        data = _xdg(env, "XDG_DATA_HOME", ".local/share") + "/" + leaf
        state = _xdg(env, "XDG_STATE_HOME", ".local/state") + "/" + leaf
        runtime = _runtime(env, leaf) or state + "/run"
    socket = env.get("LORE_SOCKET") or runtime + "/lore.sock"
    _check_absolute("LORE_SOCKET", socket)
    if len(os.fsencode(socket)) > SOCKET_PATH_LIMIT:
        raise Invalid(
            f"socket path {socket} is longer than {SOCKET_PATH_LIMIT} bytes; "
            "set LORE_SOCKET to a shorter path"
        )
    return Paths(
        config=config,
        data=data,
        state=state,
        runtime=os.path.dirname(socket),
        socket=socket,
        realm=realm,
    )


def check_realm(where: str, realm: str) -> None:
    """Raises `Invalid` for a name that is not a plain word; ``where`` it stands."""
    if not realm.replace("-", "").replace("_", "").isalnum():
        raise Invalid(f"{where}={realm!r}: use letters, digits, '-' and '_' only")


def _check_absolute(name: str, path: str) -> None:
    if not path.startswith("/"):
        raise Invalid(f"{name}={path!r}: must be an absolute path")


def _xdg(env: "Mapping[str, str]", name: str, default: str) -> str:
    """The XDG base directory; relative values are ignored as the specification says."""
    path = env.get(name, "")
    if path.startswith("/"):
        return path.rstrip("/") or "/"
    home = env.get("HOME", "")
    if not home.startswith("/"):
        import pwd

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            home = ""
    if not home.startswith("/"):
        raise Invalid("no home directory: set HOME or LORE_HOME")
    return home.rstrip("/") + "/" + default


def _runtime(env: "Mapping[str, str]", leaf: str) -> "str | None":
    uid = os.getuid()
    for path in (env.get("XDG_RUNTIME_DIR", ""), f"/run/user/{uid}"):
        if not path.startswith("/"):
            continue
        try:
            found = os.lstat(path)
        except OSError:
            continue
        if (
            stat.S_ISDIR(found.st_mode)
            and found.st_uid == uid
            and not stat.S_IMODE(found.st_mode) & 0o077
        ):
            return path.rstrip("/") + "/" + leaf
    return None
