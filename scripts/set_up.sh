#!/bin/sh
# Make the virtual environment and install autosft into it; does nothing where nothing changed.
# Usage: scripts/set_up.sh FOLDER     PYTHON=... picks the interpreter (3.11 to 3.13).
set -eu
cd "$(dirname "$0")/.."
venv=${1:?"usage: scripts/set_up.sh FOLDER"}
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

usable() { # A version manager's shim may be found and still not run: try it. venv needs ensurepip.
  "$1" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' >/dev/null 2>&1
}

find_python() {
  if [ -n "${PYTHON:-}" ]; then
    usable "$PYTHON" && { echo "$PYTHON"; return; }
    echo "set-up: PYTHON=$PYTHON does not run, lacks venv, or is not 3.11 to 3.13" >&2
    exit 2
  fi
  for candidate in python3.11 python3.12 python3.13 python3 /usr/bin/python3; do
    usable "$candidate" && { echo "$candidate"; return; }
  done
  echo "set-up: no Python 3.11, 3.12 or 3.13 with venv found; name one with PYTHON=/path/to/python" >&2
  exit 2
}

mkdir -p "$venv"
if command -v flock >/dev/null; then # Two make commands at once must not install into each other.
  exec 9>"$venv/.lock"
  flock 9
fi
stamp="$venv/.ready"
state="$(pwd) $(cat pyproject.toml constraints.txt scripts/set_up.sh | cksum)"
if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c '' 2>/dev/null; then
  [ "$(cat "$stamp" 2>/dev/null)" = "$state" ] && exit 0
else
  python=$(find_python)
  echo "set-up: new environment in $venv with $("$python" --version)"
  "$python" -m venv "$venv"
fi
rm -f "$stamp"
echo "set-up: installing; the first time takes a few minutes"
# torch goes first and alone: its exact version decides which build of it is taken.
"$venv/bin/python" -m pip install -q -c constraints.txt "$(grep '^torch==' constraints.txt)"
"$venv/bin/python" -m pip install -q -c constraints.txt -e '.[dev]'
printf '%s\n' "$state" >"$stamp"
