#!/usr/bin/env bash
# The same weights from 1, 2, 3, 4 and 6 ranks after 20 steps: every workload of bench ranks in f32 and bf16, with more
# shards (accumulation), ZeRO-1, sparse exchange of tables, and all of these together; and a run of bert with
# clipping and dropout that 4 ranks start and 3 finish. --full only.
. "$(dirname "$0")/common.sh"
[ "${TENON_HAS_MPI:-}" ] && [[ $TENON_HAS_MPI != OFF && $TENON_HAS_MPI != FALSE ]] || {
    echo "SKIPPED: built without MPI"
    exit 77
}
need timeout
fresh "mpi_bits${1:-}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMP_NUM_THREADS=1
export OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo HYDRA_IFACE=lo # use only local connections
runs=0

same() # WORKLOAD DTYPE OPTIONS...: one set of weights for all numbers of ranks
{
    local ranks count
    for ranks in 1 2 3 4 6; do
        timeout 300 "$build/bin/bench" ranks --ranks $ranks --workload "$1" --dtype "$2" --steps 20 --layers 2 \
            --d-model 64 --vocab 2000 --seq 24 "${@:3}" || echo "$ranks ranks fail"
        runs=$((runs + 1))
    done >said 2>errors
    count=$(sed -n 's/.*"weights": "\([0-9a-f]*\)".*/\1/p' said | wc -l)
    [ "$count" = 5 ] && [ "$(sed -n 's/.*"weights": "\([0-9a-f]*\)".*/\1/p' said | sort -u | wc -l)" = 1 ] ||
        wrong "$*: $(cat said errors)"
}
for workload in bert gpt seq2seq lstm; do
    for dtype in f32 bf16; do
        same $workload $dtype
        same $workload $dtype --zero
        same $workload $dtype --sparse
        same $workload $dtype --shards 36 --batch 72
        same $workload $dtype --shards 24 --batch 48 --zero --sparse
    done
done

for i in {1..60}; do printf 'the old man %s went to the sea.\nshe had %s keys.\n\n' $i $((i * 7 % 13)); done >book.txt
train() # OUT RANKS ...
{
    timeout 300 "$build/bin/bert" train --text book.txt --size tiny --layers 1 --dim 32 --heads 2 --vocab-size 300 \
        --length 32 --batch 24 --steps 300 --quiet --out "$1" --ranks "$2" "${@:3}" >said 2>&1
    runs=$((runs + 1))
}
for dtype in f32 bf16; do
    train one_$dtype 1 --dtype $dtype || wrong "one rank alone: $(cat said)"
    for ranks in 2 3 4 6; do
        train many_$ranks$dtype $ranks --dtype $dtype --zero || wrong "$ranks ranks: $(cat said)"
        cmp -s one_$dtype/model.safetensors many_$ranks$dtype/model.safetensors || wrong "bert, $dtype: $ranks ranks"
    done
    for zero in '' --zero; do
        rm -rf half
        # shellcheck disable=SC2086 # empty, or one word
        train half 4 --dtype $dtype $zero &
        job=$!
        for _ in {1..300}; do
            compgen -G "half/checkpoints/*.ckpt" >/dev/null && break
            sleep 0.1
        done
        for p in /proc/[0-9]*; do # stopping one of its ranks stops all
            tr '\0' ' ' 2>/dev/null <"$p/cmdline" | grep -q "^$build/bin/bert train .*--out half " || continue
            tr '\0' '\n' 2>/dev/null <"$p/environ" | grep -qE '^(OMPI_COMM_WORLD_RANK|PMI_RANK)=' || continue
            kill -TERM "${p#/proc/}" 2>/dev/null || true
            break
        done
        wait $job || true
        train half 3 --dtype $dtype --resume $zero || wrong "resumed by 3 ranks: $(cat said)"
        cmp -s one_$dtype/model.safetensors half/model.safetensors || wrong "bert, $dtype $zero: from 4 ranks to 3"
    done
done
# The scaling model, with small sizes.
timeout 60 "$build/bin/bench" ranks --ranks 2 --workload reduce --steps 3 --vocab 100 | grep -q '"ratio"' ||
    wrong "bench ranks --workload reduce says no ratio"
if command -v python3 >/dev/null; then
    timeout 100 python3 "$root/bench/scale.py" --bench "$build/bin/bench" --tiny --json >said 2>errors &&
        [ "$(grep -o '"predicted_ms"' said | wc -l)" = 3 ] && [ "$(grep -o '"efficiency"' said | wc -l)" = 9 ] ||
        wrong "bench/run scale: $(cat said errors)"
fi
echo "$runs runs"
exit $wrong
