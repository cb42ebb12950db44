#!/usr/bin/env bash
# Runs the checks of several ranks with the other MPI of Debian (MPICH if this build uses Open MPI); builds the programs
# with it below the build folder. --full only.
. "$(dirname "$0")/common.sh"
[ "${TENON_HAS_MPI:-}" ] && [[ $TENON_HAS_MPI != OFF && $TENON_HAS_MPI != FALSE ]] || {
    echo "SKIPPED: built without MPI"
    exit 77
}
other=mpich
"$TENON_MPIEXEC" --version 2>&1 | grep -qi 'open' || other=openmpi
need mpicc.$other mpiexec.$other cmake
there=$build/mpi_$other
{
    cmake -S "$root" -B "$there" -DCMAKE_BUILD_TYPE=Release -DTENON_PROGRAMS=ON -DMPI_C_COMPILER=mpicc.$other \
        -DMPIEXEC_EXECUTABLE="$(command -v mpiexec.$other)" &&
        cmake --build "$there" -j "$(nproc)" --target bert gpt lm ranks bench_all
} >"$there.log" 2>&1 || {
    wrong "the build with $other fails: $(tail -n 20 "$there.log")"
    exit 1
}
grep -q "mpiexec.$other" "$there/CMakeCache.txt" || wrong "the build in $there is not with $other"
for check in mpi mpi_faults mpi_bits; do
    TENON_BUILD=$there TENON_MPIEXEC=$(command -v mpiexec.$other) \
        bash "$root/tests/project/$check.sh" >"$there.$check" 2>&1 ||
        wrong "$check with $other: $(tail -n 20 "$there.$check")"
done
exit $wrong
