#!/usr/bin/env bash
# PROGRAM debug: 26 planted faults (wrong lines and labels, exploding and NaN losses, copies, leaking masks) are found,
# with the step and, where it is a text, the line; steps have the recorded losses, also after interruptions, forwards
# and backwards; mistakes are named.
. "$(dirname "$0")/../../../tests/project/common.sh"
fresh debug
export TMPDIR=$PWD
bin=$build/bin
[ -x "$bin/gpt" ] || { echo "SKIPPED: the programs are not built" && exit 77; }

sentences() # SEED LINES: with an empty line after each nine
{
    awk -v seed="$1" -v n="$2" 'BEGIN {
        srand(seed)
        split("man dog cat boy", who, " ")
        split("sees likes hears", does, " ")
        for (i = 1; i <= n; i++) {
            if (i % 10 == 0) print ""
            else {
                line = "the " who[int(rand() * 4) + 1] " " does[int(rand() * 3) + 1]
                print line " the " who[int(rand() * 4) + 1] " ."
            }
        } }'
}
images() # 120 images of 8 x 8 pixels, by turns dark and bright, as an IDX file
{
    printf '\0\0\10\3\0\0\0\170\0\0\0\10\0\0\0\10'
    awk 'BEGIN {
        for (i = 0; i < 120; i++)
            for (k = 0; k < 64; k++) printf "%c", i % 2 ? 80 + (i + k) % 40 : 16 + (3 * i + k) % 9
        }'
}
labels() # WRONG...: of these images, from 1, the label is wrong
{
    printf '\0\0\10\1\0\0\0\170'
    awk -v wrong=" $* " 'BEGIN {
        for (i = 1; i <= 120; i++) printf "%d", (i % 2 == 0) != (index(wrong, " " i " ") > 0)
        }' | tr 01 '\0\1'
}
strange="qz jx kv wq zzy xqj"
sentences 1 100 | grep . >source
tr a-z A-Z <source >target
sentences 2 120 >text
images >images

transformer="--dim 32 --layers 1 --heads 2"
declare -A train=(
    [gpt]="--text FILE --size tiny $transformer --length 16 --batch 4 --vocab-size 280 --lr 5e-3"
    [bert]="--text FILE --objective roberta --dtype f32 --size tiny $transformer --length 32 --batch 4 --vocab-size 100
        --lr 5e-3"
    [lm]="--text FILE --pieces characters --size tiny --dim 32 --length 20 --batch 4 --lr 1e-2"
    [translate]="--src source --tgt FILE --size nano $transformer --tokens 200 --vocab-size 280 --lr 5e-3"
    [vit]="--images images --labels FILE --size tiny $transformer --batch 16 --held 0"
)

program() { case $1 in equal | rate) echo lm ;; *) echo "$1" ;; esac; }
options_of() { echo "${train[${1%_leaking}]}"; }
make() # KIND FILE RUN STEPS [OPTION...]
{
    local kind=$1 file=$2 run=$3 steps=$4 options
    options=$(options_of "$kind")
    shift 4
    # shellcheck disable=SC2086
    "$bin/$(program "$kind")" train --quiet ${options/FILE/$file} --steps "$steps" --out "$run" "$@" >made 2>said
}
recorded() # RUN STEP: its loss
{
    sed -n 's/^{"step":'"$2"',.*"loss":\([^,]*\),.*/\1/p' "$1/checkpoints/record.jsonl"
}
number() { sed -n "s/^$1 *\([^ ]*\).*/\1/p" shown | head -n 1; } # NAME: the number on its line of the output
place() { awk '$1 == "row" { getline; sub(/^ *[0-9]+ +[^ ]+ +/, ""); sub(/  .*/, ""); print; exit }' shown; }

# True if the place, "lines 3-5, 12" or "image 7", of the row with the largest loss, or of the row that leaks, contains
# this line.
contains() # LINE [leaking_place]
{
    "${2:-place}" | tr ',' '\n' | sed -nE 's/^ *((lines?|image) )?([0-9]+(-[0-9]+)?)$/\3/p' | awk -v line="$1" -F- '
        line >= $1 && line <= ($2 ? $2 : $1) { found = 1 }
        END { exit !found }'
}
leaking_place() { sed -n 's/^leak .* of row [0-9]*, \(.*\) depends on .*/\1/p' shown; }
found=0
# The step that was shown has the recorded loss, to six digits.
check_loss() # RUN WHAT
{
    local step
    step=$(number step)
    awk -v a="$(number loss)" -v b="$(recorded "$1" "$step")" '
        BEGIN { d = a - b; exit !(b != "" && d * d <= 1e-10 * b * b) }' ||
        wrong "$2: step $step has the loss $(number loss), recorded is $(recorded "$1" "$step")"
}
# First step of the record from FROM on whose loss is above VALUE.
first_above() # RUN VALUE FROM
{
    sed -n 's/^{"step":\([0-9]*\),.*"loss":\([^,]*\),.*/\1 \2/p' "$1/checkpoints/record.jsonl" |
        awk -v value="$2" -v from="$3" '$1 >= from && $2 > value { print $1; exit }'
}

# ---- planted faults: lines ---------------------------------------------------------------------------------------

case_of_line() # KIND LINE LOSS: a strange line, which has the first row of such a loss after the first 40 steps
{
    local kind=$1 line=$2 file=$1.$2 from=text
    [ "$kind" != translate ] || from=target
    sed "${line}s/.*/$strange/" $from >"$file"
    make "$kind" "$file" run 90 --keep 3 || { wrong "$kind train failed: $(cat said)" && return; }
    if "$bin/$kind" debug run --quiet --when "row > $3" --from 40 --depth 2 >shown 2>said && contains "$line"; then
        found=$((found + 1))
        check_loss run "$kind, line $line"
        # one step earlier, no row has that loss; the step is the same without a search
        local step=$(($(number step) - 1))
        mv shown searched
        "$bin/$kind" debug run --quiet --step $((step + 1)) --depth 2 >shown && cmp searched shown ||
            wrong "$kind: --step and --when show other values"
        [ $step -lt 40 ] || { "$bin/$kind" debug run --quiet --step $step --rows 1 >shown &&
            awk -v most="$3" '$1 == "row" { getline; exit !($2 > most) }' shown &&
            wrong "$kind: step $step has a row above $3, too"; } || true
    else
        wrong "$kind, line $line: not found: $(head -n 9 shown) $(cat said)"
    fi
    rm -rf run
}
for line in 12 37 61; do case_of_line translate $line 4; done
for line in 14 48 77; do case_of_line gpt $line 3.4; done
for line in 23 48 85; do case_of_line bert $line 4; done
for line in 15 48 81; do case_of_line lm $line 3.6; done
for image in 8 41 90; do
    labels $image >vit.$image
    make vit vit.$image run 60 --shift 0 || wrong "vit train failed: $(cat said)"
    "$bin/vit" debug run --quiet --when "row > 1.5" --from 20 --depth 3 >shown 2>said && contains $image &&
        found=$((found + 1)) || wrong "vit, image $image: not found: $(head -n 9 shown) $(cat said)"
    check_loss run "vit, image $image"
    rm -rf run
done

# A text at which the loss explodes: plain gradient descent, after many equal lines.
for i in $(seq 100); do echo "the dog ."; done |
    sed '70s/.*/qzjxkvwqzzyxqjqjzKVJXQZWPBFUMLCIYAKDSNRJQZVXWKPBFUMLCIYA/' >equal
train[equal]="--text FILE --pieces characters --size tiny --dim 32 --length 20 --batch 1 --optimizer sgd --lr 10"
make equal equal run 60 --clip 0 --valid-part 0 || wrong "lm train failed: $(cat said)"
"$bin/lm" debug run --quiet --when "loss > 5" --from 20 >shown && contains 70 && found=$((found + 1)) ||
    wrong "equal lines: not found: $(head -n 9 shown)"
[ "$(number step)" = "$(first_above run 5 20)" ] ||
    wrong "equal lines: step $(number step), not $(first_above run 5 20)"
rm -rf run

# ---- planted faults: rates and copies ----------------------------------------------------------------------------

train[rate]="--text FILE --pieces characters --size tiny --dim 32 --length 20 --batch 4 --optimizer sgd --lr 60"
make rate text run 60 --clip 0 || wrong "lm train failed: $(cat said)"
for value in 6 30; do
    "$bin/lm" debug run --quiet --when "loss > $value" --rows 1 >shown &&
        [ "$(number step)" = "$(first_above run $value 1)" ] && found=$((found + 1)) ||
        wrong "an exploding loss above $value: step $(number step), not $(first_above run $value 1)"
    check_loss run "an exploding loss"
done
"$bin/lm" debug run --quiet --when "grad > 5" --rows 1 >shown &&
    awk -v g="$(number gradient)" 'BEGIN { exit !(g > 5) }' && found=$((found + 1)) ||
    wrong "an exploding gradient: $(head -n 5 shown)"
rm -rf run

# Runs that end with NaN: the step is the one of the error, which is not in the record.
for kind in gpt vit; do
    labels >vit.right
    if [ $kind = gpt ]; then make gpt text run 60 --lr 100 && wrong "gpt did not diverge"; else
        "$bin/vit" train --quiet --images images --labels vit.right --model convolutions --size tiny --batch 16 \
            --lr 100 --steps 60 --out run >made 2>said && wrong "vit did not diverge"
    fi
    step=$(sed -n 's/.*the loss is NaN at step \([0-9]*\);.*/\1/p' said)
    [ -n "$step" ] && "$bin/$kind" debug run --quiet --when "loss is nan" >shown 2>said &&
        [ "$(number step)" = "$step" ] && grep -q '^loss  *nan: the run failed at this step' shown &&
        awk '/^results of/ { on = 1 } on && $NF > 0 { bad = 1 } END { exit !bad }' shown &&
        found=$((found + 1)) || wrong "$kind: NaN at step $step: $(cat shown said)"
    "$bin/$kind" debug run --quiet --step "$step" >again && cmp shown again || wrong "$kind: another step $step"
    rm -rf run
done

# Copies: equal lines, equal images.
sed '60,90s/.*/THE DOG SEES THE DOG ./' target >copies
sed '60,90s/.*/the dog sees the dog ./' source >source.copies
# shellcheck disable=SC2086
"$bin/translate" train --quiet --src source.copies --tgt copies --size nano $transformer --tokens 200 --vocab-size 280 \
    --out run --steps 20 >made || wrong "translate train failed"
"$bin/translate" debug run --quiet --when "copies > 6" --rows 0 >shown &&
    awk '/same as row/ { n++; if ($4 < 60 || $4 > 90) others++ } END { exit !(n > 6) }' shown && found=$((found + 1)) ||
    wrong "copies are not found: $(head -n 20 shown)"
check_loss run copies
rm -rf run
printf '\0\0\10\3\0\0\0\170\0\0\0\10\0\0\0\10%07680d' 0 >same
labels >vit.right
# shellcheck disable=SC2086
"$bin/vit" train --quiet --images same --labels vit.right --size tiny $transformer --batch 16 --shift 0 --steps 3 \
    --out run >made || wrong "vit train failed"
"$bin/vit" debug run --quiet --when "copies >= 14" >shown && grep -q '^batch .*, 14 rows are copies' shown &&
    [ "$(number step)" = 1 ] && found=$((found + 1)) || wrong "equal images are not found: $(head -n 9 shown)"
rm -rf run

# ---- planted faults: masks that leak -----------------------------------------------------------------------------

# A program whose attention has no mask in rows with a '#', which this line has: see leaking.c.
case_of_leak() # KIND LINE DEPENDS [OPTION...]
{
    local kind=$1 line=$2 depends=$3 file=$1.leak from=text step
    shift 3
    [ "$kind" != translate ] || from=target
    sed "${line}s/.*/# &/" $from >"$file"
    make "$kind" "$file" run 1 "$@" || wrong "$kind train failed: $(cat said)"
    TENON_LEAK=$(grep -o '"#": *[0-9]*' run/tokenizer.json | tail -n 1 | tr -dc 0-9)
    export TENON_LEAK
    rm -rf run
    bin=$build/bin/tests
    make "${kind}_leaking" "$file" run 40 --keep 3 --dropout 0 "$@" || wrong "$kind train failed: $(cat said)"
    "$bin/${kind}_leaking" debug run --quiet --when "leak > 0" --depth 1 >shown 2>said &&
        contains "$line" leaking_place &&
        grep -q "^leak  .* depends on $depends\$" shown && found=$((found + 1)) ||
        wrong "$kind, a mask that leaks at line $line: not found: $(head -n 6 shown) $(cat said)"
    check_loss run "$kind, a mask that leaks"
    step=$(($(number step) - 1))
    [ $step -lt 1 ] || { "$bin/${kind}_leaking" debug run --quiet --step $step >shown && [ "$(number leak)" = 0 ]; } ||
        wrong "$kind: step $step leaks, too: $(head -n 6 shown)"
    unset TENON_LEAK
    bin=$build/bin
    rm -rf run
}
case_of_leak translate 52 "later tokens"
case_of_leak gpt 48 "later tokens"
case_of_leak bert 45 padding
[ $found = 26 ] || wrong "$found of 26 planted faults were found"

# ---- any step, after interruptions -------------------------------------------------------------------------------

make gpt text whole 40 --keep 100 || wrong "gpt train failed"
make gpt text run 20 || wrong "gpt train failed" # lengthened once
"$bin/gpt" train --quiet --out run --resume --steps 40 >made || wrong "gpt train --resume failed"
"$bin/gpt" debug run --quiet --step 40 --step 7 --step 21 --depth 2 >all || wrong "steps in any order"
for step in 40 7 21; do
    "$bin/gpt" debug run --quiet --step $step --depth 2 --threads 2 >shown || wrong "gpt debug --step $step failed"
    check_loss run "a lengthened run"
    cat shown
    [ $step = 21 ] || echo
done | cmp - all || wrong "steps alone and together differ"
"$bin/gpt" debug whole --step 33 2>said >shown && grep -q '^replay  *steps 31 to 33' said ||
    wrong "the cost: $(cat said)"
check_loss whole "a whole run"
rm -rf whole/checkpoints/step-*
"$bin/gpt" debug whole --step 33 --quiet >again && cmp shown again || wrong "step 33 from the beginning differs"
compgen -G "tenon-replay-*" && wrong "gpt debug leaves its temporary folder behind"
rm -r run whole

echo "$found planted faults found"

# ---- mistakes ----------------------------------------------------------------------------------------------------

make gpt text run 10 || wrong "gpt train failed"
g=("$bin/gpt" debug run)
says 5 "'nowhere/run.json' does not exist" "$bin/gpt" debug nowhere --step 1
says 2 "missing operand, expected DIR" "$bin/gpt" debug
says 2 "give one of --step and --when" "${g[@]}"
says 2 "give one of --step and --when" "${g[@]}" --step 1 --when "loss > 4"
says 2 "--step is '0', but must be a number from 1" "${g[@]}" --step 0
says 2 "--from is for --when" "${g[@]}" --step 1 --from 2
says 2 "'size' in 'size > 4' is unknown; expected loss, row, grad, lr, copies or leak" "${g[@]}" --when "size > 4"
says 2 "after 'loss', '= 4' is no relation" "${g[@]}" --when "loss = 4"
says 2 "'much' after 'loss >' is not a number" "${g[@]}" --when "loss > much"
says 2 "'4' after 'grad is nan' is unexpected" "${g[@]}" --when "grad is nan 4"
says 1 "--step 11 is beyond the end: the run in 'run' has 10 steps" "${g[@]}" --step 11
says 1 "--when 'loss > 99' does not hold at any step from 1 to 10" "${g[@]}" --when "loss > 99"
cp text kept
echo more >>text
says 1 "'text' of --text has changed since the run started" "${g[@]}" --step 3
mv text away
says 5 "missing: 'text' of --text" "${g[@]}" --step 3
mv kept text
rm -r run/checkpoints
says 5 "record.jsonl' does not exist" "${g[@]}" --step 3
exit $wrong
