#!/usr/bin/env bash
# The program vectors: the lines that it prints, the same file for any number of threads, conversion between all
# formats, and wrong input, which gives the expected exit code and message.
. "$(dirname "$0")/../../../tests/project/common.sh"
fresh vectors
v=$build/bin/vectors
[ -x "$v" ] || { echo "SKIPPED: the programs are not built" && exit 77; }

awk 'BEGIN { srand(7); for (i = 0; i < 24000; i++) {
    if (rand() < 0.06) topic = int(rand() * 16)
    printf "t%dw%d%s", topic, int(rand() * 130), rand() < 0.05 ? "\n" : " " } }' >text

# ends CODE WORDS COMMAND...: checks the exit code, and that standard error contains WORDS
ends()
{
    local code=$1 words=$2 got=0
    shift 2
    "$@" </dev/null >out 2>err || got=$?
    [ $got = "$code" ] && grep -q -- "$words" err || wrong "'$*' ends with $got, not $code, and says: $(cat err)"
}

for kind in skipgram cbow glove fasttext; do
    more=(--negatives 5 --sample 1e-2)
    [ $kind != fasttext ] || more+=(--buckets 5000)
    [ $kind != glove ] || more=()
    for threads in 1 $([ $kind = skipgram ] && echo 2 7) 3; do
        "$v" train --text text --out $kind.$threads --kind $kind --dim 20 --window 5 --epochs 1 \
            --min-count 2 "${more[@]}" --threads $threads --seed 3 >line 2>err || wrong "$kind: $(cat err)"
        grep -qE '^words [0-9]+ seconds [0-9.]+ rate [0-9]+$' line || wrong "$kind: it ends with '$(cat line)'"
        cmp -s $kind.1 $kind.$threads || wrong "$kind: another file with $threads threads than with 1"
    done
done

# Several epochs: the same bits with other threads.
for kind in skipgram glove; do
    for threads in 1 2; do
        "$v" train --text text --out proof.$threads --kind $kind --dim 20 --epochs 3 --min-count 2 --force -q \
            --threads $threads >line || wrong "$kind, 3 epochs"
    done
    cmp -s proof.1 proof.2 || wrong "$kind, 3 epochs: another file with 2 threads than with 1"
done

"$v" train --text text --out exact.vec --loss softmax --kind cbow --dim 8 --sample 0 --epochs 1 -q >line ||
    wrong "softmax does not end well"
never=("$v" train --text text --out never)
for loss in nce hierarchical softmax; do
    ends 2 '--loss is for the other kinds; glove trains on counts' "${never[@]}" --kind glove --loss $loss
done
ends 5 "cannot write 'no/v.vec': the folder 'no/' does not exist" "$v" train --text text --out no/v.vec --kind glove
! grep -q 'train:' err || wrong "vectors train learns what it cannot write"
ends 5 "the folder 'no/' does not exist" "${never[@]}" --checkpoint no/c
ends 1 "is a folder, expected a file" "$v" train --text text --out . --force
ends 1 "the name of the file is empty" "$v" phrases --text text --out ''
ends 2 '--x-max is for --kind glove' "${never[@]}" --x-max 9
ends 2 '--negatives is for the other kinds; glove trains on counts' "${never[@]}" --kind glove --negatives 9
ends 2 '--sample is for the other kinds; glove trains on counts' "${never[@]}" --kind glove --sample 0.1
ends 2 '--negatives is for --loss negative and nce' "${never[@]}" --loss softmax --negatives 9
for option in min-n max-n buckets; do
    ends 2 "--$option is for --kind fasttext" "${never[@]}" --kind cbow --$option 4
done
"$v" train --text text --out more.vec --dim 20 --sample 0 --epochs 8 --lr 0.1 --seed 3 -q >line
near=$("$v" neighbours --vectors more.vec -k 5 t3w1 | grep -c ^t3w)
[ "$near" -ge 4 ] || wrong "only $near of the five words nearest to t3w1 are of its topic"
printf 't1w1\tt1w2\t9\nt1w3 t1w4 8\nt1w1 t5w2 1\nt2w5 t7w7 2\nnever seen 4\n' >pairs
"$v" similarity --vectors more.vec pairs >line
grep -qE '^spearman (0\.[6-9]|1\.0)[0-9]* pairs 4 missing 1$' line || wrong "similarity says '$(cat line)'"
printf ': topics\nt1w1 t1w2 t1w3 t1w4\nno such word here\n' >questions
for how in '' --product; do
    "$v" analogy --vectors more.vec $how questions >line
    grep -qE '^accuracy [0-9.]+ % of 1 questions$' line || wrong "analogy says '$(cat line)'"
done
[ "$("$v" analogy --vectors more.vec -k 3 t1w1 t1w2 t1w3 | wc -l)" = 3 ] || wrong "an analogy has not three answers"
[ "$(printf 't1w1 t1w2\n\nnever\n' | "$v" sentence --vectors more.vec --sif 0.001 | awk 'NF == 20' | wc -l)" = 3 ] ||
    wrong "sentence does not give 20 numbers a line"

# Two lines of each topic, without common words: a line must be nearest to the other line of its topic.
for t in 1 2 3 4; do echo "t${t}w1 t${t}w2" >>one; echo "t${t}w3 t${t}w4" >>same; done
"$v" paraphrases --vectors more.vec one same >line
[ "$(cat line)" = 'nearer 1.0000 first 1.0000 lines 4' ] || wrong "paraphrases says '$(cat line)'"
awk '{ print $2, $1 }' one | tac >back
"$v" paraphrases --vectors more.vec one back >line
awk '{ exit !($2 < 0.5 && $4 == 0) }' line || wrong "lines in the wrong order are paraphrases: '$(cat line)'"
echo none >>same
ends 1 "'one' has 4 lines and 'same' 5" "$v" paraphrases --vectors more.vec one same
echo t1w1 >none
ends 1 "'none' has 1 line; at least 2 are needed" "$v" paraphrases --vectors more.vec none none
ends 2 'neither --vectors nor --model is given' "$v" paraphrases one same

"$v" train --text text --out model.bin --format fasttext --kind fasttext --dim 8 --buckets 500 --epochs 1 -q >line
"$v" convert --vectors model.bin -q model.vec
"$v" convert --vectors model.bin -q --to fasttext again.bin
cmp -s model.bin again.bin || wrong "a FastText model is not written as it was read"
[ "$(echo 't3w1unheard' | "$v" sentence --vectors model.bin | tr ' ' '\n' | grep -vc '^0')" -gt 0 ] ||
    wrong "a word that was never seen has no vector"
for form in text glove binary safetensors; do
    "$v" convert --vectors more.vec --to $form -q as.$form && "$v" convert --vectors as.$form -q $form.vec
    cmp -s more.vec $form.vec || wrong "$form: not the same numbers"
done

for way in pca tsne; do
    "$v" plot --vectors more.vec --out $way.svg --way $way --top 40 2>err || wrong "$way: $(cat err)"
    [ "$(grep -c '<circle' $way.svg)" = 40 ] || wrong "$way: the picture does not have 40 words"
done
ends 2 '--perplexity is for --way tsne' "$v" plot --vectors more.vec --out no.svg --way pca --perplexity 9
ends 2 '--seed is for --way tsne' "$v" plot --vectors more.vec --out no.svg --way pca --seed 9
ends 2 '--top is for plots without WORD operands' "$v" plot --vectors more.vec --out no.svg --top 9 t1w1 t1w2 t2w1
ends 2 '--top is for the form with three words' "$v" analogy --vectors more.vec --top 9 questions
"$v" plot --vectors more.vec --out words.html t1w1 t1w2 t2w1 && grep -q '>t2w1<' words.html &&
    [ "$(grep -cE 'data-n="[0-2] [0-9.-]+,[0-2] [0-9.-]+"' words.html)" = 3 ] || wrong "no page of words and neighbours"
"$v" project --vectors more.vec --out projector --top 50
[ "$(cat projector/metadata.tsv | wc -l)" = 50 ] && [ "$(awk -F'\t' 'NF == 20' projector/vectors.tsv | wc -l)" = 50 ] ||
    wrong "the projector's files do not have 50 words of 20 numbers"
ends 1 'already exists; name another file or use --force' "$v" train --text text --out more.vec
ends 3 'must give the number of words' "$v" similarity --vectors text --format text pairs
ends 5 'no such file' "$v" neighbours --vectors nowhere x
ends 2 'vectors' "$v" neighbours x
ends 1 "has no word 'never'" "$v" neighbours --vectors more.vec never
printf 'a b 1\na b\n' >broken
ends 3 'expected two words and a number' "$v" similarity --vectors more.vec broken
ends 3 'expected four words' "$v" analogy --vectors more.vec broken
ends 1 'have no n-grams' "$v" convert --vectors more.vec --to fasttext x.bin

# A run that was ended by a signal resumes to the same file; with other options or without a checkpoint it does not.
long="$v train --text text --kind cbow --dim 20 --min-count 2 --epochs 40 --no-progress"
$long --out undisturbed -q >line
$long --out ended --checkpoint saved >line 2>err &
while [ ! -e saved ] && kill -0 $! 2>/dev/null; do sleep 0.01; done
kill -INT $! 2>/dev/null || true
wait $! && wrong "a run ended by a signal ends well"
grep -q 'vectors train --checkpoint saved --resume continues' err || wrong "an ended run says: $(cat err)"
[ -e saved ] && [ ! -e ended ] || wrong "an ended run leaves no checkpoint, or vectors"
ends 1 'already contains a run; continue it with --resume' $long --out ended --checkpoint saved
ends 1 '--window is 5 in the run, 4 here' $long --out ended --checkpoint saved --resume --window 4
ends 1 "--text is 'text' in the run, 'pairs' here" $v train --checkpoint saved --resume --text pairs
cp saved kept
printf 'x' | dd of=kept bs=1 seek=2000 conv=notrunc status=none
ends 3 "'kept' is damaged" $long --out ended --checkpoint kept --resume
$v train --checkpoint saved --resume --threads 1 -q >line
cmp -s undisturbed ended || wrong "a run that went on gives another file"
[ ! -e saved ] && [ ! -e saved.json ] || wrong "the checkpoint stays"
ends 1 "checkpoint 'saved' does not exist; omit --resume to start a new run" \
    $long --out again --checkpoint saved --resume
ends 2 '--resume needs --checkpoint' $long --out again --resume

# JSON: the same words and numbers as the lines.
"$v" neighbours --vectors more.vec -k 2 t1w1 t1w2 --json >line
[ "$(sed -n 's/{"of":\["\(t1w[12]\)"\],"words":\[{"word":.*/\1/p' line | paste -sd,)" = "t1w1,t1w2" ] &&
    [ "$(grep -o '"word":"[^"]*"' line | head -n 2 | cut -d'"' -f4)" = \
        "$("$v" neighbours --vectors more.vec -k 2 t1w1 | cut -f1)" ] || wrong "neighbours --json prints $(cat line)"
"$v" analogy --vectors more.vec --json questions | grep -qE '^\{"accuracy":[0-9.]+,"asked":1\}$' ||
    wrong "analogy --json"
"$v" info more.vec | grep -q '^dimension ' &&
    "$v" info more.vec --json | grep -qE '^\{"words":[0-9]+,"dimension":[0-9]+\}$' ||
    wrong "vectors info prints: $("$v" info more.vec)"
echo "t1w1 t1w2" | "$v" sentence --vectors more.vec >line
echo "t1w1 t1w2" | "$v" sentence --vectors more.vec --json | tr -d '[]' | tr , ' ' | cmp - line ||
    wrong "sentence --json"

# --out must be neither a text nor the checkpoint, which is deleted: under any name, also with --force.
ln text link
ln -s text soft
mkdir below
cp text untouched
for as in v.vec ./v.vec below/../v.vec "$PWD/v.vec"; do
    ends 2 'are one file' $long --out v.vec --checkpoint "$as"
done
for as in text ./text link soft; do
    ends 2 "is one of the texts, 'text'" $long --out "$as" --force
    ends 2 "is one of the texts, 'text'" $long --out v.vec --checkpoint "$as" --force
    ends 2 "is one of the texts, 'text'" "$v" phrases --text pairs text --out "$as" --force
done
cmp -s text untouched && [ ! -e v.vec ] || wrong "what was refused was written"
touch there again
ends 2 'are one file' $long --out there --checkpoint ./there --force
$long --epochs 1 --out there --checkpoint again --force -q >line && [ -s there ] && [ ! -e again ] ||
    wrong "--force does not replace a file and a checkpoint"

# Phrases of two words in one pass, of three words in two passes; and input that is not text.
awk 'BEGIN { srand(3); for (i = 0; i < 3000; i++) {
    printf "w%d ", int(rand() * 40); if (i % 20 == 7) printf "in new york city"; print "" } }' >told
"$v" phrases --text told --out joined --threshold 10 >line 2>err || wrong "phrases: $(cat err)"
grep -qxE 'words 3600 phrases [0-9]+ joined [0-9]+' line || wrong "phrases says '$(cat line)'"
[ "$(grep -c 'in_new york_city$' joined)" = 150 ] || wrong "phrases joins: $(grep -m 1 york joined)"
[ "$(tr '_' ' ' <joined | cmp - <(sed -E 's/ +$//; s/ +/ /g' told))" = '' ] || wrong "phrases changes more than blanks"
"$v" phrases --text told --out joined --force --threshold 10 --passes 2 -q >line
[ "$(grep -c 'in_new_york_city$' joined)" = 150 ] || wrong "two passes join: $(grep -m 1 york joined)"
[ -z "$(ls joined.pass* 2>/dev/null)" ] || wrong "a pass is left behind"
ends 1 'already exists; name another file or use --force' "$v" phrases --text told --out joined
printf 'a\0b' >nul && ends 3 'byte 1 is NUL; expected text' "$v" phrases --text nul --out never
: >empty && ends 3 'no words found' "$v" phrases --text empty --out never
[ ! -e never ] || wrong "phrases writes what it has refused"

# The table of a sentence: for two words with vectors (3, 4) and (4, 3) the cosine is 0.96, and the softmax of 24/√2 and
# 25/√2 gives 0.33.
printf 'ship 3 4\ncrew 4 3\n' >two
"$build/bin/sentence_attention" two "ship crew" 0 two.html >table
[ "$(awk '$1 == "ship" && NF == 3 { print $2, $3 }' table | paste -sd' ')" = "1.00 0.96 0.67 0.33" ] ||
    wrong "sentence_attention prints: $(cat table)"
grep -q '<svg' two.html || wrong "sentence_attention draws nothing"
ends 1 "'dog' has no vector in 'two'" "$build/bin/sentence_attention" two "ship dog"
exit $wrong
