#!/usr/bin/env bash
# tests/run --resume continues an interrupted run with the tests that have not passed and with the run's own results: in
# the same folder, in another clone from docs/figures, or with another commit, which the page mentions. A replacement of
# ctest prints the results of tests.
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
    echo '3/3 Test  #9: stage.fuzz-build ...   Passed    0.10 sec' # needed again on each machine
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

refused 'nothing was begun' 'there is no interrupted run' --resume
! run || wrong 'a run passes whose tests fail'
grep -q -e ' -E ' "$asked" && wrong 'a new run leaves tests out'
goes_on 'the second sitting'
refused 'another configuration' "the interrupted run is 'quick" --full --resume

# The results are copied: the last printed one of each kind, and of each program.
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
for line in '| careless: 10 functions |' '| 22 allocations and 33 file calls, in 2 programs |' \
    '| one | not measured |' 'interrupted and resumed'; do
    grep -qF "$line" docs/quality.md || wrong "docs/quality.md has no '$line'"
done
[ "$(grep -c '^- .* cores, [0-9a-f]\{7\}$' docs/quality.md)" = 3 ] ||
    wrong 'the page does not say in how many sittings it was made'

# Only a commit may change the sources of a run; tests that passed before keep their commit.
first=$(git rev-parse --short=7 HEAD^)
echo '#' >>tests/run
refused 'other sources' 'the sources differ from those' --resume
commit two
second=$(git rev-parse --short=7 HEAD)
goes_on 'another commit'
grep -q "^continuing with $second; tests that passed on $first are not run again" ../log ||
    wrong "of a mend it says: $(cat ../log)"
grep -q "^unit.one $first$" build/figures/run/passed ||
    wrong "kept as passed: $(cat build/figures/run/passed)"
goes_on 'the same commit again'
! grep -q '^continuing with' ../log || wrong 'the same commit is told of as a mend'
tests/quality build && tests/quality
grep -q "^\`tests/run\` on $first, interrupted and resumed with further commits" docs/quality.md &&
    [ "$(grep -c "^- .* cores, $second$" docs/quality.md)" = 2 ] ||
        wrong "of a mend the page says: $(head docs/quality.md)"
git checkout -q . && git clean -qfd docs
echo '##' >>tests/run
! run || wrong 'a run passes whose tests fail'
[ ! -e build/figures/careless ] || wrong 'a new run keeps the figures of an older one'
printf '#!/bin/sh\nexit 1\n' >../bin/cmake
! run || wrong 'a run passes that cannot be built'
tests/quality build
[ ! -e docs/figures/careless ] || wrong 'a run that was not built has the figures of an older one'
commit three
refused 'what was begun with changed files' 'differ from those of the interrupted run, .*-changed' --resume
exit $wrong
