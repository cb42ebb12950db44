#!/usr/bin/env bash
# Every public header compiles alone, twice in a row, as C11 and C17, C++11, C++17 and C++20, without a warning, with
# each compiler that is there. So do the two files that say what is missing in a build without libpng.
. "$(dirname "$0")/common.sh"
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wundef -Werror -fsyntax-only"
fresh headers

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
    for compiler in gcc clang; do
        command -v $compiler >/dev/null || continue
        try $compiler c11 "$file"
        try $compiler c17 "$file"
    done
    for compiler in g++ clang++; do
        command -v $compiler >/dev/null || continue
        try $compiler c++11 "$file"
        try $compiler c++17 "$file"
        try $compiler c++20 "$file"
    done
done
for file in png gunzip; do
    # shellcheck disable=SC2086
    gcc -std=c11 $warnings -I "$root" -I "$build/include" "$root/data/images/$file.c" >out 2>&1 ||
        wrong "without libpng: data/images/$file.c: $(cat out)"
done
exit $wrong
