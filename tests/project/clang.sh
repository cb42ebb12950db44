#!/usr/bin/env bash
# clang's warnings for the programs of the checks of the project, with the flags of their build, without making code.
# stage.fuzz-build builds the library and the unit tests with clang, tidy.sh checks the other files, and
# stage.clang (--full) builds everything with clang.
. "$(dirname "$0")/common.sh"
need clang
cd "$root"
readarray -t commands < <(
    commands='\(.* -c '$root'/\(extras/\)*tests/project/.*\.c\)'
    sed -n "s,^ *\"command\": \"[^ ]* $commands\"\,*$,\1,p" "$build/compile_commands.json" |
        sed 's/\\\(.\)/\1/g' | sort -u
)
[ ${#commands[@]} -ge 5 ] || wrong "only ${#commands[@]} of the programs' commands found: what CMake writes has changed"
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
