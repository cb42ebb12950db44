#!/usr/bin/env bash
# Runs clang-tidy with .clang-tidy on the library, the programs, the benchmarks and the examples. A file without
# findings is checked again only if it, a header or the rules have changed. The static analyzer takes nine tenths of the
# time: it runs only with `tidy.sh analyzer`, in --full as project.analyzer.
. "$(dirname "$0")/common.sh"
need clang-tidy
export checks=-clang-analyzer-* kind=${1:-tidy}
[ "$kind" = analyzer ] && checks=
stamps=$build/project/$kind
commands=$build/project/clang_commands
mkdir -p "$stamps" "$commands"
cd "$root"
# without the options of gcc that clang does not know (cmake/flags.cmake, cmake/library.cmake)
unknown=' -(-param=vect-epilogues-nomask=0|mmem(set|cpy)-strategy=[^ ]*|fvect-cost-model=[^ ]*'
unknown+='|fno-(unswitch-loops|align-labels|align-jumps|version-loops-for-strides))'
sed -E "s/$unknown//g" "$build/compile_commands.json" >"$commands/compile_commands.json"

looked_at() # STAMP FILE: is there nothing newer than the stamp that the verdict hangs on?
{
    [ -e "$1" ] && [ -z "$(find .clang-tidy "$2" $(folders) bench tests/project/tidy.sh \
        \( -name '*.h' -o -name .clang-tidy -o -name tidy.sh -o -path "$2" \) -newer "$1" -print -quit)" ]
}

todo=()
for file in $(files -name '*.c' -not -path './tests/*'); do
    looked_at "$stamps/${file//\//,}" "$file" && continue
    grep -q "\"file\": \"$root/$file\"" "$build/compile_commands.json" && todo+=("$file")
done

# Checks several files per call, because starting clang-tidy takes as long as a file; after a finding, each file alone.
some() # COMMANDS STAMPS FILE...
{
    local commands=$1 stamps=$2 out file
    shift 2
    if out=$(clang-tidy --quiet -p "$commands" --checks="$checks" --warnings-as-errors='*' "$@" 2>/dev/null) &&
        [ -z "$out" ]; then
        for file; do touch "$stamps/${file//\//,}"; done
    elif [ $# -gt 1 ]; then
        for file; do some "$commands" "$stamps" "$file"; done
    else
        printf '%s\n' "$out" "clang-tidy: $1"
    fi
}
export -f some
[ ${#todo[@]} -eq 0 ] || printf '%s\n' "${todo[@]}" |
    xargs -P "${TENON_JOBS:-$(nproc)}" -n 12 bash -c 'some "$@"' some "$commands" "$stamps" >"$build/project/$kind.out"
[ ${#todo[@]} -eq 0 ] || findings <"$build/project/$kind.out"
echo "clang-tidy: ${#todo[@]} files looked at"
exit $wrong
