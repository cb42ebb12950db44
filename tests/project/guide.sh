#!/usr/bin/env bash
# The pages of docs/guide are correct. The C blocks of a lesson's page are, in order, its program without the headings;
# its output blocks are the program's output (numbers within 2 %, because other machines round differently). A lesson
# has at most 150 lines, and has a page. The commands of other pages are run in an empty folder, and print the lines of
# the output blocks. Each `file:function` exists. The pages that train a BERT and a GPT, and fine_tuning and look, take
# most of the time: they are run with 'guide.sh whole', by --full; bert.sh, gpt.sh, tune.sh and look.sh run the same
# commands with smaller models.
. "$(dirname "$0")/common.sh"
fresh "guide${1:+_$1}"

# blocks LANGUAGE FILE: the lines between ```LANGUAGE and ```, without empty lines
blocks() { awk -v open="\`\`\`$1" '$0 == "```" { on = 0 } on && NF; $0 == open { on = 1 }' "$2"; }

# The program as on a page: without the first comment, headings and empty lines.
program() { sed '1,/\*\/$/d' "$1" | grep -v '^/\* ---- .* \*/$' | grep -v '^[[:space:]]*$'; }

# like EXPECTED GOT: the same words, numbers within 2 %
like()
{
    awk '
    function number(w) { return w ~ /^[-+]?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?$/ }
    function near(a, b, d) { d = a - b; if (d < 0) d = -d; if (a < 0) a = -a; return d <= 0.02 * a + 1e-9 }
    { gsub(/[][(),:;]/, " & ") }
    NR == FNR { want[NR] = $0; n = NR; next }
    {
        fields = split(want[FNR], w)
        same = fields == NF
        for (i = 1; same && i <= NF; i++) same = $i == w[i] || (number($i) && number(w[i]) && near(w[i], $i))
        if (!same) { print "the page says: " want[FNR]; print "the program:   " $0; bad = 1; exit }
    }
    END { if (!bad && FNR != n) print n " lines on the page, " FNR " of the program" }' "$1" "$2"
}

for file in "$root"/examples/0*.c "$root"/examples/custom_model.c "$root"/examples/host_program.c \
    "$root"/examples/text_queue.c; do
    name=$(basename "$file" .c)
    page=$root/docs/guide/$name.md
    [ -f "$page" ] || { wrong "examples/$name.c has no page docs/guide/$name.md" && continue; }
    grep -q "($name.md)" "$root/docs/guide/README.md" || wrong "docs/guide/README.md does not name $name.md"
    [ "$(wc -l <"$file")" -le 150 ] || wrong "examples/$name.c: a lesson has at most 150 lines"
    blocks c "$page" >"$name.page"
    program "$file" | diff - "$name.page" >"$name.difference" ||
        wrong "docs/guide/$name.md is not examples/$name.c: $(head -20 "$name.difference")"

    mkdir "$name.run"
    (cd "$name.run" && "$build/bin/$name" >../"$name.all" 2>&1) || wrong "$name fails: $(cat "$name.all")"
    grep -v '^[[:space:]]*$' "$name.all" >"$name.out" || true
    blocks text "$page" >"$name.shown"
    findings < <(like "$name.shown" "$name.out" | sed "s/^/docs\/guide\/$name.md: /")
done

# Examples without a page of their own.
"$build/bin/captioner" >captioner.out 2>&1 &&
    [ "$(sed -n "s/ of 200 captions are right$//p" captioner.out)" -ge 180 ] ||
    wrong "captioner: $(tail -n 5 captioner.out)"
"$build/bin/own_parts" >own_parts.out 2>&1 && grep -q '^100  0\.0' own_parts.out ||
    wrong "own_parts: $(tail -n 5 own_parts.out)"
"$build/bin/own_family" >own_family.out 2>&1 && grep -qx 'the horse eats | gras' own_family.out &&
    grep -qx 'the bird sings | songs and' own_family.out && [ -s ngram/tokenizer.json ] ||
    wrong "own_family: $(tail -n 5 own_family.out)"
"$build/bin/lora" >lora.out 2>&1 && grep -qx 'with new adapters: 7 10 13 16 19 2 5' lora.out &&
    grep -qx 'merged: 7 12 17 2 7 12 17' lora.out || wrong "lora: $(tail -n 5 lora.out)"
for i in {1..150}; do
    printf '%s\n\n' 'the cat drinks milk.' 'the horse eats grass.' 'the bird sings songs.' 'the fish likes water.'
done >animals
"$build/bin/bert_mlm" animals 120 'the horse eats [MASK].' >mlm.out 2>mlm.err && grep -q '^grass 0\.[89]' mlm.out ||
    wrong "bert_mlm does not fill in what it has read: $(cat mlm.err mlm.out)"
"$build/bin/diffusion" 100 >drawn && grep -qE '^step  100  loss 0\.[23]' drawn && [ "$(wc -l <drawn)" = 17 ] ||
    wrong "diffusion does not learn the noise: $(cat drawn)"
"$build/bin/translate" sample-pairs --src dates --tgt iso --lines 300 -q
"$build/bin/seq2seq" dates iso 200 "$(head -n 1 dates)" >pairs.out 2>pairs.err && cmp -s pairs.out <(head -n 1 iso) ||
    wrong "seq2seq does not translate what it has read: $(cat pairs.err pairs.out)"
findings < <(cd "$root" && wc -l examples/*.c examples/*.cpp examples/*/*.c |
    awk '$2 == "total" ? $1 > 2800 : $1 > 150 { print $2 " has " $1 " lines: an example has at most 150, all 2,800" }')

# Pages of commands: each ```sh block, and each ```python block where Python has transformers.
for page in "$root"/docs/guide/*.md; do
    name=$(basename "$page" .md)
    grep -q '^```sh$' "$page" || continue
    grep -q "($name.md)" "$root/docs/guide/README.md" || wrong "docs/guide/README.md does not name $name.md"
    [ "$name" != lectures ] || continue # lectures.sh
    [[ ${1:-} == whole || ! $name =~ ^(train_your_own_[bg].*|fine_tuning|look)$ ]] || continue
    mkdir "$name.run"
    blocks sh "$page" >"$name.commands"
    (cd "$name.run" && PATH=$build/bin:$PATH bash -euo pipefail ../"$name.commands") >"$name.all" 2>"$name.said" ||
        wrong "docs/guide/$name.md: a command fails: $(tail -n 5 "$name.said")"
    while IFS= read -r line; do
        grep -qxF -- "$line" "$name.all" || wrong "docs/guide/$name.md: no command prints: $line"
    done < <(blocks text "$page")
    if grep -q '^```python$' "$page" && python3 -c 'import transformers, torch' 2>/dev/null; then
        blocks python "$page" >"$name.py"
        (cd "$name.run" && HF_HUB_OFFLINE=1 python3 ../"$name.py") >"$name.python" 2>&1 ||
            wrong "docs/guide/$name.md: $(tail -n 5 "$name.python")"
    fi
    while read -r picture; do
        [ -s "$root/docs/guide/$picture" ] || wrong "docs/guide/$name.md: there is no $picture"
    done < <(sed -nE 's/^!\[.*\]\((.*)\)$/\1/p' "$page")
done
if [[ ${1:-} == whole ]]; then
    [ -s train_your_own_bert.run/look.html ] && grep -q '<svg' train_your_own_bert.run/book/report.html ||
        wrong "docs/guide/train_your_own_bert.md leaves no pictures"
fi

# Each `file:function` of a page exists.
while IFS=: read -r page file function; do
    grep -qE "(^|[^A-Za-z0-9_])(TN__\\()?$function\\)?\\(" "$root/$file" 2>/dev/null ||
        wrong "docs/guide/$page: there is no $function in $file"
done < <(cd "$root/docs/guide" && grep -oE '`[a-z0-9_./]+\.[ch]:[a-z0-9_]+`' ./*.md |
    tr -d '\`' | sed 's/^\.\///' | sort -u)

# The second run of 04_training resumes at the end of the first.
(cd 04_training.run && "$build/bin/04_training") >again 2>&1 || wrong "04_training fails the second time: $(cat again)"
! grep -q '^step' again || wrong "04_training begins anew, where it should go on: $(cat again)"
[ -s 04_training.run/spirals/best.safetensors ] || wrong "04_training keeps no best weights"

exit $wrong
