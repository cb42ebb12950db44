#!/usr/bin/env bash
# The program gpt as a user runs it: a small demo, generation, a conversation, evaluation, an interrupted and resumed
# run, and its error messages.
. "$(dirname "$0")/common.sh"
fresh gpt
gpt=$build/bin/gpt

"$gpt" demo --quiet --out demo --steps 8 --documents 60 >last.txt || wrong "gpt demo failed"
"$gpt" demo --quiet --out demo --documents 60 --resume | cut -d' ' -f4- |
    cmp -s - <(tail -n 1 last.txt | cut -d' ' -f4-) ||
    wrong "gpt demo --resume does not go on with its own number of steps"
tail -n 1 last.txt | grep -qE '^After [0-9.]+ minutes the model needs [0-9.]+ bits per byte of unseen text; the ' ||
    wrong "gpt demo ends with: $(tail -n 1 last.txt)"
grep -q '<svg' demo/report.html && grep -qE 'amount to [0-9.]+ bits per byte' demo/report.html ||
    wrong "the report of gpt demo has no pictures, or does not say what the grammar allows"
model=demo/model
write=("$gpt" write --model $model --prompt "The old" --tokens 30)

# It writes the prompt and the continuation, and nothing else; the same text for any number of threads; sampling depends
# on the seed.
"${write[@]}" --temperature 0 >one.txt 2>err.txt || wrong "gpt write failed: $(cat err.txt)"
[ ! -s err.txt ] && [ "$(head -c 7 one.txt)" = "The old" ] && [ "$(wc -c <one.txt)" -gt 20 ] ||
    wrong "gpt write writes: $(cat one.txt err.txt)"
"${write[@]}" --temperature 0 --threads 2 | cmp - one.txt || wrong "another number of threads, another text"
echo "The old" >prompt.txt
file=("$gpt" write --model $model --tokens 30 --temp 0 --file) # --temp: --temperature, shortened
"${file[@]}" prompt.txt | cmp - one.txt || wrong "gpt write --file continues another text than --prompt"
"${file[@]}" - <prompt.txt | cmp - one.txt || wrong "gpt write --file - does not read standard input"
"${write[@]}" --seed 7 >two.txt
"${write[@]}" --seed 7 --threads 2 | cmp - two.txt || wrong "the same seed, another text"
! "${write[@]}" --seed 8 | cmp -s - two.txt || wrong "another seed, the same text"
for i in $(seq 60); do for k in é ü ß ç æ ñ 日本; do printf 'na%sve %s' $k $k; done; echo; done >accents
"$gpt" train --quiet --text accents --shape gpt2 --size tiny --steps 10 --vocab-size 270 --length 32 --out accented \
    >/dev/null
for seed in 1 2 3 4 5 6; do # some of these texts end within a character
    "$gpt" write --model accented --prompt "na" --tokens 9 --seed $seed >ends.txt
    ! tail -c 3 ends.txt | cmp -s - <(printf '\357\277\275') || wrong "gpt write ends with U+FFFD: $(cat ends.txt)"
done
for how in "--temperature 0.01" "--top-k 1" "--top-p 0.000001" "--min-p 1"; do
    # shellcheck disable=SC2086
    "${write[@]}" $how --temperature 0.01 | cmp - one.txt || wrong "$how does not choose the likeliest"
done
! "${write[@]}" --temperature 0 --top-k 3 >stray.txt 2>&1 && grep -q 'top-k is for sampling' stray.txt ||
    wrong "--top-k where nothing is drawn: $(cat stray.txt)"
! "${write[@]}" --temperature 0 --repetition-penalty 5 | cmp -s - one.txt ||
    wrong "--repetition-penalty changes nothing"
[ "$("$gpt" write --model $model --prompt "The old" --tokens 0)" = "The old" ] || wrong "--tokens 0 writes something"
# A text longer than the context, of which the model keeps the last half: the part before that is the same.
"$gpt" write --model $model --prompt "The old" --tokens 300 --temperature 0 >long.txt || wrong "a long text fails"
cmp -n "$(wc -c <one.txt)" one.txt long.txt || wrong "a long text begins otherwise"
[ "$(wc -c <long.txt)" -gt 600 ] || wrong "300 pieces are $(wc -c <long.txt) bytes"

# --prompts: each line is continued as --prompt would; --json prints the continuation.
printf 'The old\n{"prompt": "The ship"}\n' >prompts
each=("$gpt" write --model $model --tokens 30 --seed 5)
{ "${each[@]}" --prompt "The old" && printf '\n\n' && "${each[@]}" --prompt "The ship" && echo; } >apart.txt
"${each[@]}" --prompts prompts | cmp - apart.txt || wrong "--prompts are not continued as each --prompt"
"${each[@]}" --prompts - --json <prompts >json.txt || wrong "--prompts - --json failed"
[ "$(sed -n 's/{"prompt":"\([^"]*\)","text":.*/\1/p' json.txt | paste -sd,)" = "The old,The ship" ] ||
    wrong "--prompts --json prints: $(cat json.txt)"
"${each[@]}" --prompt "The ship" --json | cmp - <(tail -n 1 json.txt) || wrong "--prompt --json differs from --prompts"
# A prompt that is too long is reported; the others are continued, and the exit code is 1.
{
    head -n 1 prompts
    head -c 30000 /dev/zero | tr '\0' 'a' && echo
    tail -n 1 prompts
} >long
rc=0
"${each[@]}" --prompts long --json >long.txt 2>err.txt || rc=$?
[ $rc = 1 ] && sed 2d long.txt | cmp - json.txt || wrong "--prompts with a long one: $rc, $(cut -c 1-80 long.txt)"
sed -n 2p long.txt | grep -q '"error":"the prompt has [0-9]* tokens, but the model reads at most' ||
    wrong "--json of a long prompt: $(sed -n 2p long.txt | tail -c 200)"
grep -q "^warning: 'long', line 2: the prompt has [0-9]* tokens" err.txt || wrong "a long prompt: $(cat err.txt)"
says 2 "--prompt and --prompts exclude each other" "${each[@]}" --prompts prompts --prompt x

# A stop word ends the text; neither it nor its start is printed.
stop=$(tail -c 12 one.txt | head -c 5)
"${write[@]}" --temperature 0 --stop "$stop" >stopped.txt
awk -v RS='\001' -v stop="$stop" '{ printf "%s", substr($0, 1, index($0, stop) - 1) }' one.txt | cmp - stopped.txt ||
    wrong "--stop '$stop' leaves: $(cat stopped.txt)"

# Characters of several bytes are written as a whole: the output is valid UTF-8 at any time.
for i in $(seq 200); do echo "größer als 日本語, née $i"; done >wide.txt
train=("$gpt" train --quiet --shape gpt2 --text wide.txt --size tiny --dim 32 --layers 1 --batch 4 --length 100)
"${train[@]}" --vocab-size 257 --steps 100 --lr 0.01 --out bytes >/dev/null || wrong "gpt train failed"
"$gpt" write --model bytes --prompt "größer als " --tokens 60 --temperature 0 | while
    dd bs=4096 count=1 of=part 2>/dev/null && [ -s part ]
do
    iconv -f UTF-8 -t UTF-8 part >/dev/null || echo "half a character is written"
    cat part >>whole
done | findings
grep -q '日本' whole || wrong "a model of bytes does not learn 日本: $(cat whole)"

# The example of 45 lines learns the same text.
"$build/bin/train_gpt" wide.txt 50 "größer als" >example.txt 2>steps.txt || wrong "train_gpt failed: $(cat steps.txt)"
grep -qE '^step 50: [01]\.' steps.txt && [ "$(head -c 12 example.txt)" = "größer als" ] ||
    wrong "train_gpt writes: $(cat steps.txt example.txt)"

# A text ends at a token of eos_token_id, in generation_config.json or otherwise in config.json; an id outside of the
# vocabulary is ignored; and `gpt convert` keeps the setting.
grep -q '"eos_token_id": *[0-9]' bytes/generation_config.json || wrong "gpt train does not say where a text ends"
cp -r bytes ends && rm ends/SHA256SUMS ends/generation_config.json
ends=("$gpt" write --model ends --prompt "größer als " --tokens 60 --temperature 0)
id_of() { grep -oE "\"$1\": ?[0-9]+" ends/vocab.json | grep -oE '[0-9]+$'; }
cp ends/config.json plain.json
end_at() # FILE VALUE TEXT: the whole text up to there
{
    if [ "$1" = config.json ]; then
        sed "1s/{/{\"eos_token_id\": $2,/" plain.json >ends/config.json
    else
        echo "{\"eos_token_id\": $2}" >ends/generation_config.json
    fi
    "${ends[@]}" >ended.txt || wrong "eos_token_id $2 in $1 fails"
    awk -v RS='\001' -v end="$3" '{ n = index($0, end); printf "%s", n ? substr($0, 1, n - 1) : $0 }' whole |
        cmp - ended.txt ||
        wrong "eos_token_id $2 in $1 does not end the text at '$3': $(cat ended.txt)"
}
end_at config.json "$(id_of ,)" ,
end_at config.json 50256 none
end_at generation_config.json "[50256, $(id_of ,), $(id_of n)]" ,
"$gpt" convert --model ends --out ends.gguf >/dev/null || wrong "gpt convert failed"
"$gpt" write --model ends.gguf --prompt "größer als " --tokens 60 --temperature 0 | cmp - ended.txt ||
    wrong "gpt convert forgets where a text ends"
end_at config.json "$(id_of n)" ,
end_at generation_config.json null n

# Characters as tokens; and a conversation, whose cache is kept: the same as one long prompt.
"${train[@]}" --pieces characters --steps 60 --lr 0.01 --out letters >/dev/null ||
    wrong "train --pieces characters failed"
grep -q '"ðĹ¥æľ¬"' letters/vocab.json && wrong "two characters are one piece"
grep -q '"æĹ¥"' letters/vocab.json || wrong "a character of three bytes is no piece"
"$gpt" eval --model letters wide.txt --json --quiet >json.txt || wrong "gpt eval failed"
awk -F'[:,}]' '{ exit !($10 > $8) }' json.txt && [ "$(wc -l <json.txt)" = 1 ] || wrong "eval --json: $(cat json.txt)"
is_json json.txt || wrong "eval --json: $(cat json.txt)"
# A model with NaN weights gives an error, not a measurement; JSON has null for infinite values.
astray letters nan
for json in "" --json; do
    says 6 "the loss is NaN: look for NaN" "$gpt" eval --model nan wide.txt --quiet $json
    [ ! -s out.txt ] || wrong "gpt eval $json of a model of NaN says: $(cat out.txt)"
done
astray letters far transformer.ln_f.weight 107
"$gpt" eval --model far wide.txt --json --quiet >far.txt || wrong "gpt eval of a huge loss failed"
is_json far.txt && grep -q '"perplexity":null' far.txt || wrong "an infinite perplexity as JSON: $(cat far.txt)"
says 1 "--stride 9 would skip the tokens between" "$gpt" eval --model letters --length 8 --stride 9 wide.txt
says 2 "--ahead is for --draft and --lookup" "$gpt" write --model letters --ahead 3
for penalty in 1 5; do # the penalty also applies to tokens of earlier messages
    talk=(--model letters --temperature 0 --tokens 20 --repetition-penalty $penalty)
    printf 'größer\nals\n' | "$gpt" write "${talk[@]}" --chat >chat.txt || wrong "gpt write --chat failed"
    first=$("$gpt" write "${talk[@]}" --prompt $'größer\n' --stop $'\n' | tail -n +2)
    second=$("$gpt" write "${talk[@]}" --prompt "größer"$'\n'"$first"$'\n'als$'\n' --stop $'\n' | tail -n +4)
    printf '%s\n%s\n' "$first" "$second" | diff - chat.txt || wrong "a conversation is not as one long prompt"
done
talk=(--model letters --temperature 0 --tokens 20)

# With a template, the conversation is the text that the template writes; the model does not read a part twice.
"${train[@]}" --pieces characters --length 400 --batch 1 --steps 20 --lr 0.01 --out answering >/dev/null
template="{% for m in messages %}<|im_start|>{{ m.role + '\\n' + m.content }}<|im_end|>{{ '\\n' }}{% endfor %}"
template+="{% if add_generation_prompt %}<|im_start|>assistant{{ '\\n' }}{% endif %}"
printf '{"chat_template": "%s"}\n' "$template" >answering/tokenizer_config.json
sed -i /tokenizer_config/d answering/SHA256SUMS # the file was changed on purpose
printf 'größer\nals\n' | "$gpt" write "${talk[@]}" --model answering --chat >chat.txt ||
    wrong "--chat with a template fails"
answered() # PROMPT: the model's continuation
{
    local all
    all=$("$gpt" write "${talk[@]}" --model answering --prompt "$1" && echo .)
    all=${all%.} && printf '%s' "${all#"$1"}"
}
begin=$'<|im_start|>user\n' end=$'<|im_end|>\n<|im_start|>assistant\n'
first=$(answered "${begin}größer$end" && echo .) && first=${first%.}
second=$(answered "${begin}größer$end$first<|im_end|>"$'\n'"${begin}als$end" && echo .) && second=${second%.}
printf '%s\n%s\n' "$first" "$second" | cmp - chat.txt || wrong "a conversation is not what its template writes"
echo '{"chat_template": "{% for m in messages %}<start_of_turn>..."}' >answering/tokenizer_config.json
says 7 "chat template, line 1: a tag is not closed" "$gpt" write "${talk[@]}" --model answering --chat
printf 'größer\n' | "$gpt" write "${talk[@]}" --model answering --chat --stop $'\n' >chat.txt ||
    wrong "--chat --stop with a wrong template fails"

# With a draft the text is the same, and the accepted tokens are reported; --sinks generates without a limit.
"$gpt" write "${talk[@]}" --prompt größer >plain.txt
"$gpt" write "${talk[@]}" --prompt größer --draft letters 2>said.txt | cmp - plain.txt || wrong "--draft, another text"
grep -qE '^draft +[0-9]+ of [0-9]+ proposed tokens accepted' said.txt && grep -qE '^(speedup|slower) ' said.txt ||
    wrong "--draft says: $(cat said.txt)"
says 1 "they must have the same tokenizer" "$gpt" write "${talk[@]}" --prompt x --draft $model
says 2 "--draft and --sinks cannot be combined" "$gpt" write "${talk[@]}" --prompt x --draft letters --sinks 4
says 7 "only rotary positions are supported" "$gpt" write "${talk[@]}" --prompt x --sinks 4

# Proposals from earlier text, and a prompt cache: the same text; sampled, too.
"$gpt" write "${talk[@]}" --prompt größer --lookup 2>said.txt | cmp - plain.txt || wrong "--lookup, another text"
grep -qE '^lookup +[0-9]+ of [0-9]+ proposed tokens accepted' said.txt || wrong "--lookup says: $(cat said.txt)"
long=("$gpt" write --model $model --tokens 250 --prompt "The old man went to the") # longer than the context
"${long[@]}" >plain.txt
"${long[@]}" --lookup --ahead 3 --quiet | cmp - plain.txt || wrong "--lookup, another sampled text"
for read in 0 "$("${long[@]}" --prompt-cache tokens.cache --verbose 2>&1 >out.txt | awk '/^cache/ { print $4 }')"; do
    "${long[@]}" --prompt-cache old.cache --verbose 2>said.txt | cmp - plain.txt || wrong "--prompt-cache, another text"
    grep -q "^cache    $read of " said.txt || wrong "--prompt-cache does not read $read tokens: $(cat said.txt)"
done
"$gpt" write --model $model --tokens 20 --prompt "The old man went to sea." --prompt-cache old.cache --verbose \
    2>said.txt | cmp - <("$gpt" write --model $model --tokens 20 --prompt "The old man went to sea.") ||
    wrong "--prompt-cache of a similar prompt, another text"
grep -qE '^cache    [1-9][0-9]* of ' said.txt || wrong "--prompt-cache reads nothing of a similar prompt"
says 3 "old.cache': a prompt cache of another model" \
    "$gpt" write --model letters --prompt größer --prompt-cache old.cache
says 3 "old.cache': a prompt cache of another model" "${long[@]}" --type int8 --prompt-cache old.cache
head -c 1000 old.cache >cut.cache
says 3 "'cut.cache'" "${long[@]}" --prompt-cache cut.cache
says 2 "--draft and --prompt-cache cannot be combined" "${long[@]}" --draft $model --prompt-cache old.cache
says 2 "--lookup and --sinks cannot be combined" "${long[@]}" --lookup --sinks 4
says 2 "--prompt-cache is for --prompt and --file" "$gpt" write --model $model --chat --prompt-cache old.cache

# The rules of the example: each text follows its rule, or the error names what was found and expected.
constrain=$build/bin/constrain
"$constrain" prefix $model "The old" " ship is" | grep -q '^ ship is' || wrong "constrain prefix does not begin so"
"$constrain" ban $model "The old" e >banned.txt || wrong "constrain ban failed"
[ "$(wc -c <banned.txt)" -gt 20 ] && ! grep -q e banned.txt || wrong "constrain ban writes: $(cat banned.txt)"
"$constrain" answers $model "The old man went to the" " park" " house" " parks." >answered.txt
[ "$(cut -d ' ' -f 3 answered.txt | LC_ALL=C sort | paste -sd,)" = house,park,parks. ] &&
    cut -d ' ' -f 1 answered.txt | sort -rgc || wrong "constrain answers: $(cat answered.txt)"
schema='{"type":"object","properties":{"name":{"type":"string","maxLength":8},"born":{"type":"object","properties":'
schema+='{"year":{"type":"integer"}}},"mood":{"enum":["glad","glum","sad"]}},"required":["name"]}'
for prompt in "The old" "The keys to the" "A"; do
    "$constrain" json $model "$prompt" "$schema" >json.out || wrong "constrain json failed"
    grep -qE '^\{"name":"[^"\]{0,8}","born":\{"year":-?[0-9]{1,9}\},"mood":"(glad|glum|sad)"\}$' json.out ||
        wrong "constrain json writes: $(cat json.out)"
done
says 1 "schema: an enum has no values, expected at least one" "$constrain" json $model A '{"enum":[]}'
says 1 "schema: 'age' has the type 'colour', expected object, string, integer or an enum" \
    "$constrain" json $model A '{"type":"object","properties":{"age":{"type":"colour"}}}'
says 1 "schema: 'all of it' has the member 'minimum', expected one of type" "$constrain" json $model A \
    '{"type":"integer","minimum":3}'
says 1 ", and no token of the model continues it" "$constrain" json $model A '{"enum":["🙂"]}'

# Evaluation: windows and strides change the context of a token, not which tokens are counted.
counted() { head -n 40 demo/held-out.txt | "$gpt" eval --model $model - --json --quiet "$@" | grep -o '"tokens.*'; }
[ "$(counted)" = "$(counted --stride 100 --length 100)" ] || wrong "eval counts otherwise with another stride"
"$gpt" info letters | grep -q '^parameters' || wrong "gpt info does not say how many parameters"
"$gpt" convert --model letters --out converted >/dev/null || wrong "gpt convert failed"
cmp letters/model.safetensors converted/model.safetensors && cmp letters/tokenizer.json converted/tokenizer.json ||
    wrong "gpt convert changes the weights or the tokenizer"

"$gpt" info letters | grep -q '^format *huggingface$' || wrong "gpt info does not say what a folder is"

# To GGUF and back: the same weights and text; existing files are not overwritten. Also bf16 in a folder.
"$gpt" write "${talk[@]}" --prompt größer >from.txt
"$gpt" convert --model letters --out letters.gguf >/dev/null || wrong "gpt convert to GGUF failed"
"$gpt" info letters.gguf | grep -q '^format *gguf$' || wrong "gpt info does not say what a .gguf is"
"$gpt" write "${talk[@]}" --model letters.gguf --prompt größer | cmp - from.txt || wrong "a .gguf, another text"
"$gpt" eval --model letters.gguf wide.txt --json --quiet | cmp - json.txt || wrong "a .gguf is measured otherwise"
"$gpt" convert --model letters.gguf --out back >/dev/null || wrong "gpt convert from GGUF failed"
cmp letters/model.safetensors back/model.safetensors || wrong "GGUF and back, other weights"
for type in bf16 q8_0; do
    "$gpt" convert --model letters --out $type.gguf --type $type >/dev/null &&
        "$gpt" write --model $type.gguf --prompt größer --tokens 9 >/dev/null || wrong "--type $type fails"
done
# Weights packed in memory equal those packed in the file; also for f16 and f32.
"$gpt" write "${talk[@]}" --type q8_0 --prompt größer >packed.txt || wrong "gpt write --type q8_0 fails"
"$gpt" write "${talk[@]}" --model q8_0.gguf --prompt größer | cmp - packed.txt || wrong "q8_0 read, another text"
"$gpt" write "${talk[@]}" --model q8_0.gguf --type f32 --prompt größer | cmp - packed.txt ||
    wrong "q8_0 as f32, another text"
"$gpt" eval --model letters --type f16 wide.txt --json --quiet | grep -q '^{"loss":' ||
    wrong "gpt eval --type f16 fails"
"$gpt" convert --model letters --out half --type bf16 >/dev/null && "$gpt" info half >/dev/null &&
    [ $(($(stat -c %s half/model.safetensors) * 10)) -lt $(($(stat -c %s letters/model.safetensors) * 6)) ] ||
    wrong "a folder of --type bf16 is not half as large"
grep -q '"torch_dtype": "bfloat16"' half/config.json ||
    wrong "config.json of a bf16 folder says $(grep dtype half/config.json)"
says 1 "'letters.gguf' already exists" "$gpt" convert --model letters --out letters.gguf
says 1 "'half' already contains a model" "$gpt" convert --model letters --out half

# Without --type, matrices keep their dtype; a conversion that failed because the disk was full can be repeated.
"$gpt" convert --model q8_0.gguf --out q8_0-too.gguf >/dev/null && cmp q8_0.gguf q8_0-too.gguf ||
    wrong "gpt convert makes other matrices of 8 bits"
"$gpt" convert --model half --out half-too >/dev/null && cmp half/model.safetensors half-too/model.safetensors &&
    cmp half/config.json half-too/config.json || wrong "gpt convert makes f32 of bf16"
"$gpt" convert --model bf16.gguf --out bf16-too.gguf >/dev/null && cmp bf16.gguf bf16-too.gguf ||
    wrong "gpt convert makes f32 of a file's bf16"
if (trap '' XFSZ && ulimit -f 8 && "$gpt" convert --model letters --out small >/dev/null 2>&1); then
    wrong "a full disk is not noticed"
fi
"$gpt" convert --model letters --out small >/dev/null && cmp letters/model.safetensors small/model.safetensors ||
    wrong "what a failed conversion has left is in the way of the next one"
says 2 "--type q8_0 needs an --out that ends in .gguf" "$gpt" convert --model letters --out other --type q8_0

# llama2.c's model writes the text of llama2.c, from its own file, a folder and GGUF, after any conversions.
stories=$root/../shared/data/stories260K
if [ -e "$stories/stories260K.bin" ]; then
    bin=(--model "$stories/stories260K.bin" --tokenizer "$stories/tok512.bin")
    greedy=("$gpt" write --tokens 200 --temperature 0 --prompt "")
    "${greedy[@]}" "${bin[@]}" | cmp - "$stories/expected_greedy.txt" || wrong "llama2.c's .bin, another text"
    "$gpt" convert "${bin[@]}" --out stories >/dev/null && "$gpt" convert "${bin[@]}" --out stories.gguf >/dev/null &&
        "$gpt" convert --model stories --out again.gguf >/dev/null &&
        "$gpt" convert --model again.gguf --out again >/dev/null || wrong "gpt convert of llama2.c's .bin failed"
    "$gpt" eval "${bin[@]}" "$stories/expected_greedy.txt" --json --quiet >json.txt
    for path in stories stories.gguf again.gguf again; do
        "${greedy[@]}" --model $path | cmp - "$stories/expected_greedy.txt" || wrong "$path: not llama2.c's text"
        "$gpt" eval --model $path "$stories/expected_greedy.txt" --json --quiet | cmp - json.txt ||
            wrong "$path is measured otherwise"
    done
    "$gpt" write --tokens 200 --temperature 0 --model stories | cmp - "$stories/expected_greedy.txt" ||
        wrong "without --prompt LLaMA's model does not begin by itself"
    [ "$("$gpt" write --model again.gguf --prompt "Once upon" --tokens 5 --temperature 0)" = \
        "Once upon a time, there was" ] || wrong "llama2.c's text goes on otherwise behind a prompt"
    "$gpt" info "$stories/stories260K.bin" | grep -q '^format *llama2.c$' || wrong "gpt info fails for llama2.c's .bin"
    says 3 "contains no tokenizer; name its file or folder with --tokenizer" \
        "$gpt" write --model "$stories/stories260K.bin" --prompt x
else
    echo "SKIPPED: llama2.c's text: there is no shared/data/stories260K beside the project"
fi

# Text from standard input and from a folder; an interrupted and resumed run ends with the same bits; LLaMA's shape.
mkdir -p folder/inner && head -n 100 wide.txt >folder/a.txt && tail -n 100 wide.txt >folder/inner/b.txt
small=("$gpt" train --quiet --shape gpt2 --size tiny --dim 32 --layers 1 --batch 4 --length 32 --pieces characters
    --steps 24)
"${small[@]}" --text - --out whole1 <wide.txt >/dev/null || wrong "gpt train --text - failed"
"${small[@]}" --text folder --out parts >/dev/null 2>&1 &
while [ ! -e parts/checkpoints ] && kill -0 $! 2>/dev/null; do sleep 0.05; done
kill -INT $! 2>/dev/null || true # it may have ended
wait $! || true
cp -r parts all
mkdir -p elsewhere # --resume alone, in another folder, is the same as the whole command
(cd elsewhere && "$gpt" train --quiet --out ../parts --resume) >/dev/null || wrong "gpt train --resume failed"
"${small[@]}" --text folder --out all --resume >/dev/null || wrong "gpt train --resume with all options failed"
same_folder all parts || wrong "--resume alone ends otherwise"
cmp whole1/model.safetensors parts/model.safetensors || wrong "a resumed run ends with other bits"

# A run that is over can be lengthened, and killed again; text that changed since is named.
cp -r parts longer
"$gpt" train --quiet --out longer --resume --steps 60 | grep -q '^longer: step 60,' || wrong "no run is lengthened"
"$gpt" train --quiet --out parts --resume --steps 60 >/dev/null 2>&1 &
while [ ! -e parts/checkpoints/step-000000000034.ckpt ] && kill -0 $! 2>/dev/null; do sleep 0.01; done
kill -KILL $! 2>/dev/null || true
{ wait $!; } 2>/dev/null || true
"$gpt" train --quiet --out parts --resume | grep -q '^parts: step 60,' || wrong "a longer run is not resumed"
cmp longer/model.safetensors parts/model.safetensors || wrong "a longer run that was killed has other bits"
echo more >>folder/a.txt
says 1 "'folder' of --text has changed since the run started" "$gpt" train --out parts --resume
head -n 100 wide.txt >folder/a.txt
says 1 "the run read --text from standard input" "$gpt" train --out whole1 --resume

# run.json, the report and the model card name the command of the start, texts, date and score; the card's command
# works, its line of C opens the model, and a README.md of the user's stays. --compare draws the curves of another run.
mkdir -p "it's" && echo mine >"it's/README.md"
"${small[@]}" --text folder --valid wide.txt --compare whole1/log.csv --out "it's" >/dev/null ||
    wrong "--compare failed"
for text in '"command": "gpt train --quiet .* --text folder --valid wide.txt .*its*' '"texts": \[' '"folder"' \
    '"wide.txt"' \
    '"date": "20[0-9-]*T[0-9:]*Z"' '"parameters": [0-9]*,' '"seconds": [0-9.]*,' '"name": "validation loss"'; do
    grep -q "$text" "it's/run.json" || wrong "run.json has no $text"
done
for text in '<b>[0-9.]*</b><span>validation loss at step ' '<dd>gpt train --quiet' '<dt>date</dt>' \
    '<dd>folder, wide.txt' \
    'layer of width 32' '>whole1, training<' '>log loss<'; do
    grep -q "$text" "it's/report.html" || wrong "the report has no $text"
done
! grep -q 'http-equiv="refresh"' "it's/report.html" || wrong "the page of a complete run is loaded again"
[ "$(cat "it's/README.md")" = mine ] || wrong "the model card replaced a README.md"
command=$(sed -n '/^gpt write/p' whole1/README.md)
eval "\"$build/bin\"/$command --quiet -n 2" >/dev/null || wrong "the card's command does not work: $command"
grep -q 'tn_model_open("whole1")' whole1/README.md || wrong "the card does not load the model"
says 3 "expected columns step and train/loss" "${small[@]}" --text folder --compare wide.txt --out other
# While it trains, the page has the results so far, and asks to be loaded again; the end says what to type next.
"${small[@]:0:2}" "${small[@]:3}" --steps 100000 --text wide.txt --out live >/dev/null 2>live.txt &
while kill -0 $! 2>/dev/null && ! grep -q 'loss at step' live/report.html 2>/dev/null; do sleep 0.05; done
cp live/report.html live.html
kill -INT $! && { wait $! || true; }
grep -q 'http-equiv="refresh"' live.html && grep -q '; the run continues' live.html ||
    wrong "report.html is not written while the model trains"
grep -q '^report   live/report.html, written again at each validation' live.txt ||
    wrong "the start does not name the report: $(cat live.txt)"
"${small[@]:0:2}" "${small[@]:3}" --text wide.txt --out next >/dev/null 2>next.txt ||
    wrong "gpt train failed"
grep -q '^next     gpt write --model next --prompt "Once"' next.txt && ! grep -q 'may be deleted' next.txt &&
    grep -q '`checkpoints` may be deleted' next/README.md &&
    grep -qE 'steps    24 × .* = [0-9]+(\.[0-9]+)? epochs' next.txt || wrong "the end says: $(cat next.txt)"

# With --verbose, the times of loading and of the first token, and the tokens per second.
"$gpt" write --model whole1 --prompt the -n 5 -v 2>&1 >/dev/null | tr '\n' ' ' |
    grep -qE 'load +[0-9.]+ s first +[0-9.]+ s until the first token speed +[0-9.]+ tokens/s: 5 in' ||
    wrong "gpt write -v does not report its speed"

# An interrupted run with --quiet prints nothing; only its exit code shows the interruption.
"${small[@]}" --steps 100000 --text wide.txt --out quiet >quiet.txt 2>&1 &
while [ ! -e quiet/checkpoints ] && kill -0 $! 2>/dev/null; do sleep 0.05; done
kill -INT $!
rc=0 && wait $! || rc=$?
[ $rc = 130 ] && [ ! -s quiet.txt ] || wrong "stopped with --quiet, gpt train ends with $rc and says: $(cat quiet.txt)"
"${small[@]}" --text wide.txt --shape llama --out llama >/dev/null || wrong "gpt train --shape llama failed"
"$gpt" write --model llama --prompt größer --tokens 40 >/dev/null || wrong "gpt write fails for LLaMA's shape"
"${small[@]}" --text wide.txt --shape llama --experts 3 --out experts >/dev/null ||
    wrong "gpt train --experts failed"
"$gpt" write --model experts --prompt größer --tokens 9 --temperature 0 >/dev/null ||
    wrong "gpt write fails with experts"
"$gpt" experts --model experts --tokens 3 wide.txt >experts.txt || wrong "gpt experts failed"
[ "$(grep -cE "^  expert [1-3] +[0-9.]+ %  '" experts.txt)" = 3 ] || wrong "gpt experts prints: $(cat experts.txt)"
awk '/^layer/ && n++ && (sum < 99.8 || sum > 100.2) { exit 1 } /^layer/ { sum = 0 } /^  expert/ { sum += $3 }
    END { exit !(n && sum > 99.8 && sum < 100.2) }' experts.txt ||
    wrong "experts' shares are not 100 %: $(cat experts.txt)"
says 1 "the model has no experts" "$gpt" experts --model llama wide.txt
says 2 "--experts 3 needs --shape llama" "${small[@]}" --text wide.txt --experts 3 --out other
says 2 "--experts-per-token is 4, but --experts is 3" \
    "${small[@]}" --text wide.txt --shape llama --experts 3 --experts-per-token 4 --out other
endless=("$gpt" write --model llama --prompt größer --temperature 0 --sinks 4)
"${endless[@]}" --tokens 500 >endless.txt || wrong "gpt write --sinks fails"
[ "$(wc -m <endless.txt)" -gt 400 ] || wrong "--sinks 4 --tokens 500 writes $(wc -m <endless.txt) characters"
"${endless[@]}" --tokens 500 --threads 2 | cmp - endless.txt || wrong "--sinks, another number of threads, another text"

# A resumed run must have its own texts, not training and validation text swapped, and its own kind of tokens.
two=("${small[@]}" --steps 3 --out two)
"${two[@]}" --text folder/a.txt --valid folder/inner/b.txt >/dev/null || wrong "gpt train --valid failed"
"${two[@]}" --text folder/a.txt --valid folder/inner/b.txt --resume >/dev/null || wrong "--valid: --resume failed"
says 1 "--text is 'folder/a.txt' in the run, 'folder/inner/b.txt' here, with other contents" \
    "${two[@]}" --text folder/inner/b.txt --valid folder/a.txt --resume
says 1 "--valid is 'folder/inner/b.txt' in the run, 'folder/a.txt' here" \
    "${two[@]}" --text folder/a.txt --valid folder/a.txt --resume
says 1 "--pieces is characters in the run, bpe here; omit it" \
    "${two[@]}" --text folder/a.txt --valid folder/inner/b.txt --resume --pieces bpe
says 1 "is a run of 3 steps, but --steps 2 is 2 steps" "${two[@]}" --text folder/a.txt --resume --steps 2
says 1 "--batch is 4 in the run, 2 here; omit it to resume it" "$gpt" train --out two --resume --batch 2 --lr 0.1
says 1 "--lr is 0.004 in the run, 0.1 here; omit it to resume it" "$gpt" train --out two --resume --lr 0.1
"${two[@]}" --text folder/a.txt --valid folder/a.txt --out same >/dev/null || wrong "gpt train of one text twice failed"
says 1 "--text is 'folder/a.txt' in the run, 'folder/inner/b.txt' here" \
    "${two[@]}" --text folder/inner/b.txt --valid folder/inner/b.txt --out same --resume

# What is omitted depends on the minutes of the first start, and is said.
few=("$gpt" train --out few --no-progress)
"${few[@]}" --text wide.txt --minutes 0.01 >few.txt 2>&1 || wrong "gpt train with defaults failed: $(tail -n 1 few.txt)"
grep -q "^chosen   --size tiny --vocab-size 300 --lr 0.004, for 0.01 minutes" few.txt ||
    wrong "the choice: $(cat few.txt)"
steps=$(sed -n 's/^few: step \([0-9]*\),.*/\1/p' few.txt)
"${few[@]}" --resume --steps $((steps + 2)) >few.txt 2>&1 ||
    wrong "a run with defaults is not lengthened: $(tail -n 1 few.txt)"
grep -q "^few: step $((steps + 2))," few.txt || wrong "a run with defaults ends with: $(cat few.txt)"

# Errors, each with the change to make.
mkdir bare
says 1 "'bare' contains no run to resume; omit --resume" "$gpt" train --text wide.txt --out bare --resume
says 2 "--steps and --minutes exclude each other" "$gpt" demo --out other --steps 2 --minutes 1
[ ! -e other ] || wrong "gpt demo leaves a folder behind where its options are wrong"
says 2 "--vocab-size must be at least 257" "${small[@]}" --text wide.txt --vocab-size 200 --out other
says 2 "--vocab-size is for --pieces bpe" "${small[@]}" --text wide.txt --vocab-size 300 --out other
says 2 "--valid and --valid-part exclude each other" \
    "${small[@]}" --text wide.txt --valid wide.txt --valid-part 0.3 --out other
says 2 "'-' is given 2 times, but standard input can be read only once" \
    "${small[@]}" --text - --valid - --out other
if [ "${TENON_HAS_MPI:-}" ] && [[ $TENON_HAS_MPI != OFF && $TENON_HAS_MPI != FALSE ]]; then
    says 2 "'-' cannot be used with several ranks" "${small[@]}" --text - --ranks 2 --out other
    says 2 "'-' cannot be used with several ranks" \
        "${small[@]}" --text wide.txt --valid - --ranks 2 --out other
fi
says 2 "--pieces characters is for a new tokenizer" "${small[@]}" --text wide.txt --vocab letters --out other
says 2 "a width of 32 is not divisible by 3 heads" "${small[@]}" --text wide.txt --heads 3 --out other
says 5 "'nothing': No such file" "${small[@]}" --text nothing --out other
: >empty.txt
says 3 "'empty.txt' contains no text" "${small[@]}" --text empty.txt --out other
says 3 "'empty.txt' contains no text" "${small[@]}" --text wide.txt --valid empty.txt --out other
printf 'no end' >endless.txt # without the line end, which is added
says 3 "'empty.txt' contains no text" "${small[@]}" --text endless.txt --valid empty.txt --out other
[ ! -e other ] || wrong "gpt train leaves a folder behind where its options or texts are wrong"
says 3 "tokens, too few for --length 9000" "${small[@]}" --text empty.txt wide.txt --length 9000 --batch 1 --out short
echo -n x >one.txt
says 3 "'one.txt' of --valid is too short, expected at least two tokens" \
    "${small[@]}" --text wide.txt --valid one.txt --out short
long=$(printf 'word %.0s' $(seq 400))
says 1 "the prompt has" "$gpt" write --model $model --prompt "$long"
says 1 "but the model reads at most 128; shorten it" "$gpt" write --model $model --prompt "$long"
says 3 "the tokenizer has 1000 tokens, but the model only" \
    "$gpt" write --model letters --tokenizer $model --prompt x
says 2 "--chat reads messages from standard input" "$gpt" write --model $model --chat --prompt x
"$build/bin/bert" train --quiet --text wide.txt --size tiny --length 32 --batch 4 --steps 1 --out bert >/dev/null ||
    wrong "bert train failed"
says 7 "model_type is 'modernbert'" "$gpt" write --model bert --prompt x
says 5 "nowhere" "$gpt" write --model nowhere --prompt x
# Rules, JSON lines in a conversation, and a prompt in a pipe.
printf ' park.\n house.\n' >choices
"$gpt" write --model $model --prompt "The old man went to the" --choices choices >chosen ||
    wrong "gpt write --choices failed"
grep -qxE 'The old man went to the (park|house)\.' chosen || wrong "gpt write --choices writes: $(cat chosen)"
echo '{"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}, "mood": {"enum": ["sad"]}}}' \
    >schema.json
"$gpt" write --model $model --prompt "The old man" --json-schema schema.json >made || wrong "--json-schema failed"
grep -qE '^The old man\{"name":"[^"]{0,5}","mood":"sad"\}$' made || wrong "gpt write --json-schema writes: $(cat made)"
printf '{"role": "system", "content": "Be short."}\n{"content": "Hello"}\nAgain\n' |
    "$gpt" write --model $model --chat --json --tokens 4 >talk || wrong "gpt write --chat --json failed"
[ "$(grep -c '^{"role": *"assistant", *"content": *"' talk)" = 2 ] || wrong "gpt write --chat --json: $(cat talk)"
echo '{"role": "cat", "content": "a"}' | "$gpt" write --model $model --chat --json 2>err && wrong "a role cat"
grep -q "the role is 'cat'; expected user, system, assistant or tool" err || wrong "a role cat: $(cat err)"
printf 'The old man' | "$gpt" write --model $model --tokens 3 | grep -q '^The old man' ||
    wrong "a piped prompt is not read"
exit $wrong
