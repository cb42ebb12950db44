#!/usr/bin/env bash
# tests/run --resume goes on with a run that was broken off, with what has not passed, and with nothing else's figures:
# in the same folder, or in another clone, from docs/figures. The tests here are those of a ctest that prints what this
# script says.
. "$(dirname "$0")/common.sh"
need git
fresh resume
mkdir -p bin tree/tests/fuzz
cp "$root/tests/run" "$root/tests/quality" tree/tests/
: >tree/tests/fuzz/fuzz_one.c
PATH=$PWD/bin:$PATH
export TENON_SKIP_PACKAGES=1
asked=$PWD/asked

printf '#!/bin/sh\n' >bin/cmake
cat >bin/ctest <<EOF
#!/bin/sh
case " \$* " in *' -N '*) echo 'Total Tests: 3' && exit ;; esac
echo "\$*" >"$asked"
log=build/Testing/Temporary/LastTest.log.tmp
mkdir -p build/Testing/Temporary
echo '1/3 Testing: unit.one' >>\$log
echo 'faults: 2 allocations and 3 calls on files fail' >>\$log
echo 'careless: 8 functions' >>\$log
echo "careless: \${FOUND:-9} functions" >>\$log
echo '2/3 Testing: unit.two' >>\$log
echo 'faults: 20 allocations and 30 calls on files fail' >>\$log
case "\$*" in
*unit.one*) ;;
*)
    echo 'bit rot: 7 flips' >>\$log
    echo '1/3 Test  #7: unit.one .......   Passed    0.10 sec'
    ;;
esac
echo '2/3 Test #12: stage.two ......***Failed    0.10 sec'
echo '1/9 Test  #1: unit.inner .....   Passed    0.10 sec'
exit 8
EOF
chmod +x bin/*

cd tree
run() { tests/run "$@" >../log 2>&1; }
refused() # WHAT WHY OPTION...
{
    if run "${@:3}"; then wrong "$1: goes on"; fi
    grep -q "$2" ../log || wrong "$1: says $(tail -n 1 ../log)"
}
goes_on() # WHAT: with all but what has passed
{
    : >"$asked"
    ! run --resume || wrong "$1: a run passes, though its tests fail"
    grep -q -e ' -E ^(unit.one)\$' "$asked" || wrong "$1: a run goes on with '$(cat "$asked")', $(tail -n 1 ../log)"
}
commit() { git add -A && git -c user.name=a -c user.email=a@b commit -q -m "$1"; }
printf 'build\n' >.gitignore
git init -q . && commit one

refused 'nothing was begun' 'no run was broken off' --resume
! run || wrong 'a run passes whose tests fail'
grep -q -e ' -E ' "$asked" && wrong 'a new run leaves tests out'
goes_on 'the second sitting'
refused 'another configuration' "what was broken off is 'quick" --full --resume

# What they found is taken with them: the last that was said, and of each program what it said last.
tests/quality build
[ "$(cat docs/figures/careless)" = 'careless: 9 functions' ] || wrong "kept: $(cat docs/figures/careless)"
[ "$(cat docs/figures/run/faults)" = $'unit.one 2 3\nunit.two 20 30' ] || wrong "kept: $(cat docs/figures/run/faults)"
[ -e docs/figures/bit_rot ] || wrong 'what was found in the first sitting is lost'
commit 'the figures'
cd ..
git clone -q tree elsewhere
cd elsewhere
FOUND=10 goes_on 'a clone'
tests/quality build
[ "$(cat docs/figures/careless)" = 'careless: 10 functions' ] || wrong 'a clone keeps what was found before'
[ "$(wc -l <docs/figures/run/faults)" = 2 ] || wrong 'what a program found is there twice'
rm build/Testing/Temporary/LastTest.log.tmp
tests/quality build
tests/quality
for line in '| careless: 10 functions |' '| 22 allocations and 33 calls on files, in 2 programs |' \
    '| one | not measured |' 'broken off and resumed'; do
    grep -qF "$line" docs/quality.md || wrong "docs/quality.md has no '$line'"
done
[ "$(grep -c '^- .* cores$' docs/quality.md)" = 3 ] || wrong 'the page does not say in how many sittings it was made'

echo '#' >>tests/run
refused 'other sources' 'the sources are not those' --resume
commit two
refused 'another commit' 'the sources are not those' --resume
echo '##' >>tests/run
! run || wrong 'a run passes whose tests fail'
[ ! -e build/figures/careless ] || wrong 'a new run keeps the figures of an older one'
printf '#!/bin/sh\nexit 1\n' >../bin/cmake
! run || wrong 'a run passes that cannot be built'
tests/quality build
[ ! -e docs/figures/careless ] || wrong 'a run that was not built has the figures of an older one'
commit three
refused 'what was begun with changed files' 'not those of what was broken off, .*-changed' --resume
exit $wrong
