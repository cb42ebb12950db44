# What the checks of the project share. Each prints what is wrong, line by line, and fails if it printed anything.
# shellcheck shell=bash
set -euo pipefail
export LC_ALL=C.UTF-8
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${TENON_BUILD:-$root/build}
wrong=0

wrong()
{
    printf '%s\n' "$*"
    wrong=1
}

# need TOOL...: without one of them the check is skipped. tests/run installs them all.
need()
{
    local tool
    for tool; do
        command -v "$tool" >/dev/null && continue
        echo "SKIPPED: $tool is not there"
        exit 77
    done
}

# Reads lines on its input, each a finding.
findings()
{
    local line
    while IFS= read -r line; do wrong "$line"; done
}

# The project's own files, relative to its root, that match the given find expression.
files()
{
    (cd "$root" && find . \( -path ./build -o -path ./.git \) -prune -o -type f \( "$@" \) -printf '%P\n' | sort)
}
folders() { tr ' ' '\n' <<<"$TENON_LAYERS" | sed 's/=.*//'; }

fresh() # an empty folder for this check's work
{
    rm -rf "$build/project/$1"
    mkdir -p "$build/project/$1"
    cd "$build/project/$1"
}
