#!/usr/bin/env bash
# The command in the model card of each kind of training, which is also its "next" line, runs; a sound run is not called
# diverged, also if its loss is a weighted sum, whose parts are printed. And facts of the report: vocabulary, command,
# parameters.
. "$(dirname "$0")/common.sh"
[ -x "$build/bin/bert" ] || { echo "SKIPPED: the programs are not built" && exit 77; }
fresh cards
PATH=$build/bin:$PATH
bert sample-corpus --documents 20 >book.txt
printf 'a one\tx\nb two\ty\nc three\tx\nd four\ty\n' >texts.tsv
sed 's/\t/\tand more\t/' texts.tsv >pairs.tsv
printf 'The\tDET\nman\tB-NAME\n\nman\tB-NAME\nsails\tO\n' >words.conll
cat >questions.json <<'END'
{"data": [{"paragraphs": [{"context": "The old man sails.", "qas": [{"id": "1", "question": "Who sails?",
"answers": [{"text": "The old man", "answer_start": 0}]}]}]}]}
END
printf 'sent1,sent2,ending0,ending1,label\nThe man,he,sails,"eats, too",1\nA ship,it,sails,reads,0\n' >ends.csv
printf '{"prompt": "Hi", "answer": "Hello"}\n' >chat.jsonl
printf 'The man sails.\tA man is sailing.\nThe sea is old.\tOld is the sea.\n' >alike.tsv

# runs FOLDER COMMAND...: trains FOLDER, and runs the command of its card
runs()
{
    local folder=$1 command
    shift
    "$@" --out "$folder" >out.txt 2>err.txt || { wrong "$*: $(tail -n 2 err.txt)" && return; }
    ! grep "has diverged" err.txt || wrong "$folder: a sound run is called diverged"
    command=$(sed -n '/^## Use/,$p' "$folder/README.md" | sed -n '/^```sh/,/^```/p' | sed '1d;$d')
    [ "$command" ] || { wrong "$folder: no command in the card" && return; }
    ! grep -q '^next ' err.txt || grep -qxF "next     $command" err.txt ||
        wrong "$folder: card '$command', $(cat err.txt)"
    bash -c "$command" <book.txt >out.txt 2>&1 || wrong "$command: $(tail -n 1 out.txt)"
}
tiny=(--text book.txt --size tiny --dim 16 --heads 2 --length 16 --batch 8 --vocab-size 300 --no-progress --steps 60)
for objective in bert roberta albert electra deberta deberta-v3 xlnet; do
    runs "$objective" bert train "${tiny[@]}" --layers 1 --objective $objective
    [[ $objective != electra && $objective != deberta-v3 ]] ||
        grep -qE '^parts    [0-9.]+, the generator, \+ 50 · [0-9.]+, the replaced tokens' err.txt ||
        wrong "$objective: no parts of the loss: $(cat err.txt)"
done
runs distilled bert distil --teacher roberta --text book.txt --layers 1 --batch 2 --length 16 --steps 3
grep -qE "^parts    [0-9.]+, the teacher's distribution, \+ [0-9.]+, the tokens, \+ [0-9.]+, cosine" err.txt ||
    wrong "bert distil: no parts of the loss: $(cat err.txt)"
runs contrasted bert contrast --model roberta --pairs alike.tsv --epochs 1
for task in "classify texts.tsv" "pairs pairs.tsv" "tag words.conll" "answer questions.json" "choose ends.csv"; do
    read -r name file <<<"$task"
    runs "$name" bert tune "$name" --model bert --train "$file" --epochs 1
done
runs gpt gpt train "${tiny[@]}" --layers 1 --length 64
grep -q 'vocabulary of 300' gpt/report.html || wrong "the report of gpt has another vocabulary"
gpt train --text book.txt --out small --size tiny --vocab-size 4000 --length 16 --batch 2 --dtype f32 --steps 2 \
    >out.txt 2>&1 ||
    wrong "gpt train failed"
size=$(gpt info small | sed -n 's/^vocabulary  \([0-9]*\).*/\1/p')
grep -q "vocabulary of ${size:-?}, f32" <(sed 's/\([0-9]\),\([0-9]\)/\1\2/g' small/report.html) ||
    wrong "a tokenizer of '$size' tokens: $(grep -o 'vocabulary of [0-9,]*' small/report.html)"
gpt train --out small --resume --steps 4 >out.txt 2>&1 || wrong "gpt train --resume failed"
grep -q ' --steps 2 && gpt train --out small --resume --steps 4$' small/README.md ||
    wrong "a lengthened run has the command $(grep '^gpt train' small/README.md)"
grep -q 'steps 2 &amp;&amp; gpt train' small/report.html || wrong "the report of a lengthened run has its first command"
runs adapted gpt tune --model gpt --text book.txt --steps 9 --batch 1 --length 16 --lora 2 --lr 0.1
for model in gpt adapted adapted/adapter; do
    gpt write --model $model --prompt "The old" --seed 3 --tokens 40 >"${model##*/}.txt" 2>&1 ||
        wrong "$model: $(cat "${model##*/}.txt")"
done
cmp adapter.txt adapted.txt && ! cmp -s adapter.txt gpt.txt || wrong "PEFT's adapters give another text"
gpt tune --model adapted/adapter --text book.txt --steps 1 --batch 1 --length 16 --lora 2 --out twice >out.txt 2>&1 &&
    gpt write --model twice/adapter --prompt "The old" --tokens 4 >out.txt 2>&1 ||
    wrong "adapters of adapters: $(cat out.txt)"
rm adapted/adapter/SHA256SUMS
sed -i 's/"base_model_name_or_path": ".*"/"base_model_name_or_path": "org\/big"/' adapted/adapter/adapter_config.json
says 5 "'adapted/adapter' has adapters of 'org/big', which is not a model here" gpt write --model adapted/adapter
runs packed gpt tune --model gpt --text book.txt --steps 1 --batch 1 --length 16 --lora 2 --type int8
parameters_of() { sed -n 's/^    "parameters": \([0-9]*\),$/\1/p' "$1/run.json"; }
count=$(parameters_of gpt) packed=$(parameters_of packed)
[ "${packed:-0}" -gt "${count:-1}" ] || wrong "packed weights do not count as parameters: $packed of more than $count"
runs tuned gpt tune --model gpt --text book.txt --steps 1 --batch 1 --length 16
runs talks gpt tune --model gpt --chat chat.jsonl --steps 1 --batch 1 --length 16
grep -q '^gpt write --model talks --chat$' talks/README.md || wrong "the card of a chat model does not chat"
runs lm lm train --text book.txt --size tiny --vocab-size 300 --steps 2
runs elmo elmo train --text book.txt --dim 8 --steps 2
runs thoughts elmo train --kind skip-thought --text book.txt --steps 2
says 7 "; the program vectors opens it" elmo embed --model thoughts
tr a-z b-za <book.txt >other.txt
runs translate translate train --src book.txt --tgt other.txt --size tiny --vocab-size 300 --steps 2
cp book.txt FILE # a word of the next command
runs t5 translate train --objective t5 --text book.txt --size tiny --vocab-size 300 --steps 40
runs translated translate tune --model t5 --src book.txt --tgt other.txt --steps 2
{
    printf '\0\0\x08\3\0\0\0\x28\0\0\0\x0c\0\0\0\x0c' # 40 images of 12 x 12 pixels
    awk 'BEGIN { for (i = 0; i < 40 * 144; i++) printf "%c", i * i % 97 + int(i / 144) % 3 * 10 + 1 }' </dev/null
} >images
{
    printf '\0\0\x08\1\0\0\0\x28'
    for ((i = 0; i < 40; i++)); do printf '\0\1\2' | head -c $((i % 3 + 1)) | tail -c 1; done
} >labels
{ printf 'P5 12 12 255\n' && head -c 160 images | tail -c 144; } >image.png # an image is recognised by its content
small=(--images images --labels labels --steps 3)
runs vit vit train "${small[@]}" --size tiny --layers 1 --dim 16 --heads 2
runs vit-tuned vit tune "${small[@]}" --model vit
exit $wrong
