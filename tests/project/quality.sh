#!/usr/bin/env bash
# docs/quality.md is there, and the commands that it names exist.
. "$(dirname "$0")/common.sh"
page=$root/docs/quality.md
[ -s "$page" ] || { echo "docs/quality.md is not there: tests/quality build writes it" && exit 1; }

missing() # PAGE: what it names, and is not there
{
    grep -o '`[^`]*`' "$1" | tr -d '`' | grep -E '(build|tests)/' | while read -r command; do
        for word in $command; do
            case $word in
            build/*) [ -e "$build/${word#build/}" ] || echo "docs/quality.md: there is no $word" ;;
            tests/*) [ -e "$root/$word" ] || echo "docs/quality.md: there is no $word" ;;
            esac
        done
    done
}
findings < <(missing "$page")
fresh quality
echo '`build/bin/tests/nothing_at_all` and `tests/quality`' >planted
[ "$(missing planted)" = "docs/quality.md: there is no build/bin/tests/nothing_at_all" ] ||
    wrong "a command that is not there is not found"
exit $wrong
