#!/usr/bin/env bash
# tests/run in a project of its own, where cmake builds nothing and ctest says what it is told to: what passed is kept,
# a run that was broken off goes on with the rest, here or on another machine, and another one is refused.
. "$(dirname "$0")/common.sh"
need git
fresh run
mkdir -p tests/fuzz tools
cp "$root/tests/run" "$root/tests/quality" tests/
touch tests/fuzz/fuzz_one.c
echo build/ >.gitignore
as=(git -c user.name=t -c user.email=t@example.org -c commit.gpgsign=false)
{ git init -q . && git add .gitignore tests && "${as[@]}" commit -qm first; } || wrong "no repository can be made here"

ln -s "$(type -P true)" tools/cmake
cat >tools/ctest <<'EOF'
#!/usr/bin/env bash
case " $* " in
*' -N '*) echo 'Total Tests: 4' ;;
*) printf '%s\n' "$*" >>asked && cat says ;;
esac
EOF
chmod +x tools/ctest
cat >says <<'EOF'
1/4 Test  #1: stage.fuzz-build .........   Passed    1.00 sec
2/4 Test  #2: stage.fuzz.one ...........***Failed    1.00 sec
3/4 Test  #3: unit.one .................   Passed    1.00 sec
4/4 Test  #4: project.quality_page .....   Passed    1.00 sec
EOF
run() { PATH=$PWD/tools:$PATH TENON_SKIP_PACKAGES=1 tests/run "$@" >out 2>&1; }
refuses() # WORDS ARGUMENTS...
{
    local code=0
    run "${@:2}" || code=$?
    [ $code = 2 ] && grep -qF "$1" out || wrong "tests/run ${*:2}: ends with $code and says: $(cat out)"
}
asked() { tail -n 1 asked; }

refuses 'no run was broken off here' --full --resume
run --full || wrong "tests/run --full: $(cat out)"
first=$(git rev-parse --short=7 HEAD)
[ "$(paste -sd, build/figures/run/passed)" = "stage.fuzz-build $first,unit.one $first,project.quality_page $first" ] ||
    wrong "kept as passed: $(cat build/figures/run/passed)"
case $(asked) in *' -E '*) wrong "a new run leaves out: $(asked)" ;; esac

# What others need is done again, for there may be nothing of it on this machine; all else that passed is left out.
run --full --resume || wrong "tests/run --full --resume: $(cat out)"
case $(asked) in *' -E ^(unit.one)$') ;; *) wrong "--resume asks for: $(asked)" ;; esac
tests/quality build
rm -rf build
run --full --resume || wrong "tests/run --full --resume from docs/figures: $(cat out)"
case $(asked) in *' -E ^(unit.one|unit.one)$') ;; *) wrong "--resume from docs/figures asks for: $(asked)" ;; esac
[ "$(wc -l <build/figures/run/sittings)" = 3 ] || wrong "the sittings: $(cat build/figures/run/sittings)"

refuses "what was broken off is 'full', and this 'quick'" --resume

# A mend that is committed, and no other change, may come between the sittings; the page tells of it.
echo '// mended' >tests/fuzz/fuzz_one.c
refuses 'the sources are not those of what was broken off' --full --resume
"${as[@]}" commit -qam mended
second=$(git rev-parse --short=7 HEAD)
sed -i '2s/\*\*\*Failed/   Passed/' says
run --full --resume || wrong "tests/run --full --resume, mended: $(cat out)"
grep -q "^going on with $second; what passed on $first is not run again" out || wrong "of the mend it says: $(cat out)"
[ "$(grep -c "^stage.fuzz.one $second$" build/figures/run/passed)" = 1 ] ||
    wrong "kept as passed: $(cat build/figures/run/passed)"
run --full --resume && ! grep -q '^going on with' out || wrong "the same commit is told of as a mend: $(cat out)"
tests/quality build && tests/quality
grep -q "^\`tests/run --full\` on $first, broken off, mended and resumed" docs/quality.md &&
    grep -q "^- 20.*, $second$" docs/quality.md || wrong "the page says: $(head -n 20 docs/quality.md)"
exit $wrong
