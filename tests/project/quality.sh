#!/usr/bin/env bash
# docs/quality.md is there, the commands that it names exist, and if it is of the run whose figures are in docs/figures,
# it says what they say.
. "$(dirname "$0")/common.sh"
page=$root/docs/quality.md
[ -s "$page" ] || { echo "docs/quality.md is not there: tests/quality writes it" && exit 1; }

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

# The page of a run that was broken off is not written before it ends.
of=$(head -n 1 "$root/docs/figures/run/of" 2>/dev/null | cut -d ' ' -f 2 || true)
if [ "$of" ] && grep -qF " on ${of:0:7}, " "$page"; then
    mkdir docs
    ln -s "$root/tests" tests
    cp -r "$root/docs/figures" docs/
    tests/quality
    cmp -s docs/quality.md "$page" || wrong "docs/quality.md is not what tests/quality writes from docs/figures"
fi
exit $wrong
