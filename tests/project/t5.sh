#!/usr/bin/env bash
# T5 by the program translate: pretraining on plain text, then a task that is given as text, with marks; an interrupted
# run; and error messages.
. "$(dirname "$0")/common.sh"
fresh t5
translate=$build/bin/translate

# Sentences of a small world. The task: repeat the last word of a sentence.
"$build/bin/bert" sample-corpus --documents 300 >book.txt
"$build/bin/bert" sample-corpus --documents 40 --seed 2 >other.txt
for name in book other; do
    sed -n 's/^\(.* \)\([a-z]*\)\.$/last word: \1\2./p' $name.txt >$name.questions
    sed -n 's/^\(.* \)\([a-z]*\)\.$/\2/p' $name.txt >$name.answers
done
head -n 200 other.questions >questions && head -n 200 other.answers >answers

small=(--objective t5 --text book.txt --dim 64 --layers 2 --heads 4 --vocab-size 600 --tokens 512 --length 32)
"$translate" train --quiet "${small[@]}" --lr 4e-3 --steps 600 --out t5 >said || wrong "train --objective t5 failed"
# a uniform guess has 6.4
awk '{ exit !($0 ~ /best on validation/ && $9 < 4.5) }' said || wrong "T5 learns too little from text: $(cat said)"
grep -q '"model_type": "t5"' t5/config.json || wrong "train --objective t5 does not write a directory of T5"
"$translate" tune --quiet --model t5 --src book.questions --tgt book.answers --valid-src questions --valid-tgt answers \
    --epochs 8 --lr 3e-3 --tokens 512 --out tuned >/dev/null || wrong "translate tune failed"
right() { "$translate" run --model "$1" --beam "${2:-1}" <questions | paste - answers | awk '$1 == $2' | wc -l; }
[ "$(right tuned)" -ge 150 ] || wrong "the tuned T5 answers only $(right tuned) of 200 questions"
[ "$(right tuned 5)" -ge 150 ] || wrong "the tuned T5 answers only $(right tuned 5) of 200 questions with 5 beams"
"$translate" run --model tuned --beam 1 --batch 1 --threads 2 <questions | cmp -s - \
    <("$translate" run --model tuned --beam 1 <questions) || wrong "other batches or threads change T5's answers"
"$translate" info tuned | grep -q '^kind        transformer' || wrong "translate info: $("$translate" info tuned)"

# Runs that are stopped and resumed end with the same bits.
stopped() # NAME COMMAND OPTION...
{
    local name=$1 command=$2
    shift 2
    "$translate" "$command" --quiet "$@" --out "$name" >/dev/null || wrong "translate $command failed"
    "$translate" "$command" --quiet "$@" --out "$name.parts" >/dev/null 2>&1 &
    while [ ! -e "$name.parts/checkpoints" ] && kill -0 $! 2>/dev/null; do sleep 0.05; done
    kill -INT $! 2>/dev/null || true
    wait $! || true
    "$translate" "$command" --quiet --out "$name.parts" --resume >/dev/null || wrong "$command --resume failed"
    same_folder "$name" "$name.parts" || wrong "$command: a resumed run ends with other bits"
}
stopped whole train "${small[@]}" --steps 40
stopped again tune --model t5 --src book.questions --tgt book.answers --steps 30 --tokens 256

# A model of translate train is tuned, too.
"$translate" sample-pairs --src dates.txt --tgt dates.iso --lines 100
"$translate" train --quiet --src dates.txt --tgt dates.iso --size tiny --dim 32 --layers 1 --steps 8 --vocab-size 300 \
    --tokens 400 --out plain >/dev/null
"$translate" tune --quiet --model plain --src dates.txt --tgt dates.iso --steps 8 --tokens 400 --out more >/dev/null &&
    echo "3 May 2019" | "$translate" run --model more --beam 1 >/dev/null ||
    wrong "a model of translate train is not tuned"

# Errors name what to change, and leave nothing behind.
train=("$translate" train --objective t5 --out none)
says 2 "--objective t5 needs --text" "${train[@]}"
says 2 "--src is for --objective translation" "${train[@]}" --text book.txt --src book.txt
says 2 "--text is for --objective t5" "$translate" train --text book.txt --src a --tgt b --out none
says 2 "give --src and --tgt, or --objective t5 and --text" "$translate" train --src book.txt --out none
says 2 "--vocab-size needs at least 200 tokens (100 of them are sentinels), got 150" \
    "${train[@]}" --text book.txt --vocab-size 150
"$build/bin/tokenize" train --type wordpiece --size 200 --out words book.txt >/dev/null 2>&1
says 3 "this tokenizer has no token <pad>; T5 needs <pad>, </s> and <extra_id_0> to <extra_id_99>" \
    "${train[@]}" --text book.txt --vocab words --steps 1 --out odd
says 2 "--valid-src needs --valid-tgt" \
    "$translate" tune --model t5 --src book.questions --tgt book.answers --valid-src questions --out none
says 3 "'answers'" "$translate" tune --model t5 --src book.questions --tgt answers --out none
says 5 "nowhere" "$translate" tune --model nowhere --src book.questions --tgt book.answers --out none
[ ! -e none ] || wrong "a command with a mistake leaves a folder behind"
exit $wrong
