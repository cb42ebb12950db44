#!/usr/bin/env bash
# Every public header compiles alone, twice in a row, as C11 and as C++17, without a warning, with each compiler that is
# there. core/real.h makes kernels of a room, so it is tried with the smallest room.
. "$(dirname "$0")/common.sh"
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wundef -Werror -fsyntax-only"
fresh headers

cat >room.c <<'EOF'
#ifndef TN_REAL
#define TN_TEMPLATE "room.c"
#include <tenon/core/real.h>
float  twice_of_f32(float x);
double twice_of_f64(double x);
float  twice_of_f32(float x) { return twice_f32(x); }
double twice_of_f64(double x) { return twice_f64(x); }
#else
static inline TN_REAL TN_(twice)(TN_REAL x) { return x + x; }
#endif
EOF

try() # COMPILER STANDARD FILE
{
    local language=c extra=-Wstrict-prototypes
    [[ $2 == c++* ]] && language=c++ extra=
    # shellcheck disable=SC2086 # flags, one word each
    "$1" -x $language -std="$2" $warnings $extra -I "$build/include" -I . "$3" >out 2>&1 ||
        wrong "$1 -std=$2: $3: $(cat out)"
}

for header in $TENON_HEADERS; do
    file=$(tr '/.' '__' <<<"$header").c
    printf '#include <tenon/%s>\n#include <tenon/%s>\n' "$header" "$header" >"$file"
    [ "$header" = core/real.h ] && cp room.c "$file"
    for compiler in gcc clang; do
        command -v $compiler >/dev/null || continue
        try $compiler c11 "$file"
        try $compiler c17 "$file"
    done
    for compiler in g++ clang++; do
        command -v $compiler >/dev/null && [ "$header" != core/real.h ] || continue
        try $compiler c++11 "$file"
        try $compiler c++17 "$file"
        try $compiler c++20 "$file"
    done
done
exit $wrong
