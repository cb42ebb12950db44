#!/usr/bin/env bash
# The amalgamation: README's program with tenon.c gives the bits of the library with every instruction set of this CPU.
# A program in C++ links with it, and clang and the compilers for other CPUs that are installed accept it.
# `amalgamation.sh whole` (--full): by gcc and clang with -O2, in at most 60 seconds of a core, and the workloads of
# one_answer.c with tenon_models.c.
. "$(dirname "$0")/common.sh"
need python3 gcc c++
[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED: packaging/amalgamation runs on x86-64" && exit 77; }
fresh amalgamation${1:+_$1}
"$root/packaging/amalgamation" "$PWD" || wrong "packaging/amalgamation fails"
for file in tenon.h tenon.c tenon_models.h tenon_models.c; do
    [ -s $file ] || { wrong "$file was not written" && exit 1; }
    ! grep -nE '^# *include +"' $file | grep -vE '"(tenon|tenon_models)\.h"' || wrong "$file includes another file"
done

# README's commands: the program is compiled, but not tenon.c again.
mkdir -p out && ln -sf ../tenon.h out && ln -sfn "$root/examples" examples
made=$(sed -n 's,^    \(.* && cc -O2 .*app.c\) out/tenon.c -lm$,\1 -fsyntax-only,p' "$root/README.md")
[ "$made" ] && bash -c "$made" || wrong "README's program with the amalgamation is not compiled: $made"

# Every bit of the loss, a float, at each step.
sed 's/%\.5f/%.9g/; s/step % 200 == 0/step % 10 == 0/' "$root/examples/readme.c" >app.c
sed 's,<tenon/tenon.h>,"tenon.h",' app.c >app-one.c
cat >app.cpp <<'END'
#include "tenon.h"
int main()
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(2, 3)));
    const bool good = tn_backward(tn_sum(tn_mul(x, x))) == TN_OK && tn_get(tn_grad(x), 0) == 2;
    tn_scope_end(s);
    return !good;
}
END
gcc -O1 app.c -o app -I "$build/include" "$TENON_A" -lm -pthread || wrong "the library's program is not built"

one() # COMPILER LEVEL: builds app-COMPILER with tenon.c
{
    local compiler=$1 level=$2
    "$compiler" "$level" -c tenon.c -o "tenon-$compiler.o" >"$compiler.log" 2>&1 &&
        "$compiler" "$level" app-one.c "tenon-$compiler.o" -o "app-$compiler" -lm >>"$compiler.log" 2>&1 ||
        wrong "$compiler: $(head -n 20 "$compiler.log")"
    [ ! -s "$compiler.log" ] || wrong "$compiler warns: $(head -n 5 "$compiler.log")"
}
same() # PROGRAM: its output with each instruction set
{
    local isa
    for isa in baseline avx2 avx512 amx exact; do
        if [ $isa = exact ]; then export TENON_ISA=baseline TENON_EXACT=1; else export TENON_ISA=$isa; fi
        ./app >expected && "./$1" >printed || wrong "$1 fails with $isa"
        cmp expected printed || wrong "$1 gives other bits with $isa: $(diff expected printed | head -n 4)"
        unset TENON_ISA TENON_EXACT
    done
    [ "$(wc -l <expected)" = 101 ] || wrong "the program printed $(wc -l <expected) losses"
}

used() # seconds of a core that this script's commands have used
{
    times >times # in a pipe or $() it would have no commands
    tr 'ms' '  ' <times | awk 'NR == 2 { print int($1 * 60 + $2 + $3 * 60 + $4) }'
}

level=-O0
[ "${1:-}" != whole ] || level=-O2
used >before
one gcc $level
used >after
seconds=$(($(cat after) - $(cat before)))
[ "${1:-}" != whole ] || [ $seconds -le 60 ] || wrong "gcc -O2 tenon.c takes $seconds seconds of a core"
same app-gcc
if ! c++ -std=c++20 app.cpp tenon-gcc.o -o app-cpp -lm >log 2>&1 || ! ./app-cpp; then wrong "C++: $(head log)"; fi
for other in aarch64-linux-gnu-gcc riscv64-linux-gnu-gcc; do # "compiles on any CPU"
    ! command -v $other >/dev/null || $other -std=c11 -fsyntax-only -Werror tenon.c || wrong "$other rejects tenon.c"
done
mingw=x86_64-w64-mingw32-gcc-posix
! command -v $mingw >/dev/null || $mingw -std=gnu11 -fsyntax-only -Werror tenon.c || wrong "$mingw rejects tenon.c"
if [ "${1:-}" != whole ]; then
    ! command -v clang >/dev/null || clang -std=c11 -fsyntax-only -Werror tenon.c || wrong "clang rejects tenon.c"
    gcc -std=c11 -fsyntax-only -Werror tenon_models.c || wrong "gcc rejects tenon_models.c"
    exit $wrong
fi

command -v clang >/dev/null && one clang -O2 && same app-clang
if command -v $mingw && command -v wine; then # with the instruction set of Wine's CPU: this one
    $mingw -O1 app-one.c tenon.c -o app.exe -static || wrong "$mingw does not build README's program"
    ./app >expected
    WINEPREFIX=$PWD/wine WINEDEBUG=-all wine app.exe | tr -d '\r' >printed || wrong "README's program fails under Wine"
    cmp expected printed || wrong "README's program gives other bits under Wine: $(diff expected printed | head -n 4)"
fi
gcc -O2 -c tenon_models.c || wrong "tenon_models.c is not built"
mkdir tenon && echo '#include "../tenon_models.h"' >tenon/tenon.h
gcc -O1 -I. -I"$root" "$root"/bench/{bert,gpt,lstm,seq2seq,sizes}.c "$root/tests/project/one_answer.c" tenon-gcc.o \
    tenon_models.o -o one_answer -lutf8proc -lm || wrong "one_answer is not built with the amalgamation"
[ "$(nm one_answer | grep -cE ' [a-zA-Z] tn__word_pairs_(baseline|avx2|avx512)$')" = 3 ] ||
    wrong "tenon_models.c lacks kernels for word vectors: $(nm one_answer | grep tn__word_pairs)"
for size in odd tiny; do
    ./one_answer $size >printed 2>log && "$build/bin/tests/one_answer" $size >expected 2>log || wrong "one_answer fails"
    cmp expected printed || wrong "the workloads give other bits"
done
exit $wrong
