#!/usr/bin/env bash
# With little memory, few files and a small stack, training must succeed or end with an error that names the missing
# resource, and the run can be resumed. With 256 MiB, 16 files and 256 KiB of stack it must succeed, with the same bits.
. "$(dirname "$0")/common.sh"
fresh limits
bert=$build/bin/bert
[ -x "$bert" ] || { echo "SKIPPED: the programs are not built" && exit 77; }

"$bert" sample-corpus -n 60 >text
train=("$bert" train --quiet --text text --size tiny --layers 1 --dim 32 --heads 2 --vocab-size 200 --batch 2
    --length 16 --steps 4 --threads 2)
"${train[@]}" --out good >/dev/null || wrong "bert train fails"
refused=0
within() # CODE TEXT LIMIT...: ulimit's words; exit code 0, or CODE and the text
{
    local code=$1 text=$2 got=0
    shift 2
    rm -rf one
    (ulimit "$@" && exec "${train[@]}" --out one) >/dev/null 2>err.txt || got=$?
    [ $got = 127 ] && return # the limit is too low for the dynamic loader
    [ $got = 0 ] || refused=$((refused + 1))
    [ $got = 0 ] || { [ $got = "$code" ] && grep -q "$text" err.txt; } ||
        wrong "ulimit $*: ends with $got: $(cat err.txt)"
    [ $got = 0 ] || "${train[@]}" --out one >/dev/null 2>&1 || "${train[@]}" --out one --resume >/dev/null 2>err.txt ||
        wrong "ulimit $*: what it leaves cannot be gone on with: $(cat err.txt)"
    cmp -s good/model.safetensors one/model.safetensors || wrong "ulimit $*: other bits"
}
# Sanitizers reserve terabytes of address space.
(ulimit -v 262144 && exec "$bert" --version) >/dev/null 2>&1 &&
    for kib in 20000 30000 60000; do within 4 'out of memory' -v $kib; done
for files in 5 6 7 8; do within 5 'too many files open' -n $files; done
[ $refused -ge 3 ] || wrong "only $refused of the limits were felt"
rm -rf one
(ulimit -v 262144 && ulimit -n 16 && ulimit -s 256 && exec "${train[@]}" --out one) >/dev/null 2>err.txt ||
    wrong "256 MiB, 16 files and 256 KiB of stack are not enough: $(cat err.txt)"
cmp -s good/model.safetensors one/model.safetensors || wrong "within limits it ends with other bits"
# The stack of a calling thread that the guide promises: all ops, forward and backward. Without the repetitions: the
# values are checked elsewhere.
for name in ops products attention rnn; do
    (ulimit -s 96 && CK_FORK=no TENON_TEST_SLOW=1 exec "$build/bin/tests/test_$name") >out 2>&1 ||
        wrong "test_$name with a stack of 96 KiB: $(tail -3 out)"
done
# A model that does not fit in memory is not reported as one of another kind.
heads=("$build/bin/look" heads --threads 1 --model good --text text -n 4)
if (ulimit -v 262144 && exec "$bert" --version) >/dev/null 2>&1; then
    for ((kib = 12000; kib <= 60000; kib += 1500)); do
        got=0
        (ulimit -v $kib && exec "${heads[@]}") >/dev/null 2>err.txt || got=$?
        [ $got = 0 ] || [ $got = 127 ] || { [ $got = 4 ] && grep -q 'out of memory' err.txt; } ||
            wrong "look heads within $kib KiB ends with $got: $(cat err.txt)"
    done
fi
exit $wrong
