#!/usr/bin/env bash
# Bad input: files that are not text, models that do not match, folders of other models, full disks. Each gives an error
# that names the cause, with the exit code of its kind (see programs/common/options.h), and leaves no partial file.
. "$(dirname "$0")/common.sh"
fresh bad_input
bert=$build/bin/bert
tokenize=$build/bin/tokenize
[ -x "$bert" ] && [ -x "$tokenize" ] || { echo "SKIPPED: the programs are not built" && exit 77; }

# says CODE TEXT COMMAND...: checks the exit code, and that standard error is this one line
says()
{
    local code=$1 text=$2 got=0
    shift 2
    "$@" </dev/null >out 2>err || got=$?
    [ $got = "$code" ] || wrong "'$*' ends with $got, not $code, and says: $(head -n 3 err)"
    [ "$(cat err)" = "$text" ] || wrong "'$*' says: $(head -n 3 err); expected: $text"
}

# leaves FOLDER FILE...: the folder contains only these files, or does not exist
leaves()
{
    local folder=$1
    shift
    [ "$(ls -A "$folder" 2>/dev/null | sort)" = "$(printf '%s\n' "$@" | sort)" ] ||
        wrong "$folder holds $(echo $(ls -A "$folder")), expected: $*"
}

# broken FOLDER: a copy of the model
broken() { rm -rf "$1" && cp -r model "$1" && rm "$1/SHA256SUMS"; } # which has the hashes of the small files

"$bert" sample-corpus -n 40 >text
: >empty
printf '\n  \n\t\n\r\n' >blank
printf 'ab\ncd\0ef\n' >binary
printf 'one line\nand another\n' >document
head -c 17000000 /dev/zero | tr '\0' 'a' >line
given=("$bert" train --quiet --objective bert --size tiny --steps 2 --batch 2 --length 16)
train=("${given[@]}" --vocab-size 200)
"${train[@]}" --text text --out model >/dev/null || wrong "bert train fails"
fill=("$bert" fill -k 1 "The [MASK].")

# ---- texts ----

utf16=" (UTF-16? convert it with iconv -f utf-16 -t utf-8)"
none="'empty': no words found in the text"
says 3 "bert: $none" "${train[@]}" --text empty --out none
says 3 "bert: ${none/empty/blank}" "${train[@]}" --text blank --out none
says 3 "bert: 'empty': no words found in this or the other texts" \
    "${train[@]}" --text empty blank --out none
says 3 "bert: 'binary': byte 5 is NUL; expected a text in UTF-8$utf16" \
    "${train[@]}" --text binary --out none
says 5 "bert: 'missing': cannot open: no such file or folder (errno 2)" \
    "${train[@]}" --text text missing --out none
says 3 "bert: no text found in empty" "${train[@]}" --text text --valid empty --out none
says 3 "bert: 'document' is one document, but predicting the next sentence needs several; put an empty line between \
documents, or train with --objective roberta" \
    "${given[@]}" --text document --vocab model --out one --objective bert
says 3 "bert: 'line': line 1 has more than 16777216 bytes; expected a text with line ends" \
    bash -c "ulimit -v 1000000; exec \"\$@\"" - "${given[@]}" --vocab model --text line --out none
says 1 "bert: --vocab-size is 20, but the special tokens (5) and the characters (53) alone are \
more; raise it, or lower .alphabet" "${train[@]}" --vocab-size 20 --text text --out none
leaves one corpus.tokens
"${given[@]}" --objective modernbert --text document --vocab model --out whole >/dev/null ||
    wrong "a document that is too short to hold out a part is not trained on"
leaves none corpus.tokens # the training text was good

says 3 "bert: no text found in blank" "$bert" eval --model model blank
says 3 "bert: 'binary': line 2 has a NUL byte; expected text in UTF-8$utf16" \
    "$bert" eval --model model binary
says 3 "bert: 'document' is one document, but predicting the next sentence needs several; put an empty line between \
documents" "$bert" eval --model model document
[ ! -e model/eval.tokens.tmp ] || wrong "bert eval leaves a file behind"
says 3 "bert: line 2: a NUL byte; expected text$utf16" bash -c "'$bert' embed --model model <binary"
says 3 "bert: line 1: a line of more than 16777216 bytes; expected a text with line ends" \
    bash -c "ulimit -v 1000000; '$bert' embed --model model <line"
says 5 "bert: line 1: standard input: Is a directory" bash -c "'$bert' embed --model model <."

# Tokenizers of words, and of bytes, which read invalid UTF-8 as U+FFFD.
printf 'das M\344dchen\nund das Fr\344ulein\n%.0s' {1..200} >latin1
for program in lm elmo gpt; do
    learn=("$build/bin/$program" train --threads 1 --steps 1 --no-progress --out lesson)
    says 3 "$program: 'binary': byte 5 is NUL; expected a text in UTF-8$utf16" "${learn[@]}" --text binary
    [ $program = gpt ] || says 3 "warning: 'latin1' is not valid UTF-8 in 400 places, the first at byte 5; they are \
read as U+FFFD; if the file has another encoding, convert it, for example with iconv -f latin1 -t utf-8
$program: the word 'Fr...' of the text is not UTF-8: its byte 3 is 0xe4; convert it, \
for example with iconv -f latin1 -t utf-8" "${learn[@]}" --quiet --text latin1
    [ $program != gpt ] || learn+=(--size tiny --batch 2 --length 16) # without them a step takes half a minute
    "${learn[@]}" --text latin1 >out 2>err || [ $program != gpt ] || wrong "gpt refuses bytes that are not UTF-8"
    head -n 1 err | grep -qF "warning: 'latin1' is not valid UTF-8 in 400 places, the first at byte 5; they are read" ||
        wrong "$program does not tell of bytes that are not UTF-8, but says: $(head -n 3 err)"
done
"$bert" train --no-progress --size tiny --steps 1 --batch 2 --length 16 --vocab model --objective roberta \
    --text latin1 --out accents >out 2>err || wrong "bert refuses bytes that are not UTF-8: $(head -n 3 err)"
head -n 1 err | grep -qF "warning: 'latin1': 400 sentences are not valid UTF-8" ||
    wrong "bert does not tell of bytes that are not UTF-8, but says: $(head -n 3 err)"

for type in wordpiece bpe byte-bpe; do
    learn=("$tokenize" train --no-progress --type $type --out new)
    says 3 "tokenize: $none" "${learn[@]}" empty
    says 3 "tokenize: 'binary': byte 5 is NUL; expected a text in UTF-8$utf16" \
        "${learn[@]}" binary
done
says 3 "tokenize: 'line': no words found in the text" \
    bash -c "ulimit -v 1000000; exec \"\$@\"" - "${learn[@]}" line
leaves new
says 3 "tokenize: 'line': no words found in the text" \
    "$tokenize" train --no-progress --type subword --out codes line
[ ! -e codes ] || wrong "tokenize train --type subword leaves codes of a file that is not a text"

# ---- vocabularies ----

printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\na\n' >maskless.txt
says 7 "bert: the tokenizer has no [MASK]; masked language models need [PAD], [CLS], [SEP] and [MASK] in the \
vocabulary" \
    "${given[@]}" --text text --vocab maskless.txt --out none
says 1 "tokenize: .vocab_size is 3, but there are 5 special tokens" \
    "$tokenize" train --no-progress --type bpe --size 3 --out new text
says 1 "bert: no [MASK] in the text; write it where a token is missing" \
    "$bert" fill --model model "No blank here."
broken bad
sed -i '/"mask_token"/d; s/\[MASK\]/[HIDE]/g' bad/tokenizer.json bad/tokenizer_config.json \
    bad/special_tokens_map.json bad/vocab.txt
says 7 "bert: this tokenizer has no [MASK]" "${fill[@]}" --model bad

# ---- models ----

"$tokenize" train --quiet --type wordpiece --size 300 --out more text
broken bad && cp more/* bad/
says 3 "bert: 'bad': the tokenizer has 300 tokens, but the model only 200 token ids; use the model's own tokenizer" \
    "${fill[@]}" --model bad
broken bad && cp model/SHA256SUMS bad && sed -i 's/"hidden_size": 128/"hidden_size": 256/' bad/config.json
says 3 "bert: 'bad/config.json' was changed after it was saved: its SHA-256 differs from SHA256SUMS in its folder; if \
the change is intended, delete its line there" "${fill[@]}" --model bad
broken bad && sed -i 's/"hidden_size": 128/"hidden_size": 256/' bad/config.json
says 3 "bert: 'bad/model.safetensors' has 522314 elements, but the model that config.json \
describes has at least 1233408" \
    "${fill[@]}" --model bad
broken bad && sed -i 's/"vocab_size": 200/"vocab_size": 199/' bad/config.json
says 3 "bert: 'bad/model.safetensors' holds another model: 2 of another shape: \
cls.predictions.bias is [199], the file has [200]" "${fill[@]}" --model bad
broken bad && head -c 1000000 model/model.safetensors >bad/model.safetensors
size=$(stat -c %s model/model.safetensors)
header=$((size - 2089256))
says 3 "bert: 'bad/model.safetensors': its tensors have 2089256 bytes, but $((1000000 - header)) \
follow the header: the file is truncated" "${fill[@]}" --model bad
broken bad && rm bad/model.safetensors
says 5 "bert: 'bad/model.safetensors': cannot open: no such file or folder (errno 2)" \
    "$bert" info bad
says 5 "bert: 'nowhere': no such file or directory" "$bert" info nowhere

# ---- folders, and resuming ----

sum() { (cd "$1" && find . -type f ! -name lock -exec md5sum {} + | sort); }
sum model >before
says 1 "bert: 'model' already contains a model; choose another folder, or continue its training with --resume" \
    "${train[@]}" --text text --out model
says 1 "bert: 'model' is another run: --lr is 0.001 in the run, 0.01 here; omit it to resume it, or choose another \
folder" "${train[@]}" --text text --out model --resume --lr 0.01
sum model | diff before - >difference || wrong "a run that was refused changes the model: $(cat difference)"
"$bert" sample-corpus -n 50 >other
"${train[@]}" --text other --out model --resume 2>err && wrong "bert train --resume takes another text"
grep -q -- "--text is 'text' in the run, 'other' here, with other contents" err || wrong "another text: $(cat err)"
mkdir theirs && echo '{"model_type": "gpt2"}' >theirs/config.json
says 1 "bert: 'theirs' contains another model, or a part of one: 'config.json'; choose another folder" \
    "${train[@]}" --text text --out theirs
says 1 "tokenize: 'theirs' already contains a tokenizer or a model: 'config.json'; choose another --out, \
or use --force" "$tokenize" train --type bpe --out theirs text
leaves theirs config.json
says 1 "bert: 'none' contains no run to resume; omit --resume to start a new one" \
    "${train[@]}" --text text --out none --resume
says 5 "bert: 'text' is a file, expected a folder" "${train[@]}" --text text --out text
"${train[@]}" --text text --out none --batch 60000 --length 16384 2>err && wrong "terabytes are there?"
grep -q "^bert: the training needs about .* GiB of memory, but .* are available; reduce --batch, --length or" err ||
    wrong "a model that is too large for this machine: $(cat err)"

broken bad && head -c 1000000 model/checkpoints/step-000000000002.ckpt >bad/checkpoints/step-000000000002.ckpt
"${train[@]}" --text text --out bad --resume >/dev/null 2>err || wrong "a checkpoint that is cut off: $(cat err)"
cmp model/model.safetensors bad/model.safetensors || wrong "from the checkpoint before, it ends with other bits"
broken bad && for file in bad/checkpoints/*.ckpt; do truncate -s 1000000 "$file"; done
"${train[@]}" --text text --out bad --resume >/dev/null 2>err && wrong "no checkpoint is whole, and it goes on"
grep -q "^bert: all checkpoints in 'bad/checkpoints' are damaged; to start a new run, use another" err ||
    wrong "checkpoints that are cut off: $(cat err)"
cmp model/model.safetensors bad/model.safetensors || wrong "checkpoints that are cut off: the model is lost"

# ---- data in the wrong place ----

printf 'good\ncaf\351\n' | "$bert" embed --model model >out 2>err && [ "$(wc -l <out)" = 2 ] ||
    wrong "embed: $(cat err)"
grep -q '^warning: 1 line is not UTF-8, the first is line 2; convert it' err || wrong "embed, of latin1: $(cat err)"
"$bert" classify --model model <text 2>err && wrong "a model without a classifier classifies"
grep -q '; make such a model with bert tune$' err || wrong "classify without a classifier: $(cat err)"
if [ -x "$build/bin/gpt" ]; then
    "$build/bin/gpt" write --model model --prompt a 2>err && wrong "gpt opens a BERT"
    grep -q '; the program bert opens it$' err || wrong "gpt, of a BERT: $(cat err)"
    "$build/bin/gpt" convert --model model --out model.bin 2>err && wrong "gpt convert writes a .bin"
    grep -q "cannot write this format; name a folder, or a file that ends in .gguf" err || wrong "a .bin: $(cat err)"
fi

for i in 1 2 3 4; do printf 'label %s\tthe man saw number %s\n' $i $i; done >swapped.tsv
says 3 "bert: 'swapped.tsv': each of the 4 texts has a label of its own, such as 'the man saw number 1'; are the \
columns swapped? --text and --label name them" \
    "$bert" tune classify --quiet --model model --train swapped.tsv --text 1 --label 2 --epochs 1 --out none
says 3 "bert: 'swapped.tsv', line 1: the first column has several words; expected one word per line, with its tag, and \
an empty line after each sentence" \
    "$bert" tune tag --quiet --model model --train swapped.tsv --epochs 1 --out none
if [ -x "$build/bin/translate" ]; then
    "$build/bin/translate" train --no-progress --src text --tgt text --out same --size tiny --tokens 400 --steps 1 \
        >out 2>err ||
        wrong "translate train fails: $(cat err)"
    grep -q "^warning: 'text' and 'text' are the same text" err || wrong "no warning of a target that is the source"
fi
if [ -x "$build/bin/vectors" ]; then
    "$build/bin/vectors" train --quiet --text text --dim 4 --min-count 1 --out words.vec >/dev/null
    printf 'zzz\tyyy\t3\nman\tyyy\t4\n' >pairs
    says 3 "vectors: 'pairs': the vectors have no pair of its words (2 pairs); expected two words and a number per \
line, in the spelling of the vectors (lower case?)" "$build/bin/vectors" similarity --vectors words.vec pairs
fi
if [ -x "$build/bin/gpt" ]; then # a run that ends worse than it began
    learn=("$build/bin/gpt" train --no-progress --text text --vocab-size 300 --size tiny --length 16 --batch 2
        --steps 30)
    "${learn[@]}" --lr 3 --out diverged >out 2>err || wrong "gpt train fails: $(tail -n 1 err)"
    grep -q '^warning: the loss, [0-9.e+]*, is larger than that of a uniform guess, 5.7[0-9]*: the training has' err ||
        wrong "no warning of a run that diverged: $(cat err out)"
    "${learn[@]}" --out good >out 2>err && ! grep warning err || wrong "a good run: $(cat err)"
    "$build/bin/gpt" write --model good --tokens 1 <document >out 2>err # a prompt that is not read
    head -c 20 out | cmp -s - <(head -c 20 document) || wrong "gpt write does not read its pipe: $(cat out err)"
    "$build/bin/gpt" write --model good --tokens 1 </dev/null >out 2>err && [ ! -s err ] || wrong "no input: $(cat err)"
fi

# ---- full disks ----

full="cannot (write|reserve [0-9]+ bytes): the file would be larger than the process or the file system allows"
for blocks in 1 4 100 3000; do # KiB: too few for the tokens, for the tokenizer, for weights, for a checkpoint
    rm -rf full
    (ulimit -f $blocks && exec "${train[@]}" --text text --out full) >/dev/null 2>err && wrong "$blocks KB are enough?"
    grep -qE "$full" err || wrong "a full disk of $blocks KB: $(cat err)"
    left=$(find full -name '*.tmp*' -o -name '.*.tmp*' -o -name model.safetensors)
    [ -z "$left" ] || wrong "a full disk of $blocks KB leaves: $left"
done
"${train[@]}" --text text --out full --resume >/dev/null && cmp model/model.safetensors full/model.safetensors ||
    wrong "with space again, the run that the full disk ended does not go on to the same bits"
(ulimit -f 8 && exec "$bert" attention --model model --html look.html "The man.") 2>err && wrong "8 KB are enough?"
[ ! -e look.html ] || wrong "a full disk leaves half a page"
if [ -e /dev/full ]; then
    for what in "fill --model model [MASK]" "embed --model model text" "eval -q --model model text" "info model"; do
        says 5 "bert: cannot write to standard output" bash -c "'$bert' $what >/dev/full"
    done
fi
exit $wrong
