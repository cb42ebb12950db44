#!/usr/bin/env bash
# Kills a run at every call that opens, writes or changes a file, and at TENON_KILLS random times. The same command must
# always start or resume it, the result must have the bits of an uninterrupted run, and no partly written file may
# remain. TENON_KILL_STRIDE: kill only at every N-th call. TENON_FOREIGN: an emulator and a program of another system,
# in place of build/bin/bert, which is killed at random times only.
. "$(dirname "$0")/common.sh"
fresh kills
read -ra bert <<<"${TENON_FOREIGN:-$build/bin/bert}"
[ -x "${bert[-1]}" ] || { echo "SKIPPED: the programs are not built" && exit 77; }
kills=${TENON_KILLS:-1000} stride=${TENON_KILL_STRIDE:-1}

"${bert[@]}" sample-corpus -n 60 >text
train=("${bert[@]}" train --quiet --threads 1 --text text --size tiny --layers 1 --dim 32 --heads 2 --vocab-size 200
    --batch 2 --length 16)

goes_on() # FOLDER STEPS: starts or resumes the run until it is complete
{
    "${train[@]}" --steps "$2" --out "$1" >/dev/null 2>err.txt ||
        "${train[@]}" --steps "$2" --out "$1" --resume >/dev/null 2>>err.txt
}

# ---- at every call of a short run ----

calls=0 tried=0
if [ ! "${TENON_FOREIGN:-}" ]; then
    "${CC:-cc}" -shared -fPIC -o kill_at.so "$root/tests/project/kill_at.c"
    LD_PRELOAD=./kill_at.so KILL_COUNT=count "${train[@]}" --steps 3 --out undisturbed >/dev/null ||
        wrong "bert train fails"
    calls=$(cat count)
fi
for ((n = 1; n <= calls; n += stride)); do
    rm -rf one
    (LD_PRELOAD=./kill_at.so KILL_CALL=$n "${train[@]}" --steps 3 --out one && exit) >/dev/null 2>&1 || code=$?
    [ "${code:-0}" = 137 ] || wrong "call $n of $calls: the run ends with ${code:-0} instead of being killed"
    goes_on one 3 || wrong "killed at call $n of $calls it can neither be begun nor gone on with: $(cat err.txt)"
    same_folder undisturbed one || wrong "killed at call $n: other bits"
    findings < <(find one -name '.*.tmp.*' -printf "killed at call $n: half a file stays: %p\n")
    tried=$((tried + 1)) code=
    [ $wrong = 0 ] || exit 1
done

# ---- at random times of a longer run, repeatedly until it completes ----

steps=200 runs=0 killed=0
began=$EPOCHREALTIME
"${train[@]}" --steps $steps --out long >/dev/null || wrong "bert train fails"
took=$((${EPOCHREALTIME/./} - ${began/./})) # microseconds
RANDOM=1
while [ $killed -lt "$kills" ]; do
    rm -rf two
    for ((again = 0; again < 12 && killed < kills; again++)); do
        resume=
        [ -e two/checkpoints ] && resume=--resume
        "${train[@]}" --steps $steps --out two $resume >/dev/null 2>&1 &
        run=$!
        sleep "$(printf '0.%06d' $((took * (RANDOM % 100) / 300 % 1000000)))"
        kill -KILL $run 2>/dev/null && killed=$((killed + 1))
        wait $run 2>/dev/null || true
    done
    goes_on two $steps || wrong "after $again kills it can neither be begun nor gone on with: $(cat err.txt)"
    same_folder long two || wrong "after $again kills: other bits"
    findings < <(find two -name '.*.tmp.*' -printf 'half a file stays: %p\n')
    runs=$((runs + 1))
    [ $wrong = 0 ] || exit 1
done
mkdir -p "$build/figures"
by=${TENON_FOREIGN:+ of $(basename "${bert[0]}")}
echo "kills$by: at $tried of $calls calls of a run, and at $killed random moments of $runs runs: all went on to \
the same bits" | tee "$build/figures/kills${TENON_FOREIGN:+-foreign}"
exit $wrong
