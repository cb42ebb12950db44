#!/usr/bin/env bash
# Interrupts bert tune, gpt tune and vit tune at random times, alternately by Ctrl-C and kill -9, and resumes them: the
# result must have the bits of an uninterrupted run. tune_kills.sh [COUNT [KIND...]], COUNT interruptions of each kind:
# a classifier with gradual unfreezing and layer-wise learning rates, evaluated after each epoch; a tagger with a CRF; a
# GPT on a text; adapters of a GPT in int8 on answers; adapters of a ViT with a new classifier.
. "$(dirname "$0")/common.sh"
fresh tune_kills
bert=$build/bin/bert gpt=$build/bin/gpt vit=$build/bin/vit kills=${1:-20}
kinds=("${@:2}")
[ ${#kinds[@]} -gt 0 ] || kinds=(classify gpt_text tag gpt_answers vit)
[ -x "$bert" ] || { echo "SKIPPED: the programs are not built" && exit 77; }
"$bert" sample-corpus --documents 40 >book.txt
"$bert" train --quiet --threads 1 --text book.txt --out small --size tiny --length 16 --steps 2 --batch 4 \
    --vocab-size 300 >/dev/null
grep -m 140 . book.txt | awk '{ print $0 "\t" (NR % 3 ? "x" : "y") }' >all.tsv
head -n 100 all.tsv >train.tsv && tail -n 40 all.tsv >valid.tsv
awk 'NF && ++n <= 100 { for (i = 1; i <= NF; i++) print $i "\t" ($i ~ /^[A-Z]/ ? "B-NAME" : "O"); print "" }' \
    book.txt >words.conll
"$gpt" train --quiet --threads 1 --text book.txt --out writer --size tiny --layers 2 --dim 64 --heads 2 --length 32 \
    --steps 2 --batch 4 --vocab-size 300 >/dev/null
grep -m 100 . book.txt | tr -d '"\\' |
    sed -E 's/^([^ ]+)(.*)/{"prompt": "\1", "answer": "\2"}/' >answers.jsonl
{ printf '\0\0\010\3\0\0\0\50\0\0\0\10\0\0\0\10' && for i in $(seq 160); do printf '\0\0\0\0\300\300\300\300'; done &&
    for i in $(seq 160); do printf '\300\300\300\300\0\0\0\0'; done; } >images
{ printf '\0\0\010\1\0\0\0\50' && for i in $(seq 40); do printf "\\$((i % 4))"; done; } >labels
{ head -c 8 labels && for i in $(seq 40); do printf "\\$((i > 20))"; done; } >halves
"$vit" train --quiet --threads 1 --images images --labels labels --out patches --size tiny --layers 2 --steps 2 \
    >/dev/null
RANDOM=1
declare -A took
command_of() # OUT [--resume]: fills the array `command`
{
    command=("$bert" tune "$kind" --quiet --threads 1 --model small --batch 4 --length 16 --epochs 4)
    case $kind in
    gpt*) command=("$gpt" tune --quiet --threads 1 --model writer --batch 4 --length 32) ;;
    vit) command=("$vit" tune --quiet --threads 1 --model patches --images images --labels halves --batch 8) ;;
    esac
    command+=("${more[@]}" --out "$@")
}
tune() { command_of "$@" && "${command[@]}"; }
disturbed() # WHOLE MICROSECONDS: one run with interruptions, some of them before the first checkpoint
{
    rm -rf part
    for ((again = 0; again < 5 && done < kills; again++)); do
        local resume=() signal=INT wait=$(($2 * (RANDOM % 100) / 200))
        [ -e part/checkpoints ] && resume=(--resume)
        [ $((done % 2)) = 1 ] && signal=KILL
        command_of part "${resume[@]}"
        "${command[@]}" >/dev/null 2>&1 &
        local run=$!
        sleep "$(printf '%d.%06d' $((wait / 1000000)) $((wait % 1000000)))"
        kill -$signal $run 2>/dev/null && done=$((done + 1))
        { wait $run; } 2>/dev/null || true
    done
    tune part >/dev/null 2>err.txt || tune part --resume >/dev/null 2>>err.txt ||
        wrong "$kind: after $again interruptions it cannot go on: $(cat err.txt)"
    same_folder "$1" part || wrong "$kind: after $again interruptions: other bits"
}
all=0
for kind in "${kinds[@]}"; do
    case $kind in
    classify) more=(--train train.tsv --valid valid.tsv --thaw --layer-rate 0.9) ;;
    tag) more=(--train words.conll --crf) ;;
    gpt_text) more=(--text book.txt --steps 60) ;;
    gpt_answers) more=(--chat answers.jsonl --epochs 3 --lora 4 --type int8) ;;
    vit) more=(--steps 60 --lora 4) ;;
    esac
    began=$EPOCHREALTIME
    tune "$kind" >/dev/null || wrong "$kind: tuning fails"
    took[$kind]=$((${EPOCHREALTIME/./} - ${began/./}))
    done=0
    while [ $done -lt "$kills" ] && [ $wrong = 0 ]; do disturbed "$kind" "${took[$kind]}"; done
    all=$((all + done))
    [ $wrong = 0 ] || break
done
[ $wrong != 0 ] || echo "$all interruptions of ${kinds[*]}, and the same bits"
exit $wrong
