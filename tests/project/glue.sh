#!/usr/bin/env bash
# bench/glue: tunes a model on files in GLUE's columns, in which a word decides, and prints a row per task; a task whose
# folder is missing is skipped.
. "$(dirname "$0")/common.sh"
fresh glue
[ -x "$build/bin/bert" ] || { echo "SKIPPED: the programs are not built" && exit 77; }

# 24 examples per file: the first text has "good" or "bad", the label follows it. | stands for a tab.
file() # FILE HEADER LINE: LINE with A and B for the texts, Y for 0 or 1, E for the entailment, S for a score
{
    mkdir -p "$(dirname "$1")"
    awk -v head="$2" -v line="$3" 'BEGIN {
        if (head) print head
        for (i = 0; i < 24; i++) {
            s = line; y = i % 2
            gsub(/A/, "the " (y ? "bad" : "good") " man went", s); gsub(/B/, "the man went", s)
            gsub(/Y/, y, s); gsub(/E/, y ? "entailment" : "not_entailment", s); gsub(/S/, 1 + 2.5 * y, s)
            print s
        } }' | tr '|' '\t' >"$1"
}
for part in train dev; do
    file glue/CoLA/$part.tsv "" "x|Y|x|A"
    file glue/SST-2/$part.tsv "sentence|label" "A|Y"
    file glue/MRPC/$part.tsv "Quality|#1 ID|#2 ID|#1 String|#2 String" "Y|1|2|A|B"
    file glue/STS-B/$part.tsv "index|genre|sentence1|sentence2|score" "1|g|A|B|S"
    file glue/QQP/$part.tsv "id|question1|question2|is_duplicate" "1|A|B|Y"
    file glue/QNLI/$part.tsv "index|question|sentence|label" "1|A|B|E"
    file glue/WNLI/$part.tsv "index|sentence1|sentence2|label" "1|A|B|Y"
done
for part in train dev_matched dev_mismatched; do
    file glue/MNLI/$part.tsv "index|sentence1|sentence2|label1|gold_label" "1|A|B|x|E"
done
for _ in 1 2 3 4 5 6 7 8; do printf 'the good man went\nthe bad man went\n'; done >text.txt
"$build/bin/bert" train --text text.txt --out model --objective roberta --size tiny --layers 1 --dim 32 --heads 2 \
    --length 32 --vocab-size 60 --steps 3 --quiet >log 2>&1
"$root/bench/glue" "$build" model glue out --epochs 12 --length 32 --lr 5e-3 --batch 8 >table ||
    wrong "bench/glue failed"
sed -E '/STS-B/s#[0-9.]+ / [0-9.]+#near#; /mean/s#9[0-9].[0-9]|100.0#near#' table | diff - <(
    printf '| task | metrics | development set |\n|---|---|---:|\n| CoLA | matthews | 100.0 |\n'
    printf '| SST-2 | accuracy | 100.0 |\n| MRPC | accuracy, f1 | 100.0 / 100.0 |\n'
    printf '| STS-B | pearson, spearman | near |\n'
    printf '| QQP | accuracy, f1 | 100.0 / 100.0 |\n| MNLI | accuracy | 100.0 / 100.0 |\n| QNLI | accuracy | 100.0 |\n'
    printf '| WNLI | accuracy | 100.0 |\n| mean | of 8 tasks | near |\n'
) || wrong "bench/glue prints another table (<)"
mkdir empty
! "$root/bench/glue" "$build" model empty out2 >said 2>&1 && grep -q "has no folder of a task" said ||
    wrong "bench/glue without a task: $(cat said)"
exit $wrong
