#!/usr/bin/env bash
# Damages each file of a run's folder in 16 ways. Using the model must then give the same answer or an error that names
# the file; resuming the run must give the same bits or an error that names a remedy. There must be no crash, no mixed
# folder, and no silently different answer. Flipped bits at 60 positions of the weights must all be detected.
. "$(dirname "$0")/common.sh"
fresh damage
bert=$build/bin/bert
[ -x "$bert" ] || { echo "SKIPPED: the programs are not built" && exit 77; }

"$bert" sample-corpus -n 60 >text
train=("$bert" train --quiet --threads 1 --text text --size tiny --layers 1 --dim 32 --heads 2 --batch 2
    --length 16 --steps 4)
"${train[@]}" --vocab-size 200 --out good >/dev/null || wrong "bert train fails"
"${train[@]}" --vocab-size 150 --seed 2 --out other >/dev/null || wrong "bert train fails"
ask=("$bert" fill -k 3 --json "The [MASK] and the [MASK]." --model)
"${ask[@]}" good >answer || wrong "bert fill fails"

kinds='gone empty half short long first middle last zeros noise braces folder nowhere theirs mixed pipe'
flip() # FILE AT: flips a bit of that byte
{
    local byte
    byte=$(dd if="$1" bs=1 skip="$2" count=1 status=none | od -An -tu1)
    printf '%b' "$(printf '\\x%02x' $((byte ^ 16)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
damage() # KIND FILE
{
    local file=bad/$2 size
    size=$(stat -c %s "$file")
    case $1 in
    gone) rm "$file" ;;
    empty) : >"$file" ;;
    half) truncate -s $((size / 2)) "$file" ;;
    short) truncate -s -1 "$file" ;;
    long) echo more >>"$file" ;;
    first) flip "$file" 0 ;;
    middle) flip "$file" $((size / 2)) ;;
    last) flip "$file" $((size - 1)) ;;
    zeros) head -c "$size" /dev/zero >"$file" ;;
    noise) head -c "$size" "$bert" >"$file" ;;
    braces) echo '{}' >"$file" ;;
    folder) rm "$file" && mkdir "$file" ;;
    nowhere) ln -sf nothing "$file" ;;
    theirs) cp "other/$2" "$file" ;;
    mixed) head -c $((size / 2)) "other/$2" >half && tail -c +$((size / 2 + 1)) "good/$2" >>half && mv half "$file" ;;
    pipe) rm "$file" && mkfifo "$file" ;;
    esac
}

tried=0 found=0 unseen=
answers() # KIND FILE
{
    local code=0
    timeout -k 5 60 "${ask[@]}" bad >out.txt 2>err.txt </dev/null || code=$?
    tried=$((tried + 1))
    if [ $code = 0 ]; then
        cmp -s answer out.txt || unseen+=" $2:$1"
    elif [ $code -gt 7 ] || ! grep -q "bad" err.txt; then
        wrong "bert fill, $2 $1: ends with $code and says: $(cat err.txt)"
    else found=$((found + 1)); fi
}
goes_on() # KIND FILE
{
    local code=0
    timeout -k 5 60 "${train[@]}" --vocab-size 200 --out bad --resume >out.txt 2>err.txt </dev/null || code=$?
    tried=$((tried + 1))
    if [ $code = 0 ]; then
        cmp -s good/model.safetensors bad/model.safetensors || wrong "bert train --resume, $2 $1: other bits"
    elif [ $code -gt 7 ] || ! grep -qE "bad|text" err.txt; then
        wrong "bert train --resume, $2 $1: ends with $code and says: $(cat err.txt)"
    else
        found=$((found + 1))
        rm -rf fresh # the remedy in the messages: another folder
        "${train[@]}" --vocab-size 200 --out fresh >/dev/null 2>&1 &&
            cmp -s good/model.safetensors fresh/model.safetensors ||
            wrong "bert train --resume, $2 $1: another folder does not help"
        echo "$2 $1: $(cat err.txt)" >>said.txt
    fi
}

while read -r file; do
    [ -s "good/$file" ] || continue # the lock
    for kind in $kinds; do
        rm -rf bad && cp -r good bad
        damage "$kind" "$file"
        answers "$kind" "$file"
        goes_on "$kind" "$file"
    done
done < <(cd good && find . -type f ! -name lock -printf '%P\n' | sort)
[ -z "$unseen" ] || wrong "damaged, and another answer is given without a word:$unseen"

rm -rf bad && cp -r good bad
size=$(stat -c %s good/model.safetensors)
for ((i = 1; i <= 60; i++)); do # after the header, whose bits tests/unit/models/test_bert.c flips one by one
    flip bad/model.safetensors $((size - 1 - i * (size / 100)))
    code=0
    timeout -k 5 60 "${ask[@]}" bad >out.txt 2>err.txt </dev/null || code=$?
    [ $code -gt 0 ] && [ $code -le 7 ] && grep -q "model.safetensors.*is damaged" err.txt ||
        wrong "bert fill, bit at $i hundredths from the end: ends with $code and says: $(cat err.txt)"
    cp good/model.safetensors bad/model.safetensors
done
mkdir -p "$build/figures"
echo "damage: $tried times a damaged folder was used, $found times an error named the file, \
$(wc -w <<<"$unseen") times another answer was given silently:${unseen:- none}" | tee "$build/figures/damage"
exit $wrong
