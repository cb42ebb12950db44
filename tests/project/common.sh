# Functions of all checks of the project. A check prints each finding on a line, and fails if it has printed anything.
# shellcheck shell=bash
set -euo pipefail
export LC_ALL=C.UTF-8
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${TENON_BUILD:-$root/build}
wrong=0
# ctest runs a check per core. Checks that results do not depend on the number of threads pass --threads 2.
export OMP_NUM_THREADS=1

wrong()
{
    printf '%s\n' "$*"
    wrong=1
}

# need TOOL...: skips the check if a tool is missing. tests/run installs all of them.
need()
{
    local tool
    for tool; do
        command -v "$tool" >/dev/null && continue
        echo "SKIPPED: $tool is not installed"
        exit 77
    done
}

# The lines of a run.json or a model card without what differs between two equal runs: command, folder, names of texts,
# date, time.
run_facts() # FILE
{
    sed -E -e '/^ *"(command|date|seconds)": /d' -e '/^ *"texts": /,/\]/d' -e '/^- \*\*(data|date|time)\*\*: /d' \
        -e '/^# /d' -e '/^[a-z]+(\.exe)? (train|tune|distil|contrast|demo) /d' -e '/ --model |_(open|load)\("/d' "$1"
}

# Compares two folders of complete runs: the same files with the same bits, except the contents of the logs and the
# report, which contain times, and the checkpoints of training. run.json and README.md contain names and times; the rest
# of them is the same.
same_folder() # WHOLE PART
{
    local but=(-x checkpoints -x 'log.*' -x report.html -x SHA256SUMS -x run.json -x README.md) file
    for file in run.json README.md; do
        [ ! -e "$1/$file" ] || diff <(run_facts "$1/$file") <(run_facts "$2/$file") || return 1
    done
    diff -rq "${but[@]}" "$1" "$2" &&
        diff <(cd "$1" && find . ! -path '*/checkpoints/*' | sort) <(cd "$2" && find . ! -path '*/checkpoints/*' | sort)
}

# Reports each line of standard input as a finding.
findings()
{
    local line
    while IFS= read -r line; do wrong "$line"; done
}

# The files of the project that match a find expression, relative to its root.
files()
{
    (cd "$root" && find . \( -path ./build -o -path ./.git \) -prune -o -type f \( "$@" \) -printf '%P\n' | sort)
}
folders() { tr ' ' '\n' <<<"$TENON_LAYERS" | sed 's/=.*//'; }

# The symbols that the library's objects below FOLDER define and use, a line "file symbol kind" each, where file is the
# path of the source. Unlike in sources, no macro hides a call. Objects whose source does not exist below SOURCES are
# left over from an earlier build and ignored.
symbols() # FOLDER SOURCES
{
    find "$1" \( -path '*/tenon_objects.dir/*' -o -path '*/tenon_kernels_*.dir/*' \) -name '*.o' -print0 |
        xargs -0 nm -A -g -P | awk -v sources="$2" '
        {
            file = $1
            sub(/:$/, "", file)
            sub(/^.*\.dir\//, "", file)
            sub(/\.o$/, "", file)
            if (!(file in there)) {
                there[file] = (getline line <(sources "/" file)) > 0
                close(sources "/" file)
            }
            sub(/@.*/, "", $2)
            if (there[file]) print file, $2, $3
        }' | sort -u
}

# The calls between files of the library: a line "from to symbol" each.
calls_between() # FOLDER SOURCES
{
    symbols "$1" "$2" | awk '
        $3 == "U" || $3 == "w" || $3 == "v" { uses[$1, $2] = 1; next }
        { home[$2] = $1 }
        END {
            for (u in uses) {
                split(u, part, SUBSEP)
                if (part[2] in home && home[part[2]] != part[1]) print part[1], home[part[2]], part[2]
            }
        }' | sort
}

# The symbols that the library uses from other libraries: a line "file symbol" each.
calls_outside() # FOLDER SOURCES
{
    symbols "$1" "$2" | awk '
        $3 == "U" || $3 == "w" || $3 == "v" { uses[$1, $2] = 1; next }
        { home[$2] = 1 }
        END {
            for (u in uses) {
                split(u, part, SUBSEP)
                if (!(part[2] in home)) print part[1], part[2]
            }
        }' | sort
}

fresh() # NAME: makes an empty folder for the check and enters it
{
    rm -rf "$build/project/$1"
    mkdir -p "$build/project/$1"
    cd "$build/project/$1"
}

# Copies a model's folder and fills the weights, or only the tensor NAME, with one byte (octal): 377 makes NaN, 107
# makes 50000.
astray() # FROM TO [NAME BYTE]
{
    local from=$1/model.safetensors begin end at
    cp -r "$1" "$2"
    begin=$(($(od -An -tu8 -N8 "$from") + 8)) end=$(stat -c %s "$from")
    at=$begin,$end
    [ $# = 2 ] || at=$(head -c "$begin" "$from" | grep -aoP "\"$3\":\{[^}]*data_offsets\":\[\K[0-9,]*" |
        awk -F, -v b="$begin" '{ print b + $1 "," b + $2 }')
    {
        head -c "$begin" "$from" | sed 's/"tenon\.sums"/"other.sums"/'
        head -c "${at%,*}" "$from" | tail -c +$((begin + 1))
        head -c "${at#*,}" "$from" | tail -c +$((${at%,*} + 1)) | tr '\000-\377' "\\${4:-377}"
        tail -c +$((${at#*,} + 1)) "$from"
    } >"$2/model.safetensors"
    [ ! -e "$2/SHA256SUMS" ] || sed -i /model.safetensors/d "$2/SHA256SUMS"
}

# Checks that a line is valid JSON, which has no nan and inf.
is_json() { [ "$(wc -l <"$1")" = 1 ] && ! grep -qE '[:,[ ]-?(nan|inf)' "$1" && grep -qE '^[[{].*[]}]$' "$1"; }

# says CODE TEXT COMMAND...: checks the exit code, and that standard error contains TEXT
says()
{
    local code=$1 text=$2 rc=0
    shift 2
    "$@" >out.txt 2>err.txt </dev/null || rc=$?
    [ $rc = "$code" ] || wrong "$*: exit code $rc, expected $code: $(head -n 3 err.txt)"
    grep -qF -- "$text" err.txt || wrong "$*: '$text' is not in: $(head -n 3 err.txt)"
}
