#!/usr/bin/env bash
# Compares `tokenize` with tokenizers and sentencepiece: the same token ids of 100,000 lines of Unicode and of the texts
# in shared/data, for each kind of tokenizer, trained here; and the same decoded texts: tests/outside/tokens.py. Skipped
# if TENON_PEER_PYTHON (default: python3) lacks one of the two.
. "$(dirname "$0")/common.sh"
fresh tokens
python=${TENON_PEER_PYTHON:-python3} tokenize=$build/bin/tokenize shared=$root/../shared/data
command -v "$python" >/dev/null || { echo "skipped: there is no $python" && exit 77; }
[ -x "$tokenize" ] || { echo "SKIPPED: the programs are not built" && exit 77; }
cat "$root"/docs/guide/*.md "$root"/docs/*.md >book.txt
also=()
for text in tinyshakespeare/input.txt multi30k/val.de multi30k/val.en bleu-oracles/ref0.de; do
    [ -e "$shared/$text" ] && also+=(--also "$shared/$text")
done
for what in kinds bpe; do
    "$python" "$root/tests/outside/tokens.py" "$tokenize" $what book.txt --lines "${1:-100000}" "${also[@]}" || exit $?
done
