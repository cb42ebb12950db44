#!/usr/bin/env bash
# The program bert as a user meets it: the demonstration in small, what can be asked of a model, a run that is stopped
# and goes on, and what it says to mistakes.
. "$(dirname "$0")/common.sh"
fresh bert
bert=$build/bin/bert

# says CODE TEXT COMMAND...: the exit code and a line on standard error
says()
{
    local code=$1 text=$2 rc=0
    shift 2
    "$@" >out.txt 2>err.txt </dev/null || rc=$?
    [ $rc = "$code" ] || wrong "$*: exit code $rc, expected $code: $(head -n 3 err.txt)"
    grep -qF -- "$text" err.txt || wrong "$*: '$text' is not in: $(head -n 3 err.txt)"
}

"$bert" demo --quiet --out demo --steps 30 --documents 60 --probes 5 >last.txt || wrong "bert demo failed"
part='[01]\.[0-9]+'
tail -n 1 last.txt | grep -qE "^agreement $part pronoun $part sense $part nsp $part minutes [0-9.]+\$" ||
    wrong "bert demo ends with: $(tail -n 1 last.txt)"
grep -q '<svg' demo/report.html || wrong "the report of bert demo has no pictures"
model=demo/model

[ "$("$bert" fill --model $model -k 3 "The keys [MASK] here." | wc -l)" = 3 ] || wrong "bert fill -k 3: not 3 lines"
"$bert" fill --model $model --json "The [MASK] and the [MASK]." | grep -q '"mask":1' ||
    wrong "bert fill --json: no second mask"
[ "$(printf 'one line\nand another\n' | "$bert" embed --model $model | awk '{ print NF }' | uniq)" = 128 ] ||
    wrong "bert embed does not print 128 numbers a line"
"$bert" attention --model $model --html look.html "The old ship sails." >/dev/null && grep -q '<svg' look.html ||
    wrong "bert attention makes no picture"
"$bert" info $model | grep -q '^parameters' || wrong "bert info does not say how many parameters"
"$bert" eval --model $model --json demo/held-out.txt | grep -q '"perplexity"' || wrong "bert eval --json"
"$bert" sample-corpus -n 5 | cmp -s - <("$bert" sample-corpus -n 5) || wrong "bert sample-corpus is not the same twice"

# Stopped and resumed, it ends with the same bits.
train=("$bert" train --quiet --text demo/world.txt --size tiny --steps 24 --batch 4 --length 32 --vocab-size 300)
"${train[@]}" --out whole >/dev/null || wrong "bert train failed"
"${train[@]}" --out parts >/dev/null 2>&1 &
while [ ! -e parts/checkpoints ] && kill -0 $! 2>/dev/null; do sleep 0.05; done
kill -INT $! 2>/dev/null
wait $! || true
"${train[@]}" --out parts --resume >/dev/null || wrong "bert train --resume failed"
cmp whole/model.safetensors parts/model.safetensors || wrong "a resumed run ends with other bits"

says 1 "holds a model already" "${train[@]}" --out whole

# Two runs on one fresh folder: one has it, from the first moment; the other ends, and has changed nothing.
small=("$bert" train --quiet --text demo/world.txt --size tiny --steps 4 --batch 2 --length 16)
for i in 1 2 3 4 5; do
    "${small[@]}" --vocab-size 300 --out race$i >/dev/null 2>err1.txt &
    first=$? one=$! two=0
    "${small[@]}" --vocab-size 500 --out race$i >/dev/null 2>err2.txt || two=$?
    wait $one || first=$?
    [ "$first$two" = 01 ] || [ "$first$two" = 10 ] || wrong "two runs on one folder end with $first and $two"
    cat err1.txt err2.txt | grep -qE "is in use by another run|holds a model already" ||
        wrong "two runs on one folder say: $(cat err1.txt err2.txt)"
    grep -q "\"vocab_size\": $([ $first = 0 ] && echo 300 || echo 500)" race$i/config.json ||
        wrong "two runs on one folder mix their files: $(grep vocab_size race$i/config.json)"
done
mkdir taken
exec 9<taken && flock 9
says 1 "'taken' is in use by another run" "${train[@]}" --out taken
exec 9<&-
says 1 "there is no [MASK]" "$bert" fill --model $model "No blank here."
says 2 "--steps, --epochs and --minutes" "${train[@]}" --minutes 1 --out other
says 5 "nowhere" "$bert" fill --model nowhere "The [MASK]."
: >empty.txt
says 3 "there is not one word" "$bert" train --text empty.txt --out none --steps 1
exit $wrong
