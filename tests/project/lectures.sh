#!/usr/bin/env bash
# docs/guide/lectures.md, the slides of five lectures: rows 1 to 44, each with a sentence, a command and its output. All
# commands run in order in one folder, and print the output on the page; the numbers that the lectures print are those.
# --fix writes the outputs into the page.
. "$(dirname "$0")/common.sh"
fresh lectures
page=$root/docs/guide/lectures.md rows=44
[ -x "$build/bin/look" ] || { echo "SKIPPED: the programs are not built" && exit 77; }

# split PAGE: N.sh and N.text of each row N, 0 for the text before the first row; prints what is wrong with the page
split()
{
    awk -v rows=$rows '
        function end() {
            if (n && !said) print "row " n " has no sentence"
            if (n && !(n in command)) print "row " n " has no command"
            if (n && !(n in output)) print "row " n " shows no output"
        }
        /^### / { end(); if ($2 != n + 1 ".") print "after row " n " comes: " $0; n++; said = 0; next }
        /^```/ { block = block ? "" : substr($0, 4); next }
        block == "" && NF { said = 1 }
        block == "sh" { print >(n + 0 ".sh"); command[n] = 1 }
        block == "text" { print >(n + 0 ".text"); output[n] = 1 }
        END { end(); if (n != rows) print n + 0 " rows, expected " rows }' "$1"
}

# Test of the check: a row without its command, and a page without its last row, are found.
mkdir planted
awk '/^### 7\./ { on = 1 } /^### 8\./ { on = 0 } /^### 44\./ { exit } !(on && /^```sh/) { print }' "$page" >planted/page
said=$(cd planted && split page)
grep -qx 'row 7 has no command' <<<"$said" && grep -qx "43 rows, expected 44" <<<"$said" ||
    wrong "the check does not find what was planted: $said"

findings < <(split "$page" | sed 's/^/docs\/guide\/lectures.md: /')
mkdir run
for ((n = 0; n <= rows; n++)); do
    [ -s $n.sh ] || continue
    (cd run && PATH=$build/bin:$PATH bash -euo pipefail ../$n.sh) >$n.out 2>$n.err ||
        wrong "docs/guide/lectures.md: a command of row $n fails: $(tail -n 3 $n.err)"
    [ $n = 0 ] || [ "${1:-}" = --fix ] || diff $n.text <(awk '{ sub(/ *$/, ""); print }' $n.out) >difference ||
        wrong "docs/guide/lectures.md: row $n prints (>) other lines than the page (<): $(cat difference)"
done
if [ "${1:-}" = --fix ]; then
    awk '/^### / { n++ } /^```$/ { skip = 0 } !skip
        /^```text$/ {
            while ((getline line <(n ".out")) > 0) { sub(/ *$/, "", line); print line }
            skip = 1
        }' "$page" >fixed && cp fixed "$page"
fi

# The numbers of the lectures.
numbers() { grep -oE -- '-?[0-9]+\.[0-9]+' "$1" | tr '\n' ' '; }
expected='0.98522025 1.74174051 0.75652026 0.90965265 1.40965265 0.50000000 0.99851226 1.75849334 0.75998108 '
expected+='0.99560386 1.90407309 0.90846923 '
[ "$(numbers 1.out)" = "$expected" ] || wrong "four words: $(numbers 1.out)"
awk '$1 == "ship" && $8 == "0.55" && $12 == "0.13" { ok++ }
    $1 == "i" && $2 == "0.36" && $7 == "0.19" && $11 == "0.19" { ok++ }
    END { exit ok != 2 }' 2.out || wrong "ship and crew: $(cat 2.out)"
printf '1\te s\t9\n2\tes t\t9\n' | diff - <(head -n 2 33.out) >difference || wrong "merges: $(cat difference)"
[ "$(grep -c '^[0-9]' 33.out)" = 10 ] || wrong "not ten merges: $(cat 33.out)"
exit $wrong
