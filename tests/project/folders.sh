#!/usr/bin/env bash
# Every folder must have a README and one public header; files must not be too long, and must not name missing files or
# local paths.
. "$(dirname "$0")/common.sh"
most_lines=500 # of the library
most_test_lines=700

for folder in $(folders) tests bench docs docs/adr examples programs; do
    [ -s "$root/$folder/README.md" ] || wrong "$folder has no README.md"
done
while read -r folder; do
    [ -f "$root/$folder/README.md" ] && [ "$(wc -l <"$root/$folder/README.md")" -ge 3 ] ||
        wrong "$folder: its README.md says in three lines or more what lives there and what it may include"
done < <(cd "$root" && find $(folders) tests -mindepth 1 -maxdepth 1 -type d)

# Users include one header per folder, which includes further ones.
for folder in $(folders); do
    [ -f "$root/$folder/$folder.h" ] || wrong "$folder has no $folder.h"
    door=tenon.h
    [ "$folder" != extras ] || door=extras.h
    grep -q "\"$folder/$folder.h\"" "$root/$door" || wrong "$door does not include $folder/$folder.h"
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
cd "$root"
mapfile -t included < <(
    awk '/^[ \t]*#[ \t]*include "/ { split($0, part, "\""); print FILENAME ":" part[2] }' $TENON_HEADERS
)
mapfile -t paths < <(for at in "${included[@]}"; do
    header=${at%%:*}
    [[ $header == */* ]] || header=./$header
    echo "${header%/*}/${at#*:}"
done | xargs realpath -m --relative-to=.)
for i in "${!included[@]}"; do
    [[ " ${TENON_HEADERS//$'\n'/ } " == *" ${paths[i]} "* ]] ||
        wrong "${included[i]%%:*}: \"${included[i]#*:}\" is not installed beside it"
done
[ ${#included[@]} -gt 50 ] && [ ${#included[@]} = ${#paths[@]} ] ||
    wrong "found ${#included[@]} includes in public headers, and ${#paths[@]} paths for them"

findings < <(files \( -name '*.md' -o -name '*.[ch]' -o -name '*.sh' -o -name '*.py' \) -empty | sed 's/$/ is empty/')

# The first comment of each C file, its length, and the include guard of a header, which must be its path.
first_comments() # FILE...
{
    awk -v most_of_library=$most_lines -v most_of_tests=$most_test_lines '
        function end()
        {
            most = file ~ /^(extras\/)?tests\// ? most_of_tests : most_of_library
            if (lines > most && !generated) print file ": " lines " lines; past " most " it is two ideas"
            if (!opens) print file " does not open with a comment that says what it is for"
            if (!named && file !~ /^autograd\/ops\//) print file ": its first comment has another name"
            path = "TENON_" toupper(file)
            gsub(/[\/.-]/, "_", path)
            sub(/^TENON_TENON_H/, "TENON_H", path)
            if (file ~ /[.]h$/ && guard != "" && guard != path) print file ": its guard is " guard ", not " path
        }
        FNR == 1 {
            if (file != "") end()
            file = stem = FILENAME
            sub(/^.*\//, "", stem)
            name = stem
            sub(/[.][^.]*$/, "", stem)
            gsub(/[.]/, "[.]", name)
            heading = "^/[*] (" name "|" stem "(, [a-z0-9_]+)*) — "
            opens = /^\/[*]/ || /^#define /
            generated = named = 0
            guard = ""
        }
        FNR <= 2 && $0 ~ heading || FNR == 2 && /^#define / { named = 1 }
        { lines = FNR }
        /^\/[*].*([Ww]ritten|[Mm]ade) by/ { generated = 1 }
        guard == "" && /^#ifndef TENON_[A-Z0-9_]+_H$/ { guard = $2 }
        END { end() }' "$@"
}
mapfile -t code < <(files -name '*.[ch]')
findings < <(first_comments "${code[@]}")

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
not_ours='(out/)?tenon(_models)?[.][ch]|(app|book)[.]c|xlocale[.]h'
not_ours+='|llama2[.]c|word2vec[.]c|(std|ma)[a-z]*[.]h|name[.]c|name/main[.]c|my_.*|(.*/)?tenon/.*'
findings < <(mentions "$root" "${pages[@]}" | grep -vE "there is no ($not_ours)$")

fresh folders
mkdir tests
printf '/* other.c — x. */\n\n#ifndef TENON_ONE_H\n' >one.h
printf 'int x;\n' >two.c
{ echo '/* three.c — x. */' && printf '\n%.0s' {1..500}; } >three.c
{ echo '/* three.c — x. */' && printf '\n%.0s' {1..500}; } >tests/three.c
{ echo '/* four.c — x. Written by a script. */' && printf '\n%.0s' {1..500}; } >four.c
{ echo '/* guard.h — x. */' && echo '#ifndef TENON_GUARDS_H'; } >guard.h
cat >expected <<END
one.h: its first comment has another name
two.c does not open with a comment that says what it is for
two.c: its first comment has another name
three.c: 501 lines; past 500 it is two ideas
guard.h: its guard is TENON_GUARDS_H, not TENON_GUARD_H
END
first_comments one.h two.c three.c tests/three.c four.c guard.h | diff expected - ||
    wrong "folders.sh does not find the faults of first comments planted for it"
printf '/* one.c — see ten.c. */\n#include "x.h"\n' >one.c
[ "$(mentions "$PWD" one.c)" = "one.c:1: there is no ten.c" ] ||
    wrong "folders.sh does not see the name planted for it: $(mentions "$PWD" one.c)"

cd "$root"
mapfile -t lines < <(files -name '*.[ch]' -o -name '*.sh' -o -name '*.cmake' -o -name CMakeLists.txt -o -name '*.py')
mapfile -t scripts < <(files -not -name '*.*' | xargs awk 'FNR == 1 && /^#!/ { print FILENAME }')
mapfile -t text < <(files -not -name '*.npy' -not -name '*.safetensors' -not -path '*/corpus/*')
findings < <(LC_ALL=C awk '
    { gsub(/[\200-\277]/, "") } # continuation bytes of UTF-8
    length > 120 { print FILENAME ":" FNR ": " length " columns" }' "${lines[@]}" "${scripts[@]}")
findings < <(grep -InE '[[:space:]]+$' "${text[@]}" | sed 's/$/ <- blanks at the end/')
here=$(dirname "$root")
case $here in
/ | /tmp | /var/tmp | /usr/src) ;; # names that texts may contain
*) findings < <(grep -InF "$here/" "${text[@]}") ;;
esac
findings < <(grep -InE '/home/[a-z]|/root[/]|/Users[/]|/tmp/[a-z]+_jobs' "${text[@]}") # not itself
exit $wrong
