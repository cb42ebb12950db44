#!/usr/bin/env bash
# tests/project/same_bits.sh OLD NEW: checks that two versions of Tenon compute the same bits.
#
# Each is a revision of this repository or a folder with a checkout. Both are built, and both
#   - run the workloads of bench/ in f32 and bf16 on 1, 2 and 3 threads, eight steps: losses, norms of the gradients,
#     results of the modules and the final weights (same_bits.c); with default sizes and with odd ones,
#   - generate the tiny corpora of `bert` and `translate` and train tiny models on them, f32 and bf16: the files' bytes,
#   - read each other's models: `translate run` with five beams, `bert embed` and `bert fill`,
#   - run the golden tests: the deviations from PyTorch.
# Prints a line for each comparison and a summary. Fails if a comparison differs or cannot be computed. TENON_ISA in the
# environment limits the kernels. Builds are kept under build/same_bits; a run takes about four minutes on two cores.
#
# It has been verified to fail for a copy of a version in which one value differs by one ULP: a coefficient of the
# softmax's eˣ (core/kernels/exp.h, v_exp_soft), and 1 - beta2 in Adam's step (optim/adam.c).
. "$(dirname "$0")/common.sh"
. "$root/tests/versions.sh"
need cmake git pkg-config
[ $# = 2 ] || stop_version "two versions are needed: $0 OLD NEW"
export OMP_WAIT_POLICY=passive CK_FORK=no # versions before ADR 0040 use OpenMP

work=$build/same_bits
mkdir -p "$work"
old=$(build_version "$work" "$1" -DTENON_TESTS=ON)
new=$(build_version "$work" "$2" -DTENON_TESTS=ON)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
mkdir "$out/old" "$out/new"
equal=0
different=0

# both FILE COMMAND...: writes the standard output of COMMAND for each version to its FILE; % in COMMAND is replaced
# with the build folder of the version.
both()
{
    local file=$1 who
    shift
    failed=
    for who in old new; do
        (cd "$out/$who" && "${@//%/${!who}}" >"$file" 2>said </dev/null) ||
            { failed+=" $who: $(tail -n 3 "$out/$who/said")" && rm -f "$out/$who/$file"; }
    done
}

differs() # WORDS...
{
    different=$((different + 1))
    echo "DIFFERENT  $*"
}

# same WHAT FILE: checks that FILE is equal in both versions, and that the commands that wrote it succeeded.
same()
{
    if [ "$failed" ]; then
        differs "$1: it fails with$failed"
    elif cmp -s "$out/old/$2" "$out/new/$2"; then
        equal=$((equal + 1))
        echo "equal      $1"
    else
        differs "$1"
        { diff -a "$out/old/$2" "$out/new/$2" 2>&1 || true; } | head -n 6 | cut -c 1-160 | sed 's/^/           /'
    fi
}

# ---- the workloads ----

# Compiles bench/ of the version without the measurement, with same_bits.h and same_bits.c, whose bench_train calls that
# of the version.
probe() # VERSION
{
    local file objects=() flags train
    flags=$(PKG_CONFIG_PATH=$(dirname "$(find "$1/prefix" -name tenon.pc)") pkg-config --cflags --libs tenon)
    for file in "$1"/source/bench/*.c; do
        case ${file##*/} in main.c | kernels.c | contenders.c | verdict.c | ranks.c | sha256.c) continue ;; esac
        objects+=("$1/probe.$(basename "$file" .c).o")
        train=
        grep -q '^int bench_train(' "$file" && train=-Dbench_train=bench_train_of_version
        # shellcheck disable=SC2086 # flags, one word each
        "${CC:-cc}" -std=c11 -O2 -I "$1/source" $flags -include "$root/tests/project/same_bits.h" $train \
            -c "$file" -o "${objects[-1]}"
    done
    # shellcheck disable=SC2086
    "${CC:-cc}" -std=c11 -O2 -I "$1/source" "$root/tests/project/same_bits.c" "${objects[@]}" -o "$1/probe" \
        $flags -Wl,-rpath,"$(find "$1/prefix" -name 'libtenon.so' -printf '%h')" -lm
}
probe "$old"
probe "$new"

for workload in $("$old/probe"); do
    for size in odd own; do
        [ "$workload $size" = "overhead odd" ] && continue # it has only one size
        for dtype in f32 bf16; do
            [ "$workload $dtype" = "overhead bf16" ] && continue # and one dtype
            for threads in 1 2 3; do
                both workload %/probe "$workload" $dtype $threads $size
                same "$workload, $dtype, $size sizes, $threads threads: $(tail -qn 1 "$out/old/workload")" workload
            done
        done
    done
done

# ---- the programs ----

# files_of WHAT FOLDER: the files of a model's folder, except the logs of the run and what contains its date
files_of()
{
    local file
    for file in $(cd "$out/old/$2" && find . -maxdepth 1 -type f ! -name 'log.*' ! -name run.json ! -name report.html \
        ! -name README.md ! -name SHA256SUMS -printf '%P\n' | sort); do
        same "$1: $file" "$2/$file"
    done
}

both corpus %/prefix/bin/translate sample-pairs --src a.txt --tgt a.iso --lines 400
same "translate sample-pairs: source" a.txt
same "translate sample-pairs: target" a.iso
both world.txt %/prefix/bin/bert sample-corpus -n 60
same "bert sample-corpus" world.txt
head -n 40 "$out/old/a.txt" >"$out/lines"
head -n 40 "$out/old/world.txt" | grep . >"$out/sentences"

for kind in transformer transformer-bf16 bahdanau luong rnn; do
    dtype=f32
    [[ $kind = *-bf16 ]] && dtype=bf16
    both said %/prefix/bin/translate train --quiet --src a.txt --tgt a.iso --model ${kind%-bf16} --dtype $dtype \
        --size tiny --dim 32 --layers 1 --vocab-size 300 --tokens 400 --steps 40 --out $kind
    same "translate train --model ${kind%-bf16} --dtype $dtype: $(cat "$out/old/said")" said
    files_of "translate train --model ${kind%-bf16} --dtype $dtype" $kind
    for whose in old new; do
        for threads in 1 2 3; do
            both run bash -c '"$1" run --model "$2" --beam 5 --scores --longest 14 --threads "$4" <"$3"' \
                - %/prefix/bin/translate "$out/$whose/$kind" "$out/lines" $threads
            same "translate run of $whose's $kind, five beams, $threads threads: $(wc -l <"$out/old/run") lines" run
        done
    done
done

for dtype in f32 bf16; do
    both said %/prefix/bin/bert train --quiet --text world.txt --size tiny --dtype $dtype --steps 24 --batch 4 \
        --length 32 --vocab-size 300 --out bert-$dtype
    same "bert train --dtype $dtype: $(cat "$out/old/said")" said
    files_of "bert train --dtype $dtype" bert-$dtype
    for whose in old new; do
        for threads in 1 2 3; do
            both run bash -c '"$1" embed --model "$2" --threads "$4" <"$3"' - %/prefix/bin/bert \
                "$out/$whose/bert-$dtype" "$out/sentences" $threads
            same "bert embed with $whose's model, $dtype, $threads threads: $(wc -l <"$out/old/run") lines" run
        done
        both run %/prefix/bin/bert fill --model "$out/$whose/bert-$dtype" -k 9 --json "The [MASK] and the [MASK]."
        same "bert fill with $whose's model, $dtype" run
    done
done

# ---- the golden tests ----

# With TENON_TEST_WORST they print the deviation of each result from PyTorch's, with two digits. Cases that only the
# later version has are ignored.
for who in old new; do
    at=${!who}
    mapfile -t programs < <(find "$at/build" -type f -executable -name 'test_golden*' | sort)
    [ ${#programs[@]} -gt 0 ] || stop_version "'$at' has no golden tests"
    : >"$out/$who/all"
    for program in "${programs[@]}"; do
        (cd "$at/source/" && TENON_TEST_WORST=1 "$program") >"$out/$who/one" 2>&1 ||
            differs "${program##*/} of $who fails: $(tail -n 3 "$out/$who/one")"
        cat "$out/$who/one" >>"$out/$who/all"
    done
    grep -E '^[^ ]+ (f32|f64) ' "$out/$who/all" | sort -k 2 >"$out/$who/golden"
done
results() { sed 's/^[^ ]* //' "$out/$1/golden" | sort -u; } # their names
comm -12 <(results old) <(results new) >"$out/shared"
gone=$(results old | comm -23 - "$out/shared" | wc -l)
[ "$gone" = 0 ] || differs "golden tests: $gone results that old compares are not compared by new"
failed=
for who in old new; do
    awk 'NR == FNR { shared[$0]; next } { at = $0; sub(/^[^ ]* /, "", at) } at in shared' "$out/shared" \
        "$out/$who/golden" >"$out/$who/golden.shared"
done
same "golden tests: how far $(wc -l <"$out/shared") results are from PyTorch's" golden.shared

echo "$equal equal, $different different"
[ $different = 0 ]
