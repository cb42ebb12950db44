#!/usr/bin/env bash
# The program in README.md equals examples/readme.c (without its first comment), and its loss falls.
. "$(dirname "$0")/common.sh"
fresh readme
sed -n '/^```c$/,/^```$/p' "$root/README.md" | sed '1d; /^```$/,$d' >from-readme.c
sed '1,/\*\/$/d' "$root/examples/readme.c" >from-example.c
diff -u from-readme.c from-example.c >difference || wrong "README.md and examples/readme.c differ: $(cat difference)"

"$build/bin/readme" >out 2>&1 || wrong "the program fails: $(cat out)"
first=$(awk 'NR == 1 { print $2 }' out)
last=$(awk 'END { print $2 }' out)
awk "BEGIN { exit !($last < 0.05 * $first && $last < 0.02) }" </dev/null || wrong "it does not learn: $(cat out)"

# README.md says on which systems what was tested: those of docs/portability.md.
systems() # FILE HEADING: system and CPU of each row of the table that begins with HEADING
{
    sed -nE "/^[|] $2 [|]/,/^$/s/^[|] ([A-Za-z]+)[ 0-9]*( on|,) ([a-z0-9_-]+).*/\\1 \\3/p" "$root/$1" | sort -u
}
systems README.md where >tested
[ -s tested ] && diff tested <(systems docs/portability.md system) >difference ||
    wrong "README.md and docs/portability.md name other systems: $(cat difference)"

# The folders and scripts that README.md names exist.
while read -r folder; do
    [ -d "$root/$folder" ] || wrong "README.md names the folder $folder, which is not there"
done < <(sed -nE 's,^([a-z]+)/ .*,\1,p' "$root/README.md")
for command in tests/run bench/run examples/run; do
    grep -q "$command" "$root/README.md" || wrong "README.md does not name $command"
    [ -x "$root/$command" ] || wrong "$command cannot be run"
done
exit $wrong
