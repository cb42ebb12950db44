#!/usr/bin/env bash
# Repeats all scenarios of test_memory_models and test_memory_tools for TENON_SOAK_SECONDS (600; two hours are 7200),
# both programs in parallel: results, memory, files, threads and speed must stay constant. See tests/common/soak.h.
. "$(dirname "$0")/common.sh"
fresh soak
unset OMP_NUM_THREADS # with all threads
export TENON_SOAK_SECONDS=${TENON_SOAK_SECONDS:-600}
for name in models tools; do
    "$build/bin/tests/test_memory_$name" stays_level >$name 2>&1 &
done
for name in models tools; do
    wait -n || wrong "a program does not stay level"
done
[ $wrong = 0 ] || cat models tools
mkdir -p "$build/figures"
cat models tools | grep '^soak of ' | tee "$build/figures/soak"
exit $wrong
