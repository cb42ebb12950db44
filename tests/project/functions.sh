#!/usr/bin/env bash
# A function may have at most 60 lines, from its opening brace to its closing one, and at most 25 branches: if, for,
# while, case, &&, || and ?. Split a longer function, or use a table, which is not counted. Unit tests may have 110
# lines and 30 branches: most of the long ones are lists of calls with the expected messages.
. "$(dirname "$0")/common.sh"
cd "$root"

# count LINES BRANCHES FILES: "file:line: name has … lines and … branches" for each function beyond these limits
count()
{
    awk -v most_lines="$1" -v most_branches="$2" '
    FNR == 1 { inside = comment = 0; head = "" }
    {
        line = $0
        if (comment) { if (!sub(/^.*\*\//, "", line)) next; comment = 0 }
        gsub(/\\./, "", line); gsub(/"[^"]*"/, "", line); gsub(/\047[^\047]*\047/, "", line)
        gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
        if (sub(/\/\*.*$/, "", line)) comment = 1
        if (line ~ /^#/ && !inside) next
    }
    !inside && /^\{/ && head ~ /\)[[:space:]]*$/ { inside = FNR; branches = 0; name = head }
    inside {
        rest = line
        branches += gsub(/&&|\|\||\?/, " ", rest)
        branches += gsub(/(^|[^A-Za-z0-9_])(if|for|while|case)([^A-Za-z0-9_]|$)/, " ", rest)
    }
    inside && /^\}/ {
        lines = FNR - inside + 1
        if (lines > most_lines || branches > most_branches) {
            sub(/\(\(.*/, "(", name)
            printf "%s:%d: %s: %d lines and %d branches\n", FILENAME, inside, name, lines, branches
        }
        inside = 0; head = ""
    }
    !inside && line !~ /^[[:space:]]*$/ { head = line ~ /^[A-Za-z_]/ ? line : head line }' "${@:3}"
}

# Test of the counting: it must find a long function and one with many branches, and ignore a short one, comments and
# strings.
times() { for ((i = 0; i < $2; i++)); do printf '%s\n' "$1"; done; }
fresh functions
{
    printf 'int longer(void)\n{\n%s\n}\n' "$(times '    g();' 59)"
    printf 'int shorter(void)\n{\n%s\n}\n' "$(times '    g("if ?"); /* && */' 58)"
    printf 'int branched(int a)\n{\n    return a\n%s;\n}\n' "$(times '        && a' 26)"
} >sample.c
found=$(count 60 25 sample.c | sed -E 's/^[^:]*:[^:]*: (.*):.*/\1/' | tr '\n' ' ')
[ "$found" = 'int longer(void) int branched(int a) ' ] ||
    wrong "the counting is wrong: $(count 60 25 sample.c)"
cd "$root"

mapfile -t sources < <(files -name '*.c' -o -name '*.h' | grep -vE '^(extras/)?tests/unit/')
mapfile -t tests < <(files -name '*.c' | grep -E '^(extras/)?tests/unit/')
[ "${#sources[@]}" -gt 400 ] && [ "${#tests[@]}" -gt 80 ] || wrong "only ${#sources[@]} + ${#tests[@]} files were found"
findings < <(count 60 25 "${sources[@]}"; count 110 30 "${tests[@]}")
exit $wrong
