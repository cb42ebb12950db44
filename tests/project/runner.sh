#!/usr/bin/env bash
# The runner of the unit tests must fail for a failing test, a leaked tensor, an error that is left set, a changed state
# of the process, and an unknown test name.
. "$(dirname "$0")/common.sh"
unset OMP_NUM_THREADS # with all threads
probe=$build/bin/tests/runner_probe

expect() # STATUS WORDS ARGUMENTS...
{
    local status=$1 words=$2 out got=0
    shift 2
    out=$("$probe" "$@" 2>&1) || got=$?
    [ "$got" = "$status" ] || wrong "runner_probe $*: exit status $got, not $status"
    grep -q "$words" <<<"$out" || wrong "runner_probe $*: does not say '$words': $out"
}
expect 0 '100%: Checks: 1, Failures: 0' passes
expect 1 "== 6, 7 == 7" fails
expect 1 'left 1 tensors alive' leaks
expect 1 'left an error behind: TN_EINVAL: probe: left behind' leaves_an_error
expect 1 'no test of that name' nonsense
expect 1 'has changed the rounding of numbers' rounds
expect 0 'soak of probe: .* 0 bytes all along' soak_level
expect 1 'round 2: .* 12 tensors,' soak_forgets_a_tensor
expect 1 'round 2: .* \([0-9]*\) threads, 0 files left; after the second: 0, 0, [0-9]*, \1, 0' soak_forgets_a_file
expect 0 'soak of probe' soak_starts_threads
expect 1 'round 2: .* threads,' soak_forgets_a_thread
expect 1 'gives 1, and gave 0' soak_says_otherwise
expect 1 'MiB, and needed' soak_needs_more
expect 1 '25%: Checks: 12, Failures: 9'
exit $wrong
