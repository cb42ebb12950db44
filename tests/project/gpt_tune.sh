#!/usr/bin/env bash
# gpt tune as a user runs it: on text and on answers, all weights and adapters over packed ones, the files it leaves,
# the bits for a number of threads, resuming, and errors that name the line.
. "$(dirname "$0")/common.sh"
fresh gpt_tune
gpt=$build/bin/gpt
[ -x "$gpt" ] || { echo "SKIPPED: the programs are not built" && exit 77; }

for i in $(seq 150); do echo "the old man $i went to the sea and the boat sang."; done >book.txt
"$gpt" train --quiet --text book.txt --out base --size tiny --layers 2 --dim 32 --heads 2 --length 32 --vocab-size 300 \
    --steps 20 --batch 4 --shape llama >/dev/null
for i in $(seq 100); do echo "a red ship sails north, number $i"; done >text.txt
loss() { "$gpt" eval --quiet --model "$1" --json text.txt | sed 's/.*"loss":\([0-9.]*\).*/\1/'; }
before=$(loss base)

tune=("$gpt" tune --quiet --model base --text text.txt --batch 4 --length 32 --steps 40 --lr 0.01)
"${tune[@]}" --out full >said.txt 2>err.txt || wrong "gpt tune: $(cat err.txt)"
[ ! -s err.txt ] && grep -qE '^full: step 40, loss [0-9.]+, best on validation [0-9.]+ at step [0-9]+$' said.txt ||
    wrong "gpt tune prints: $(cat said.txt err.txt)"
awk -v a="$before" -v b="$(loss full)" 'BEGIN { exit !(b < a - 1) }' || wrong "tuning: loss $before, then $(loss full)"
"${tune[@]}" --out two --threads 2 >/dev/null && cmp full/model.safetensors two/model.safetensors ||
    wrong "another number of threads, other weights"
"${tune[@]}" --out lora --lora 4 --type int8 --steps 80 >/dev/null || wrong "gpt tune --lora --type int8 failed"
awk -v a="$before" -v b="$(loss lora)" 'BEGIN { exit !(b < a - 0.3) }' ||
    wrong "adapters: loss $before, then $(loss lora)"
[ -s lora/adapter/adapter_model.safetensors ] &&
    grep -q '"base_model_name_or_path": "base"' lora/adapter/adapter_config.json ||
    wrong "gpt tune --lora leaves no adapter: $(ls lora lora/adapter)"
"${tune[@]}" --out some --lora 2 --lora-layers q_proj,v_proj >/dev/null
[ "$(grep -c '_proj"' some/adapter/adapter_config.json)" = 4 ] ||
    wrong "--lora-layers: $(cat some/adapter/adapter_config.json)"
"$gpt" write --model lora --prompt "a red" --tokens 8 --temperature 0 >/dev/null ||
    wrong "the tuned model does not write"

# Answers: both forms; of a cut-off example nothing is learned; with a chat template the answers are between its tokens.
for i in $(seq 12); do
    echo '{"prompt": "color?", "answer": " blue and red."}'
    echo '{"messages": [{"role": "user", "content": "where"}, {"role": "assistant", "content": "at sea"}]}'
done >talk.jsonl
chat=("$gpt" tune --quiet --model base --chat talk.jsonl --batch 4 --lr 0.01)
"${chat[@]}" --out talk --epochs 40 --valid-part 0 >/dev/null || wrong "gpt tune --chat failed"
"$gpt" write --model talk --prompt "color?" --tokens 40 --temperature 0 >answer.txt
grep -q 'color? blue and red.' answer.txt || wrong "the tuned model answers: $(cat answer.txt)"
cp -r base templated
cat >templated/chat_template.jinja <<'T'
{% for m in messages %}{% if m.role == 'user' %}Q {{ m.content }}
{% else %}A {{ m.content | trim }}{{ eos_token }}
{% endif %}{% endfor %}{% if add_generation_prompt %}A {% endif %}
T
"${chat[@]/#base/templated}" --epochs 40 --valid-part 0 --out formed >/dev/null ||
    wrong "gpt tune with a chat template failed"
printf 'color?\n' | "$gpt" write --model formed --chat --tokens 30 --temperature 0 >answer.txt
grep -q 'blue and red' answer.txt || wrong "with a template it answers: $(cat answer.txt)"

# An interrupted run goes on to the same bits.
"${chat[@]}" --epochs 8 --lora 4 --out whole >/dev/null
{ timeout -s KILL 0.35 "${chat[@]}" --epochs 8 --lora 4 --out part >/dev/null; } 2>/dev/null || true
again=("${chat[@]}" --epochs 8 --lora 4 --out part)
{ [ -e part/run.json ] && "$gpt" tune --quiet --out part --resume; } >/dev/null 2>err.txt || "${again[@]}" >/dev/null ||
    "${again[@]}" --resume >/dev/null 2>err.txt || wrong "resuming: $(cat err.txt)"
cmp whole/model.safetensors part/model.safetensors || wrong "a resumed run has other weights"

# Errors: what was found, what was expected, and the line; nothing is created.
bad() # WORDS LINE: the second line of a file
{
    printf '{"prompt": "a", "answer": "b"}\n%s\n' "$2" >bad.jsonl
    says "${3:-3}" "'bad.jsonl', line 2: $1" "$gpt" tune --model base --chat bad.jsonl --out bad
    [ ! -e bad/model.safetensors ] || wrong "a failed run leaves a model"
    rm -rf bad
}
bad 'the JSON object has no member "answer"; found "prompt", "anwser"; expected {"prompt": ..., "answer": ...}' \
    '{"prompt": "x", "anwser": "y"}'
bad 'the JSON object has no member "content"; found "role"' '{"messages": [{"role": "user"}]}'
bad 'no message has the role "assistant"' '{"messages": [{"role": "user", "content": "x"}]}'
bad "not a JSON object, found 'hello'" 'hello'
bad '"messages" is not a list of messages' '{"messages": 3}'
says 2 "give --text FILE or --chat FILE, one of them" "$gpt" tune --model base --out no
says 2 "--type int8 packs the weights, which then cannot change; set --lora, too" \
    "$gpt" tune --model base --text text.txt --out no --type int8
says 1 ".names has 'qq', which is in the name of no linear layer" \
    "$gpt" tune --quiet --model base --text text.txt --out no --lora 2 --lora-layers qq --length 32
says 1 "is another run: --lora is 4 in the run, 5 here" "$gpt" tune --quiet --out whole --lora 5 --resume
exit $wrong
