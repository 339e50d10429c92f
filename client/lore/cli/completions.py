"""`completions`: scripts for bash, zsh and fish, made from the argument table.

Words only; the scripts call nothing, so that a Tab never waits for the daemon.
"""

from __future__ import annotations

from collections.abc import Iterable

from lore.cli import table
from lore.cli.arguments import AGENT_NAMES, GLOBALS, Arg, Verb
from lore.cli.invocation import Invocation

SHELLS = ("bash", "zsh", "fish")


def completions(inv: Invocation) -> int:
    """Print the script of one shell."""
    script = {"bash": bash, "zsh": zsh, "fish": fish}[inv.options.shell]()
    return inv.show({"script": script}, lambda screen: screen.say(script.rstrip()))


def _verbs() -> Iterable[Verb]:
    return (table.load(name) for name in table.MODULES)


def _words(arg: Arg) -> tuple[str, ...]:
    """Fixed words for a value; empty where only files or free text fit."""
    if arg.choices:
        return arg.choices
    if arg.complete == "agent":
        return AGENT_NAMES
    if arg.complete == "method":
        from lore.wire.methods import METHODS

        return tuple(method.name for method in METHODS)
    return ()


def _flags(verb: Verb) -> list[Arg]:
    return [arg for arg in (*verb.args, *GLOBALS) if not arg.positional]


def _positional_words(verb: Verb) -> list[str]:
    return [word for arg in verb.args if arg.positional for word in _words(arg)]


def _takes_path(arg: Arg) -> bool:
    return arg.complete in ("file", "folder")


def bash() -> str:
    """A function for `complete -F`; install: source it from ~/.bashrc."""
    names = " ".join(table.MODULES)
    lines = [
        "# bash completion of lore; made by `lore completions bash`",
        "_lore() {",
        '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" verb="" i',
        "  COMPREPLY=()",
        "  for ((i = 1; i < COMP_CWORD; i++)); do",
        '    case "${COMP_WORDS[i]}" in',
        "      --workspace|-C|--timeout) ((i++)) ;;",
        "      -*) ;;",
        '      *) verb="${COMP_WORDS[i]}"; break ;;',
        "    esac",
        "  done",
        '  if [[ -z "$verb" ]]; then',
        f'    COMPREPLY=($(compgen -W "{names} help --help --version" -- "$cur")); return',
        "  fi",
        '  case "$verb:$prev" in',
    ]
    for verb in _verbs():
        for arg in _flags(verb):
            if arg.kind == "flag":
                continue
            pattern = "|".join(f"{verb.name}:{name}" for name in arg.names)
            lines.append(f"    {pattern}) {_bash_values(arg)} return ;;")
    lines += ["  esac", '  case "$verb" in']
    for verb in _verbs():
        flags = [name for arg in _flags(verb) for name in arg.names]
        words = " ".join([*_positional_words(verb), *flags, "--help"])
        files = ""
        if any(arg.positional and _takes_path(arg) for arg in verb.args):
            files = ' COMPREPLY+=($(compgen -f -- "$cur"));'
        lines.append(f'    {verb.name}) COMPREPLY=($(compgen -W "{words}" -- "$cur"));{files} ;;')
    lines += ["  esac", "}", "complete -o filenames -F _lore lore", ""]
    return "\n".join(lines)


def _bash_values(arg: Arg) -> str:
    words = _words(arg)
    if words:
        return f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$cur"));'
    if _takes_path(arg):
        return f'COMPREPLY=($(compgen {"-d" if arg.complete == "folder" else "-f"} -- "$cur"));'
    return ""


def zsh() -> str:
    """A `#compdef` file; install: put it as `_lore` in a folder of $fpath."""
    lines = ["#compdef lore", "# made by `lore completions zsh`", "", "_lore() {"]
    lines += ["  local -a verbs", "  verbs=("]
    lines += [f"    {_quote(f'{name}:{about}')}" for name, about in table.ABOUT.items()]
    lines += [
        "  )",
        "  if (( CURRENT == 2 )); then _describe verb verbs; return; fi",
        '  local verb="${words[2]}"',
        "  shift words; (( CURRENT-- ))",
        '  case "$verb" in',
    ]
    for verb in _verbs():
        specs = [_zsh_flag(arg, name) for arg in _flags(verb) for name in arg.names]
        specs += [_zsh_positional(arg) for arg in verb.args if arg.positional]
        lines.append(f"    {verb.name}) _arguments -s {' '.join(specs)} ;;")
    lines += [
        "  esac",
        "}",
        "",
        'if [ "$funcstack[1]" = _lore ]; then _lore "$@"; else compdef _lore lore; fi',
        "",
    ]
    return "\n".join(lines)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _zsh_text(text: str) -> str:
    for char in "\\[]:":
        text = text.replace(char, "\\" + char)
    return text


def _zsh_action(arg: Arg) -> str:
    words = _words(arg)
    if words:
        return f"({' '.join(words)})"
    if _takes_path(arg):
        return "_files -/" if arg.complete == "folder" else "_files"
    return " "


def _zsh_flag(arg: Arg, name: str) -> str:
    repeat = "*" if arg.kind == "list" else ""
    spec = f"{repeat}{name}[{_zsh_text(arg.help)}]"
    if arg.kind != "flag":
        values = arg.metavar.split() if arg.kind == "pair" else [arg.metavar]
        spec += "".join(f":{_zsh_text(value.lower())}:{_zsh_action(arg)}" for value in values)
    return _quote(spec)


def _zsh_positional(arg: Arg) -> str:
    many = "*" if arg.kind in ("words", "many") else ":" if arg.kind == "maybe" else ""
    return _quote(f"{many}:{_zsh_text(arg.metavar.lower())}:{_zsh_action(arg)}")


def fish() -> str:
    """Lines of `complete -c lore`; install: ~/.config/fish/completions/lore.fish."""
    lines = ["# fish completion of lore; made by `lore completions fish`", "complete -c lore -f"]
    for name, about in table.ABOUT.items():
        lines.append(f"complete -c lore -n __fish_use_subcommand -a {name} -d {_quote(about)}")
    for verb in _verbs():
        here = f"complete -c lore -n '__fish_seen_subcommand_from {verb.name}'"
        lines += [f"{here} {_fish_flag(arg)}" for arg in _flags(verb)]
        if any(arg.positional and _takes_path(arg) for arg in verb.args):
            lines.append(f"{here} -F")
        words = _positional_words(verb)
        if words:
            lines.append(f"{here} -a {_quote(' '.join(words))}")
    return "\n".join(lines) + "\n"


def _fish_flag(arg: Arg) -> str:
    parts = [f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in arg.names]
    if arg.kind != "flag":
        parts.append("-r -F" if _takes_path(arg) else "-x")
        words = _words(arg)
        if words:
            parts.append(f"-a {_quote(' '.join(words))}")
    parts.append(f"-d {_quote(arg.help)}")
    return " ".join(parts)


VERBS = (
    Verb(
        "completions",
        completions,
        (Arg("SHELL", choices=SHELLS, help="the shell"),),
        examples=(
            "lore completions bash >> ~/.bashrc",
            "mkdir -p ~/.zfunc && lore completions zsh > ~/.zfunc/_lore",
            "lore completions fish | source",
        ),
    ),
)
