#!/usr/bin/env bash
# Plain words: counts the phrases that docs/style.md lists under "Phrases to avoid", per folder, in comments, strings
# and pages. `words.sh --list [PATH...]` prints each occurrence. Limits: 20 per 1,000 lines of comments in every folder;
# none in strings of the library, the programs and the scripts that users run, nor in pages.
. "$(dirname "$0")/common.sh"
per_thousand=20

phrases() # STYLE-PAGE: its phrases, one a line
{
    sed -n '/^## Phrases to avoid/,$p' "$1" | sed -n 's/^| \(`.*`\) |.*/\1/p' | grep -oE '`[^`]+`' | tr -d '`'
}

# The texts to count: C, scripts, pages. Recorded data, generated tables, the phrase list itself and
# the grammars of words.c are not prose.
texts()
{
    files -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o -name '*.awk' -o -name '*.md' -o -name '*.1' \
        -o -name CMakeLists.txt -o -path ./tests/run -o -path ./tests/quality -o -path ./bench/run \
        -o -path ./examples/run |
        grep -vE '^(docs/style\.md|docs/quality\.md|tests/project/words\.awk|programs/common/words\.c)$|^build'
}

counted() # a line "file comment-lines comments strings pages" each
{
    (cd "$1" && xargs awk -f "$2/tests/project/words.awk" "$3")
}

# By folder. The strings of tests are input or expected output: only their comments count.
by_folder()
{
    awk '{
        folder = $1
        if (!sub(/\/[^\/]*$/, "", folder)) folder = "."
        lines[folder] += $2
        comments[folder] += $3
        strings[folder] += folder ~ /^(extras.)?tests/ && $1 != "tests/run" ? 0 : $4
        pages[folder] += $5
    }
    END { for (f in lines) print f, lines[f], comments[f], strings[f], pages[f] }' | sort
}

judged()
{
    awk -v most=$per_thousand '
        $3 * 1000 > $2 * most && $3 > 1 {
            printf "%s: %d phrases in %d lines of comments, at most %d per 1,000\n", $1, $3, $2, most
        }
        $4 { printf "%s: %d phrases in strings, expected none\n", $1, $4 }
        $5 { printf "%s: %d phrases in pages, expected none\n", $1, $5 }'
}

fresh words
phrases "$root/docs/style.md" >phrases
case ${1:-} in
--list)
    shift
    texts | { [ $# = 0 ] && cat || grep -F "$(printf '%s\n' "$@")"; } |
        (cd "$root" && xargs awk -v list=1 -f tests/project/words.awk "$build/project/words/phrases")
    exit
    ;;
--counts)
    texts | counted "$root" "$root" "$PWD/phrases" | by_folder | column -t
    exit
    ;;
esac
findings < <(texts | counted "$root" "$root" "$PWD/phrases" | by_folder | judged)

# The check itself: planted phrases must be found, also across lines and literals, and code must not be.
mkdir -p planted/a
cat >planted/a/a.c <<'END'
/* a.c — does so
 * many things anew. */
static const char *text = "so "
                          "much"; /* likewise */
static int likewise = 'a';
END
printf 'Nobody knows.\n\n```\nanew\n```\n' >planted/a/a.md
[ "$(printf 'a/a.c\na/a.md\n' | counted "$PWD/planted" "$root" "$PWD/phrases" | by_folder)" = "a 3 3 1 1" ] ||
    wrong "words.sh does not see the phrases planted for it"
exit $wrong
