#!/usr/bin/env bash
# Compares models, files, tokenizers, images and metrics with reference libraries, with the scripts in tests/outside.
# Each script names the packages that it needs. Skipped if TENON_PEER_PYTHON (default: python3) has none of them.
. "$(dirname "$0")/common.sh"
fresh references
python=${TENON_PEER_PYTHON:-python3} ran=0
command -v "$python" >/dev/null || { echo "skipped: there is no $python" && exit 77; }
export RUST_BACKTRACE=0

check() # SCRIPT ARGUMENT...
{
    local code=0
    "$python" "$root/tests/outside/$1.py" "${@:2}" >"$1.txt" 2>&1 || code=$?
    case $code in
    0) ran=$((ran + 1)) && echo "$1: $(grep -v '^$' "$1.txt" | tail -n 1)" ;;
    77) echo "$1: $(tail -n 1 "$1.txt")" ;;
    *) wrong "$1.py fails:"$'\n'"$(tail -n 20 "$1.txt")" ;;
    esac
}

check gguf_check "$TENON_SO"
check torch_check "$TENON_SO"
check images_check "$TENON_SO"
check scores "$TENON_SO"
check compare_tokenizers "$TENON_SO"
check config_members
check decoder_check "$TENON_SO" "$root/../shared/data/stories260K"
for models in encoders lm seq2seq vit; do check "${models}_parity" "$build"; done
check gguf_families "$build"
check embed_members "$build/bin/bert"
[ $wrong = 1 ] || [ $ran -gt 0 ] || exit 77
exit $wrong
