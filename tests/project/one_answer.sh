#!/usr/bin/env bash
# The same bits in f32, with weights of 8 bits, f16 and int8, on every CPU with fused multiply-add: training for 50
# steps and embeddings by one_answer.c, on AVX2, on AVX-512 (if this CPU has it, and emulated, see tests/emulated; there
# int8 also by AMX) and
# on the portable kernels with TENON_EXACT=1. The portable kernels without TENON_EXACT must differ: else the comparison
# would compare nothing. `one_answer.sh aarch64` (--full) compares this CPU with aarch64 under qemu.
. "$(dirname "$0")/common.sh"
work=$build/project/one_answer
mkdir -p "$work"

answer() # FILE SIZE COMMAND...: runs one_answer; its lines go to FILE, the instruction set to FILE.isa
{
    local file=$work/$1 size=$2
    shift 2
    env "$@" "$size" >"$file" 2>"$file.isa" || wrong "$*: $(tail -n 3 "$file.isa")"
}
same() # FILE FILE
{
    cmp -s "$work/$1" "$work/$2" || wrong "$1 and $2 differ: $(diff "$work/$1" "$work/$2" | head -n 20)"
}
program=$build/bin/tests/one_answer

if [ "${1:-}" = aarch64 ]; then
    # the folders that need no other library, so that no packages of that architecture are needed
    need cmake aarch64-linux-gnu-gcc qemu-aarch64
    step() # COMMAND...
    {
        "$@" >"$work/aarch64.log" 2>&1 || { wrong "$*: $(tail -n 20 "$work/aarch64.log")" && exit 1; }
    }
    step cmake -S "$root" -B "$work/aarch64" -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux \
        -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DTENON_TESTS=OFF \
        -DTENON_PROGRAMS=OFF -DTENON_MODELS=OFF -DTENON_PARALLEL=OFF -DTENON_DATA=OFF
    step cmake --build "$work/aarch64" --target tenon_static -j "${TENON_JOBS:-$(nproc)}"
    # the workloads also call functions of models/, in sections that are not linked
    step aarch64-linux-gnu-gcc -std=c11 -O1 -ffunction-sections -I"$root" -I"$work/aarch64/include" \
        "$root"/tests/project/one_answer.c "$root"/bench/{bert,gpt,lstm,seq2seq,sizes}.c "$work/aarch64/libtenon.a" \
        -Wl,--gc-sections -static -lm -pthread -o "$work/one_answer.aarch64"
    answer tiny tiny "$program"
    answer under-qemu tiny qemu-aarch64 "$work/one_answer.aarch64"
    same tiny under-qemu
    exit $wrong
fi

both() # NAME COMMAND...: both sizes; NAME is also the instruction set that must be in use
{
    local size
    for size in odd tiny; do
        answer "$1-$size" $size "${@:2}"
        grep -q " $1 kernels" "$work/$1-$size.isa" || wrong "not $1, but $(cat "$work/$1-$size.isa")"
        same best-$size "$1-$size"
    done
}
answer best-odd odd OMP_NUM_THREADS=3 "$program"
answer best-tiny tiny OMP_NUM_THREADS=3 "$program"
[ "$(wc -l <"$work/best-odd")" = 8 ] || wrong "one_answer: $(cat "$work/best-odd")"

if [ "$(uname -m)" = x86_64 ] && ! grep -q ' baseline kernels' "$work/best-odd.isa"; then
    for isa in avx2:avx2 avx512:avx512dq avx512bf16:avx512_bf16 amx:amx_bf16; do
        ! grep -qw "${isa#*:}" /proc/cpuinfo || both "${isa%:*}" TENON_ISA="${isa%:*}" "$program"
    done
    [ ! -x "${program}_emulated" ] || both avx512 "${program}_emulated"
    if [ -x "${program}_amx" ]; then # only int8, at odd sizes: the kernels of f32 are those of avx512
        "${program}_amx" odd int8 >"$work/amx" 2>"$work/amx.isa" ||
            wrong "one_answer_amx: $(tail -n 3 "$work/amx.isa")"
        grep -q ' amx kernels.*int8 products by AMX' "$work/amx.isa" || wrong "not AMX: $(cat "$work/amx.isa")"
        tail -n 1 "$work/best-odd" | cmp -s - "$work/amx" ||
            wrong "int8 by AMX: $(cat "$work/amx"), expected $(tail -n 1 "$work/best-odd")"
    fi
    answer exact tiny TENON_ISA=baseline TENON_EXACT=1 "$program"
    grep -q ' exact kernels: set by TENON_EXACT' "$work/exact.isa" || wrong "TENON_EXACT=1: $(cat "$work/exact.isa")"
    same best-tiny exact
    answer baseline tiny TENON_ISA=baseline "$program"
    [ "$(comm -12 <(sort "$work/best-tiny") <(sort "$work/baseline") | wc -l)" = 0 ] ||
        wrong "the portable kernels, which round twice, give the bits of AVX2: $(cat "$work/baseline")"
fi
exit $wrong
