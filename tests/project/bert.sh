#!/usr/bin/env bash
# The program bert as a user runs it: a small demo, all uses of a model, an interrupted and resumed run, and its error
# messages.
. "$(dirname "$0")/common.sh"
fresh bert
bert=$build/bin/bert

"$bert" demo --quiet --json --out demo --steps 10 --documents 60 --probes 5 >last.txt || wrong "bert demo failed"
part='[01](\.[0-9]+)?'
tail -n 1 last.txt |
    grep -qE "^\{\"agreement\":$part,\"pronoun\":$part,\"sense\":$part,\"next\":$part,\"minutes\":[0-9.]+\}\$" ||
    wrong "bert demo ends with: $(tail -n 1 last.txt)"
grep -q '<svg' demo/report.html || wrong "the report of bert demo has no pictures"
# Each sentence shows its right and its wrong word, the more likely one above; only the right one is green.
awk '/<b class="[xy]">/ { above = $0; getline below
    green = gsub(/class="y"/, "&", above) + gsub(/class="y"/, "&", below)
    sub(/.*<b class.*<small>/, "", above); sub(/.*<\/span> /, "", below); n += green == 1 && above + 0 >= below + 0 }
    END { exit n != 9 }' demo/report.html || wrong "the report of bert demo compares other words"
model=demo/model
head -n 60 demo/held-out.txt >held.txt
again=("$bert" demo --quiet --json --out demo --documents 60 --probes 5 --resume)
"${again[@]}" | sed 's/,"minutes.*//' | cmp -s - <(tail -n 1 last.txt | sed 's/,"minutes.*//') ||
    wrong "bert demo --resume, not told how long, does not go on with its own number of steps"
percent='[0-9.]+ %'
words="in $percent of the sentences on agreement, $percent on pronouns and $percent on senses"
"$bert" demo --quiet --out demo --documents 60 --probes 5 --resume >words.txt || wrong "bert demo --resume failed"
grep -qE "^After [0-9.]+ minutes .* $words, and is right about the next sentence in $percent\.\$" words.txt ||
    wrong "bert demo ends with: $(cat words.txt)"
says 1 "'demo/model' is a run of 10 steps, but --steps 9 is 9 steps" "${again[@]}" --steps 9

[ "$("$bert" fill --model $model -k 3 "The keys [MASK] here." | wc -l)" = 3 ] || wrong "bert fill -k 3: not 3 lines"
"$bert" fill --model $model --json "The [MASK] and the [MASK]." | grep -q '"mask":1' ||
    wrong "bert fill --json: no second mask"
[ "$(printf 'one line\nand another\n' | "$bert" embed --model $model | awk '{ print NF }' | uniq)" = 128 ] ||
    wrong "bert embed does not print 128 numbers a line"
# The vectors are in the order of the lines, for lines of any length; JSON has the same numbers.
for i in 1 2 3 4 5; do
    printf '%s\n' "The keys." "The old man and the keys to the cabinets are in the house." "" "The ship sails."
done >lines
"$bert" embed --model $model <lines >plain.txt && "$bert" embed --model $model --json <lines >json.txt ||
    wrong "bert embed failed"
[ "$(wc -l <plain.txt) $(sort -u plain.txt | wc -l)" = "20 4" ] || wrong "bert embed: not a vector for each line"
cmp -s plain.txt <(tr -d '[]' <json.txt | tr , ' ') || wrong "bert embed --json has other numbers, or another form"
# --word: of two equal sentences the vectors are equal, of another sentence they are not; a word is no part of a word.
"$bert" embed --model $model --word ship "The ship sails." "The ship sails." "A ship." >word.txt || wrong "embed --word"
awk 'NR == 2 && !($3 == 1 && $4 == 1 && $5 < 0.9999) { exit 1 } END { exit NR != 4 }' word.txt ||
    wrong "bert embed --word: $(cat word.txt)"
says 1 "'hip' is not a word of this sentence: The ship sails." "$bert" embed --model $model --word hip "The ship sails."
says 2 "--json" "$bert" embed --model $model --word ship --json "The ship sails."
"$bert" embed --model $model "The ship sails." | cmp -s - <(sed -n 4p plain.txt) ||
    wrong "bert embed gives a text another vector alone than among others"
for dtype in f16 q8_0 int8; do # near the vectors of f32; a text alone, and one thread, give the same numbers
    "$bert" embed --model $model --dtype $dtype <lines >$dtype.txt || wrong "bert embed --dtype $dtype fails"
    cmp -s plain.txt $dtype.txt && wrong "bert embed --dtype $dtype gives the numbers of f32"
    paste -d" " plain.txt $dtype.txt |
        awk '{ for (i = 1; i <= 128; i++) c += $i * $(i + 128) } END { exit c / NR < 0.999 }' ||
        wrong "bert embed --dtype $dtype gives other vectors"
    "$bert" embed --model $model --dtype $dtype --threads 1 "The ship sails." | cmp -s - <(sed -n 4p $dtype.txt) ||
        wrong "bert embed --dtype $dtype gives a text another vector alone than among others"
done
[ "$("$bert" embed --model $model --json </dev/null | wc -l)" = 0 ] || wrong "bert embed prints what nobody asked for"

# A model with NaN weights gives an error, and no results.
astray $model nan
echo "The ship sails." >hay.txt
for json in "" --json; do
    for command in "fill|The [MASK]." "embed|The ship sails." "search|--text|hay.txt|The ship." \
        "eval|held.txt"; do
        IFS='|' read -ra command <<<"$command"
        says 6 "is NaN: look for NaN" "$bert" "${command[0]}" --quiet --model nan $json "${command[@]:1}"
        [ ! -s out.txt ] || wrong "bert ${command[0]} $json of a model of NaN says: $(cat out.txt)"
    done
done

# Sentence pairs are measured in a training, which has the same bits without them, and by eval.
printf 'order\tsyntax\tThe ship %s.\tShip %s the.\n' sails sails sailed sailed >sentences.tsv
few=("$bert" train --text lines --valid lines --size tiny --length 32 --batch 4 --steps 4)
"${few[@]}" --out unpaired 2>said && "${few[@]}" --out paired --pairs sentences.tsv 2>said ||
    wrong "bert train --pairs failed: $(cat said)"
grep -qE '^step 4: [0-9.]+ % of sentence pairs right' said || wrong "bert train --pairs says: $(cat said)"
grep -qE '"step":4,"valid/pairs":[0-9]' paired/log.jsonl || wrong "bert train --pairs is not in log.jsonl"
cmp -s unpaired/model.safetensors paired/model.safetensors || wrong "bert train --pairs changes the training"
[ "$("$bert" eval --model paired --pairs sentences.tsv | tail -n 1 | awk '{ print $1, $4 }')" = "mean 1" ] ||
    wrong "bert eval --pairs: no mean over one paradigm"
says 2 "--pairs is for one model, but --objective electra trains two" "${few[@]}" --out two --objective electra \
    --pairs sentences.tsv
says 3 "'lines', line 1: no column 2; expected paradigm" "${few[@]}" --out not --pairs lines
# With --minutes, batch and size depend on the measured speed. It is in run.json: a repeated run makes the same choices.
# The number of steps is planned again by the clock, in one run of about eight at a step that validates: verify repeats
# that, too.
tries=4
[ "${TENON_CONFIG:-}" != full ] || tries=40
for ((i = 0; i < tries; i++)); do
    rm -rf clocked
    "$bert" train --quiet --text lines --out clocked --minutes 0.01 2>said &&
        grep -q '"speed": [0-9]' clocked/run.json ||
        wrong "bert train --minutes does not record the speed of the machine: $(cat said)"
    last=$("$bert" verify --quiet clocked 2>said | tail -n 1)
    [[ $last == identical* ]] || wrong "bert verify of it says: $last $(cat said)"
    ! grep -A 1 '^{"run":[1-9]' clocked/checkpoints/record.jsonl | grep '^{"valid"' >clocked.txt || break
done

# --word-vectors changes the initial weights, gives the same bits for any number of threads, and leaves no file.
learn=("$bert" train --quiet --text lines --size tiny --length 32 --batch 4 --steps 2 --objective roberta)
"${learn[@]}" --out plain && "${learn[@]}" --out known --word-vectors 2 &&
    "${learn[@]}" --out same --word-vectors 2 --threads 2 || wrong "bert train --word-vectors failed"
cmp -s known/model.safetensors same/model.safetensors || wrong "--word-vectors: the threads change the bits"
cmp -s known/model.safetensors plain/model.safetensors && wrong "--word-vectors changes nothing"
[ -z "$(find known -name "pieces*")" ] || wrong "--word-vectors leaves the pieces of the texts behind"
"${learn[@]}" --out known --word-vectors 3 --resume 2>said && wrong "a run goes on with other --word-vectors"
grep -q -- '--word-vectors is 2 in the run, 3 here' said ||
    wrong "going on with other --word-vectors, it says: $(cat said)"
learn+=(--out other --objective electra --word-vectors 1)
says 2 "--word-vectors is for --objective bert, roberta and deberta" "${learn[@]}"

# Folders of sentence-transformers: the parts specify the vectors; the error for an unknown part or pooling names it.
mkdir -p sentences/1_Pooling && ln -s ../$model sentences/0_Transformer
parts() # TYPE...: modules.json
{
    local list='' type n=0 path
    for type in "$@"; do
        path=${n}_$type
        list+="${list:+, }{\"idx\": $n, \"path\": \"$path\", \"type\": \"sentence_transformers.models.$type\"}"
        n=$((n + 1))
    done
    echo "[$list]" >sentences/modules.json
}
pooled() { echo "$1" >sentences/1_Pooling/config.json; }
embed=("$bert" embed --model sentences --json "The keys." "The old man and the ship.")
long() # LENGTH: all vectors have this length
{
    tr -d '[]' | awk -F, '{ s = 0; for (i = 1; i <= NF; i++) s += $i * $i; print (s > 0.99999 && s < 1.00001) }' | uniq
}
parts Transformer Pooling Normalize
pooled '{"word_embedding_dimension": 128, "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}'
"${embed[@]}" | cmp -s - <("$bert" embed --model $model --json --pool cls "${embed[@]:5}") ||
    wrong "pooling_mode_cls_token is not --pool cls"
pooled '{"embedding_dimension": 128, "pooling_mode": "max"}'
"${embed[@]}" | cmp -s - <("$bert" embed --model $model --json --pool max "${embed[@]:5}") ||
    wrong "pooling_mode max is not --pool max"
[ "$("${embed[@]}" | long)" = 1 ] || wrong "with Normalize the vectors are not of length 1"
parts Transformer Pooling
[ "$("${embed[@]}" | long)" = 0 ] || wrong "without Normalize the vectors are of length 1"
asked='{"prompts": {"q": "The old "}, "default_prompt_name": "q", "truncate_dim": 5}'
echo "$asked" >sentences/config_sentence_transformers.json
"$bert" embed --model sentences "ship sails." | cut -d' ' -f1-6 >prompted.txt
echo '{"prompts": {"q": "The old "}, "default_prompt_name": null}' >sentences/config_sentence_transformers.json
"$bert" embed --model sentences "The old ship sails." | cut -d' ' -f1-5 | cmp - prompted.txt ||
    wrong "default_prompt_name and truncate_dim are not honoured"
echo '{"default_prompt_name": "q"}' >sentences/config_sentence_transformers.json
says 3 "default_prompt_name is 'q', but prompts has no such member" "${embed[@]}"
echo '{"truncate_dim": 0}' >sentences/config_sentence_transformers.json
says 3 "truncate_dim is 0, but must be at least 1" "${embed[@]}"
echo "$asked" >sentences/config_sentence_transformers.json
pooled '{"pooling_mode": "max", "include_prompt": false}'
says 7 "include_prompt is false in the Pooling" "${embed[@]}"
pooled '{"pooling_mode": "max"}'
rm sentences/config_sentence_transformers.json
"$bert" info --model sentences | grep -q '^sentences   maximum of the tokens' || wrong "bert info does not say how"
echo '{"max_seq_length": 4}' >$model/sentence_bert_config.json
"$bert" embed --model sentences "The old ship sails." "The old key lies." | sort -u | wc -l | grep -qx 1 ||
    wrong "max_seq_length does not cut"
echo '{"max_seq_length": 1}' >$model/sentence_bert_config.json
says 3 "max_seq_length is 1" "${embed[@]}"
rm $model/sentence_bert_config.json
cp $model/tokenizer_config.json kept.json
sed -i /tokenizer_config/d $model/SHA256SUMS # the file was changed on purpose
sed 's/^{/{"model_max_length": 4,/' kept.json >$model/tokenizer_config.json # where newer releases store it
"$bert" embed --model sentences "The old ship sails." "The old key lies." | sort -u | wc -l | grep -qx 1 ||
    wrong "model_max_length of the tokenizer does not cut"
sed 's/^{/{"model_max_length": 1000000000000000019884624838656,/' kept.json >$model/tokenizer_config.json
"$bert" embed --model sentences "The old ship sails." "The old key lies." | sort -u | wc -l | grep -qx 2 ||
    wrong "model_max_length that nobody gave cuts"
cp kept.json $model/tokenizer_config.json
pooled '{"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true}'
says 7 "2 pooling modes, expected one" "${embed[@]}"
pooled '{"pooling_mode": "lasttoken"}'
says 7 "pooling mode 'lasttoken' is not supported" "${embed[@]}"
rm sentences/1_Pooling/config.json
says 3 "config.json not found" "${embed[@]}"
pooled '{"pooling_mode": "mean"}'
# Dense, of zeros with a bias of 1 and 0.5, with and without an activation.
mkdir -p sentences/2_Dense
header='{"linear.weight":{"dtype":"F32","shape":[2,128],"data_offsets":[0,1024]},'
header+='"linear.bias":{"dtype":"F32","shape":[2],"data_offsets":[1024,1032]}}'
{
    printf '%b' "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0" && printf '%s' "$header"
    head -c 1024 /dev/zero && printf '\0\0\200\077\0\0\0\077'
} >sentences/2_Dense/model.safetensors
dense() # ACTIVATION [IN]
{
    echo "{\"in_features\": ${2-128}, \"out_features\": 2, \"activation_function\": \"$1\"}" \
        >sentences/2_Dense/config.json
}
parts Transformer Pooling Dense
dense torch.nn.modules.linear.Identity
[ "$("${embed[@]}" | sort -u)" = "[1.0,0.5]" ] || wrong "a Dense of zeros does not give its bias"
"$bert" info --model sentences | grep -q 'width 2, of any' || wrong "bert info does not count what Dense gives"
dense torch.nn.modules.activation.Tanh
[ "$("${embed[@]}" | sort -u | cut -c 1-7)" = "[0.7615" ] || wrong "a Dense with Tanh does not give tanh of its bias"
dense torch.nn.modules.activation.Mish
says 7 "Dense with 'Mish' is not supported; expected Tanh" "${embed[@]}"
dense torch.nn.modules.activation.Tanh 64
says 3 "linear.weight is not [2, 64], which config.json specifies" "${embed[@]}"
dense torch.nn.modules.activation.Tanh 65536 # a wrong config does not allocate memory
says 3 "linear.weight is not [2, 65536]" "${embed[@]}"
dense torch.nn.modules.activation.Tanh 0
says 3 "in_features is 0, but must be from 1 to 65536" "${embed[@]}"
parts Transformer Pooling LSTM
says 7 "part 2 is 'LSTM'" "${embed[@]}"
parts Transformer
says 7 "1 part, expected at least" "${embed[@]}"
parts Transformer ../Pooling
says 7 "part 1 is '/Pooling'" "${embed[@]}"
echo '[{"path": "/etc", "type": "Transformer"}]' >sentences/modules.json
says 3 "outside of this folder" "${embed[@]}"
for text in '{' '[]' '{}' '[1]' '[{}]' '[{"type": 7}]' '[{"type": "Transformer", "path": 1}]' 'null'; do
    echo "$text" >sentences/modules.json
    rc=0 && "${embed[@]}" >/dev/null 2>err.txt || rc=$?
    [[ $rc =~ ^[1-7]$ ]] && grep -q modules.json err.txt || wrong "modules.json of $text ends with $rc: $(cat err.txt)"
done

"$bert" info --model $model | cmp -s - <("$bert" info $model) || wrong "bert info --model DIR is not bert info DIR"
"$bert" info --model "$root/tests/golden/encoders/albert" | grep -q '^vocabulary .*, no tokenizer$' ||
    wrong "bert info needs a tokenizer"
"$bert" info $model | grep -q '^parameters' || wrong "bert info does not say how many parameters"
"$bert" eval --model $model --json held.txt | grep -q '"perplexity"' || wrong "bert eval --json"
"$bert" sample-corpus -n 5 | cmp -s - <("$bert" sample-corpus -n 5) || wrong "bert sample-corpus is not the same twice"

# Logits that are far apart make a loss whose exponential is infinite.
astray $model far lm_head.layer_norm.weight 107
"$bert" eval --model far --json --quiet held.txt >json.txt || wrong "bert eval of a huge loss failed"
is_json json.txt && grep -q '"perplexity":null' json.txt || wrong "an infinite perplexity as JSON: $(cat json.txt)"

# Texts of bert fill and bert eval from standard input or a file, also as lines of JSON; vectors as npy and safetensors.
printf 'The [MASK] is old.\n{"text": "The key [MASK]."}\r\n' >masks
fill=("$bert" fill --model $model -k 2)
"${fill[@]}" "The [MASK] is old." "The key [MASK]." >two.txt
"${fill[@]}" <masks | cmp - two.txt || wrong "bert fill of standard input"
"${fill[@]}" - <masks | cmp - two.txt || wrong "bert fill -"
"${fill[@]}" -f masks | cmp - two.txt || wrong "bert fill --file"
"${fill[@]}" --json --file - <masks | wc -l | grep -qx 2 || wrong "bert fill --json --file -"
says 2 "--file and texts exclude each other" "${fill[@]}" --file masks "The [MASK]."
printf 'The [MASK].\n{"txt": 1}\n' >masks
says 3 "'masks', line 2: the JSON object has no member \"text\"" "${fill[@]}" --file masks
printf 'The [MASK].\n\0\n' >masks
says 3 "'masks', line 2: a NUL byte" "${fill[@]}" --file masks
says 5 "'nowhere': No such file" "${fill[@]}" --file nowhere
"$bert" eval --model $model held.txt >file.txt || wrong "bert eval failed"
TMPDIR=$PWD "$bert" eval --model $model - <held.txt | cmp - file.txt || wrong "bert eval - measures otherwise"
compgen -G 'standard-input*' >/dev/null && wrong "bert eval - does not delete its temporary files"
says 1 "'-' is given twice" "$bert" eval --model $model - -
"$bert" embed --model $model --quiet --out lines.npy "The ship sails." "A key." &&
    "$bert" embed --model $model --quiet --out lines.safetensors "The ship sails." "A key." ||
    wrong "embed --out failed"
head -c 200 lines.npy | grep -aq "'shape': (2, 128)" || wrong "embed --out FILE.npy has another shape"
head -c 200 lines.safetensors | grep -aq '"embeddings":{"dtype":"F32","shape":\[2,128\]' ||
    wrong "embed --out .safetensors"
cmp <(tail -c 1024 lines.npy) <(tail -c 1024 lines.safetensors) || wrong "embed --out writes two kinds of numbers"
says 2 "--out must end in .npy or .safetensors" "$bert" embed --model $model --out lines.txt x

# An interrupted and resumed run ends with the same bits.
train=("$bert" train --quiet --dtype f32 --text demo/world.txt --size tiny --steps 24 --batch 4 --length 32)
train+=(--vocab-size 300)
"${train[@]}" --out whole >/dev/null || wrong "bert train failed"
"${train[@]}" --out parts >/dev/null 2>&1 &
while [ ! -e parts/checkpoints ] && kill -0 $! 2>/dev/null; do sleep 0.05; done
kill -INT $! 2>/dev/null || true # it may have ended
wait $! || true
"$bert" train --quiet --out parts --resume >/dev/null || wrong "bert train --resume failed"
same_folder whole parts || wrong "a resumed run ends with other bits"

says 1 "already contains a model" "${train[@]}" --out whole

# A resumed run must have the same options; the error names the one that differs. The duration and the tokenizer need
# not be repeated.
again=("$bert" train --quiet --text demo/world.txt --size tiny --batch 4 --length 32 --resume)
cp -r whole over
"${again[@]}" --out over >said && grep -q '^over: step 24,' said || wrong "--resume alone ends with: $(cat said)"
says 1 "'over' is a run of 24 steps, but --steps 20 is 20 steps" "${again[@]}" --out over --steps 20
says 1 "'over' is a run of 24 steps, but --minutes 5 is given now" \
    "${again[@]}" --out over --minutes 5
says 1 "--vocab-size is 300 in the run, 400 here; --dtype is f32 in the run, bf16 here; omit them" \
    "${again[@]}" --out over --vocab-size 400 --dtype bf16
says 1 "--cased is not set in the run, set here; omit it" "${again[@]}" --out over --cased
says 1 "the run did not read 'demo/held-out.txt' of --valid" "${again[@]}" --out over --valid demo/held-out.txt
says 1 "'over' has another tokenizer than 'demo/model'" "${again[@]}" --out over --vocab demo/model
"${again[@]}" --out over --vocab whole >/dev/null || wrong "--resume with the run's own tokenizer failed"
"${again[@]/--resume/--minutes=0.01}" --out timed >/dev/null && "${again[@]}" --out timed --minutes 0.01 >/dev/null ||
    wrong "a run of some minutes does not go on with as many"
asked=$(sed -n 's/^    "steps": //p' timed/run.json)
# A run that was planned again continues with its own number, given the minutes of its start.
planned=$(sed -n 's/^  "steps": \([0-9]*\),*$/\1/p' timed/run.json)
planned=$((${planned:-${asked%,}} + 2))
cp -r timed planned && sed -i '/^  "steps": /d; 1s/$/\n  "steps": '$planned',/' planned/run.json
sed -i '/ run.json$/d' planned/SHA256SUMS
"${again[@]}" --out planned --minutes 0.01 | grep -q "step $planned," ||
    wrong "a run that was planned again does not go on to step $planned"
"${again[@]}" --out timed --minutes 0.02 | grep -q "step $((2 * ${asked%,}))," || wrong "--minutes lengthens otherwise"
cmp whole/model.safetensors over/model.safetensors || wrong "what was refused changed the model"

# A run without checkpoints is complete, and --resume does not start it again; unless it was killed before the first
# checkpoint.
rm -r over/checkpoints
says 1 "the training in 'over' is complete and its checkpoints were deleted" "${train[@]}" --out over --resume
mkdir over/checkpoints
says 1 "the training in 'over' is complete and its checkpoints were deleted" "${train[@]}" --out over --resume
cmp whole/model.safetensors over/model.safetensors || wrong "a run that is over is trained anew"
rm over/model.safetensors over/config.json
"$bert" train --quiet --out over --resume >/dev/null ||
    wrong "a run without a checkpoint, and without a model, does not go on"
same_folder whole over || wrong "a run that was killed early ends with other bits"
mkdir -p begun/checkpoints && echo '{"made_by": "", "asked": null}' >begun/run.json
"${train[@]}" --out begun --resume >/dev/null ||
    wrong "--resume of a run that was killed before it recorded its options failed"
same_folder whole begun || wrong "a run that was killed before it recorded its options has other options or bits"

# Other kinds of models: ALBERT, ELECTRA with its generator, DeBERTa, XLNet, and a distilled BERT, whose run is resumed.
"${train[@]}" --steps 4 --objective albert --embedding 16 --out albert >/dev/null || wrong "--objective albert failed"
"$bert" info albert | grep -q '^heads       masked tokens, sentence order' || wrong "ALBERT has not its heads"
grep -q '"initializer_range": 0.0883' albert/config.json || wrong "ALBERT's weights do not begin as wide as 1/sqrt(128)"
"$bert" eval --model albert --json held.txt | grep -q '"pairs":[1-9]' || wrong "bert eval: no pairs for ALBERT"
"${train[@]}" --steps 4 --objective electra --out electra >/dev/null || wrong "--objective electra failed"
"$bert" info electra | grep -q '^heads       replaced tokens' || wrong "ELECTRA has not its head"
"$bert" fill --model electra/generator -k 2 "The [MASK] is old." >/dev/null || wrong "ELECTRA's generator does not fill"
says 1 "no head for masked tokens" "$bert" fill --model electra "The [MASK] is old."
"${train[@]}" --steps 4 --objective electra --sharing gdes --out gdes >/dev/null || wrong "--sharing gdes failed"
cmp -s electra/model.safetensors gdes/model.safetensors && wrong "--sharing gdes changes nothing"
"${train[@]}" --steps 4 --objective deberta --out deberta >/dev/null || wrong "--objective deberta failed"
"$bert" info deberta | grep -q '^heads       masked tokens' || wrong "DeBERTa has not its head"
"$bert" fill --model deberta -k 2 "The [MASK] is old." >/dev/null || wrong "DeBERTa does not fill"
# Frozen weights keep their bits: with --freeze of all layers, and with --thaw in the first epoch, all of the encoder's.
awk 'NF && n < 16 { print $0 "\t" (n++ % 2 ? "odd" : "even") }' demo/held-out.txt >labelled.tsv
for how in "whole --freeze 2" "deberta --thaw"; do
    # shellcheck disable=SC2086 # words
    "$bert" tune classify --quiet --model $how --train labelled.tsv --epochs 1 --lr 0.01 --batch 8 --out "cold $how" \
        >/dev/null || wrong "bert tune --model $how failed"
    changed=$(python3 - "${how%% *}/model.safetensors" "cold $how/model.safetensors" <<'END'
import json, struct, sys
def tensors(path):
    data = open(path, "rb").read()
    n = 8 + struct.unpack("<Q", data[:8])[0]
    of = json.loads(data[8:n])
    return {name: data[n + of[name]["data_offsets"][0]:n + of[name]["data_offsets"][1]] for name in of
            if "embeddings" in name or ".encoder." in name}
before, after = map(tensors, sys.argv[1:])
print(*[name for name in before if before[name] != after.get(name, before[name])], sep="\n")
END
    ) || wrong "bert tune --model $how: weights are missing"
    [ -z "$changed" ] || wrong "bert tune --model $how changes $changed"
done
"${train[@]}" --steps 6 --objective deberta-v3 --out v3 >/dev/null || wrong "--objective deberta-v3 failed"
"${train[@]}" --steps 6 --objective deberta-v3 --out v3.parts >/dev/null 2>&1 &
while [ ! -e v3.parts/checkpoints ] && kill -0 $! 2>/dev/null; do sleep 0.05; done
kill -INT $! 2>/dev/null || true # it may have ended
wait $! || true
"$bert" train --quiet --out v3.parts --resume >/dev/null || wrong "--objective deberta-v3 --resume failed"
same_folder v3 v3.parts || wrong "a resumed run of DeBERTa v3 ends with other bits"
"$bert" info v3 | grep -q '^heads       replaced tokens' || wrong "DeBERTa v3 has not its head"
"$bert" fill --model v3/generator -k 2 "The [MASK] is old." >/dev/null || wrong "DeBERTa's generator does not fill"
says 2 "--sharing is for --objective electra and deberta-v3" "${train[@]}" --sharing gdes --out nothing
permuted=("${train[@]}" --objective xlnet --segment 16)
"${permuted[@]}" --threads 2 --out xlnet >/dev/null || wrong "--objective xlnet failed"
"${permuted[@]}" --threads 1 --out xlnet-cut >/dev/null 2>&1 &
while [ ! -e xlnet-cut/checkpoints ] && kill -0 $! 2>/dev/null; do sleep 0.05; done
kill -KILL $! 2>/dev/null || true # it may have ended
wait $! || true
"$bert" train --quiet --out xlnet-cut --resume >/dev/null || wrong "bert train --objective xlnet --resume failed"
cmp -s xlnet/model.safetensors xlnet-cut/model.safetensors ||
    wrong "a killed and resumed XLNet, with other threads, ends with other bits"
"$bert" info xlnet | grep -q '^context     any length, a memory of 16 tokens' || wrong "bert info: not XLNet's memory"
"$bert" fill --model xlnet -k 2 "The [MASK] is old." >/dev/null || wrong "XLNet does not fill"
"$bert" eval --model xlnet --json held.txt | grep -q '"words":[1-9]' || wrong "bert eval of XLNet: no words"
given=("$bert" train --quiet --text demo/world.txt --size tiny --steps 2 --out refused)
says 7 "XLNet needs a tokenizer that puts [CLS] after" "${given[@]}" --objective xlnet --vocab albert
says 7 "this tokenizer puts [CLS] after the text" "${given[@]}" --vocab xlnet
says 7 "XLNet's [CLS] is not the first token" "$bert" embed --model xlnet --pool cls "The man is old."
says 2 "--segment is for --objective xlnet" "${train[@]}" --segment 8 --out nothing
says 2 "--segment is 32, but must be less than --length, 32" "${train[@]}" --objective xlnet --segment 32 --out nothing
says 2 "the teacher is an XLNet" "$bert" distil --teacher xlnet --text demo/world.txt --out nothing
says 2 "embedding is for --objective albert and electra" "${train[@]}" --embedding 8 --out nothing
says 2 "--embedding is for --objective albert" "$bert" demo --embedding 8 --out nothing
says 2 "--steps and --minutes exclude each other" "$bert" demo --steps 2 --minutes 1 --out nothing
[ ! -e nothing ] || wrong "bert demo leaves a folder behind where its options are wrong"
distil=("$bert" distil --quiet --teacher whole --text demo/world.txt --batch 4 --length 32)
"${distil[@]}" --steps 12 --out small >/dev/null || wrong "bert distil failed"
"${distil[@]}" --steps 12 --out part >/dev/null 2>&1 &
while [ ! -e part/checkpoints ] && kill -0 $! 2>/dev/null; do sleep 0.05; done
kill -INT $! 2>/dev/null || true # it may have ended
wait $! || true
"$bert" distil --quiet --out part --resume >/dev/null || wrong "bert distil --resume failed"
same_folder small part || wrong "a resumed bert distil ends with other bits"
says 2 "the teacher has 2 layers, fewer than --layers 3" "${distil[@]}" --layers 3 --out nothing
says 7 "has no head for masked tokens, which a teacher needs" "${distil[@]}" --teacher electra --out nothing

# Contrastive training moves the vectors of a pair closer together; the result is a folder of sentence-transformers.
grep -m 64 . demo/world.txt | awk '{ print $0 "\t" $NF " " $1 }' >pairs.tsv
contrast=("$bert" contrast --quiet --model whole --pairs pairs.tsv --length 24)
"${contrast[@]}" --out near --valid pairs.tsv --steps 12 --batch 8 --lr 1e-3 >near.txt || wrong "bert contrast failed"
"$bert" info near | grep -q '^sentences   mean of the tokens, at most 24 tokens, width 128, of length 1' ||
    wrong "bert contrast does not leave what bert embed reads"
printf 'no pair\n' >bad.tsv
tac pairs.tsv >other.tsv
"$bert" contrast --out near --resume --quiet | grep -q '^near: step 12,' || wrong "bert contrast --resume failed"
says 1 "--pairs is 'pairs.tsv' in the run, 'other.tsv' here, with other contents" \
    "$bert" contrast --out near --pairs other.tsv --resume
says 1 "--valid is 'pairs.tsv' in the run, 'other.tsv' here" "${contrast[@]}" --out near --valid other.tsv --resume
says 3 "bad.tsv: line 1: not a pair" "${contrast[@]}" --pairs bad.tsv --out nothing

# In JSON, invalid UTF-8 is replaced by U+FFFD, in lines, queries and names, also in run.json.
odd=$'br\xffken'
printf 'The old k\xffey.\nThe ship.\n' >"$odd.txt"
"$bert" search --quiet --model whole --text "$odd.txt" --json "A k"$'\xff'"ey." >found.txt 2>err.txt ||
    wrong "bert search --json of what is no UTF-8: $(cat err.txt)"
for part in '"query":"A k�ey."' '"file":"br�ken.txt"' '"text":"The old k�ey."'; do
    grep -qF -- "$part" found.txt || wrong "bert search --json has no $part: $(cat found.txt)"
done
ln -s whole "$odd"
"${distil[@]}" --teacher "$odd" --steps 1 --out student >/dev/null 2>err.txt || wrong "--teacher: $(cat err.txt)"
"${contrast[@]}" --model "$odd" --steps 1 --out nearer >/dev/null 2>err.txt || wrong "contrast: $(cat err.txt)"
printf 'sentence\tlabel\nThe ship.\tyes\nThe key.\tno\nThe old key.\tno\n' >classes.tsv
"$bert" tune classify --quiet --model "$odd" --train classes.tsv --epochs 1 --out tuned >/dev/null 2>err.txt ||
    wrong "tune: $(cat err.txt)"

# The line most similar to a line is the line itself; the index of another text or model is rejected.
head -n 50 demo/world.txt | grep . | sort -u >hay.txt
search=("$bert" search --quiet --model whole --text hay.txt --index hay.index)
"${search[@]}" -k 1 <hay.txt | grep . | cut -f 2 | cmp -s - <(seq "$(wc -l <hay.txt)") ||
    wrong "bert search does not find the line itself"
[ "$("${search[@]}" -k 3 --json "The keys." | grep -o '"score":[0-9.]*' | sort -rc && echo fine)" = fine ] ||
    wrong "bert search: the best are not first"
says 3 "is an index of another model" "${search[@]}" --model small "The keys."
echo more >>hay.txt
says 3 "is not an index of these texts" "${search[@]}" "The keys."
says 3 "'hay.txt' is not an index of these texts" "${search[@]}" --index hay.txt "The keys."
says 5 "the folder 'no/' does not exist" "${search[@]}" --index no/hay "The keys."
: >hay.txt
says 3 "contains no lines to search" "${search[@]}" "The keys."

# Two runs that start in one new folder: one gets it; the other ends without changing anything.
small=("$bert" train --quiet --objective bert --text demo/world.txt --size tiny --steps 4 --batch 2 --length 16)
races=2 kills=(2 7) sizes=(9 1400)
[ "${TENON_CONFIG:-}" != full ] || races=5 kills=(1 2 3 4 6 7 8) sizes=(9 20 1400)
for ((i = 1; i <= races; i++)); do
    "${small[@]}" --vocab-size 300 --out race$i >/dev/null 2>err1.txt &
    first=$? one=$! two=0
    "${small[@]}" --vocab-size 500 --out race$i >/dev/null 2>err2.txt || two=$?
    wait $one || first=$?
    [ "$first$two" = 01 ] || [ "$first$two" = 10 ] || wrong "two runs on one folder end with $first and $two"
    grep -qE "is in use by another run|already contains a model" err1.txt err2.txt ||
        wrong "two runs on one folder say: $(cat err1.txt err2.txt)"
    grep -q "\"vocab_size\": $([ $first = 0 ] && echo 300 || echo 500)" race$i/config.json ||
        wrong "two runs on one folder mix their files: $(grep vocab_size race$i/config.json)"
done
mkdir taken
exec 9<taken && flock 9
says 1 "'taken' is in use by another run" "${train[@]}" --out taken
exec 9<&-
# A run that was killed just before any of its files was renamed, or that ran out of disk space, can be started again or
# resumed, and ends with the same bits; no partial file remains.
"${small[@]}" --vocab-size 300 --out undisturbed >/dev/null || wrong "bert train failed"
"${CC:-cc}" -shared -fPIC -o kill_at.so "$root/tests/project/kill_at.c"
broken() # NAME CODE COMMAND...: COMMAND ends a run with CODE; its folder can still be used
{
    local name=$1 code=$2 rc=0
    shift 2
    ("$@" "${small[@]}" --vocab-size 300 --out "$name" && exit) >/dev/null 2>&1 || rc=$?
    [ $rc = "$code" ] || wrong "$*: bert train ends with $rc"
    "${small[@]}" --vocab-size 300 --out "$name" >/dev/null 2>err.txt ||
        "${small[@]}" --vocab-size 300 --out "$name" --resume >/dev/null 2>>err.txt ||
        wrong "$*: the run can neither be begun nor gone on with: $(cat err.txt)"
    same_folder undisturbed "$name" || wrong "$*: other bits"
    findings < <(find "$name" -name '.*.tmp.*' -printf 'half a file stays: %p\n')
}
for n in "${kills[@]}"; do broken killed$n 137 env LD_PRELOAD=./kill_at.so KILL_AT=$n; done
# A run with a validation text and word vectors that was killed early leaves nothing to one without.
with_more=(env LD_PRELOAD=./kill_at.so KILL_AT=4 bash -c 'exec "$@" --valid demo/held-out.txt --word-vectors 1' -)
broken killed.more 137 "${with_more[@]}"
for n in "${sizes[@]}"; do broken full$n 5 bash -c "ulimit -f $n && exec \"\$@\"" -; done
# Out of disk space during the training: the message says how to continue, and that works.
says 5 "then continue with bert train --out" bash -c "ulimit -f 2500 && exec \"\$@\"" - \
    "$bert" train --text demo/world.txt --size tiny --steps 24 --batch 2 --length 16 --vocab-size 300 --out full
"$bert" train --quiet --text demo/world.txt --size tiny --steps 24 --batch 2 --length 16 --vocab-size 300 --out full \
    --resume >/dev/null || wrong "a run that ran out of space does not go on"
# A disk that is too small is detected before anything is written, if this machine can mount one.
unshare -rm bash -c 'mkdir -p disk && mount -t tmpfs -o size=4m none disk' 2>/dev/null &&
    says 5 "MiB of disk space, but" unshare -rm bash -c \
        'mount -t tmpfs -o size=4m none disk && exec "$@"' - "${small[@]}" --vocab-size 300 --out disk/model

# Contradictory options are detected before a tokenizer is trained.
says 2 "a width of 128 is not divisible by 3 heads; change --dim" "${small[@]}" --heads 3 --out other
says 2 "--size must be one of tiny|mini|small|medium|base|large, got 'huge'" "${small[@]}" --size huge --out other
says 2 "--cased is for a new tokenizer" "${small[@]}" --cased --vocab $model --out other
says 2 "--vocab-size is for a new tokenizer" "${small[@]}" --vocab-size 90 --vocab $model --out other
[ ! -e other ] || wrong "bert train leaves a folder behind where its options are wrong"

# With a small stack, whose limit cannot be raised.
(ulimit -s 64 && exec "${small[@]}" --vocab-size 300 --out narrow) >/dev/null || wrong "ulimit -s 64 ends bert train"
cmp undisturbed/model.safetensors narrow/model.safetensors || wrong "on a small stack bert train ends with other bits"

# Scores of tags, as conlleval prints them: with CRLF, tabs, a byte order mark; and bad lines.
printf '\xef\xbb\xbfEU\tB-ORG\tB-ORG\r\n\t\r\nPeter  I-PER I-PER\nBlack  I-PER O\n' >tags.txt
"$bert" score entities <tags.txt | diff - <(
    echo "processed 3 tokens with 2 phrases; found: 2 phrases; correct: 1."
    echo "accuracy:  66.67%; precision:  50.00%; recall:  50.00%; FB1:  50.00"
    echo "              ORG: precision: 100.00%; recall: 100.00%; FB1: 100.00  1"
    echo "              PER: precision:   0.00%; recall:   0.00%; FB1:   0.00  1"
) || wrong "bert score entities prints another table"
"$bert" score entities --strict <tags.txt | grep -q '1 phrases; found: 1 phrases; correct: 1\.' ||
    wrong "bert score entities --strict counts an I that continues nothing"
"$bert" score entities --json <tags.txt | diff - <(
    printf '{"tokens":3,"accuracy":66.6667,"gold":2,"found":2,"correct":1,"precision":50.0,"recall":50.0,"f1":50.0,'
    printf '"types":[{"type":"ORG","gold":1,"found":1,"correct":1,"precision":100.0,"recall":100.0,"f1":100.0},'
    printf '{"type":"PER","gold":1,"found":1,"correct":0,"precision":0.0,"recall":0.0,"f1":0.0}]}\n'
) || wrong "bert score entities --json"
"$bert" score entities --json </dev/null | grep -q '^{"tokens":0,.*"types":\[\]}$' ||
    wrong "bert score entities --json of nothing"
unread() { printf '%b' "$1" | "$bert" score entities "${@:2}"; }
says 3 "line 2: one column, expected at least two" unread 'a O O\nb\n'
says 3 "line 3: 2 columns, but 3 in the lines before" unread 'a O O\n\nb O\n'
says 3 "line 1: 'S-PER' is not a BIO tag" unread 'a O S-PER\n' --strict
says 2 "unknown 'score words'; expected entities, labels or answers" "$bert" score words
says 2 "score labels reads one FILE" "$bert" score labels
says 2 "--task is for labels" "$bert" score entities --task cola
says 2 "--none is for answers" "$bert" score labels said.tsv --none none.json
says 2 "--strict is for entities" "$bert" score answers gold.json said.json --strict
printf 'y\ty\nn\ty\ny\ty\nn\tn\n' >said.tsv
[ "$("$bert" score labels said.tsv --json)" = \
    '{"examples":4,"accuracy":75.0,"f1":80.0,"matthews":0.5774,"f1_of":"y"}' ] || wrong "bert score labels"
"$bert" score labels said.tsv | grep -q '^f1         80.00 %  y$' || wrong "score labels does not name F1's label"
[ "$("$bert" score labels --task cola said.tsv)" = $'examples   4\nmatthews   0.5774' ] ||
    wrong "bert score --task cola"
printf '1\t2\n2\t4\n3\t5\n' >said.tsv
[ "$("$bert" score labels --task sts-b said.tsv --json)" = '{"examples":3,"pearson":0.982,"spearman":1.0}' ] ||
    wrong "bert score --task sts-b"
printf '1\t2\n1\t3\n' >flat.tsv
[ "$("$bert" score labels --task sts-b flat.tsv --json)" = '{"examples":2,"pearson":null,"spearman":null}' ] &&
    "$bert" score labels --task sts-b flat.tsv | grep -qx 'pearson    undefined' ||
    wrong "bert score --task sts-b of numbers that are all the same"
cat >gold.json <<'END'
{"data": [{"paragraphs": [{"context": "The old man sails.", "qas": [{"id": "1", "question": "Who sails?",
"answers": [{"text": "The old man", "answer_start": 0}]}, {"id": "2", "question": "When?", "answers": [],
"is_impossible": true}]}]}]}
END
echo '{"1": "an OLD man!", "2": "sails"}' >said.json
[ "$("$bert" score answers gold.json said.json --json)" = '{"examples":2,"f1":50.0,"em":50.0}' ] ||
    wrong "bert score answers"
echo '{"1": 0.25, "2": 0.5}' >none.json
[ "$("$bert" score answers gold.json said.json --none none.json --json)" = \
    '{"examples":2,"f1":100.0,"em":100.0,"threshold":0.25}' ] || wrong "bert score answers --none"
echo '{"1": 0.25}' >none.json
says 3 "'none.json' has no value for question '2'" "$bert" score answers gold.json said.json --none none.json

says 1 "no [MASK] in the text" "$bert" fill --model $model "No blank here."
says 2 "--steps, --epochs and --minutes" "${train[@]}" --minutes 1 --out other
says 5 "nowhere" "$bert" fill --model nowhere "The [MASK]."
: >empty.txt
says 3 "no words found" "$bert" train --text empty.txt --out none --steps 1
exit $wrong
