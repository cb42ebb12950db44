#!/usr/bin/env bash
# README's program linked with libtenon.a: its size, and with -static; and musl knows the functions and types that the
# reduced library uses, if musl-gcc is installed. `small.sh builds` (--full) builds the reduced library for size and
# with musl, and links the program with each. The builds are kept for the next run.
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

at_most() # BYTES NAME
{
    local size
    size=$(stat -c %s "$2")
    [ "$size" -le "$1" ] || wrong "README's program has $size bytes, expected at most $1"
}

if [ "${1:-}" = builds ]; then
    library glibc "${CC:-cc}" -DCMAKE_BUILD_TYPE=MinSizeRel -DTENON_ISAS=avx2
    program glibc small "${CC:-cc}" -O2
    program glibc small-static "${CC:-cc}" -O2 -static
    at_most 700000 small
    command -v musl-gcc >/dev/null || { echo "musl-gcc is not installed" && exit $wrong; }
    library musl musl-gcc -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O0 -DTENON_ISAS=
    program musl small-musl musl-gcc -O0 -static
    exit $wrong
fi

# It links neither utf8proc nor libpng: nothing that it calls needs data/.
program "$build" hello "${CC:-cc}" -O2
program "$build" hello-static "${CC:-cc}" -O2 -static
at_most 1400000 hello # 1321904 with gcc 12: the kernels of all instruction sets

unknown() # FILE...: what musl-gcc does not know in these files
{
    (cd "$root" && musl-gcc -std=c11 -fsyntax-only -Werror=implicit-function-declaration -I. -DTN__ISA=baseline \
        "$@" 2>&1) | grep 'error:' || true
}
if command -v musl-gcc >/dev/null; then
    readarray -t sources < <(cd "$root" && find core autograd nn optim -name '*.c' ! -name '*.avx512bf16.k.c' \
        ! -name '*.amx.k.c' | sort)
    [ ${#sources[@]} -gt 250 ] || wrong "only ${#sources[@]} sources found"
    findings < <(unknown "${sources[@]}")
    printf '#include <string.h>\nint main(void) { return rawmemchr("", 0) != 0; }\n' >planted.c # only glibc has it
    [ "$(unknown "$PWD/planted.c")" ] || wrong "musl-gcc accepts rawmemchr"
fi
exit $wrong
