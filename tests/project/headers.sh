#!/usr/bin/env bash
# Every public header must compile alone, included twice, as C11, C17, C++11, C++17 and C++20, without warnings, with
# each installed compiler: with --full in all standards; otherwise alone as C11 and C++11, and all headers together in
# the other standards and with the other compilers. The two files that replace PNG and gzip in a build without libpng
# must compile, too.
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

try_each() # FILE COMPILER,STANDARD...
{
    local one file=$1
    for one in "${@:2}"; do
        ! command -v "${one%,*}" >/dev/null || try "${one%,*}" "${one#*,}" "$file"
    done
}

alone=(gcc,c11 g++,c++11) together=(clang,c17 g++,c++20 clang++,c++17)
[ "${TENON_CONFIG:-}" != full ] ||
    alone+=("${together[@]}" gcc,c17 clang,c11 g++,c++17 clang++,c++11 clang++,c++20)
for header in $TENON_HEADERS; do
    file=${header//[\/.]/_}.c
    printf '#include <tenon/%s>\n' "$header" "$header" >"$file"
    try_each "$file" "${alone[@]}"
    head -n 1 "$file" >>all.c
done
try_each all.c "${together[@]}"
for file in png gunzip; do
    # shellcheck disable=SC2086
    gcc -std=c11 $warnings -I "$root" -I "$build/include" "$root/extras/images/$file.c" >out 2>&1 ||
        wrong "without libpng: extras/images/$file.c: $(cat out)"
done
exit $wrong
