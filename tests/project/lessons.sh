#!/usr/bin/env bash
# The pages of docs/site that run programs, in Chromium, opened as files: README's program and each lesson print what
# they print here, the curves are drawn, other numbers give other losses, a wrong number and an endless run leave the
# page usable; a model from the disk continues a text as `gpt write` does. First paint within 1 s, README's program
# within 3 s, at most 600 KB compressed. WASM: the folder of packaging/wasm, default build/wasm.
. "$(dirname "$0")/common.sh"
need python3 chromium
python3 -c 'import ziglang' 2>/dev/null || { echo "SKIPPED: zig is not installed (pip install ziglang)" && exit 77; }
fresh lessons
wasm=${WASM:-$build/wasm}
"$root/packaging/wasm" "$wasm" >log 2>&1 || { wrong "packaging/wasm fails: $(tail -n 5 log)" && exit 1; }
"$root/docs/site/build" out "$wasm" >log 2>&1 || { wrong "docs/site/build fails: $(tail -n 5 log)" && exit 1; }
# Of the relaxed instructions, only multiply-adds: the minimum of another engine has another NaN.
if command -v llvm-objdump >/dev/null; then
    relaxed=$(llvm-objdump -d "$wasm/lessons.wasm" "$wasm/models.wasm" | grep -E '\bfd (8[0-9a-f]|9[0-3]) 02\b' |
        grep -v 'fd 8[57] 02' || true)
    [ -z "$relaxed" ] || wrong "relaxed instructions: $(head -n 3 <<<"$relaxed")"
fi

programs=(readme 01_tensor 02_autograd 03_module 04_training 05_custom_op)
for p in "${programs[@]}"; do
    [ -x "$build/bin/$p" ] || { echo "SKIPPED: $p is not built" && exit 77; }
    (mkdir "here-$p" && cd "here-$p" && "$build/bin/$p" >../"$p.expected") || wrong "$p fails here"
done
stories=${TENON_STORIES:-$root/../shared/data/stories260K}
if [ -e "$stories/stories260K.bin" ] && [ -x "$build/bin/gpt" ]; then
    "$build/bin/gpt" write --model "$stories/stories260K.bin" --tokenizer "$stories/tok512.bin" \
        --prompt "Once upon a time" --tokens 60 --temperature 0 >story.expected
fi
if [ -x "$build/bin/bert" ]; then
    for i in $(seq 80); do printf 'the cat sees the dog\na dog and the cat see a %s bird\n' $((i % 7)); done >text
    "$build/bin/bert" train --text text --quiet --vocab-size 120 --size tiny --steps 6 --batch 4 --length 32 \
        --out bert >/dev/null || wrong "bert train fails"
    "$build/bin/bert" fill --model bert "the cat [MASK] the dog" >blank.expected
fi
python3 "$root/tests/project/lessons.py" out . "$stories" >said 2>&1 || wrong "$(tail -n 12 said)"
cat said
exit $wrong
