#!/usr/bin/env bash
# Every folder must have a README and one public header; files must not be too long, and must not name missing files or
# local paths.
. "$(dirname "$0")/common.sh"
most_lines=500 # of the library
most_test_lines=700

for folder in $(folders) tests bench docs docs/adr examples; do
    [ -s "$root/$folder/README.md" ] || wrong "$folder has no README.md"
done
while read -r folder; do
    [ -f "$root/$folder/README.md" ] && [ "$(wc -l <"$root/$folder/README.md")" -ge 3 ] ||
        wrong "$folder: its README.md says in three lines or more what lives there and what it may include"
done < <(cd "$root" && find $(folders) tests -mindepth 1 -maxdepth 1 -type d)

# Users include one header per folder, which includes further ones.
for folder in $(folders); do
    [ -f "$root/$folder/$folder.h" ] || wrong "$folder has no $folder.h"
    grep -q "\"$folder/$folder.h\"" "$root/tenon.h" || wrong "tenon.h does not include $folder/$folder.h"
    for header in $TENON_HEADERS; do
        case $header in
        "$folder/$folder.h") ;;
        "$folder"/*)
            grep -q "#include \"${header#*/}\"" "$root/$folder/$folder.h" ||
                wrong "$header is installed, but $folder/$folder.h does not include it"
            ;;
        esac
    done
done

# The includes of a public header must work after installation: relative to its folder, and only installed headers.
for header in $TENON_HEADERS; do
    while read -r name; do
        found=$(realpath -m --relative-to="$root" "$root/$(dirname "$header")/$name")
        [[ " ${TENON_HEADERS//$'\n'/ } " == *" $found "* ]] || wrong "$header: \"$name\" is not installed beside it"
    done < <(sed -n 's/^[[:space:]]*#[[:space:]]*include "\(.*\)".*/\1/p' "$root/$header")
done

for file in $(files -name '*.md' -o -name '*.[ch]' -o -name '*.sh' -o -name '*.py'); do
    [ -s "$root/$file" ] || wrong "$file is empty"
done

for file in $(files -name '*.[ch]'); do
    lines=$(wc -l <"$root/$file")
    most=$most_lines
    [[ $file == tests/* ]] && most=$most_test_lines
    [ "$lines" -le $most ] || grep -qiE '^/\*.*(written|made) by' "$root/$file" ||
        wrong "$file: $lines lines; past $most it is two ideas"
    [ "$(head -c 2 "$root/$file")" = "/*" ] || [ "$(head -c 8 "$root/$file")" = "#define " ] ||
        wrong "$file does not open with a comment that says what it is for"
    name=${file##*/}
    head -n 2 "$root/$file" | grep -qE "^/\* (${name//./\\.}|${name%.*}(, [a-z0-9_]+)*) — " ||
        [[ $file == autograd/ops/* ]] || [[ $(sed -n 2p "$root/$file") == "#define "* ]] ||
        wrong "$file: its first comment has another name"
done

# The include guard must be the path of the header.
for header in $(files -name '*.h'); do
    guard=$(sed -nE 's/^#ifndef (TENON_[A-Z0-9_]+_H)$/\1/p' "$root/$header" | head -n 1)
    path=TENON_$(tr 'a-z/.-' 'A-Z___' <<<"$header")
    [ -z "$guard" ] || [ "$guard" = "${path/TENON_TENON_H/TENON_H}" ] || wrong "$header: its guard is $guard, not $path"
done

# A file that a comment or a page names must exist: at that path if one is given, otherwise anywhere with that name.
mentions() # SOURCES FILE...
{
    local sources=$1
    shift
    (cd "$sources" && awk -f "$root/tests/project/mentions.awk" "$@") | awk -v all="$(cd "$sources" && files_here)" '
        BEGIN {
            n = split(all, path, "\n")
            for (i = 1; i <= n; i++)
                for (p = path[i]; p != ""; p = (sub(/^[^\/]*\//, "", p) ? p : "")) there[p] = 1
        }
        !($2 in there) { print $1 " there is no " $2 }'
}
files_here() { find . \( -path ./build -o -path ./.git \) -prune -o -type f -printf '%P\n'; }
mapfile -t pages < <(files -name '*.[ch]' -o -name '*.md')
not_ours='llama2[.]c|word2vec[.]c|(std|ma)[a-z]*[.]h|name[.]c|name/main[.]c|my_.*|(.*/)?tenon/.*'
findings < <(mentions "$root" "${pages[@]}" | grep -vE "there is no ($not_ours)$")

fresh folders
printf '/* one.c — see two.c. */\n#include "x.h"\n' >one.c
[ "$(mentions "$PWD" one.c)" = "one.c:1: there is no two.c" ] ||
    wrong "folders.sh does not see the name planted for it: $(mentions "$PWD" one.c)"

cd "$root"
mapfile -t code < <(files -name '*.[ch]' -o -name '*.sh' -o -name '*.cmake' -o -name CMakeLists.txt -o -name '*.py')
mapfile -t scripts < <(files -not -name '*.*' | xargs awk 'FNR == 1 && /^#!/ { print FILENAME }')
mapfile -t text < <(files -not -name '*.npy' -not -name '*.safetensors' -not -path '*/corpus/*')
findings < <(LC_ALL=C awk '
    { gsub(/[\200-\277]/, "") } # continuation bytes of UTF-8
    length > 120 { print FILENAME ":" FNR ": " length " columns" }' "${code[@]}" "${scripts[@]}")
findings < <(grep -InE '[[:space:]]+$' "${text[@]}" | sed 's/$/ <- blanks at the end/')
here=$(dirname "$root")
case $here in
/ | /tmp | /var/tmp | /usr/src) ;; # names that texts may contain
*) findings < <(grep -InF "$here/" "${text[@]}") ;;
esac
findings < <(grep -InE '/home/[a-z]|/root[/]|/Users[/]|/tmp/[a-z]+_jobs' "${text[@]}") # not itself
exit $wrong
