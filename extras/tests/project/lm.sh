#!/usr/bin/env bash
# The program lm as a user runs it: words, characters and bytes; every cell; an interrupted run that resumes with the
# same bits; evaluation in order, from standard input, in columns and with a cache; error messages.
. "$(dirname "$0")/../../../tests/project/common.sh"
fresh lm
lm=$build/bin/lm

# A text in which each word determines the next one, except for every tenth.
awk 'BEGIN { srand(3); w = 1
    for (i = 0; i < 400; i++) {
        line = ""
        for (k = 0; k < 8; k++) { w = rand() < 0.9 ? (w * 3 + 1) % 23 : int(rand() * 40); line = line " w" w }
        print substr(line, 2)
    } }' >text.txt
head -n 40 text.txt >other.txt
train=("$lm" train --quiet --text text.txt --size tiny --dim 32 --batch 8 --length 12)
value() { sed -nE "s/.*\"$1\":([0-9.]+).*/\1/p" <<<"$2"; }

"${train[@]}" --steps 80 --lr 0.02 --out words >said.txt || wrong "lm train failed"
grep -qE '^words: step 80, loss [0-9.]+, best on validation [0-9.]+ at step [0-9]+$' said.txt ||
    wrong "lm train says: $(cat said.txt)"
got=$("$lm" eval --model words other.txt --json --quiet | tail -n 1)
awk -v p="$(value perplexity "$got")" 'BEGIN { exit !(p > 1 && p < 8) }' || wrong "lm eval says: $got"
grep -qE '"perplexity":[0-9.]+}$' <<<"$got" || wrong "eval --json does not end with perplexity: $got"
[ "$(value tokens "$got")" = 359 ] || wrong "40 lines of 8 words and <eos> are $(value tokens "$got") to be measured"
[ "$("$lm" eval --model words - --json --quiet <other.txt)" = "$got" ] || wrong "a stream is measured otherwise"
[ "$("$lm" eval --model words other.txt --json --quiet --threads 2)" = "$got" ] || wrong "threads change the measure"
beside=$("$lm" eval --model words other.txt --json --quiet --columns 5)
awk -v a="$(value loss "$got")" -v b="$(value loss "$beside")" 'BEGIN { exit !((a - b) ^ 2 < 0.01) }' &&
    [ "$(value tokens "$beside")" = 359 ] || wrong "in columns: $beside, in one: $got"
# A cache predicts repeated words.
for i in 1 2 3 4; do echo "w7 never heard w9 of this w2"; done >again.txt
awk -v a="$("$lm" eval --model words again.txt --json --quiet | sed -E 's/.*"loss":([0-9.]+).*/\1/')" \
    -v b="$("$lm" eval --model words again.txt --json --quiet --cache 50 --cache-lambda 0.3 --cache-theta 1 |
        sed -E 's/.*"loss":([0-9.]+).*/\1/')" 'BEGIN { exit !(b < a) }' || wrong "a cache is of no use"
"$lm" eval --quiet --model words again.txt | grep -q '^unknown  *16$' || wrong "eval does not count what is unknown"

# With the cache's probabilities alone, an unseen word is impossible: an infinite loss, which is null in JSON. NaN is an
# error.
"$lm" eval --model words again.txt --json --quiet --cache 5 --cache-lambda 1 >json.txt || wrong "the cache alone failed"
is_json json.txt && grep -q '^{"loss":null,"bits_per_byte":null,.*"perplexity":null}$' json.txt ||
    wrong "an infinite loss as JSON: $(cat json.txt)"
astray words nan
for json in "" --json; do
    says 6 "the loss is NaN: look for NaN" "$lm" eval --model nan again.txt --quiet $json
    [ ! -s out.txt ] || wrong "lm eval $json of a model of NaN says: $(cat out.txt)"
done

# It generates the same text each time, and prints its configuration.
"$lm" write --model words --prompt "w1 w4" --tokens 8 --temperature 0 >one.txt || wrong "lm write failed"
grep -qE '^w1 w4( w[0-9]+)+$' one.txt || wrong "lm write writes: $(cat one.txt)"
"$lm" write --model words --prompt "w1 w4" --tokens 8 --temperature 0 --threads 2 | cmp - one.txt ||
    wrong "another number of threads, another text"
"$lm" info words | grep -q '^cell  *lstm$' || wrong "lm info does not say which cell"

# Interrupted and resumed: the same weights as without interruption. With all settings of AWD-LSTM, and averaged SGD.
awd=("${train[@]}" --awd --size tiny --optimizer asgd --lr 3 --patience 0 --seed 4)
"${awd[@]}" --epochs 6 --out whole >/dev/null 2>&1 || wrong "lm train --awd failed"
"${awd[@]}" --epochs 6 --out part >/dev/null 2>&1 &
run=$!
for _ in $(seq 200); do [ -d part/checkpoints ] && break; sleep 0.05; done
sleep 0.3
kill -INT $run 2>/dev/null || true
wait $run || true
[ -s part/model.safetensors ] || wrong "a run that was stopped leaves no model"
"$lm" train --quiet --out part --resume >/dev/null 2>&1 || wrong "lm train --resume failed"
same_folder whole part || wrong "stopped and gone on, it has other weights"

# A resumed run must have the same options; the error names the one that differs.
again=("${train[@]}" --lr 0.02 --out words --resume)
"${again[@]}" >/dev/null || wrong "lm train --resume without --steps failed"
says 1 "'words' is a run of 80 steps, but --steps 70 is 70 steps" "${again[@]}" --steps 70
says 1 "--pieces is words in the run, bpe here" "${again[@]}" --pieces bpe
says 1 "--vocab-size is 8000 in the run, 20 here; omit it" "${again[@]}" --vocab-size 20
says 1 "the run did not read 'other.txt' of --text" "${again[@]}" --text other.txt
"${train[@]}" --steps 3 --valid other.txt --out two >/dev/null || wrong "lm train --valid failed"
tac other.txt >turned.txt
says 1 "--valid is 'other.txt' in the run, 'turned.txt' here" "${train[@]}" --valid turned.txt --out two --resume
says 1 "the run did not read 'other.txt' of --text" "${train[@]}" --text other.txt --valid text.txt --out two --resume

# Other cells, kinds of tokens, and output weights.
"${train[@]}" --steps 20 --cell gru --pieces characters --out gru >/dev/null || wrong "--cell gru failed"
"${train[@]}" --steps 20 --cell elman --pieces bytes --optimizer sgd --lr 1 --out elman >/dev/null ||
    wrong "--cell elman --pieces bytes failed"
"${train[@]}" --steps 20 --untied --hidden 24 --cutoffs 5,12 --unlocked --decay cosine --out adaptive >/dev/null ||
    wrong "--cutoffs failed"
for m in gru elman adaptive; do
    "$lm" eval --model $m other.txt --quiet --json | grep -q '"unknown":0' || wrong "eval of $m failed"
    "$lm" write --model $m --prompt w1 --tokens 5 >/dev/null || wrong "write of $m failed"
    printf 'w1 w2\nw3' >unended.txt # a last line without line end is the same from standard input
    "$lm" eval --model $m unended.txt --quiet --json | cmp - <("$lm" eval --model $m - --quiet --json <unended.txt) ||
        wrong "a stream without a line's end is measured otherwise by $m"
done

# --awd has its own default size; an explicit --size overrides it.
awd=("$lm" train --text text.txt --batch 8 --length 12 --steps 1 --awd --dim 32 --hidden 32)
for size in awd small; do
    how=() && [ $size = awd ] || how=(--size $size)
    "${awd[@]}" "${how[@]}" --out awd-$size >out.txt 2>err.txt || wrong "--awd ${how[*]} fails: $(cat err.txt)"
    grep -q "^model    $size: $([ $size = awd ] && echo 3 || echo 2) layers" err.txt ||
        wrong "--awd ${how[*]} trains: $(grep ^model err.txt)"
done
grep -q -- '-1' < <("$lm" train --help) && wrong "--help shows a number that stands for none"

# Errors, each with the change to make.
said() # TEXT COMMAND...
{
    local what=$1
    shift
    ! "$@" >out.txt 2>err.txt || wrong "'$*' does not fail"
    grep -q -- "$what" err.txt || wrong "'$*' says: $(cat err.txt)"
}
said 'needs --untied' "${train[@]}" --cutoffs 5 --out no
said 'takes 1 to 3 numbers' "${train[@]}" --untied --cutoffs 5,x --out no
said 'is for --optimizer adam: sgd lowers' "${train[@]}" --optimizer sgd --decay cosine --steps 2 --out no
said 'is for --optimizer adam: asgd has a constant' "${train[@]}" --optimizer asgd --decay linear --steps 2 --out no
said 'is for --optimizer asgd' "${train[@]}" --patience 5 --steps 2 --out no
said 'needs validations to decide' "${train[@]}" --optimizer asgd --valid-part 0 --steps 2 --out no
said '--valid and --valid-part exclude each other' "${train[@]}" --valid other.txt --valid-part 0.1 --steps 2 --out no
said 'is for --pieces words and bpe' "${train[@]}" --pieces bytes --vocab-size 300 --steps 2 --out no
said 'must be at least 257' "${train[@]}" --pieces bpe --vocab-size 200 --steps 2 --out no
: >empty.txt
said "'empty.txt' contains no text" "${train[@]}" --valid empty.txt --steps 2 --out no
[ ! -e no ] || wrong "lm train leaves a folder behind where its options or texts are wrong"
echo -n w >short.txt
said "'short.txt' of --valid is too short" "${train[@]}" --pieces bytes --valid short.txt --steps 2 --out short
said 'too few for 4000 columns' "${train[@]}" --batch 4000 --out no
for option in theta lambda; do
    says 2 "--cache-$option is for --cache" "$lm" eval --model words other.txt --cache-$option 0.5
done
"$lm" eval --model words other.txt --cache 0 --cache-theta 1 >/dev/null ||
    wrong "lm eval --cache 0 --cache-theta failed"
said 'read in order' "$lm" eval --model words --columns 2 --cache 5 other.txt
echo -n "" | said "no next token" "$lm" eval --model words -
said 'contains no text' "$lm" eval --model words empty.txt
said "no such file" "$lm" info nowhere
"$build/bin/gpt" train --quiet --text text.txt --size tiny --dim 32 --layers 1 --steps 2 --out gpt >/dev/null
said 'not a recurrent one' "$lm" info gpt
exit $wrong
