#!/usr/bin/env bash
# docs/guide/key_files.md, the files to read first: twelve stops, each with files that exist, and their number of lines,
# which the page states with an error of at most a tenth. It is no limit: list what a reader has to open.
. "$(dirname "$0")/common.sh"
stops=12

set_of() # PAGE: a line "stop file" for each file that a stop lists
{
    awk '/^## [0-9]+\. / { stop = $2 + 0 }
        /^Read: / { reads = stop } !NF { reads = 0 }
        reads { text = $0; while (match(text, /`[^`]+`/)) {
            print stop, substr(text, RSTART + 1, RLENGTH - 2)
            text = substr(text, RSTART + RLENGTH)
        } }' "$1"
}

judged() # PAGE ROOT: the findings, and "lines N" on the last line
{
    local stop file lines=0
    for ((stop = 1; stop <= stops; stop++)); do
        grep -q "^$stop " < <(set_of "$1") || echo "stop $stop lists no files"
    done
    set_of "$1" | awk -v stops="$stops" '$1 > stops { print "stop " $1 " is one too many" }' | sort -u
    set_of "$1" | cut -d' ' -f2 | sort | uniq -d | sed 's/$/ is listed twice/'
    while read -r stop file; do
        if [ -f "$2/$file" ]; then lines=$((lines + $(wc -l <"$2/$file")))
        else echo "stop $stop: there is no file $file"; fi
    done < <(set_of "$1")
    echo "lines $lines"
}

page=$root/docs/guide/key_files.md
judged "$page" "$root" | sed -n 's/^lines \(.*\)/the reading set has \1 lines/p'
findings < <(judged "$page" "$root" | grep -v '^lines ' | sed 's|^|docs/guide/key_files.md: |')
lines=$(judged "$page" "$root" | sed -n 's/^lines //p')
stated=$(grep -oE 'about [0-9,]+ lines' "$page" | tr -dc 0-9)
[ $((10 * lines)) -ge $((9 * ${stated:-0})) ] && [ $((10 * lines)) -le $((11 * ${stated:-0})) ] ||
    wrong "docs/guide/key_files.md states ${stated:-no number of} lines, but its files have $lines"

# The check itself: a missing file, a stop without files and a file twice must be found.
fresh reading
touch long.c
for ((stop = 2; stop <= stops; stop++)); do
    printf '## %d. Stop\n\nRead: `file%d.c`\n' $stop $stop
    touch file$stop.c
done >page.md
printf '## 1. Stop\n\n' >>page.md
sed -i 's/`file3.c`/`long.c`, `gone.c`/; s/`file5.c`/`file4.c`/' page.md
[ "$(judged page.md "$PWD" | grep -vc '^lines ')" = 3 ] ||
    wrong "reading.sh does not see the three faults planted for it: $(judged page.md "$PWD")"
exit $wrong
