"""Which realm a folder belongs to: rules of config.toml that client and daemon read alike.

    [realms]
    client-a = ["~/clients/a", "/srv/a"]

A realm is a set of stores of its own with its own daemon and socket. The folder that lies
innermost decides; what lies in none belongs to the realm without a name. `LORE_REALM`, also an
empty one, decides without the rules. Whoever cannot read the rules is refused: a fact must not
land in the wrong realm.
"""

import os

from lore import paths
from lore.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG_BYTES = 1 << 20
"""Most that is read of config.toml."""

Rules = tuple[tuple[str, str], ...]
"""(folder, realm), longer folders first."""


def parse(table: object) -> Rules:
    """The rules of the table `realms`. Raises `Invalid`."""
    if not isinstance(table, dict):
        raise Invalid('realms: use NAME = ["/folder", ...]')
    found: dict[str, str] = {}
    for realm, folders in table.items():
        paths.check_realm(f"realms.{realm}", realm)
        if not isinstance(folders, list) or not all(isinstance(one, str) for one in folders):
            raise Invalid(f"realms.{realm}: expected a list of folders")
        for folder in folders:
            path = os.path.expanduser(folder)
            if not path.startswith("/"):
                raise Invalid(f"realms.{realm}: {folder!r} is not an absolute path")
            path = os.path.realpath(path)
            if found.setdefault(path, realm) != realm:
                raise Invalid(f"realms: {folder} is in both {found[path]} and {realm}")
    return tuple(sorted(found.items(), key=lambda rule: -len(rule[0])))


def of(path: str, rules: Rules) -> str:
    """The realm of an absolute path, "" for the one without a name."""
    if not rules:
        return ""
    real = os.path.realpath(path)
    for folder, realm in rules:
        if real == folder or real.startswith(folder.rstrip("/") + "/"):
            return realm
    return ""


def read(config_file: str) -> Rules:
    """The rules in the file; none when there is no file. Raises `Invalid` that names it."""
    try:
        with open(config_file, "rb") as file:
            raw = file.read(CONFIG_BYTES)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise Invalid(f"{config_file}: cannot be read: {error.strerror}") from None
    if b"realms" not in raw:  # the usual case, without the parser
        return ()
    import tomllib

    try:
        return parse(tomllib.loads(raw.decode("utf-8")).get("realms", {}))
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{config_file}: {error}") from None
    except Invalid as error:
        raise Invalid(f"{config_file}: {error.message}") from None


def here(path: "str | None" = None, env: "Mapping[str, str] | None" = None) -> paths.Paths:
    """All locations for a caller that works in ``path`` (default: the current directory).

    ``env`` defaults to the process's own. Raises `Invalid` as `paths.resolve` does, and for
    rules that cannot be read.
    """
    if env is None:
        env = os.environ
    where = paths.resolve(env)
    if "LORE_REALM" in env or "LORE_SOCKET" in env:
        return where
    rules = read(where.config_file)
    if not rules:
        return where
    if path is None or not path.startswith("/"):
        try:
            path = os.getcwd()
        except OSError:  # it was removed
            return where
    realm = of(path, rules)
    return paths.resolve({**env, "LORE_REALM": realm}) if realm else where
