#!/usr/bin/env bash
# The main job of a new user with an installed lored: main_job.sh VENV HOME (an empty folder).
# One session of an agent is there; `lore up` finds it, facts come and go, the daemon ends.
set -euo pipefail
venv=$1 home=$2
samples=$(cd "$(dirname "$0")/../data/transcripts" && pwd)
mkdir -p "$home/project/.git"
cp -R "$samples/claude/.claude" "$home/"
cd "$home/project"
run() { env -i HOME="$home" PATH=/usr/bin:/bin LANG=C.UTF-8 LORE_START_SECONDS=60 "$venv/bin/lore" "$@"; }
trap 'run down >/dev/null 2>&1 || true' EXIT
want() { grep -q -- "$1" || { echo "main job: no '$1' in: lore $2"; exit 1; }; }

up=$(run up)
echo "$up"
want "what the memory knows now" up <<<"$up"
run remember "Cache TTL is 300s" -e tool:redis | want "F1 remembered" remember
run remember "Cache TTL is 600s" -e tool:redis | want "supersede old=F1 new=F2" remember
run apply supersede old=F1 new=F2 | want "F2 replaces F1" apply
run recall ttl | want "600s" recall
run sessions --everywhere | want "claude-code" sessions
run context | want "# Facts" context
run doctor | want "ok     daemon" doctor
run down | want "stopped" down
test -s "$venv/share/man/man1/lore.1"
test -s "$venv/bin/lored"
echo "main job: done"
