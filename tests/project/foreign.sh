#!/usr/bin/env bash
# Programs built for another system give the results of this one, byte for byte: foreign.sh FOLDER SUFFIX EMULATOR...
# FOLDER: their build folder; SUFFIX: .exe, or nothing. TENON_STORIES: a folder with stories260K.bin and tok512.bin.
# TENON_STEPS: those of the training. TENON_KILLS: kill -9 at random times, after each of which a run is resumed.
. "$(dirname "$0")/common.sh"
there=$(realpath "$1")/bin suffix=$2 emulator=("${@:3}")
fresh "foreign-$(basename "$1")"
here=$build/bin
export TENON_KILLS=${TENON_KILLS:-50}
steps=${TENON_STEPS:-200}

same() # FILE PROGRAM ARGUMENT...: what both print; FILE: where here's goes
{
    "$here/$2" "${@:3}" >"$1" || wrong "$2 ${*:3} fails here"
    "${emulator[@]}" "$there/$2$suffix" "${@:3}" >"$1.there" || wrong "$2 ${*:3} fails"
    tr -d '\r' <"$1.there" | cmp -s - "$1" || wrong "$2 ${*:3}: other output: $(diff "$1" "$1.there" | head -n 5)"
}
both() # FOLDER MODEL PROGRAM ARGUMENT...: FOLDER-here and FOLDER-there, in which MODEL is the model
{
    "$here/$3" "${@:4}" --out "$1-here" >log || wrong "$3 ${*:4} fails here: $(tail -n 3 log)"
    "${emulator[@]}" "$there/$3$suffix" "${@:4}" --out "$1-there" >log || wrong "$3 ${*:4} fails: $(tail -n 3 log)"
    cmp "$1-here/$2/model.safetensors" "$1-there/$2/model.safetensors" || wrong "$3 ${*:4}: other weights"
}

same answers tests/one_answer tiny
"$here/bert" sample-corpus --documents 40 >book.txt
if [ "$suffix" ]; then
    both demo model bert demo --dtype f32 --steps "$steps" --documents 400 --probes 20 --quiet
    model=demo-here/model
else # an emulated CPU would need hours for the demonstration, and has other word vectors: extras/vectors.h
    both small . bert train --quiet --text book.txt --objective bert --dtype f32 --steps "$steps" --size tiny \
        --layers 1 --dim 32 --heads 2 --vocab-size 400 --batch 4 --length 32
    model=small-here
fi
grep -m 140 . book.txt | awk '{ print $0 "\t" (NR % 3 ? "x" : "y") }' >train.tsv
both tuned . bert tune classify --quiet --model $model --train train.tsv --batch 4 --length 16 --epochs 2
if [ -e "${TENON_STORIES:-}/stories260K.bin" ]; then
    same story gpt write --model "$TENON_STORIES/stories260K.bin" --tokenizer "$TENON_STORIES/tok512.bin" \
        --seed 1 --tokens 200 --prompt "Once upon a time"
fi
[ $wrong = 0 ] || exit 1
TENON_FOREIGN="${emulator[*]} $there/bert$suffix" bash "$root/tests/project/kills.sh" || wrong=1
exit $wrong
