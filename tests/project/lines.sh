#!/usr/bin/env bash
# Prints the lines of the .c and .h files: of each folder of the framework (library, programs, examples) and their sum,
# of extras, of tests, of the tests of extras, and of the rest. docs/adr/0074-what-belongs-to-the-framework.md says what
# the numbers are for.
. "$(dirname "$0")/common.sh"
cd "$root"

lines() # FOLDER...: the lines of their C files, with those in subfolders
{
    local folder
    for folder; do
        [ ! -e "$folder" ] ||
            find "$folder" \( -name build -o -path extras/tests \) -prune -o -name '*.[ch]' -print0
    done | xargs -0r cat | wc -l
}
row() { printf '%-10s %8d   %s\n' "$1" "$(lines "${@:2}")" "${*:2}"; }

framework='core autograd nn optim data parallel models programs examples'
for folder in $framework; do row '' $folder; done
row framework tenon.h $framework
row extras extras.h extras
row tests tests
row 'of extras' extras/tests/*
row other bench docs packaging python

# Test of the count: files of three and two lines, one of them in a subfolder; other files do not count.
fresh lines
mkdir -p a/b a/build
printf '1\n2\n3\n' >a/x.c
printf '1\n2\n' >a/b/y.h
tee a/build/z.c <a/x.c >a/z.txt
[ "$(lines a none)" = 5 ] || wrong "lines.sh counts $(lines a none) lines of the 5 planted for it"
exit $wrong
