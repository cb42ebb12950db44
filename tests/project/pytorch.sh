#!/usr/bin/env bash
# docs/guide/pytorch.md maps PyTorch's names to Tenon's: it must have at least 80 rows, and a public header must declare
# each of Tenon's names in them.
. "$(dirname "$0")/common.sh"
page=$root/docs/guide/pytorch.md

fresh pytorch
cd "$root"
# shellcheck disable=SC2086 # a list
sed -E -e 's:/\*([^*]|\*[^/])*\*/::g' -e '/\/\*/,/\*\//{ s:/\*.*::; t code' -e d -e ':code' -e '}' $TENON_HEADERS |
    grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u >"$build/project/pytorch/there"
cd - >/dev/null

rows() { grep -E '^\| ' "$1" | grep -vE '^\| (PyTorch|-)'; } # PAGE
# The names in backquotes in the second and third column: tn_…, TN_… and .members.
absent() # PAGE: prints the names that no header has
{
    rows "$1" | cut -d '|' -f 3- | grep -oE '`[^`]*`' |
        grep -oE '[.]?[A-Za-z_][A-Za-z0-9_]*' | sed -nE 's/^[.]//p; /^(tn|TN)_/p' | sort -u | comm -23 - there
}
[ "$(rows "$page" | wc -l)" -ge 80 ] || wrong "docs/guide/pytorch.md has only $(rows "$page" | wc -l) rows"
findings < <(absent "$page" | sed 's/^/docs\/guide\/pytorch.md: no public header has /')

# Test of the check.
{
    echo '| PyTorch | Tenon | |'
    echo '|---|---|---|'
    echo '| `x` | `tn_nowhere(a, .nothing = 1)`, `.nonesuch.norm` | `tn_add` |'
} >planted
[ "$(absent planted | tr '\n' ' ')" = "nonesuch nothing tn_nowhere " ] ||
    wrong "pytorch.sh does not see the names planted for it: $(absent planted)"
exit $wrong
