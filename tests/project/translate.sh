#!/usr/bin/env bash
# The program translate as a user meets it: the demonstration in small, lines through every kind of model, a run that is
# stopped and goes on, scores, and what it says to mistakes.
. "$(dirname "$0")/common.sh"
fresh translate
translate=$build/bin/translate

# says CODE TEXT COMMAND...: the exit code and a line on standard error
says()
{
    local code=$1 text=$2 rc=0
    shift 2
    "$@" >out.txt 2>err.txt </dev/null || rc=$?
    [ $rc = "$code" ] || wrong "$*: exit code $rc, expected $code: $(head -n 3 err.txt)"
    grep -qF -- "$text" err.txt || wrong "$*: '$text' is not in: $(head -n 3 err.txt)"
}

"$translate" demo --quiet --out demo --steps 30 --pairs 400 --asked 20 >last.txt || wrong "translate demo failed"
tail -n 1 last.txt | grep -qE '^exact [01]\.[0-9]+ minutes [0-9.]+$' ||
    wrong "translate demo ends with: $(tail -n 1 last.txt)"

printf '3 May 2019\n\nle 3 mai 2019\r\n5.6.21' >lines.txt
train=("$translate" train --quiet --src demo/dates.txt --tgt demo/dates.iso --dim 32 --layers 1 --vocab-size 300)
for kind in transformer bahdanau luong rnn; do
    "${train[@]}" --model $kind --size tiny --steps 12 --tokens 400 --out $kind >/dev/null ||
        wrong "train --model $kind failed"
    "$translate" run --model $kind --beam 1 --longest 14 <lines.txt >one.txt || wrong "run --model $kind failed"
    "$translate" run --model $kind --beam 1 --longest 14 --batch 1 --threads 1 <lines.txt >other.txt
    cmp one.txt other.txt || wrong "$kind: another batch and number of threads change the translation"
    [ "$(wc -l <one.txt)" = 4 ] || wrong "$kind: four lines became $(wc -l <one.txt)"
done
[ "$("$translate" run --model transformer --beam 3 --n-best 2 --longest 14 <lines.txt | wc -l)" = 8 ] ||
    wrong "run --n-best 2 does not print two lines for each"
"$translate" align --model transformer --html look.html "3 May 2019" >/dev/null && grep -q '<svg' look.html ||
    wrong "translate align makes no picture"
says 1 "has no attention" "$translate" align --model rnn --html none.html "3 May 2019"

"$translate" score --json --ref demo/dates.iso <demo/dates.iso | grep -q '"bleu":100' || wrong "a text is not itself"
head -n 3 demo/dates.iso >short.txt
says 3 "must belong together" "$translate" score demo/dates.iso --ref short.txt

# Stopped and resumed, it ends with the same bits.
train+=(--size tiny --tokens 400 --steps 40)
"${train[@]}" --out whole >/dev/null || wrong "translate train failed"
"${train[@]}" --out parts >/dev/null 2>&1 &
while [ ! -e parts/checkpoints ] && kill -0 $! 2>/dev/null; do sleep 0.05; done
kill -INT $! 2>/dev/null
wait $! || true
"${train[@]}" --out parts --resume >/dev/null || wrong "translate train --resume failed"
cmp whole/model.safetensors parts/model.safetensors || wrong "a resumed run ends with other bits"

says 1 "holds a model already" "${train[@]}" --out whole
says 2 "belong together" "${train[@]}" --valid-src lines.txt --out other
says 5 "nowhere" "$translate" run --model nowhere
says 3 "lines" "$translate" train --src demo/dates.txt --tgt short.txt --out bad --steps 1
exit $wrong
