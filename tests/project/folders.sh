#!/usr/bin/env bash
# What every folder owes: a README, one public header, files that fit in a head. And no file may name a path of the
# machine that it was written on.
. "$(dirname "$0")/common.sh"
most_lines=500 # of the library
most_test_lines=700

for folder in $(folders) tests bench docs docs/adr examples; do
    [ -s "$root/$folder/README.md" ] || wrong "$folder has no README.md"
done

# Users include one header a folder; further ones come with it.
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

# An include of a public header must work where it is installed: from the folder it lies in, and what is installed.
for header in $TENON_HEADERS; do
    while read -r name; do
        found=$(realpath -m --relative-to="$root" "$root/$(dirname "$header")/$name")
        [[ " ${TENON_HEADERS//$'\n'/ } " == *" $found "* ]] || wrong "$header: \"$name\" is not installed beside it"
    done < <(sed -n 's/^[[:space:]]*#[[:space:]]*include "\(.*\)".*/\1/p' "$root/$header")
done

for file in $(files -name '*.[ch]'); do
    lines=$(wc -l <"$root/$file")
    most=$most_lines
    [[ $file == tests/* ]] && most=$most_test_lines
    [ "$lines" -le $most ] || grep -qiE '^/\*.*(written|made) by' "$root/$file" ||
        wrong "$file: $lines lines; past $most it is two ideas"
    [ "$(head -c 2 "$root/$file")" = "/*" ] || [ "$(head -c 8 "$root/$file")" = "#define " ] ||
        wrong "$file does not open with a comment that says what it is for"
done

cd "$root"
mapfile -t code < <(files -name '*.[ch]' -o -name '*.sh' -o -name '*.cmake' -o -name CMakeLists.txt -o -name '*.py')
mapfile -t text < <(files -not -name '*.npy' -not -name '*.safetensors' -not -path '*/corpus/*')
findings < <(LC_ALL=C awk '
    { gsub(/[\200-\277]/, "") } # the bytes after the first of a character
    length > 120 { print FILENAME ":" FNR ": " length " columns" }' "${code[@]}")
findings < <(grep -InE '[[:space:]]+$' "${text[@]}" | sed 's/$/ <- blanks at the end/')
here=$(dirname "$root")
case $here in
/ | /tmp | /var/tmp | /usr/src) ;; # names that may well stand in a text
*) findings < <(grep -InF "$here/" "${text[@]}") ;;
esac
findings < <(grep -InE '/home/[a-z]|/root[/]|/Users[/]|/tmp/[a-z]+_jobs' "${text[@]}") # no match for itself
exit $wrong
