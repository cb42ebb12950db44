#!/usr/bin/env bash
# docs/quality.md must exist, the commands that it names must exist, and if it describes the run in docs/figures, it
# must agree with that folder.
. "$(dirname "$0")/common.sh"
page=$root/docs/quality.md
[ -s "$page" ] || { echo "docs/quality.md is missing; tests/quality writes it" && exit 1; }

missing() # PAGE: prints files that it names and that do not exist
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

# The page of an interrupted run is written at its end.
of=$(head -n 1 "$root/docs/figures/run/of" 2>/dev/null | cut -d ' ' -f 2 || true)
if [ "$of" ] && grep -qF " on ${of:0:7}, " "$page"; then
    mkdir docs
    ln -s "$root/tests" "$root/extras" .
    cp -r "$root/docs/figures" docs/
    tests/quality
    cmp -s docs/quality.md "$page" || wrong "docs/quality.md is not what tests/quality writes from docs/figures"
fi
exit $wrong
