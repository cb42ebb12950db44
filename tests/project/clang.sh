#!/usr/bin/env bash
# clang's warnings for the tests, with the flags of their build, without generating code. tidy.sh checks the other
# files; stage.clang, which builds everything with clang, runs only with --full.
. "$(dirname "$0")/common.sh"
need clang
cd "$root"
readarray -t commands < <(
    sed -n "s,^ *\"command\": \"[^ ]* \(.* -c $root/tests/.*\.c\)\"\,*$,\1,p" "$build/compile_commands.json" |
        sed 's/\\\(.\)/\1/g' | sort -u
)
[ ${#commands[@]} -gt 150 ] || wrong "only ${#commands[@]} of the tests' commands found: what CMake writes has changed"
one() # COMMAND without the compiler: keeps the flags that affect parsing, and the file
{
    local word kept=()
    eval "set -- $1"
    for word; do
        case $word in
        -I* | -D* | -U* | -W* | -std=* | -pthread | /*.c) kept+=("$word") ;;
        esac
    done
    clang -fsyntax-only -Wno-unknown-warning-option "${kept[@]}" 2>&1
}
export -f one
findings < <(printf '%s\0' "${commands[@]}" |
    xargs -0 -P "${TENON_JOBS:-$(nproc)}" -n 1 bash -c 'one "$1" || true' one | grep -E '(error|warning):')
echo "clang: ${#commands[@]} files looked at"
exit $wrong
