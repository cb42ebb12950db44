#!/usr/bin/env bash
# The program translate: a small demonstration, translation with every kind of model, interrupted and resumed runs,
# scores, and error messages.
. "$(dirname "$0")/common.sh"
fresh translate
translate=$build/bin/translate

"$translate" demo --quiet --out demo --steps 30 --pairs 400 --asked 20 >last.txt || wrong "translate demo failed"
"$translate" demo --quiet --out demo --pairs 400 --asked 20 --resume | cut -d' ' -f4- |
    cmp -s - <(tail -n 1 last.txt | cut -d' ' -f4-) || wrong "translate demo --resume has another number of steps"
[ "$(grep -c '<svg' demo/align.html)" = 4 ] || wrong "translate demo shows no four alignments"
tail -n 1 last.txt |
    grep -qE '^After [0-9.]+ minutes the model converts [0-9.]+ % of unseen dates without an error.$' ||
    wrong "translate demo ends with: $(tail -n 1 last.txt)"

printf '3 May 2019\n\nle 3 mai 2019\r\n5.6.21' >lines.txt
train=("$translate" train --quiet --src demo/dates.txt --tgt demo/dates.iso --dim 32 --layers 1 --vocab-size 300)
for kind in transformer bahdanau luong rnn convs2s bytenet gnmt; do
    "${train[@]}" --model $kind --size tiny --steps 12 --tokens 400 --out $kind >/dev/null ||
        wrong "train --model $kind failed"
    "$translate" run --model $kind --beam 1 --longest 14 <lines.txt >one.txt || wrong "run --model $kind failed"
    "$translate" run --model $kind --beam 1 --longest 14 --batch 1 --threads 2 <lines.txt >other.txt
    cmp one.txt other.txt || wrong "$kind: another batch and number of threads change the translation"
    "$translate" run --model $kind --beam 1 --longest 14 --dtype int8 <lines.txt >one8.txt &&
        "$translate" run --model $kind --beam 1 --longest 14 --dtype int8 --batch 1 --threads 2 <lines.txt |
        cmp one8.txt - || wrong "$kind in int8: another batch and number of threads change the translation"
    [ "$(wc -l <one.txt)" = 4 ] || wrong "$kind: four lines became $(wc -l <one.txt)"
done
# A folder's tokenizer adds </s> to a text, also one that --vocab names; a translation does not depend on that.
ends() { "$build/bin/tokenize" encode --special --pieces --model "$1" <<<"3 May" | grep -q '</s>$'; }
ends transformer || wrong "the tokenizer of translate train does not add </s>"
cp -r transformer plain
sed -i 's/"type": "TemplateProcessing"/"type": "ByteLevel"/' plain/tokenizer.json && rm plain/SHA256SUMS
! ends plain || wrong "the plain tokenizer adds </s>"
"$translate" run --model plain --beam 1 --longest 14 <lines.txt |
    cmp - <("$translate" run --model transformer --beam 1 --longest 14 <lines.txt) ||
    wrong "run: the tokenizer's template changes a translation"
"${train[@]:0:7}" --vocab plain --dim 32 --layers 1 --size tiny --steps 2 --tokens 400 --out named >/dev/null &&
    ends named || wrong "train --vocab: the tokenizer of the model does not add </s>"
[ "$("$translate" run --model transformer --beam 3 --top 2 --longest 14 <lines.txt | wc -l)" = 8 ] ||
    wrong "run --top 2 does not print two lines for each"
# Several models decode together: one model twice is that model, two kinds are another one; all need the same tokens.
together() { "$translate" run --longest 14 --scores --model "$@" <lines.txt; }
together transformer | cmp - <(together transformer transformer) || wrong "run: a model twice is another model"
together transformer bahdanau | cmp - <(together transformer --model bahdanau) ||
    wrong "run: --model twice is not --model with two folders"
! together transformer bahdanau | cmp -s - <(together transformer) || wrong "run: the second model changes nothing"
"${train[@]/300/290}" --size tiny --steps 1 --tokens 400 --out fewer >/dev/null
says 1 "have different tokens" "$translate" run --model transformer fewer
says 2 "--shortlist is for one model" "$translate" run --model transformer bahdanau --shortlist
# A model of bytes has no unknown token to copy; tests/project/lectures.sh copies words.
together luong | cmp - <(together luong --copy-unknown) ||
    wrong "run --copy-unknown changes a text without unknown tokens"
says 7 "--copy-unknown is for models of 'translate train', but this one is of type 'marian'" \
    "$translate" run --model "$root/tests/golden/encoder_decoders/marian_tokens" --copy-unknown
# GNMT's penalties change the ranks: with alpha 0 and without coverage they are the sums.
ranks() { "$translate" run --model "$1" --beam 3 --top 3 --longest 4 "${@:2}" <lines.txt | cut -f 2; }
for kind in transformer bahdanau luong convs2s gnmt; do
    ranks $kind --length-penalty 0 | cmp - <(ranks $kind --length-penalty 0 --gnmt) ||
        wrong "$kind: alpha 0 ranks otherwise"
    ! ranks $kind --gnmt | cmp -s - <(ranks $kind) && ! ranks $kind --coverage 0.2 | cmp -s - <(ranks $kind) ||
        wrong "$kind: --gnmt or --coverage changes no rank"
done
! "$translate" run --model rnn --coverage 0.2 <lines.txt >out.txt 2>err.txt &&
    grep -q 'this model has no attention to its source' err.txt || wrong "run --model rnn --coverage: $(cat err.txt)"
says 2 "--coverage ranks the texts of a beam search" "$translate" run --model luong --beam 1 --coverage 0.2
says 5 "create it with 'translate lexicon'" "$translate" run --model transformer --shortlist
"$translate" lexicon --model transformer --src demo/dates.txt --tgt demo/dates.iso --each 5 --frequent 40 ||
    wrong "translate lexicon failed"
cp transformer/shortlist.safetensors rnn/
for kind in transformer rnn; do
    for beam in 1 3; do
        "$translate" run --model $kind --beam $beam --longest 14 --shortlist <lines.txt >one.txt ||
            wrong "run --model $kind --shortlist failed"
        [ "$(wc -l <one.txt)" = 4 ] || wrong "run --shortlist --beam $beam: four lines became $(wc -l <one.txt)"
    done
done
says 3 "line i of one must be" "$translate" lexicon --model bahdanau --src demo/dates.txt --tgt lines.txt
head -c 200 transformer/shortlist.safetensors >rnn/shortlist.safetensors
says 3 "shortlist.safetensors" "$translate" run --model rnn --shortlist
says 7 "short lists are for models of 'translate train', but this one is of type 'marian'" \
    "$translate" run --model "$root/tests/golden/encoder_decoders/marian_tokens" --shortlist
"$build/bin/look" align --model transformer --html look.html "3 May 2019" >/dev/null && grep -q '<svg' look.html &&
    grep -q '>␣' look.html || wrong "look align makes no picture, or blanks cannot be seen in it"
"$build/bin/look" align --model bahdanau --html look.html "3 May 2019" >/dev/null && grep -q '<svg' look.html ||
    wrong "look align makes no picture of a recurrent model"
says 1 "has no attention" "$build/bin/look" align --model rnn --html none.html "3 May 2019"
says 1 "has no attention" "$build/bin/look" align --model bytenet --html none.html "3 May 2019"
"$build/bin/look" align --model convs2s --html look.html "3 May 2019" >/dev/null && grep -q '<svg' look.html ||
    wrong "look align makes no picture of a convolutional model"

"$translate" score --json --ref demo/dates.iso <demo/dates.iso | grep -q '"bleu":100' || wrong "a text is not itself"
# As in sacreBLEU: each --ref takes one file, so that the file to score may follow; TER ignores case, chrF does not, and
# --lowercase affects only BLEU. The values are those of sacreBLEU 2.5.1.
printf 'Ein Haus\nthe cat sat on the mat\na b c\n' >said.txt
printf 'ein Haus\nthe cat is on the mat\na b d e\n' >people.txt
[ "$("$translate" score --sentence --ref people.txt said.txt | cut -f 1 | paste -sd' ')" = "50.00 37.99 39.43" ] ||
    wrong "score --sentence: $("$translate" score --sentence --ref people.txt said.txt)"
[ "$("$translate" score --sentence --ref people.txt said.txt | cut -f 4 | paste -sd' ')" = "0.00 16.67 50.00" ] ||
    wrong "score --sentence, TER: $("$translate" score --sentence --ref people.txt said.txt | cut -f 4)"
"$translate" score --json --ter-case-sensitive --ref people.txt said.txt | grep -q '"ter":33.3333' ||
    wrong "score --ter-case-sensitive: $("$translate" score --json --ter-case-sensitive --ref people.txt said.txt)"
cut_out() { "$translate" score --json "$@" --ref people.txt said.txt | grep -o '"chrf":[0-9.]*'; }
[ "$(cut_out)" = "$(cut_out --lowercase)" ] && [ "$(cut_out)" != "$(cut_out --chrf-lowercase)" ] ||
    wrong "score --lowercase lowers chrF, or --chrf-lowercase does not"
head -n 3 demo/dates.iso >short.txt
says 3 "'short.txt' has 3 lines, the translations 400; line i of one must belong to line i of the other" \
    "$translate" score demo/dates.iso --ref short.txt

# Generated pairs are the same in each run, and held-out days are in no other file.
"$translate" sample-pairs --src a.txt --tgt a.iso --lines 300 --length 2
"$translate" sample-pairs --src b.txt --tgt b.iso --lines 300 --length 2
cmp a.txt b.txt && cmp a.iso b.iso || wrong "sample-pairs is not the same twice"
grep -qvE '^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{4}-[0-9]{2}-[0-9]{2}$' a.iso && wrong "sample-pairs: odd dates"
"$translate" sample-pairs --src b.txt --tgt b.iso --lines 300 --held
[ -z "$(comm -12 <(tr ' ' '\n' <a.iso | sort -u) <(sort -u b.iso))" ] ||
    wrong "sample-pairs: held dates are not held out"
"$translate" sample-pairs --src a.txt --tgt b.txt --lines 9 --length 7 --task reverse
rev a.txt | cmp - b.txt || wrong "sample-pairs --task reverse does not reverse"

"$translate" run --model transformer --beam 3 --top 2 --longest 14 --json <lines.txt >json.txt
"$translate" run --model transformer --beam 3 --top 2 --longest 14 <lines.txt | cut -f2 |
    cmp - <(grep -o '"score":[-0-9.e]*' json.txt | awk -F: '{ printf "%.4f\n", $2 }') ||
    wrong "translate run --json has other scores"
[ "$(wc -l <json.txt)" = 4 ] || wrong "translate run --json is not a line for each line"
"$translate" info transformer | grep -q '^kind        transformer$' &&
    "$translate" info rnn | grep -q '^cells       GRU' && "$translate" info gnmt | grep -q '^cells       LSTM' &&
    "$translate" info bytenet | grep -q '^windows     5 tokens in the encoder, 3 in the decoder$' ||
    wrong "translate info shows: $("$translate" info transformer)"

# Models of transformers: translations as there (tests/golden/encoder_decoders.py), greedily and with the beams of
# generation_config.json.
theirs=$root/tests/golden/encoder_decoders
for name in marian_tokens m2m_tokens; do
    "$translate" run --model "$theirs/$name" --beam 1 <"$theirs/lines.txt" | sed -E 's/ +/ /g; s/^ | $//g' |
        diff - "$theirs/$name.beams1" || wrong "$name: other greedy translations"
    "$translate" run --model "$theirs/$name" --batch 3 <"$theirs/lines.txt" | sed -E 's/ +/ /g; s/^ | $//g' |
        diff - "$theirs/$name.beams4" || wrong "$name: other translations with 4 beams"
done
"$translate" info "$theirs/marian_tokens" | grep -q '^kind        transformer (marian)$' ||
    wrong "translate info of Marian"
"$translate" run --model "$theirs/m2m_tokens" --from fr --to de <"$theirs/lines.txt" | sed -E 's/ +/ /g; s/^ | $//g' |
    diff - "$theirs/m2m_tokens.beams4" || wrong "--from and --to with the folder's own languages change translations"
says 1 "the tokenizer has no language 'xx'" "$translate" run --model "$theirs/m2m_tokens" --to xx

# The comparison: all results except the times depend only on the seed, not on the number of threads.
for task in copy reverse dates; do
    "$translate" compare --quiet --quick --steps 40 --task $task --out compare >one.txt ||
        wrong "compare --task $task failed"
    [ "$(awk 'NR > 2 { print $1 }' one.txt | paste -sd' ')" = "rnn bahdanau transformer" ] &&
        [ "$(grep -c 'role="img"' compare/report.html)" = 5 ] || wrong "compare --task $task: $(cat one.txt)"
done
"$translate" compare --quiet --quick --steps 40 --task dates --threads 2 --out compare >two.txt
diff <(sed -E 's/ +[0-9.]+ +[0-9]+$//' one.txt) <(sed -E 's/ +[0-9.]+ +[0-9]+$//' two.txt) ||
    wrong "translate compare is not the same twice"
"$translate" compare --quiet --quick --task copy --lengths 3 --steps 400 >one.txt || wrong "compare --lengths 3 failed"
awk '$1 == "bahdanau" && $2 > 0.9 { good = 1 } END { exit !good }' one.txt ||
    wrong "attention does not learn to copy three letters: $(cat one.txt)"
says 2 "--lengths needs at most 16 increasing integers from 1 to 100, such as 5,10,20,40, got '5,5'" \
    "$translate" compare --lengths 5,5
for command in compare "demo --out both"; do # shellcheck disable=SC2086
    says 2 "--steps and --minutes exclude each other" "$translate" $command --steps 3 --minutes 3
done
says 2 "--dim needs a multiple of 4, got '6'" "$translate" compare --quick --dim 6
[ ! -e both ] || wrong "translate demo leaves a folder behind where its options are wrong"
"$translate" compare --quiet --quick --steps 1 --lengths 2 --out compare >one.txt
"$translate" compare --quiet --quick --steps 1 --lengths 2 --out compare --dim 16 --asked 3 >two.txt
! cmp -s <(cut -c 1-30 one.txt) <(cut -c 1-30 two.txt) || wrong "compare --quick does not heed --dim: $(cat one.txt)"
pairs=("$translate" sample-pairs --src new.txt)
says 2 "--held is for --task dates" "${pairs[@]}" --tgt new.iso --task copy --held
says 2 "--src and --tgt are both 'new.txt'" "${pairs[@]}" --tgt ./new.txt
[ ! -e new.txt ] || wrong "translate sample-pairs writes in spite of its mistake"

# A run that is stopped and resumed ends with the same bits, also if BLEU selects the best model and if the last
# checkpoints are averaged.
head -n 30 demo/dates.txt >valid.txt
head -n 30 demo/dates.iso >valid.iso
valid=(--valid-src valid.txt --valid-tgt valid.iso --valid-every 4)
train+=(--size tiny --tokens 400)
stopped() # NAME OPTION...: the model NAME in one go, NAME.parts in two
{
    local name=$1
    shift
    "${train[@]}" "$@" --out "$name" >"$name.txt" || wrong "translate train $* failed"
    "${train[@]}" "$@" --out "$name.parts" >/dev/null 2>&1 &
    while [ ! -e "$name.parts/checkpoints" ] && kill -0 $! 2>/dev/null; do sleep 0.05; done
    kill -INT $! 2>/dev/null || true # it may have ended
    wait $! || true
    "$translate" train --quiet --out "$name.parts" --resume >/dev/null || wrong "translate train $* --resume failed"
    same_folder "$name" "$name.parts" || wrong "$*: a resumed run ends with other bits"
}
stopped whole --steps 40
stopped bleu --steps 40 "${valid[@]}" --stop-on bleu
stopped mean --steps 24 "${valid[@]}" --average 3
for kind in convs2s bytenet gnmt; do stopped $kind.whole --model $kind --layers 2 --steps 20; done
grep -qE 'best on validation BLEU [0-9.]+ at step [0-9]+$' bleu.txt || wrong "train --stop-on bleu says $(cat bleu.txt)"
grep -q '"valid/score":' bleu/log.jsonl || wrong "train --stop-on bleu keeps no record of BLEU"
grep -q '<figcaption>BLEU' bleu/report.html || wrong "train --stop-on bleu has no curve of BLEU"

# The best model is the one with the highest BLEU; --patience ends a run without improvement.
"$translate" average --quiet --out best bleu/checkpoints/best.safetensors >/dev/null
cmp best/model.safetensors bleu/model.safetensors || wrong "a run by BLEU does not end with its best weights"
"${train[@]}" --steps 400 "${valid[@]}" --patience 2 --lr 1e-9 --stop-on bleu --out patient 2>&1 | grep -q 'step 12,' ||
    wrong "patience of 2 with a validation every 4 steps does not end a run that stands still at step 12"

# The mean of checkpoints and of models.
"$translate" average --out again mean/checkpoints >/dev/null || wrong "translate average failed"
cmp again/model.safetensors mean/model.safetensors || wrong "train --average 3 is not the mean of its checkpoints"
"$translate" average --out two mean best >two.txt && [ "$(wc -l <two.txt)" = 3 ] || wrong "no mean of two models"
! cmp -s two/model.safetensors best/model.safetensors || wrong "the mean of two models is one of them"
says 1 "'two' already contains a model; choose another --out" "$translate" average --out two best
says 1 "'demo' contains no weights; name a model's folder" "$translate" average --out none demo
says 3 "holds another model" "$translate" average --out none mean demo/model
says 2 "FROM..." "$translate" average --out none
says 2 "--last is for folders of checkpoints" "$translate" average --out none --last 2 mean best
[ ! -e none ] || wrong "translate average leaves a folder behind after an error"

# A run resumes only with its own texts.
tac demo/dates.iso >turned.iso && tac valid.txt >turned.txt
says 1 "--tgt is 'demo/dates.iso' in the run, 'turned.iso' here" "${train[@]}" --out whole --resume --tgt turned.iso
says 1 "--valid-src is 'valid.txt' in the run, 'turned.txt' here" \
    "${train[@]}" "${valid[@]}" --stop-on bleu --out bleu --resume --valid-src turned.txt

# Errors are reported before anything is written, and name a remedy.
says 1 "'whole' already contains a model; choose another folder" "${train[@]}" --out whole
says 2 "--valid-src needs --valid-tgt" "${train[@]}" --valid-src lines.txt --out other
says 2 "--valid-tgt needs --valid-src" "${train[@]}" --valid-tgt lines.txt --out other
says 2 "--stop-on bleu needs a validation set: --valid-src and --valid-tgt" "${train[@]}" --stop-on bleu --out other
says 2 "--patience needs a validation set: --valid-src and --valid-tgt" "${train[@]}" --patience 3 --out other
says 2 "--lstm is for --model rnn, bahdanau and luong" "${train[@]}" --lstm --out other
says 2 "--lstm is for --model rnn, bahdanau and luong" "${train[@]}" --model gnmt --lstm --out other
says 2 "--heads is for --model transformer; bytenet is a convolutional network" \
    "${train[@]}" --model bytenet --heads 2 --out other
says 2 "--norm-first is for --model transformer; luong is" "${train[@]}" --model luong --norm-first --out other
says 2 "--heads is for --model transformer; rnn is" "${train[@]}" --model rnn --heads 2 --out other
says 2 "a width of 32 is not divisible by 3 heads" "${train[@]}" --heads 3 --out other
says 2 "--size must be one of nano|tiny|small|base|big, got 'huge'" "${train[@]}" --size huge --out other
says 2 "--vocab-size needs at least 260 tokens (256 bytes and 4 special tokens), got 20" \
    "${train[@]}" --vocab-size 20 --out other
cp whole/model.safetensors weights
says 1 "does not contain an HTML page" "$build/bin/look" align --model whole --html whole/model.safetensors "3 May 2019"
cmp weights whole/model.safetensors || wrong "look align --html writes over the weights"
says 5 "nowhere" "$translate" run --model nowhere
one=("$translate" train --steps 1 --size tiny --dim 32 --layers 1 --out other)
says 3 "'demo/dates.txt': the file has 400 lines, but its counterpart 'short.txt' ends after line 3; line i of one" \
    "${one[@]}" --src demo/dates.txt --tgt short.txt
says 3 "'short.txt' ends after line 3" \
    "${one[@]}" --src demo/dates.txt --tgt demo/dates.iso --valid-src short.txt --valid-tgt valid.iso
printf 'caf\xe9\n' | cat short.txt - >latin1.txt
head -n 4 demo/dates.iso >four.txt
says 3 "'latin1.txt': line 4 is not UTF-8: its byte 4 is 0xe9; convert it" \
    "${one[@]}" --src latin1.txt --tgt four.txt
printf '\n\n\n' >empty.txt
says 3 "'empty.txt' and 'short.txt' have no pair of lines without an empty line" \
    "${one[@]}" --src empty.txt --tgt short.txt
[ ! -e other ] || wrong "translate train leaves a folder behind where its files are wrong"
printf 'a\n\nb\n\n' >gaps.txt
says 0 "skipped: 2 pairs with an empty line; the first is line 2" \
    "${one[@]}" --no-progress --src gaps.txt --tgt four.txt
# A validation line that exceeds the model's positions is skipped.
head -c 3000 /dev/zero | tr '\0' z | cat four.txt - >long.txt
says 0 "skipped in validation: 1 pair longer than the model's 1024 positions" \
    "${one[@]}" --no-progress --src four.txt --tgt four.txt --valid-src long.txt --valid-tgt long.txt --out long
says 3 "'four.txt' and 'four.txt' have no pair of lines of at most 1 token" \
    "${one[@]}" --no-progress --src four.txt --tgt four.txt --longest 1 --out none
"$build/bin/bert" demo --quiet --out bert --steps 1 --documents 40 --probes 1 >/dev/null || wrong "bert demo failed"
says 3 "of this tokenizer is not <pad>; translate needs <pad>, <unk>, <s> and </s> as its first tokens" \
    "${one[@]}" --src short.txt --tgt short.txt --vocab bert/model --out odd
says 7 "'bert/model/config.json': model_type is 'roberta-prelayernorm'; supported: 'tenon-seq2seq'" \
    "$translate" run --model bert/model

# Unusual lines keep their position: empty lines, unseen symbols, too long lines, invalid UTF-8, NULs.
{
    printf '3 May\n\n  \n\xf0\x9f\x98\x80 \xe6\x97\xa5\xe6\x9c\xac\ncaf\xe9\n'
    head -c 3000 /dev/zero | tr '\0' z
    printf '\n\0\n'
    head -c 2000 /dev/zero | tr '\0' q
} >odd.txt
run=("$translate" run --model transformer --beam 1 --longest 6)
"${run[@]}" <odd.txt >odd.out 2>odd.err || wrong "translate run fails for odd lines: $(cat odd.err)"
[ "$(wc -l <odd.out)" = 8 ] || wrong "8 odd lines became $(wc -l <odd.out)"
[ -z "$(sed -n 2,3p odd.out)" ] || wrong "an empty line does not stay empty: $(sed -n 2,3p odd.out)"
printf '%s\n' \
    "warning: 2 lines were longer than the model's positions and truncated; the first is line 6" \
    "warning: 1 line is not UTF-8; invalid bytes were read as U+FFFD; the first is line 5" |
    diff - odd.err || wrong "translate run warns otherwise of odd lines"
[ "$("${run[@]}" --quiet <odd.txt 2>&1 >/dev/null | grep -c '^warning: ')" = 2 ] ||
    wrong "translate run --quiet hides warnings"
rc=0
"${run[@]}" --strict-utf8 <odd.txt >/dev/null 2>odd.err || rc=$?
[ $rc = 3 ] && grep -qF 'line 5 is not UTF-8; convert it' odd.err || wrong "run --strict-utf8: $rc, $(cat odd.err)"
# A translation does not depend on other lines of the batch; the maximum length depends only on the line.
{
    printf '3 May\n7 June 2011\n'
    for i in $(seq 40); do printf 'x%.0s' $(seq "$i") && echo; done
} >lengths.txt
"$translate" run --model transformer --beam 1 --batch 1 <lengths.txt >alone.txt
"$translate" run --model transformer --beam 1 --batch 64 <lengths.txt | cmp - alone.txt ||
    wrong "a greedy translation depends on the lines beside it"
for batch in "--batch 1" "--batch 7" "--tokens 1" "--tokens 50" "--tokens 5000"; do # shellcheck disable=SC2086
    "$translate" run --model transformer $batch --scores --top 2 --longest 14 <lengths.txt >beams.txt
    "$translate" run --model transformer --threads 1 --scores --top 2 --longest 14 <lengths.txt | cmp - beams.txt ||
        wrong "run $batch: other batches change the translations of a beam search"
done
"$translate" run --model transformer --early-stopping --scores --top 5 --longest 14 <lengths.txt >early.txt
"$translate" run --model transformer --early-stopping --scores --top 5 --longest 14 --tokens 9 <lengths.txt |
    cmp - early.txt || wrong "run --early-stopping: other batches change the translations"
rc=0
head -c 1100000 /dev/zero | tr '\0' x | "${run[@]}" >/dev/null 2>long.err || rc=$?
[ $rc = 3 ] && grep -qF 'a line has 1100000 bytes, the maximum is 1048576; split it' long.err ||
    wrong "a line of a megabyte: $rc, $(cat long.err)"
"${run[@]}" --scores --batch 1 < <(yes x | head -n 40) | cut -f 1 | diff - <(seq 0 39) ||
    wrong "run --scores misnumbers"

# Started with closed standard streams, a program writes no message to one of its files.
"$translate" sample-pairs --src few.txt --tgt few.iso --lines 60 --length 5 --task reverse
bash -c "'$translate' train --verbose --steps 3 --size tiny --dim 32 --layers 1 --out closed \
    --src few.txt --tgt few.iso 1>&- 2>&-" || wrong "translate train fails where its standard streams are closed"
findings < <(grep -v '^{' closed/log.jsonl | sed 's/^/in log.jsonl: /')

# When the reader closes the pipe, SIGPIPE ends the program silently, whether or not its parent ignores SIGPIPE.
for heed in - ''; do
    set +e
    yes 3 May | head -n 3000 | (trap "$heed" PIPE && exec "${run[@]}" --batch 1 2>pipe.err) | head -n 1 >pipe.out
    code=${PIPESTATUS[2]}
    set -e
    [ "$code" = 141 ] && [ ! -s pipe.err ] && [ "$(wc -l <pipe.out)" = 1 ] ||
        wrong "a broken pipe: exit code $code, $(cat pipe.err)"
done
exit $wrong
