# Builds a version of Tenon, for tests/project/same_bits.sh and `bench/run pair`.
# shellcheck shell=bash

# build_version FOLDER VERSION OPTION...: builds VERSION, a revision of this repository or a folder with a checkout,
# with these CMake options, and prints the path of the build below FOLDER: source/, build/, and prefix/ with the
# installation. A revision is extracted from the repository, so that no checkout changes. Existing builds are updated.
build_version()
{
    local folder=$1 what=$2 sha at
    shift 2
    if [ -d "$what" ]; then
        what=$(cd "$what" && pwd)
        [ -f "$what/tenon.h" ] || stop_version "'$what' is not a checkout of Tenon"
        at=$folder/checkout-$(cksum <<<"$what" | tr ' ' -)
        mkdir -p "$at"
        ln -sfn "$what" "$at/source"
    else
        sha=$(git -C "$root" rev-parse --verify --quiet "$what^{commit}") ||
            stop_version "'$what' is neither a folder nor a revision"
        at=$folder/$sha
        if [ ! -d "$at/source" ]; then
            rm -rf "$at.new" && mkdir -p "$at.new/source"
            git -C "$root" archive "$sha" | tar -x -C "$at.new/source"
            mv "$at.new" "$at"
        fi
    fi
    {
        cmake -S "$at/source/" -B "$at/build" -DCMAKE_BUILD_TYPE=Release -DTENON_PROGRAMS=ON "$@" &&
            cmake --build "$at/build" -j "${TENON_JOBS:-$(nproc)}" &&
            cmake --install "$at/build" --prefix "$at/prefix"
    } >"$at/log" 2>&1 || {
        tail -n 30 "$at/log" >&2
        stop_version "the build of '$what' failed; the full log is $at/log"
    }
    echo "$at"
}

stop_version() # MESSAGE...
{
    printf '%s: %s\n' "$0" "$*" >&2
    exit 2
}
