"""What a shell command line does: the steps of it that matter to a summary, by kind.

Owns the table of programs. A step is what a developer would name: `cargo test`, `npm run
build`, `git push`; reading and searching steps (`ls`, `grep`, `sed -n`) are no steps.
"""

import re
from typing import Final, NamedTuple

LABEL_CHARS: Final = 80
STEPS: Final = 5
"""Most steps of one line; scripts with more are summed up by the first."""
LOOKED_AT: Final = 2_000


class Step(NamedTuple):
    """One step: kind (`test`, `build`, `lint`, `install`, `commit`, `push`, `change`, `run`), the
    words to show, and the signature under which a later run counts as the same command."""

    kind: str
    label: str
    signature: str


_RUNNERS: Final = re.compile(
    r"^(?:sudo(?:\s+-\w+)*|time|nice|command|exec|env|nohup"
    r"|npx(?:\s+(?:(?:-p|--package)[ =]\S+|--?\w[\w-]*(?:=\S+)?))*"
    r"|npm exec(?:\s+(?:(?:-p|--package)[ =]\S+|--?\w[\w-]*(?:=\S+)?|--))*|bunx|pnpx"
    r"|pnpm\s+(?:exec|dlx)|yarn\s+dlx|bun\s+x|uv\s+run(?:\s+--?[\w-]+(?:=\S+)?)*|uvx|pipx\s+run"
    r"|poetry\s+run|pdm\s+run|hatch\s+run|rye\s+run|pipenv\s+run|conda\s+run(?:\s+-n\s+\S+)?"
    r"|timeout(?:\s+-\w+(?:\s\d+)?)*\s+\d+\w?|xvfb-run(?:\s+-\w+)*|bundle\s+exec|dotenv\s+--"
    r"|\w+=(?:\"[^\"]*\"|'[^']*'|(?![\"']?\$\()\S*)|docker\s+compose\s+(?:exec|run)(?:\s+-\w+)*\s+\S+"
    r"|docker-compose\s+(?:exec|run)(?:\s+-\w+)*\s+\S+|\(|\{|!|if|then|else|do)\s+"
    r"|^\w+=\"?\$\(\s*"
)
_PYTHON: Final = re.compile(r"^(?:\S*/)?(?:python[\d.]*|py)(?:\s+-[IsSuBEWXO]\w*)*\s+-m\s+(\S+)")
_PATH: Final = re.compile(r"^(?:\.{0,2}/|~/|[A-Za-z]:[\\/])?(?:[\w.@~-]+[\\/])+")
_REDIRECT: Final = re.compile(r"\s*(?:\d?>&?\d?|&>|<)\s*\S*")
_HEREDOC: Final = re.compile(r"<<-?\s*['\"\\]?(\w+)['\"]?.*?(?:\n\s*\1\s*(?=\n|$)|\Z)", re.DOTALL)
_QUOTED: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'")
_UNCLOSED: Final = re.compile(r"(?:\"(?:[^\"\\]|\\.)*|'[^']*)\Z")
"""A quoted text that goes on beyond what is looked at."""
_SHELL_C: Final = re.compile(
    r"^\s*(?:\S*/)?(?:ba|z|da|k)?sh\s+-\w*c\s+(['\"]?)(.+)\1\s*$", re.DOTALL
)
_RUN_STYLE: Final = re.compile(r"^(?:npm|pnpm|yarn|bun|deno|mise|just|make|task|turbo|nx|moon)\b")
_SPLIT: Final = re.compile(r"\s*(?:&&|\|\||;|\n)\s*")

_TEST: Final = re.compile(
    r"^(?:pytest|py\.test|tox|nox|unittest|nose2?|cargo (?:\S+ )?(?:test|nextest)|go test"
    r"|gotestsum|jest"
    r"|vitest|mocha|ava|karma|playwright test|cypress run|tap|tape|mvnw? .*\b(?:test|verify)\b"
    r"|gradlew? .*\btest|dotnet test|swift test|xcodebuild .*\btest\b|rspec|rake (?:test|spec)"
    r"|rails test"
    r"|phpunit|pest|ctest|mix test|flutter test|dart test|zig build test|bazel test|sbt .*test"
    r"|lein test|stack test|cabal test|prove|bats|node --test|deno test|nvim .*PlenaryBusted"
    r"|(?:make|just|task|mise|mise run|rake|turbo(?: run)?|nx|bazelisk|gulp|grunt|moon run"
    r"|earthly) \S*(?:test|spec|e2e)\S*"
    r"|(?:npm|pnpm|yarn|bun)(?: -\S+| --\S+(?: \S+)?)*(?: run| workspace \S+)?(?: -\S+)* (?:t|tst"
    r"|\S*(?:test|spec|e2e)\S*)(?:\s|$)"
    r"|(?:bash|sh|python[\d.]*|node|ruby)\s+\S*(?:^|/|_|-)?(?:run_?-?)?tests?(?:\.\w+)?(?:\s|$))"
)
_LINT: Final = re.compile(
    r"^(?:ruff|flake8|pylint|mypy|pyright|basedpyright|black|isort|bandit|eslint|prettier|biome"
    r"|stylelint|oxlint"
    r"|tsc\b.*--noEmit|tsgo\b.*--noEmit|cargo (?:\S+ )?(?:clippy|fmt|deny|audit)|golangci-lint"
    r"|gofmt|goimports|gofumpt"
    r"|go (?:vet|fmt)|staticcheck|modernize|fieldalignment|shellcheck|shfmt|rubocop|standardrb"
    r"|markdownlint\S*|hadolint"
    r"|pre-commit|clang-format|clang-tidy|ktlint|detekt|swiftlint|swiftformat|phpstan|psalm|credo"
    r"|mix format"
    r"|dart (?:analyze|format)|terraform (?:fmt|validate)|buf lint|yamllint|actionlint"
    r"|lint-imports|vale|bash -n|php -l|luac -p|stylua|selene"
    r"|(?:make|just|task|mise|mise run|turbo(?: run)?|nx|moon run) \S*(?:lint|fmt|format|typecheck"
    r"|check|style)\S*"
    r"|(?:npm|pnpm|yarn|bun)(?: -\S+| --\S+(?: \S+)?)*(?: run)?(?: -\S+)* \S*(?:lint|format|fmt"
    r"|check|types?)\S*(?:\s|$))"
)
_BUILD: Final = re.compile(
    r"^(?:cargo (?:\S+ )?(?:build|check|doc)|go (?:build|generate)|tsc\b|tsgo\b|cmake --build"
    r"|ninja|meson compile|mvnw? .*\b(?:package|compile|install)\b"
    r"|gradlew? .*\b(?:build|assemble)\b|docker(?:-compose| compose)? (?:buildx )?build"
    r"|podman build|vite build|webpack|rollup|esbuild|next build|astro build"
    r"|dotnet build|swift build|zig build|hatch build|uv build|poetry build|python -m build|build$"
    r"|xcodebuild|bazel build|make(?:\s+(?:all|build|-j\d*|dist))*$"
    r"|(?:make|just|task|mise|mise run|turbo(?: run)?|nx|moon run) \S*(?:build|compile|bundle)\S*"
    r"|mix compile|sbt compile|flutter build|gcc|g\+\+|clang|rustc|javac"
    r"|(?:npm|pnpm|yarn|bun)(?: -\S+| --\S+(?: \S+)?)*(?: run)?(?: -\S+)* \S*(?:build|compile"
    r"|bundle)\S*(?:\s|$)|mkdocs build|sphinx-build|hugo|jekyll build|latexmk|pdflatex)"
)
_INSTALL: Final = re.compile(
    r"^(?:pip3? install|uv (?:add|sync|pip install|tool install)|poetry (?:add|install)|pdm (?:add"
    r"|install)|pipx install|conda (?:install|create)|mamba install"
    r"|npm (?:i|install|ci|add)\b|pnpm (?:i|install|add)\b|yarn(?: add| install|$)|bun (?:i"
    r"|install|add)\b|cargo (?:add|install)\b|go (?:get|install|mod tidy|mod download)"
    r"|apt(?:-get)? (?:-\S+ )*install|apk add|dnf install|yum install|brew install|port install"
    r"|choco install|winget install|scoop install|gem install|bundle(?: install|$)"
    r"|composer (?:require|install)|mix deps\.get|flutter pub (?:get|add)|dart pub (?:get|add)"
    r"|swift package|nuget|dotnet add|mise (?:use|install)|rustup|playwright install"
    r"|pip3? uninstall|npm (?:uninstall|remove)|gh extension install)"
)
_CHANGE: Final = re.compile(
    r"^(?:git (?:push|merge|rebase|cherry-pick|revert|reset|tag|checkout -b|switch -c|stash|rm|mv"
    r"|worktree add|clone|init|am|apply)|gh (?:pr|release|issue|repo) (?:create|merge|edit|close"
    r"|comment|review)"
    r"|glab mr create|rm|mv|cp|mkdir|chmod|chown|ln|kill|pkill|systemctl (?:start|stop|restart"
    r"|enable|disable)|docker (?:run|rm|stop|push|exec)|docker(?:-compose| compose) (?:up|down)"
    r"|kubectl (?:apply|delete|rollout)"
    r"|helm (?:install|upgrade)|terraform (?:apply|destroy|import)|psql|mysql|sqlite3|alembic"
    r"|prisma (?:migrate|db)|rails db:|python manage\.py migrate|npm (?:publish|version)"
    r"|cargo publish|twine|vercel|netlify|fly deploy|sed -i|perl -p?i)\b"
)
_LOOKING_WORDS: Final = (
    "ls ll cat head tail less more grep egrep fgrep rg ag ack find fd tree wc sort uniq cut tr"
    " awk gawk sed jq yq diff cmp file stat du df which whereis type echo printf pwd cd pushd"
    " popd date whoami id env printenv export set unset alias true false test [ [[ sleep wait ps"
    " top pgrep lsof netstat ss uname hostname history man tldr nl od xxd hexdump strings"
    " basename dirname realpath readlink seq bat column tee xargs command hash source . read"
    " local if for while case fi done esac else then do return break continue function exit trap"
    " ulimit umask ping dig nslookup host ip ifconfig lscpu free nproc cls dir get-content"
    " select-string get-childitem write-host"
)
_LOOKING: Final = frozenset(_LOOKING_WORDS.split())
_GIT_LOOKS_WORDS: Final = (
    "status diff log show branch remote rev-parse ls-files ls-tree blame grep describe config"
    " fetch for-each-ref cat-file shortlog reflog merge-base rev-list symbolic-ref check-ignore"
    " name-rev stash notes help worktree"
)
_GIT_LOOKS: Final = frozenset(_GIT_LOOKS_WORDS.split())


def read_steps(command: str) -> list[Step]:
    """The steps of ``command`` that matter, in order; empty for a line that only looks."""
    text = command[:LOOKED_AT].replace("\\\n", " ")
    wrapped = _SHELL_C.match(text)
    if wrapped:
        text = wrapped[2]
    if "<<" in text:
        text = _HEREDOC.sub("<<", text)
    if '"' in text or "'" in text:
        text = _QUOTED.sub(_quoted, text)
        if len(command) > LOOKED_AT:
            text = _UNCLOSED.sub("", text)
    steps: list[Step] = []
    for segment in _SPLIT.split(text):
        step = _step(segment)
        if step is not None and step not in steps:
            steps.append(step)
            if len(steps) == STEPS:
                break
    return steps


def _quoted(match: re.Match[str]) -> str:
    """A quoted argument without what would look like a new step."""
    text = match[0]
    if not any(mark in text for mark in "\n;&|"):
        return text
    return re.sub(r"[;&|\"']", " ", text.split("\n", 1)[0])[:60].join('""')


def _step(segment: str) -> Step | None:
    words = segment.split("|", 1)[0].strip().strip("()`").strip()
    while match := _RUNNERS.match(words):
        words = words[match.end() :]
    words = _REDIRECT.sub("", words).strip()
    if not words or words[0] in "#-\"'})":
        return None
    module = _PYTHON.match(words)
    words = module[1] + words[module.end() :] if module else _PATH.sub("", words, count=1)
    words = " ".join(words.split())
    program = words.split(" ", 1)[0].lower()
    kind = _kind(words, program)
    if kind is None:
        return None
    if module and kind == "run":
        words = f"python -m {words}"
    label = words if len(words) <= LABEL_CHARS else words[: LABEL_CHARS - 1].rstrip() + "…"
    return Step(kind, label, _signature(kind, words))


def _kind(words: str, program: str) -> str | None:
    if program == "git":
        return _git(words)
    for kind, pattern in (
        ("test", _TEST),
        ("lint", _LINT),
        ("install", _INSTALL),
        ("build", _BUILD),
        ("change", _CHANGE),
    ):
        if pattern.match(words):
            return kind
    if program in _LOOKING or not re.match(r"^[\w.@+:\\-]+$", program):
        return None
    return "run"


def _git(words: str) -> str | None:
    verb = next(
        (w for w in re.sub(r"\s-[Cc]\s+\S+", "", words).split()[1:] if not w.startswith("-")), ""
    )
    if verb in ("commit", "push"):
        return verb
    if _CHANGE.match(f"git {verb}") and verb not in ("stash",):
        return "change"
    return None if verb in _GIT_LOOKS or verb == "add" or not verb else "run"


def _signature(kind: str, words: str) -> str:
    """What makes two runs the same command: for tests, builds and lints program and verb, for
    others the first three words; options and quoted texts do not count."""
    plain = [w for w in _QUOTED.sub("", words).split() if w[0] not in "-\"'$"]
    size = 2 if kind in ("test", "lint", "build") and not _RUN_STYLE.match(words) else 3
    if kind in ("commit", "push"):
        return f"{kind}:git {kind}"
    if size == 2 and len(plain) > 1 and not re.fullmatch(r"[a-z][\w:-]*", plain[1]):
        size = 1  # the second word is a file, not a verb
    return f"{kind}:{' '.join(plain[:size])[:100]}"
