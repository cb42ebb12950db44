#!/usr/bin/env bash
# PROGRAM verify for five kinds of runs of ten segments each: on 1 to 3 threads; runs of 1 and 3 ranks; on AVX2 and on
# AVX-512 (emulated, see tests/emulated), where a run that one instruction set made is verified on the other; and a run
# of gpt on aarch64, under qemu. Then verify.sh with 34 random changes for each program. --full only.
#
#     verify_all.sh [PROGRAM...]
. "$(dirname "$0")/../../../tests/project/common.sh"
fresh verify_all
export TMPDIR=$PWD
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo
export HYDRA_IFACE=lo
programs=("$@")
[ $# -gt 0 ] || programs=(bert gpt lm translate vit)
bin=$build/bin
segments=0 verified=0

awk 'BEGIN { srand(5)
    for (i = 0; i < 900; i++) {
        line = ""
        for (k = 0; k < 7; k++)
            line = line " " substr("thesunandseaoldmanwentfarwithwind", int(rand() * 28) + 1, 3 + int(rand() * 3))
        print substr(line, 2) "."
        if (i % 9 == 8) print ""
    } }' >text
grep . text >source
rev source >target
grep -m 66 . text >few # ten steps per epoch of lm
{ printf '\0\0\10\3\0\0\1\170\0\0\0\10\0\0\0\10' && head -c 24064 text; } >images # 376 images of 8 x 8 pixels
{ printf '\0\0\10\1\0\0\1\170' && for _ in $(seq 188); do printf '\0\1'; done; } >labels
transformer="--dim 32 --layers 2 --heads 2"
declare -A train=(
    [bert]="--text text --size tiny $transformer --length 32 --batch 12 --vocab-size 200"
    [gpt]="--text text --size tiny $transformer --length 16 --batch 12 --vocab-size 300"
    [lm]="--text few --pieces characters --size tiny --dim 16 --batch 12 --length 18"
    [translate]="--src source --tgt target --size nano $transformer --tokens 400 --vocab-size 300"
    [vit]="--images images --labels labels --size tiny $transformer --batch 24"
)

make() # PROGRAM NAME OUT [OPTION...]: a run of ten segments
{
    local program=$1 name=$2 out=$3
    shift 3
    # shellcheck disable=SC2086
    "$program" train --quiet ${train[$name]} --steps 100 --keep 100 --out "$out" "$@" >made 2>&1 ||
        wrong "$name $out: train failed: $(cat made)"
}
identical() # SEGMENTS RUN PROGRAM [OPTION...]
{
    local n=$1 run=$2 program=$3 got
    shift 3
    got=$("$program" verify --quiet "$run" "$@" 2>said | tail -n 1) || true
    [ "$got" = "identical $n segments" ] || wrong "${program##*/} verify $run $*: $got $(cat said)"
    segments=$((segments + n)) verified=$((verified + 1))
}

avx512="" ranks=""
if grep -qw avx2 /proc/cpuinfo && cmake --build "$build" --target emulated_programs >built 2>&1 &&
    [ -x "$bin/tests/gpt_emulated" ]; then avx512=yes
else echo "without AVX-512: no AVX2, or the programs of the target emulated_programs cannot be built"; fi
[[ -z ${TENON_HAS_MPI:-} || $TENON_HAS_MPI == OFF || $TENON_HAS_MPI == FALSE ]] && echo "without ranks: no MPI" ||
    ranks=yes

for name in "${programs[@]}"; do
    program=$bin/$name
    make "$program" "$name" "$name.run"
    for threads in 1 2 3; do identical 10 "$name.run" "$program" --threads $threads; done
    if [ "$avx512" ]; then
        emulated=$bin/tests/${name}_emulated
        make "$emulated" "$name" "$name.emulated"
        identical 10 "$name.emulated" "$emulated"
        TENON_ISA=avx2 identical 10 "$name.emulated" "$program"
        identical 10 "$name.run" "$emulated"
    fi
    if [ "$ranks" ]; then
        for n in 1 3; do
            make "$program" "$name" "$name.$n" --ranks $n
            for threads in 1 2 3; do identical 10 "$name.$n" "$program" --threads $threads; done
        done
        [ ! "$avx512" ] || identical 10 "$name.3" "$emulated" --threads 2
    fi
    rm -rf "$name".*
    echo "$name: verified"
done

if [[ " ${programs[*]} " == *" gpt "* ]] && command -v qemu-aarch64 aarch64-linux-gnu-gcc >/dev/null; then
    if "$root/tests/stage" "$build" aarch64-programs >built 2>&1; then
        arm=$build/aarch64-programs/bin/gpt
        printf '#!/bin/sh\nexec qemu-aarch64 -L /usr/aarch64-linux-gnu %q "$@"\n' "$arm" >gpt_aarch64
        chmod +x gpt_aarch64
        # shellcheck disable=SC2086
        "$bin/gpt" train --quiet ${train[gpt]} --steps 20 --keep 100 --out small >made
        identical 2 small ./gpt_aarch64
        identical 2 small "$bin/gpt"
        echo "gpt on aarch64: verified"
    else wrong "aarch64: $(tail -n 5 built)"; fi
fi
echo "$((10 * ${#programs[@]})) segments of ${#programs[@]} kinds of runs: $verified verifications of $segments in all"
bash "$root/extras/tests/project/verify.sh" 34 "${programs[@]}" >changes || wrong=1
cat changes
awk '/random changes found$/ { found += $2; all += $4 } END { print found " of " all " random changes found" }' changes
exit $wrong
