#!/usr/bin/env bash
# bert tune as a user runs it: each task from its file to predictions, JSON output, a run that is interrupted or killed
# and resumes with the same bits, and bad files.
. "$(dirname "$0")/common.sh"
fresh tune
bert=$build/bin/bert

"$bert" sample-corpus --documents 40 >book.txt
"$bert" train --quiet --text book.txt --out small --size tiny --length 16 --steps 2 --batch 4 --vocab-size 300 \
    >/dev/null
grep -m 60 . book.txt | awk '{ print $0 "\t" (NR % 3 ? "x" : "y") }' >all.tsv
head -n 40 all.tsv >train.tsv && tail -n 20 all.tsv >test.tsv
tune=("$bert" tune --quiet --model small --epochs 2 --batch 4 --length 16 --seed 1)

# The commands that other programs call: the last line is JSON.
json() # FILE KEY...: the last line of FILE is an object with these numbers
{
    local key line
    line=$(tail -n 1 "$1")
    for key in "${@:2}"; do
        grep -qE "^\{.*\"$key\":-?[0-9.]+[,}]" <<<"$line" || wrong "bert tune ends without $key: $line"
    done
}
"$bert" tune classify --model small --train train.tsv --test test.tsv --out classes --epochs 1 --seed 1 --json \
    --predictions classes.jsonl \
    >classes.txt 2>/dev/null || wrong "bert tune classify failed"
json classes.txt accuracy f1 seconds
grep -q '"f1_of":"y"' classes.txt || wrong "F1 of another label than the second: $(cat classes.txt)"
grep -q "Wrong predictions" classes/test.html || wrong "bert tune shows no mistakes"
grep -qE '<p><b>[0-9.]+ %</b><span>accuracy on [0-9]+ examples; F1 [0-9.]+ %' classes/test.html &&
    grep -q '<dd>bert tune classify --model small' classes/test.html || wrong "bert tune's page has no summary"
wrongs=$(sed -n 's/.*<b class="x">.*<small>\([0-9]*\)%<.*/\1/p' classes/test.html)
[ "$wrongs" ] && sort -nrc <<<"$wrongs" || wrong "the mistakes are not sorted by confidence: $wrongs"
grep -q "Attention weights on the first" classes/test.html && [ "$(grep -c '<svg' classes/test.html)" -ge 2 ] ||
    wrong "bert tune shows no attention"
printf 'The\tDET\nman\tB-NAME\n\nman\tB-NAME\nsails\tO\n' >words.conll
"${tune[@]}" tag --train words.conll --test words.conll --out tags --predictions tags.jsonl --json >tags.txt ||
    wrong "bert tune tag failed"
json tags.txt accuracy f1 seconds
sed 's/B-NAME/NOUN/; s/O$/VERB/' words.conll >words.tsv # parts of speech: no entities, no F1
"${tune[@]}" tag --train words.tsv --test words.tsv --out speech --json >/dev/null || wrong "bert tune tag failed"
grep -qE '<p><b>[0-9.]+ %</b><span>accuracy on [0-9]+ examples' speech/test.html ||
    wrong "tags without F1 have no score"
"${tune[@]}" tag --crf --train words.conll --test words.conll --out chain --json >chain.txt ||
    wrong "bert tune tag --crf failed"
json chain.txt accuracy f1 seconds
[ "$("$bert" tag --model chain "The man" | wc -l)" = 3 ] || wrong "bert tag of a model with --crf"
"${tune[@]}" classify --lora 2 --train train.tsv --out adapted >/dev/null || wrong "bert tune --lora failed"
grep -q '"lr": 0.0005,' adapted/run.json || wrong "bert tune --lora does not learn at 10 times the rate"
"${tune[@]}" classify --lora 2 --lr 5e-5 --train train.tsv --out slow >/dev/null
grep -q '"lr": 5e-05,' slow/run.json || wrong "bert tune --lora learns at another rate than --lr"
[ -s adapted/adapter/adapter_model.safetensors ] || wrong "bert tune --lora keeps no adapter"
"${tune[@]}" classify --layer-rate 0.8 --thaw --parts 2 --train train.tsv --out paced >/dev/null ||
    wrong "bert tune --layer-rate --thaw failed"
"${tune[@]}" classify --train train.tsv --test test.tsv --out seeds --seeds 2 --json >seeds.txt ||
    wrong "bert tune --seeds failed"
json seeds.txt accuracy f1 seconds seeds
[ "$(grep -c '"f1_of":"y"' seeds.txt)" = 3 ] || wrong "bert tune --seeds: F1 of another label: $(cat seeds.txt)"
grep -q '"deviation":{"accuracy":' seeds.txt && [ -s seeds/seed-2/model.safetensors ] ||
    wrong "bert tune --seeds shows no deviation"
"${tune[@]}" classify --freeze 1 --train train.tsv --out frozen >/dev/null || wrong "bert tune --freeze failed"
cat >questions.json <<'END'
{"data": [{"paragraphs": [{"context": "The old man sails.", "qas": [{"id": "1", "question": "Who sails?",
"answers": [{"text": "The old man", "answer_start": 0}]}, {"id": "2", "question": "When?", "answers": [],
"is_impossible": true}]}]}]}
END
"${tune[@]}" answer --train questions.json --test questions.json --out spans --predictions spans.jsonl \
    --json >spans.txt ||
    wrong "bert tune answer failed"
json spans.txt em f1 seconds
printf 'sent1,sent2,ending0,ending1,label\nThe man,he,sails,"eats, too",1\nA ship,it,sails,reads,0\n' >ends.csv
"${tune[@]}" choose --train ends.csv --test ends.csv --out ends --predictions ends.jsonl --json >ends.txt ||
    wrong "bert tune choose failed"
json ends.txt accuracy seconds
awk -F'\t' '{ print $1 "\t" $1 "\t" NR % 5 / 4 }' train.tsv >numbers.tsv
"${tune[@]}" pairs --labels number --train numbers.tsv --test numbers.tsv --out numbers --predictions numbers.jsonl \
    --json >numbers.txt ||
    wrong "bert tune pairs --labels number failed"
json numbers.txt pearson spearman seconds
"${tune[@]}" pairs --labels number --train numbers.tsv --valid numbers.tsv --out judged >/dev/null
grep -q '"valid/score":-*[0-9]' judged/log.jsonl && [ -s judged/checkpoints/best.safetensors ] ||
    wrong "bert tune --labels number --valid keeps no best model: $(grep valid judged/log.jsonl)"

# --predictions: a line of JSON for each example, with the label that the model predicts for the text alone.
predicted() # NAME REGEX COUNT
{
    [ "$(wc -l <"$1.jsonl")" = "$3" ] && [ "$(grep -cE "$2" "$1.jsonl")" = "$3" ] ||
        wrong "--predictions of $1: $(head -n 2 "$1.jsonl")"
}
predicted classes '^\{"text":".*","label":"[xy]","predicted":"[xy]","probability":[01](\.[0-9]+)?\}$' 20
diff <(sed 's/.*"predicted":"\(.\)".*/\1/' classes.jsonl) \
    <(cut -f1 test.tsv | "$bert" classify --model classes | cut -f1) || wrong "--predictions are not those of classify"
predicted tags '^\{"text":\[.*\],"label":\[.*\],"predicted":\[.*\]\}$' 2
predicted spans '^\{"id":"[12]","text":".*","label":\[.*\],"predicted":".*","probability":' 2
predicted ends '^\{"text":".*","label":[01],"predicted":[01],"probability":' 2
predicted numbers '^\{"text":".*","pair":".*","label":[0-9.]+,"predicted":-?[0-9.e-]+\}$' "$(wc -l <numbers.tsv)"
says 2 "--predictions are those for --test" "${tune[@]}" classify --train train.tsv --out x --predictions p
says 5 "cannot write 'no/p': the folder 'no/' does not exist" \
    "${tune[@]}" classify --train train.tsv --test test.tsv --out x --predictions no/p

"${tune[@]}" classify --train train.tsv --test train.tsv --out same >/dev/null 2>err.txt
grep -q "^warning: 'train.tsv' is both --train and --test: the result says nothing about texts" err.txt ||
    wrong "no warning of a test on the training texts: $(cat err.txt)"
"${tune[@]}" classify --train train.tsv --test test.tsv --out other >/dev/null 2>err.txt
! grep -q "is both" err.txt || wrong "a warning of two files: $(cat err.txt)"
printf 'a\nM\344dchen\n' | "$bert" classify --model classes --quiet 2>&1 >/dev/null |
    grep -q '^warning: 1 line is not UTF-8, the first is line 2; convert it' || wrong "no warning of Latin-1 texts"
printf 'M\344dchen [MASK]\n' | "$bert" fill --model small 2>&1 >/dev/null |
    grep -q '^warning: 1 line is not UTF-8, the first is line 1' || wrong "bert fill: no warning of a Latin-1 text"

# Predictions: one line for each line.
[ "$(cut -f1 test.tsv | "$bert" classify --model classes | grep -cE '^[xy]	[01]\.')" = 20 ] || wrong "bert classify"
cut -f1 test.tsv | "$bert" classify --model classes --json | grep -c '"probabilities":{"x":' | grep -qx 20 ||
    wrong "bert classify --json"
[ "$("$bert" tag --model tags "The man sails ." | cut -f1 | tr '\n' ' ')" = "The man sails .  " ] || wrong "bert tag"
printf 'Who?\tThe man sails.\n' | "$bert" answer --model spans --json | grep -q '"answer":' || wrong "bert answer"
for least in -1000 1000; do # a threshold for the difference of two scores
    said=$(printf 'Who?\tThe man sails.\n' | "$bert" answer --model spans --threshold $least)
    if [ $least = 1000 ] && [ ! "$said" ] || [ $least = -1000 ] && [ "$said" ]; then
        wrong "bert answer --threshold $least: '$said'"
    fi
done
printf 'The man\the sails\the eats\n' | "$bert" choose --model ends | grep -qE '^[01]	he ' || wrong "bert choose"
printf 'Who\377?\tThe \377 man\v sails.\n' >bytes.txt # invalid UTF-8, and other white space
"$bert" answer --model spans --json <bytes.txt | grep -q '"answer":' || wrong "bert answer of what is no UTF-8"
"$bert" tag --model tags --json <bytes.txt | grep -q '"man","sails."' || wrong "bert tag of what is no UTF-8"
says 1 "was tuned for another task; use 'bert tag'" "$bert" classify --model tags x
printf 'a\n\nb\n' >gap.txt
"$bert" classify --model classes --json '{"text": "The man", "pair": "sails"}' >json.txt
"$bert" classify --model classes --json $'The man\tsails' | cmp -s - json.txt || wrong "bert classify of a JSON pair"
says 3 'line 2: no member "text"' "$bert" classify --model classes '{"text": "a"}' '{"txt": "b"}'
says 3 "line 2: expected two texts" "$bert" classify --model classes $'a\tb' c
says 3 "line 1: expected a context and 2 to 64 endings" "$bert" choose --model ends $'a\tb'
says 3 "line 2: the text is empty" bash -c '"$0" classify --model classes <gap.txt' "$bert"

# A model with NaN logits gives an error: no lines, no JSON, no test results.
for task in "classify classes" "tag tags" "tag chain" "answer spans" "choose ends" "classify numbers"; do
    read -r command model <<<"$task"
    [ -e nan-$model ] || astray $model nan-$model
    for json in "" --json; do
        says 6 "is NaN: look for NaN" "$bert" $command --model nan-$model $json $'The\tman\tsails.'
        [ ! -s out.txt ] || wrong "bert $command $json of a model of NaN says: $(cat out.txt)"
    done
done

# Interrupted by Ctrl-C or killed, and resumed, it ends with the same bits.
"${tune[@]}" classify --train train.tsv --out whole >/dev/null || wrong "bert tune failed"
for signal in INT KILL; do
    "${tune[@]}" classify --train train.tsv --out part$signal >/dev/null 2>&1 &
    while [ ! -e part$signal/checkpoints ] && kill -0 $! 2>/dev/null; do sleep 0.02; done
    kill -$signal $! 2>/dev/null || true # it may have ended
    { wait $!; } 2>/dev/null || true
    "$bert" tune --quiet --out part$signal --resume >/dev/null || wrong "$signal: --resume failed"
    same_folder whole part$signal || wrong "$signal: a resumed run ends with other bits"
done

again=("$bert" tune classify --quiet --model small --batch 4 --length 16 --train train.tsv --resume)
"${again[@]}" --out whole >/dev/null || wrong "bert tune --resume without --epochs failed"
"${again[@]}" --layer-rate 0.8 --thaw --parts 2 --out paced >/dev/null || wrong "no --epochs, --layer-rate: it fails"
says 1 "'whole' is a run of 20 steps, but --epochs 1 is 10 steps" "${again[@]}" --out whole --epochs 1
cp -r whole longer && "$bert" tune --out longer --resume --epochs 3 --quiet | grep -q '^longer: step 30,' ||
    wrong "no tuning is lengthened"
says 1 "the run did not read 'test.tsv' of --valid" "${again[@]}" --out whole --valid test.tsv

cp -r whole over && rm -r over/checkpoints
says 1 "the training in 'over' is complete and its checkpoints were deleted" "${again[@]}" --out over
cmp whole/model.safetensors over/model.safetensors || wrong "a tuning that is over is begun anew"

# Options without effect for a task, and layers that do not exist.
usage() { says 2 "$1" "${tune[@]}" "${@:2}" --out never; }
usage "the model has 2 layers, fewer than --freeze 3" classify --train train.tsv --freeze 3
for task in classify pairs choose; do
    usage "--stride is for tag and answer" $task --train train.tsv --stride 4
    usage "--longest is for answer" $task --train train.tsv --longest 4
    usage "--bio is for tag" $task --train train.tsv --bio
    usage "--crf is for tag" $task --train train.tsv --crf
done
for option in text pair label; do
    usage "--$option is for classify" answer --train questions.json --$option 2
    usage "--$option is for classify" choose --train train.tsv --$option 2
done
for option in text pair; do usage "--$option is for classify and pairs" tag --train words.conll --$option 2; done
usage "cannot be combined with --layer-rate" classify --train train.tsv --lora 2 --layer-rate 0.5
usage "--json prints the results of the test and needs --test" classify --train train.tsv --json
says 2 "--top is for --json" "$bert" answer --model spans --top 2 x
usage "--bio is for tag" answer --train questions.json --bio
usage "--longest is for answer" tag --train words.conll --longest 4
[ ! -e never ] || wrong "what was refused leaves a folder"
"${tune[@]}" tag --train words.conll --bio --stride 4 --freeze 2 --out fine >/dev/null ||
    wrong "bert tune tag --bio --stride --freeze failed"

# Bad files: the error gives the line and the reason; with --skip-bad the line is skipped.
printf 'a\tx\nb\tz\n' >strange.tsv
says 3 "'strange.tsv', line 2: the label 'z' is not among the 2 of the training set" \
    "${tune[@]}" classify --train train.tsv --test strange.tsv --out never
bad() # TASK FILE TEXT MESSAGE: the error; without that line the file is read
{
    printf '%b' "$3" >"$2"
    says 3 "$4" "${tune[@]}" "$1" --train "$2" --out never
    rm -rf goes && "${tune[@]}" "$1" --train "$2" --skip-bad 1 --test "$2" --json --out goes >goes.txt 2>/dev/null &&
        json goes.txt skipped || wrong "--skip-bad does not go on: $4"
}
bad classify a.tsv 'a\tx\nb\ty\nc\n' "'a.tsv', line 3: no tab found"
bad classify b.tsv 'a\tx\nb\ty\nc\td\tx\n' "'b.tsv', line 3: 3 columns, but the first line has 2"
bad classify c.csv 'a,x\nb,y\nc, d,x\n' "'c.csv', line 3: 3 columns, but the first line has 2; put texts with commas"
bad classify d.csv 'a,x\nb,y\n"c"d,x\n' "'d.csv', line 3: text between a closing quote"
bad classify k.tsv 'a\tx\nb\ty\nc\tn\xe9g\n' "'k.tsv', line 3: the label is not UTF-8; convert the file"
bad tag e.conll 'a X\nb Y\n\nc\n' "'e.conll', line 4: 1 column, expected 2"
bad answer f.json '{"data":[{"paragraphs":[{"context":"the cat","qas":[
{"id":"1","question":"what","answers":[{"text":"cat","answer_start":4}]},
{"id":"2","question":"what","answers":[{"text":"cat","answer_start":3}]}]}]}]}' \
    "'f.json', data[0].paragraphs[0].qas[1]: 'cat' is not found at character 3 of its text"
bad choose g.csv 'sent1,ending0,ending1,label\na,b,c,1\nd,e,f,2\n' \
    \
    "'g.csv', line 3: the label '2' is not the number of an ending"
reads() # TASK FILE TEXT: the file is read without error
{
    printf '%b' "$3" >"$2"
    "${tune[@]}" "$1" --train "$2" --test "$2" --out "read$2" --json >reads.txt 2>&1 || wrong "$2: $(cat reads.txt)"
}
reads classify h.tsv '\xef\xbb\xbfa\tx\r\nb\ty\r\n' # a byte order mark, and CRLF
reads classify i.csv '\xef\xbb\xbf"a, ""b""\tc\nd",x\r\n"e",y\r\n' # quotes, tabs and line ends within a cell
reads tag j.conll "$(for i in {1..60}; do echo "word$i X"; done; echo; echo 'b Y')\n" # longer than the window
[ "$(cut -d' ' -f1 j.conll | tr '\n' ' ' | "$bert" tag --model readj.conll | grep -c .)" = 61 ] ||
    wrong "bert tag loses words of a long sentence"
printf 'a\tx\nM\xe4dchen\ty\n' >latin1.tsv
"$bert" tune classify --model small --train latin1.tsv --epochs 1 --length 16 --no-progress --out latin1 >/dev/null \
    2>err || wrong "bert tune refuses a text that is not UTF-8"
grep -qF "warning: 'latin1.tsv' is not valid UTF-8 in 1 of its texts, the first in line 2" err ||
    wrong "bert tune does not tell of a text that is not UTF-8: $(head -n 3 err)"
printf 'a\tx\n\ty\nb\ty\n' >empty.tsv
says 3 "'empty.tsv', line 2: the text is empty" "${tune[@]}" classify --train empty.tsv --out never
"${tune[@]}" classify --train empty.tsv --test empty.tsv --skip-bad 1 --json --out skipped >skipped.txt 2>/dev/null ||
    wrong "--skip-bad does not go on"
json skipped.txt skipped
says 2 "unknown task 'classfy'; did you mean classify" "${tune[@]}" classfy --train train.tsv --out never
says 2 "--patience needs --valid" "${tune[@]}" classify --train train.tsv --out never --patience 2
exit $wrong
