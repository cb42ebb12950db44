#!/usr/bin/env bash
# The same bits in f32, with weights of 8 bits, f16 and int8, on every CPU with fused multiply-add: training for 50
# steps and embeddings by one_answer.c, on AVX2, on AVX-512 (if this CPU has it, and emulated, see tests/emulated; there
# int8 also by VNNI and AMX) and on the portable kernels with TENON_EXACT=1. The portable kernels without TENON_EXACT
# must differ: else the comparison would compare nothing. `one_answer.sh aarch64` (--full) compares this CPU with
# aarch64 under qemu, without and with SDOT.
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
    answer tiny tiny "$program"
    # int8 without and with SDOT, which the library has only where the compiler may assume it
    for march in armv8-a armv8.2-a+dotprod; do
        step cmake -S "$root" -B "$work/$march" -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux \
            -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_C_FLAGS=-march=$march \
            -DTENON_TESTS=OFF -DTENON_PROGRAMS=OFF -DTENON_MODELS=OFF -DTENON_PARALLEL=OFF -DTENON_DATA=OFF
        step cmake --build "$work/$march" --target tenon_static -j "${TENON_JOBS:-$(nproc)}"
        # the workloads also call functions of models/, in sections that are not linked
        step aarch64-linux-gnu-gcc -std=c11 -O1 -ffunction-sections -I"$root" -I"$work/$march/include" \
            "$root"/tests/project/one_answer.c "$root"/bench/{bert,gpt,lstm,seq2seq,sizes}.c \
            "$work/$march/libtenon.a" -Wl,--gc-sections -static -lm -pthread -o "$work/one_answer.$march"
        answer "under-qemu-$march" tiny qemu-aarch64 "$work/one_answer.$march"
        same tiny "under-qemu-$march"
    done
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
    # int8 has products of its own for some CPUs; odd sizes, only int8: the kernels of f32 are those above
    products() # NAME ISA: int8 by NAME, with the table of kernels ISA
    {
        TENON_ISA=$2 "${program}_amx" odd int8 >"$work/int8" 2>"$work/int8.isa" ||
            wrong "int8 by $1: $(tail -n 3 "$work/int8.isa")"
        grep -q " $2 kernels.*int8 products by $1\$" "$work/int8.isa" || wrong "not $1: $(cat "$work/int8.isa")"
        tail -n 1 "$work/best-odd" | cmp -s - "$work/int8" ||
            wrong "int8 by $1: $(cat "$work/int8"), expected $(tail -n 1 "$work/best-odd")"
    }
    if [ -x "${program}_amx" ]; then
        products VNNI avx2
        products VNNI avx512
        products AMX amx
    fi
    answer exact tiny TENON_ISA=baseline TENON_EXACT=1 "$program"
    grep -q ' exact kernels: set by TENON_EXACT' "$work/exact.isa" || wrong "TENON_EXACT=1: $(cat "$work/exact.isa")"
    same best-tiny exact
    answer baseline tiny TENON_ISA=baseline "$program"
    [ "$(comm -12 <(sort "$work/best-tiny") <(sort "$work/baseline") | wc -l)" = 0 ] ||
        wrong "the portable kernels, which round twice, give the bits of AVX2: $(cat "$work/baseline")"
fi
exit $wrong
