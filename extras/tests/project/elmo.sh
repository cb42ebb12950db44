#!/usr/bin/env bash
# The program elmo as a user runs it: a small model, its vectors, a tagger that reads its layers and one that reads
# word vectors; and the program compare.
. "$(dirname "$0")/../../../tests/project/common.sh"
fresh elmo
elmo=$build/bin/elmo

# "the cat sees a dog" in CoNLL's columns; a word in -s is a verb after a noun, and a noun after an article.
awk 'BEGIN { srand(2); split("cat dog sees hears runs looks", w); split("the a", d)
    for (i = 1; i <= 160; i++) {
        n = d[1 + int(rand() * 2)]; s = w[1 + int(rand() * 6)]; v = w[3 + int(rand() * 4)]
        print n "\tDET\n" s "\tNOUN\n" v "\tVERB\n" > "tags.conll"
        print n, s, v > "text.txt"
    } }'
train=("$elmo" train --text text.txt --size tiny --batch 16 --seed 3)
"${train[@]}" --quiet --steps 40 --lr 0.01 --out model >said.txt || wrong "elmo train failed"
grep -qE '^model: step 40, loss [0-9.]+, best on validation' said.txt || wrong "elmo train says: $(cat said.txt)"
"${train[@]}" --steps 40 --lr 0.01 --out again --threads 2 >/dev/null 2>said.txt || wrong "not quiet: $(cat said.txt)"
grep -qE ' ms each, about ' said.txt || wrong "elmo train does not say how long it takes: $(cat said.txt)"
cmp model/model.safetensors again/model.safetensors || wrong "another number of threads, other weights"

tac text.txt >turned.txt
says 1 "the run did not read 'turned.txt' of --text" "${train[@]}" --lr 0.01 --out model --resume --text turned.txt
"$elmo" train --quiet --out model --resume | grep -q '^model: step 40,' || wrong "elmo train --resume failed"

if [ "${TENON_HAS_MPI:-}" ] && [[ $TENON_HAS_MPI != OFF && $TENON_HAS_MPI != FALSE ]]; then
    for ranks in 1 3; do
        "${train[@]}" --quiet --steps 15 --out ranks$ranks --ranks $ranks >said.txt 2>&1 ||
            wrong "--ranks $ranks: $(cat said.txt)"
    done
    cmp ranks1/model.safetensors ranks3/model.safetensors || wrong "three ranks make another model than one"
fi

printf 'the cat runs\nruns\n' | "$elmo" embed --model model >vectors.txt || wrong "elmo embed failed"
awk 'NF && NF != 64 { exit 1 } END { exit NR != 6 }' vectors.txt ||
    wrong "four words and two ends are not six lines of 64"
! diff -q <(sed -n 3p vectors.txt) <(sed -n 5p vectors.txt) >/dev/null || wrong "a word has one vector in any sentence"
cmp <(echo runs | "$elmo" embed --model model --layer 0 | head -n 1) \
    <(echo the cat runs | "$elmo" embed --model model --layer 0 | sed -n 3p) ||
    wrong "the first layer looks at other words"

tag=("$elmo" tag --quiet --train tags.conll --test tags.conll --epochs 6 --hidden 8 --lr 0.02 --batch 16)
"${tag[@]}" --model model >tagged.txt || wrong "elmo tag --model failed"
grep -qE '^layers( 0\.[0-9]+){3} gamma [0-9.]+$' tagged.txt &&
    grep -qE '^accuracy (9[0-9]|100)\.[0-9]+ % of 480 words$' tagged.txt ||
    wrong "elmo tag says: $(cat tagged.txt)"
"$build/bin/vectors" train --quiet --text text.txt --out words.vec --dim 8 --min-count 1 --epochs 1 >/dev/null
for kind in bag window lstm crf; do
    "${tag[@]}" --vectors words.vec --kind $kind | grep -qE '^accuracy [0-9.]+ % of 480 words$' ||
        wrong "elmo tag --vectors --kind $kind failed"
done
printf 'The O\nman B-PER\n\nA O\nship O\n' >entities.conll
"$elmo" tag --quiet --vectors words.vec --train entities.conll --test entities.conll --epochs 1 |
    grep -c '^f1 [0-9]*\.' | grep -qx 1 || wrong "elmo tag of entities shows no F1"

# Skip-thought: sentence vectors; unknown words are read through word vectors.
"$elmo" train --kind skip-thought --text text.txt --size tiny --batch 16 --steps 30 --out thoughts >said.txt 2>&1 ||
    wrong "elmo train --kind skip-thought failed: $(cat said.txt)"
sentence=("$build/bin/vectors" sentence --model thoughts)
printf 'the cat runs\n\nthe unheard runs\n' | "${sentence[@]}" >plain.txt || wrong "vectors sentence --model failed"
awk 'NF != 64 { exit 1 } END { exit NR != 3 }' plain.txt || wrong "three sentences are not three lines of 64"
printf 'cat dog sees hears runs looks the a unheard\n%.0s' $(seq 20) >more.txt
"$build/bin/vectors" train --quiet --text more.txt --out more.vec --dim 8 --min-count 1 --epochs 1 >/dev/null
printf 'the cat runs\n\nthe unheard runs\n' | "${sentence[@]}" --vectors more.vec >mapped.txt || wrong "a map failed"
cmp <(head -n 1 plain.txt) <(head -n 1 mapped.txt) || wrong "words that the model knows are mapped, too"
! cmp -s <(tail -n 1 plain.txt) <(tail -n 1 mapped.txt) || wrong "a word that it does not know is not mapped"

# Tabs and CRLF line ends are blanks, in training and in use.
sed -E 's/ /\t/; s/ / \t\v \f /; s/$/\r/' text.txt >tabs.txt
"$elmo" train --kind skip-thought --text tabs.txt --size tiny --batch 16 --steps 30 --out same >said.txt 2>&1 &&
    cmp thoughts/model.safetensors same/model.safetensors || wrong "tabs make another skip-thought model"
"$elmo" train --text text.txt --size tiny --batch 16 --steps 3 --out blanks >said.txt 2>&1 &&
    "$elmo" train --text tabs.txt --size tiny --batch 16 --steps 3 --out tabs >said.txt 2>&1 &&
    cmp blanks/model.safetensors tabs/model.safetensors || wrong "tabs make another ELMo model"

# So is other white space of Unicode, such as U+3000, as in the vocabulary.
sed -E 's/ /\xe3\x80\x80/; s/ /\xc2\xa0 /' text.txt >wide.txt
"$elmo" train --kind skip-thought --text wide.txt --size tiny --batch 16 --steps 30 --out wide >said.txt 2>&1 &&
    cmp thoughts/model.safetensors wide/model.safetensors || wrong "U+3000 makes another skip-thought model"
"$elmo" train --text wide.txt --size tiny --batch 16 --steps 3 --out broad >said.txt 2>&1 &&
    cmp blanks/model.safetensors broad/model.safetensors || wrong "U+3000 makes another ELMo model"
printf 'the\tcat\v runs\r\n\r\n\tthe unheard \f runs\n' | "${sentence[@]}" | cmp - plain.txt ||
    wrong "vectors sentence --model takes tabs for letters"
"${sentence[@]}" <<<$'the\u3000cat\u00a0runs\n\n\u2003the unheard runs' | cmp - plain.txt ||
    wrong "vectors sentence --model takes U+3000 for a letter"
embed() { printf '%b' "$1" | "$elmo" embed --model model; }
cmp <(embed 'the cat runs\n') <(embed 'the\tcat\v\fruns\r\n') ||
    wrong "elmo embed takes tabs for letters"
cmp <(embed 'the cat runs\n') <(embed 'the\u3000cat\u00a0runs\n') || wrong "elmo embed takes U+3000 for a letter"
embed 'the cat runs\n' | sed '$d' >plain.txt
printf 'the cat runs\n' | "$elmo" embed --model model --json |
    sed 's/\],\[/\n/g' | tr -d '[]' | tr , ' ' | cmp - plain.txt ||
    wrong "elmo embed --json has other numbers"
"$elmo" info model | grep -q '^kind        ELMo$' && "$elmo" info thoughts | grep -q '^kind        skip-thought$' ||
    wrong "elmo info shows: $("$elmo" info model)"
# A word of CoNLL-U may contain any white space.
for blank in ' ' $'\u00a0' $'\v'; do
    printf '1\tten%sthousand\t_\tNUM\t_\t_\t0\troot\t_\t_\n2\tmen\t_\tNOUN\t_\t_\t1\tdep\t_\t_\n\n' "$blank"
done >within.conllu
"$elmo" tag --quiet --model model --train within.conllu --test within.conllu --epochs 1 >tagged.txt &&
    grep -q '^accuracy [0-9.]* % of 6 words$' tagged.txt || wrong "white space within a word: $(cat tagged.txt)"

# A model with NaN weights gives an error, not vectors.
astray model nan && astray thoughts nan-thoughts
fed() { echo "the cat" | "$@"; }
says 6 "a value of a vector is NaN: look for NaN" fed "$elmo" embed --model nan
[ ! -s out.txt ] || wrong "elmo embed of a model of NaN says: $(head -c 200 out.txt)"
says 6 "a value of a vector is NaN: look for NaN" fed "${sentence[@]/thoughts/nan-thoughts}"
[ ! -s out.txt ] || wrong "vectors sentence of a model of NaN says: $(head -c 200 out.txt)"
says 6 "a value of a vector is NaN: look for NaN" "${sentence[0]}" paraphrases --model nan-thoughts text.txt text.txt

says 2 "--sif is for the mean of --vectors" "${sentence[@]}" --sif 0.001
says 2 "--format is for --vectors" "${sentence[@]}" --format text
says 2 "--sif is for the mean of --vectors" "${sentence[@]/sentence/paraphrases}" --sif 0 text.txt text.txt \
    --vectors more.vec
says 2 "--format is for --vectors" "${sentence[@]/sentence/paraphrases}" --format text text.txt text.txt

said() # TEXT COMMAND...
{
    local what=$1
    shift
    ! "$@" >out.txt 2>err.txt || wrong "'$*' does not fail"
    grep -q -- "$what" err.txt || wrong "'$*' says: $(cat err.txt)"
}
said 'give either --model or --vectors' "${tag[@]}"
echo word >word.conll
said "line 1: one column, expected two" "$elmo" tag --model model --train word.conll --test word.conll
said '--valid and --valid-part exclude each other' "${train[@]}" --valid text.txt --valid-part 0.1 --steps 2 --out no
: >empty.txt
said "'empty.txt' contains no text" "${train[@]}" --valid empty.txt --steps 2 --out no
printf '\n \n' >blank.txt
said "'blank.txt' of --valid is too short" "${train[@]}" --valid blank.txt --steps 2 --out no
[ ! -e no ] || wrong "elmo train leaves a folder behind where its texts are wrong"
said '--layers must be 2' "${train[@]}" --layers 3 --out no
for option in "layers 2" "dropout 0.5"; do
    says 2 "--${option% *} is for --kind elmo" "${train[@]}" --kind skip-thought --${option%% *} "${option#* }" --out no
done

"$build/bin/compare" --quiet --steps 2 --longest 8 --out page.html >table.txt || wrong "compare failed"
[ "$(grep -c '^LSTM  *distance' table.txt)" = 2 ] && grep -q '<svg' page.html || wrong "compare says: $(cat table.txt)"
exit $wrong
