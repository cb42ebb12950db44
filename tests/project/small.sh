#!/usr/bin/env bash
# README's program linked with the reduced libtenon.a: its size, and with -static; and with musl, if musl-gcc is
# installed. The builds are kept for the next run.
. "$(dirname "$0")/common.sh"
need cmake cc strip
mkdir -p "$build/project/small" && cd "$build/project/small"
awk '/```c$/ { f = 1; next } /```/ { f = 0 } f' "$root/README.md" >hello.c

library() # FOLDER COMPILER ARGUMENTS...
{
    local folder=$1 compiler=$2
    shift 2
    cmake -S "$root" -B "$folder" -DCMAKE_C_COMPILER="$compiler" -DTENON_TESTS=OFF -DTENON_PROGRAMS=OFF \
        -DTENON_MODELS=OFF -DTENON_PARALLEL=OFF -DTENON_DATA=OFF "$@" >"$folder.log" 2>&1 &&
        cmake --build "$folder" --target tenon_static -j "${TENON_JOBS:-$(nproc)}" >>"$folder.log" 2>&1 ||
        wrong "$folder: $(tail -n 20 "$folder.log")"
}

program() # FOLDER NAME COMPILER ARGUMENTS...
{
    local folder=$1 name=$2 compiler=$3
    shift 3
    if $compiler "$@" hello.c -o "$name" -I"$folder/include" "$folder/libtenon.a" -Wl,--gc-sections -lm -pthread \
        >out 2>&1 && strip "$name"; then
        "./$name" >out 2>&1 || wrong "$name fails: $(cat out)"
        grep -q '^1000  0\.0' out || wrong "$name: $(cat out)"
    else
        wrong "$name does not link: $(tail -n 5 out)"
    fi
}

library glibc "${CC:-cc}" -DCMAKE_BUILD_TYPE=MinSizeRel -DTENON_ISAS=avx2
program glibc hello "${CC:-cc}" -O2
program glibc hello-static "${CC:-cc}" -O2 -static
size=$(stat -c %s hello)
[ "$size" -le 700000 ] || wrong "README's program has $size bytes, expected at most 700000"

if command -v musl-gcc >/dev/null; then
    library musl musl-gcc -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O0 -DTENON_ISAS=
    program musl hello-musl musl-gcc -O0 -static
fi
exit $wrong
