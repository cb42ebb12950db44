#!/usr/bin/env bash
# The manual pages are complete: each option that a command's --help shows is in the command's section of the page, with
# its letter and its value, and vice versa; the exit codes are listed, too. If man is installed, it must print no
# warnings. Pages use the macros of mdoc(7). `man.sh --fix` writes the lists of options from --help
# (docs/man/options.py).
. "$(dirname "$0")/common.sh"
fresh man
[ -x "$build/bin/bert" ] || { echo "SKIPPED: the programs are not built" && exit 77; }

# "t text FILE..." for each option in --help: of the command (0), or of every command (1)
shown()
{
    awk -v all="$1" '
        /^Options of every command:/ { after = 1 }
        after == all && match($0, /^  (-.,|   ) --[a-z0-9-]+( [^ ]+)?/) {
            line = substr($0, 1, RLENGTH)
            sub(/^ +/, "", line)
            letter = line ~ /^-[a-zA-Z],/ ? substr(line, 2, 1) : "-"
            sub(/^.*--/, "", line)
            print letter, line
        }' | sort
}

# "t text FILE..." for each option in a section (.Sh) or subsection (.Ss) of a page
written()
{
    awk -v title="$2" '
        /^\.S[hs] / { here = $0 == ".Sh " title || $0 == ".Ss " title }
        here && /^\.It Fl / {
            letter = "-"
            if ($0 ~ /^\.It Fl [a-zA-Z] , Fl -/) letter = $3
            sub(/^.* Fl -/, ""); sub(/^\.It Fl -/, ""); sub(/ Ar /, " ")
            print letter, $0
        }' "$1" | sort
}

if [ "${1:-}" = --fix ]; then
    for path in "$root"/docs/man/*.1; do
        [ ! -x "$build/bin/$(basename "$path" .1)" ] ||
            python3 "$root/docs/man/options.py" "$build/bin/$(basename "$path" .1)" "$path"
    done
fi

# Test of --fix: a page without an option and with one that does not exist is written as it was, but with the words of
# --help for the lost one.
sed '/^\.It Fl -shape /,/^\.It /{/^\.It Fl -shape /d;/^\.It /!d};/^\.It Fl -vocab /i .It Fl -no-such Ar N\nNothing.' \
    "$root/docs/man/gpt.1" >gpt.1
python3 "$root/docs/man/options.py" "$build/bin/gpt" gpt.1 >said
{ grep -q '^\.It Fl -shape Ar NAME$' gpt.1 && ! grep -q no-such gpt.1 &&
    diff <(grep '^\.It' gpt.1 | sort) <(grep '^\.It' "$root/docs/man/gpt.1" | sort); } >difference ||
    wrong "options.py does not mend a page: $(head difference)"

compare() # PAGE WHAT: the files page and help
{
    findings < <(comm -23 help page | sed "s|^|$1: $2: not in the page: |")
    findings < <(comm -13 help page | sed "s|^|$1: $2: not in --help: |")
}

for path in "$root"/docs/man/*.1; do
    page=docs/man/$(basename "$path")
    name=$(basename "$path" .1)
    program=$build/bin/$name
    [ "$name" != serve ] || [ -x "$program" ] || continue # it needs libmicrohttpd
    [ -x "$program" ] || { wrong "$page: there is no program $name" && continue; }
    commands=COMMANDS
    [ "$name" != serve ] || commands= # its options are all in OPTIONS
    for section in NAME SYNOPSIS DESCRIPTION $commands OPTIONS ENVIRONMENT FILES "EXIT STATUS" EXAMPLES; do
        grep -qx "\.Sh $section" "$path" || wrong "$page has no section $section"
    done

    "$program" --help >all
    sed -n '/^Commands:/,/^$/p' all | awk 'NR > 1 && NF && substr($0, 3, 1) != " " { print $1 }' | sort >commands
    [ -s commands ] || [ ! "$commands" ] || wrong "$name --help names no commands"
    sed -n 's/^\.Ss //p' "$path" | sort | diff commands - >difference || wrong "$page, commands: $(cat difference)"
    while read -r command; do
        "$program" "$command" --help >one
        shown 0 <one >help
        written "$path" "$command" >page
        compare "$page" "$command"
        grep -qx "\.Cm $command" "$path" || wrong "$page: the synopsis lacks $command"
    done <commands
    [ "$commands" ] || cp all one
    shown 1 <one >help
    [ "$(wc -l <help)" = 7 ] || wrong "$name --help: $(wc -l <help) options of every command"
    [ "$commands" ] || shown 0 <one | sort - help -o help
    written "$path" OPTIONS >page
    compare "$page" "every command"

    # Options that the text mentions must exist, too.
    while read -r command; do "$program" "$command" --help; done <commands >every
    [ "$commands" ] || cp all every
    grep -oE '(^|[^a-z])--[a-z0-9-]+' <(sed '/^\.\\"/d; s/Fl -/--/g' "$path") | grep -oE -- '--[a-z0-9-]+' | sort -u |
        while read -r option; do
            grep -qE -- "$option( |=|\$|,|\.)" every || [ "$option" = --name ] || echo "$page: $option is no option"
        done >strange
    findings <strange

    if command -v man >/dev/null && man --warnings -l "$path" >text 2>warnings; then
        findings < <(sed "s,^,$page: ," warnings)
        grep -q "^EXIT STATUS" text || wrong "man shows no text of $page"
    fi
    if command -v mandoc >/dev/null; then findings < <(mandoc -T lint -W warning "$path" || true); fi
done
for code in 0 1 2 3 4 5; do
    for path in "$root"/docs/man/*.1; do
        sed -n '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/p' "$path" | grep -qE "^\.It $code( |\$)" ||
            wrong "docs/man/$(basename "$path"): exit code $code is not explained"
    done
done
exit $wrong
