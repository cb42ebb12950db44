#!/usr/bin/env bash
# One binary for all CPUs: no object outside of the kernels contains an instruction that a CPU of the baseline (x86-64
# of 2003: SSE2) lacks. With qemu-x86_64, README's program and a small `bert train` run as older CPUs, with the kernels
# that these have.
. "$(dirname "$0")/common.sh"
need objdump
[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED: the list of instructions is that of x86-64" && exit 77; }
fresh portable

# AVX and later start with v or k; then SSE3, SSSE3, SSE4, AES, SHA, POPCNT, MOVBE, BMI, LZCNT, ADX, FSGSBASE, tiles.
# (endbr64, and rdsspq and incsspq of shadow stacks, do nothing on CPUs without them.)
newer='v[a-z]|k(add|and|mov|not|or|shift|test|unpck|xnor|xor)|tile|tdp|ldtile|sttile'
newer+='|addsubp|hadd|hsub|lddqu|mov(dd|sl|sh)dup|fisttp|p(abs|align|hadd|hsub|maddub|mulhrs|shufb|sign)'
newer+='|(d|p)blend|blendv|dpp[sd]|extractps|insertps|mpsadbw|movntdqa|packusdw|pcmp(eqq|gtq|estr|istr)'
newer+='|pext |pextr[bdq]|pdep|pinsr[bdq]|phminpos|p(max|min)(sb|sd|ud|uw)|pmov[sz]x|pmul(dq|ld)|ptest|round[ps][sd]'
newer+='|crc32|popcnt|aes|pclmul|sha(1|256)'
newer+='|movbe|andn |bextr|bls|bzhi|mulx|rorx|sarx|shlx|shrx|lzcnt|tzcnt|adcx|adox|rdrand|rdseed|(rd|wr)(fs|gs)base'
found() # a line "FILE INSTRUCTION" for each one in the objects of standard input
{
    xargs -r objdump -d --no-show-raw-insn | awk -v newer="^($newer)" '
        / file format / { file = $1; sub(/:$/, "", file); sub(/^.*\.dir\//, "", file) }
        /^ +[0-9a-f]+:\t/ {
            instruction = $0
            sub(/^[^\t]*\t/, "", instruction)
            sub(/^(rep|repz|repnz|lock|notrack|bnd|data16|cs) +/, "", instruction)
            if (instruction ~ newer && !seen[file, instruction = substr(instruction, 1, index(instruction " ", " "))]++)
                print file, instruction
        }'
}
# tzcnt is also the encoding of "rep bsf": compilers choose it where both give the same result.
objects=$(find "$build/CMakeFiles" -path '*/tenon_objects.dir/*.o' -o -path '*/tenon_kernels_baseline.dir/*.o' \
    -o -path '*/tenon_kernels_exact.dir/*.o')
[ "$(wc -l <<<"$objects")" -gt 300 ] || wrong "only $(wc -l <<<"$objects") objects were found"
findings < <(found <<<"$objects" | grep -v ' tzcnt' | sed 's/$/ is not part of the baseline/')

# Faults planted for this check.
avx2=$(find "$build/CMakeFiles" -path '*/tenon_kernels_avx2.dir/*gemm.k.c.o')
[ -z "$avx2" ] || grep -q ' vfmadd' <(found <<<"$avx2") || wrong "portable.sh does not see the kernels of AVX2"
for code in '__builtin_popcountl((unsigned long)x):-mpopcnt' '__builtin_ia32_crc32si(1, (unsigned)x):-msse4.2'; do
    echo "long f(long x) { return ${code%:*}; }" >planted.c
    "${CC:-cc}" -O1 "${code#*:}" -c planted.c && [ "$(found <<<planted.o)" ] || wrong "portable.sh does not see $code"
done

command -v qemu-x86_64 >/dev/null || { echo "qemu-x86_64 is not installed: no other CPUs" && exit $wrong; }
[ -x "$build/bin/bert" ] || exit $wrong
"$build/bin/bert" sample-corpus -n 60 >text
small=(--size tiny --layers 1 --dim 16 --heads 2 --vocab-size 200 --batch 2 --length 16 --steps 1 --quiet)
run() # CPU ISA
{
    local cpu=$1 isa=$2
    qemu-x86_64 -cpu "$cpu" "$build/bin/readme" >"readme.$cpu" 2>log || wrong "$cpu: readme: $(tail -n 3 log)"
    qemu-x86_64 -cpu "$cpu" "$build/bin/bert" train --text text --out "$cpu" "${small[@]}" >log 2>&1 ||
        wrong "$cpu: bert train: $(tail -n 3 log)"
    grep -q " $isa kernels" <(qemu-x86_64 -cpu "$cpu" "$build/bin/bert" --version 2>&1) || wrong "$cpu: not $isa"
}
run Nehalem baseline
run Haswell avx2
run Skylake-Client avx2
cmp readme.Haswell readme.Skylake-Client || wrong "two CPUs with AVX2 give different results"
exit $wrong
