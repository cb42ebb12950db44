#!/usr/bin/env bash
# Several ranks under MPI: the commands of docs/guide/cluster.md, the same weights from 1, 2 and 3 ranks, and the end of
# all ranks when one is killed. unit.parallel tests other numbers of ranks, other dtypes and errors, without MPI.
. "$(dirname "$0")/common.sh"
[ "${TENON_HAS_MPI:-}" ] && [[ $TENON_HAS_MPI != OFF && $TENON_HAS_MPI != FALSE ]] || {
    echo "SKIPPED: built without MPI"
    exit 77
}
need timeout
fresh mpi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMP_NUM_THREADS=1
export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo HYDRA_IFACE=lo # use only local connections
mpiexec() { timeout 60 "$TENON_MPIEXEC" "$@"; }

awk '$0 == "```" { on = 0 } on; $0 == "```bash" { on = 1 }' "$root/docs/guide/cluster.md" >commands
[ "$(wc -l <commands)" = 11 ] || wrong "docs/guide/cluster.md has not eleven commands"
for i in {1..40}; do printf 'the old man %s went to the sea.\nshe had %s keys.\n\n' $i $((i * 7 % 13)); done >book.txt
PATH=$build/bin:$PATH
export -f mpiexec
export TENON_MPIEXEC
bash -euo pipefail commands >said 2>errors || wrong "docs/guide/cluster.md: a command fails: $(tail -n 5 errors)"
weights() { sed -n 's/.*"weights": "\([0-9a-f]*\)".*/\1/p' "$@"; }
[ "$(weights said | wc -l)" = 2 ] && [ "$(weights said | sort -u | wc -l)" = 1 ] ||
    wrong "one rank and two end with different weights: $(cat said)"

for ranks in 1 3; do
    bert train --objective bert --text book.txt --out known$ranks --size tiny --steps 2 --vocab-size 300 --length 32 \
        --quiet --word-vectors 1 --ranks $ranks >>said 2>errors || wrong "--word-vectors of $ranks ranks: $(cat errors)"
done
cmp -s known1/model.safetensors known3/model.safetensors || wrong "--word-vectors: one rank and three differ"

small=(--steps 3 --layers 1 --d-model 32 --heads 2 --vocab 60 --seq 8 --batch 12)
for workload in "bert f32" "gpt bf16" "seq2seq f32"; do
    for ranks in 1 3; do
        timeout 60 "$build/bin/bench" ranks --ranks $ranks --workload ${workload% *} --dtype ${workload#* } \
            "${small[@]}"
    done >said 2>errors
    [ "$(weights said | wc -l)" = 2 ] && [ "$(weights said | sort -u | wc -l)" = 1 ] ||
        wrong "$workload: one rank and three: $(cat said errors)"
done

# All kinds of exchange: shards of the optimizer's state, tables of which only used rows are
# sent.
small=(--workload lstm --steps 3 --d-model 32 --vocab 1000)
for how in "1" "2 --zero" "3 --sparse" "3 --zero --sparse"; do
    # shellcheck disable=SC2086 # words
    timeout 60 "$build/bin/bench" ranks "${small[@]}" --ranks $how
done >said 2>errors
[ "$(weights said | wc -l)" = 4 ] && [ "$(weights said | sort -u | wc -l)" = 1 ] ||
    wrong "--zero and --sparse: $(cat said errors)"
timeout 60 "$build/bin/bench" ranks "${small[@]}" --ranks 2 --delay 100,100 | grep -q '"blocked_ms"' ||
    wrong "bench ranks --delay does not say how long an exchange takes that is not hidden"
timeout 60 "$build/bin/bench" ranks "${small[@]}" --ranks 3 --fast >said 2>errors || wrong "--fast: $(cat errors)"

# 13 ranks are an error because there are 12 shards; when a rank is killed, all end within ten seconds.
"$build/bin/bench" ranks --ranks 13 --workload gpt --steps 1 >said 2>errors &&
    wrong "13 ranks of 12 shards are accepted"
start=$SECONDS
mpiexec -n 2 bash -c 'case ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}} in
    1) "$0" ranks --ranks 2 --workload gpt --steps 100000 & sleep 1; kill -9 $!; wait $!; exit 1 ;;
    *) exec "$0" ranks --ranks 2 --workload gpt --steps 100000 ;;
esac' "$build/bin/peers/bench_mpi" >said 2>errors && wrong "a job with a killed rank succeeds"
[ $((SECONDS - start)) -le 12 ] ||
    wrong "with a killed rank the job ends after $((SECONDS - start)) s: $(tail -n 5 errors)"
exit $wrong
