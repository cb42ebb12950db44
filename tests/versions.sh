# Two versions of Tenon, built side by side: what tests/project/same_bits.sh and `bench/run pair` share.
# shellcheck shell=bash

# build_version FOLDER WHAT OPTION...: builds WHAT, a revision of this repository or a folder that holds a checkout,
# with these options of CMake, and prints where: under FOLDER, with source/, build/ and prefix/, where it is installed.
# A revision is taken out of the repository, so that nobody's checkout changes; what was built before is kept.
build_version()
{
    local folder=$1 what=$2 sha at
    shift 2
    if [ -d "$what" ]; then
        what=$(cd "$what" && pwd)
        [ -f "$what/tenon.h" ] || stop_version "'$what' holds no checkout of Tenon"
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
        stop_version "building '$what' failed; all of it is in $at/log"
    }
    echo "$at"
}

stop_version() # WORDS...
{
    printf '%s: %s\n' "$0" "$*" >&2
    exit 2
}
