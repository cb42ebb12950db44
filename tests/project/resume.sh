#!/usr/bin/env bash
# tests/run --resume goes on with a run that was broken off, with what has not passed, and with nothing else's figures.
# The tests here are those of a ctest that prints what this script says.
. "$(dirname "$0")/common.sh"
need git
fresh resume
mkdir -p bin tree/tests
cp "$root/tests/run" tree/tests/
PATH=$PWD/bin:$PATH
export TENON_SKIP_PACKAGES=1
asked=$PWD/asked

printf '#!/bin/sh\n' >bin/cmake
cat >bin/ctest <<EOF
#!/bin/sh
case " \$* " in *' -N '*) echo 'Total Tests: 3' && exit ;; esac
echo "\$*" >"$asked"
mkdir -p build/Testing/Temporary
echo "what was said" >build/Testing/Temporary/LastTest.log.tmp
echo '1/3 Test  #7: unit.one .......   Passed    0.10 sec'
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
printf 'build\n' >.gitignore
git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -q -m one

refused 'nothing was begun' 'no run was broken off' --resume
! run || wrong 'a run passes whose tests fail'
grep -q -e ' -E ' "$asked" && wrong 'a new run leaves tests out'
! run --resume || wrong 'a run that goes on passes, though its tests fail'
grep -q -e ' -E ^(unit.one)\$' "$asked" || wrong "a run goes on with $(cat "$asked")"
[ "$(cat build/sittings/0.log)" = 'what was said' ] || wrong 'the log of the first sitting is not kept'
refused 'another configuration' "what was broken off is 'quick" --full --resume
echo '#' >>tests/run
refused 'other sources' 'not those of a commit' --resume
git -c user.name=a -c user.email=a@b commit -qam two
refused 'another commit' 'what was broken off' --resume
! run || wrong 'a run passes whose tests fail'
[ ! -e build/sittings/0.log ] || wrong 'a new run keeps the logs of an older one'
exit $wrong
