#!/usr/bin/env bash
# Faults of programs with several ranks: when a rank is killed at a random time, all end within ten seconds, and the run
# resumes with another number of ranks to the same bits; Ctrl-C saves; a full disk, and ranks with different options,
# texts or instruction sets are errors on all ranks. The argument is the number of kills.
. "$(dirname "$0")/common.sh"
[ "${TENON_HAS_MPI:-}" ] && [[ $TENON_HAS_MPI != OFF && $TENON_HAS_MPI != FALSE ]] || {
    echo "SKIPPED: built without MPI"
    exit 77
}
need timeout
fresh mpi_faults
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMP_NUM_THREADS=1
export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo HYDRA_IFACE=lo # use only local connections
RANDOM=${TENON_SEED:-1}
bert=$build/bin/bert
gpt=$build/bin/gpt
for i in {1..60}; do printf 'the old man %s went to the sea.\nshe had %s keys.\n\n' $i $((i * 7 % 13)); done >book.txt
train() # OUT STEPS ...
{
    local out=$1 steps=$2
    shift 2
    exec "$bert" train --text book.txt --size tiny --layers 1 --dim 32 --heads 2 --vocab-size 300 --length 32 \
        --batch 24 --out "$out" --steps "$steps" --quiet "$@"
}
ranks_of() # OUT: the processes of that run, but for the launcher
{
    local p
    for p in /proc/[0-9]*; do
        tr '\0' ' ' 2>/dev/null <"$p/cmdline" | grep -q "bin/bert train .*--out $1 " || continue
        tr '\0' '\n' 2>/dev/null <"$p/environ" | grep -qE '^(OMPI_COMM_WORLD_RANK|PMI_RANK)=' && echo "${p#/proc/}"
    done
}
gone_in() # SECONDS PID: has it ended by then?
{
    local tries=$(($1 * 10))
    while kill -0 "$2" 2>/dev/null && ((tries-- > 0)); do sleep 0.1; done
    ! kill -0 "$2" 2>/dev/null
}
same() { cmp -s whole/model.safetensors "$1/model.safetensors" || wrong "$1: other weights than the unbroken run"; }

steps=150 took=()
((${1:-2} < 10)) || steps=1200 # long enough that most of many kills hit a running rank, also on fast cores
(train whole $steps --ranks 1) >said || wrong "one rank alone fails"
for ((i = 1; i <= ${1:-2}; i++)); do
    out=$PWD/kill$i from=$((RANDOM % 3 + 2)) to=$((RANDOM % 4 + 1))
    zero=(--zero --shards=12)
    (train "$out" $steps --ranks $from ${zero[i % 2]}) >said 2>errors$i &
    job=$!
    sleep "$((RANDOM % 3)).$((RANDOM % 10))"
    mapfile -t pids < <(ranks_of "$out")
    if ((${#pids[@]})); then
        kill -9 "${pids[RANDOM % ${#pids[@]}]}" 2>/dev/null || true # the rank may just have ended
        before=${EPOCHREALTIME/./}
        gone_in 10 $job || wrong "kill $i: after ten seconds the launcher is still there: $(tail -n 5 errors$i)"
        [ -z "$(ranks_of "$out")" ] || wrong "kill $i: ranks are left behind"
        took+=($(((${EPOCHREALTIME/./} - before) / 1000)))
    fi
    wait $job || true
    [ -s "$out/model.safetensors" ] || (train "$out" $steps --ranks $to --resume) >said 2>&1 ||
        (train "$out" $steps --ranks $to) >said 2>&1 || # it was killed before the run was saved
        wrong "kill $i: --resume with $to ranks fails: $(tail -n 5 said)"
    same "$out"
done
printf '%s\n' "${took[@]}" | sort -n | awk '
    { t[NR] = $1 }
    END {
        median = t[int((NR + 1) / 2)]
        printf "%d ranks killed: the others ended within %d ms (median), %d ms (most)\n", NR, median, t[NR]
    }'

# When only one rank is asked to stop, all save at the same step.
out=$PWD/asked
(train "$out" $steps --ranks 3) >said 2>errors &
job=$!
for _ in {1..100}; do
    compgen -G "$out/checkpoints/*.ckpt" >/dev/null && break
    sleep 0.1
done
mapfile -t pids < <(ranks_of "$out")
kill -TERM "${pids[-1]:-$job}" || true
gone_in 20 $job || wrong "one rank got SIGTERM, and after 20 seconds they are still there"
wait $job || true
[ -s "$out/model.safetensors" ] || wrong "one rank got SIGTERM, and no model was saved: $(cat errors)"
(train "$out" $steps --ranks 2 --resume) >said || wrong "a run that was asked to stop does not go on"
same "$out"

# An error of one rank is an error on all ranks, printed once.
named() # EXPECTED COMMAND...
{
    local expected=$1
    shift
    local code=0
    timeout 60 "$@" >said 2>&1 || code=$?
    [ $code != 124 ] || wrong "$expected: they wait for each other"
    [ $code != 0 ] || wrong "$expected: it succeeds"
    [ "$(grep -c "$expected" said)" = 1 ] || wrong "not once '$expected': $(cat said)"
}
tiny="train --size tiny --layers 1 --dim 32 --heads 2 --vocab-size 300 --length 16 --steps 5 --quiet --force"
named "rank 1 has another .config than rank 0" "$TENON_MPIEXEC" -n 1 "$gpt" $tiny --text book.txt --out a --lr 0.01 \
    : -n 1 "$gpt" $tiny --text book.txt --out a --lr 0.02
sed 's/sea/bay/' book.txt >other.txt
named "rank 1 has another .config than rank 0" "$TENON_MPIEXEC" -n 1 "$gpt" $tiny --text book.txt --out b \
    : -n 1 "$gpt" $tiny --text other.txt --out b
named "rank 1 has another build of Tenon or instruction set" "$TENON_MPIEXEC" -n 1 "$gpt" $tiny \
    --text book.txt --out c : -n 1 env TENON_ISA=baseline "$gpt" $tiny --text book.txt --out c
named "expected 3 ranks, but MPI started 2" \
    "$TENON_MPIEXEC" -n 2 "$gpt" $tiny --text book.txt --out d --ranks 3
# Simulates a full disk: writes beyond 12 MB fail; a checkpoint needs 19 MB, the files of MPI need less.
full="trap '' XFSZ; ulimit -f 12000; exec $gpt $tiny --text book.txt --out e --dim 256 --layers 2"
named "gpt: .*cannot reserve" "$TENON_MPIEXEC" -n 2 bash -c "$full"
exit $wrong
