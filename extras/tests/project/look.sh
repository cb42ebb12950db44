#!/usr/bin/env bash
# The program look on an encoder, a fine-tuned encoder, a GPT and a translation model with little training: results are
# consistent, a pruned model opens again, pages have the same bytes in each run and load nothing, and wrong input gives
# the expected exit code and message.
. "$(dirname "$0")/../../../tests/project/common.sh"
fresh look
l=$build/bin/look
[ -x "$l" ] || { echo "SKIPPED: the programs are not built" && exit 77; }

awk 'BEGIN { srand(3); split("the a old young", d); split("man dog sea ship word", n)
    split("saw loved made took", v)
    for (i = 0; i < 300; i++)
        print d[1 + int(rand() * 4)], n[1 + int(rand() * 5)], v[1 + int(rand() * 4)], d[1 + int(rand() * 4)],
            n[1 + int(rand() * 5)] }' >text
tr a-z b-za <text >other
awk '{ for (i = 1; i <= 5; i++) printf "%d\t%s\t_\t%s\t_\t_\t%d\t%s\t_\t_\n", i, $i,
       i == 3 ? "VERB" : i % 3 == 1 ? "DET" : "NOUN", i == 3 ? 0 : i == 1 ? 2 : i == 4 ? 5 : 3,
       i == 3 ? "root" : i % 3 == 1 ? "det" : "obj"; print "" }' text >trees
train() { "$@" -q >log 2>&1 || wrong "$*: $(cat log)"; }
train "$build/bin/bert" train --text text --out bert --size tiny --steps 30 --length 16 --vocab-size 90 \
    --objective roberta
train "$build/bin/gpt" train --text text --out gpt --size tiny --steps 3 --length 16 --vocab-size 300
printf '{{ messages[0].content }}' >gpt/chat_template.jinja
train "$build/bin/translate" train --src text --tgt other --out tran --size tiny --tokens 400 --steps 3 --vocab-size 300
awk '{ print $0 "\t" ($2 == "man" || $2 == "dog" ? "living" : "thing") }' text >labelled
awk '{ print $0 "\t" $2 "\t" ($2 == "man" || $2 == "dog" ? "living" : "thing") }' text >pairs
train "$build/bin/bert" tune classify --model bert --train labelled --out tuned --epochs 8 --batch 8 --length 16 \
    --lr 1e-3
awk '{ for (i = 1; i <= 5; i++) print $i, i == 3 ? "VERB" : "OTHER"; print "" }' text >tags.conll
train "$build/bin/bert" tune tag --model bert --train tags.conll --out chain --epochs 1 --length 16 --crf
[ $wrong = 0 ] || exit 1

printf '%s\tman\t_\tNOUN\t_\t_\t0\troot\t_\t_\n' 1 2 >roots && echo >>roots
printf '%s\tman\t_\tNOUN\t_\t_\t%s\tdep\t_\t_\n' 1 2 2 1 3 0 >cycle && echo >>cycle
# ends CODE WORDS COMMAND...: checks the exit code, and that standard error contains WORDS
ends()
{
    local code=$1 words=$2 got=0
    shift 2
    "$@" </dev/null >out 2>err || got=$?
    [ $got = "$code" ] && grep -q -- "$words" err || wrong "'$*' ends with $got, not $code, and says: $(cat err)"
}
# page FILE: checks that a page is complete and loads nothing
page()
{
    grep -q '</html>' "$1" || wrong "$1 is no whole page"
    ! grep -qE '<script[^>]|<link|(src|href)=|url\(' "$1" || wrong "$1 loads something"
}

for m in bert tuned gpt tran; do
    more=() held=() text=text
    [ $m != tuned ] || text=labelled
    [ $m != tran ] || more=(--target other) held=(--valid-target other)
    "$l" heads --model $m --text $text "${more[@]}" --lines 60 --html $m.html >heads || wrong "$m: heads fails"
    page $m.html
    grep -q '100 is [0-9.e-]*<' $m.html && grep -q '>100</text>' $m.html || wrong "$m: importance without numbers"
    [ "$(awk 'NR > 1 && $3 > 0' heads | wc -l)" = "$(($(wc -l <heads) - 1))" ] || wrong "$m: heads without importance"
    "$l" prune --model $m --text $text "${more[@]}" --valid $text "${held[@]}" --lines 60 --share 0.5 --times 2 \
        --out $m.half >lines || wrong "$m: prune fails"
    [ $m != tran ] || awk -F '\t' 'NF != 7 || (NR > 1 && !($7 >= 0 && $7 <= 100)) { exit 1 }' lines ||
        wrong "BLEU: $(cat lines)"
    awk 'NR > 2 && $5 >= before { exit 1 } { before = $5 }' lines || wrong "$m: it does not get smaller: $(cat lines)"
    "$l" heads --model $m.half --text $text "${more[@]}" --lines 60 >half || wrong "$m: the pruned model does not open"
    [ $((2 * ($(wc -l <half) - 1))) = $(($(wc -l <heads) - 1)) ] || wrong "$m: not half of the heads are left"
    ends 1 "already contains a model" "$l" prune --model $m --text $text --out $m.half
    if [ $m = gpt ]; then
        cmp gpt/chat_template.jinja gpt.half/chat_template.jinja || wrong "the pruned model has lost its chat template"
        grep -h eos_token_id gpt/generation_config.json gpt.half/generation_config.json | uniq -c | grep -q '^ *2 ' ||
            wrong "the pruned model has lost what ends its texts"
    fi
    for way in random worst; do
        "$l" prune --model $m --text $text "${more[@]}" --lines 30 --share 1 --order $way --tune 2 >lines ||
            wrong "$m: $way"
    done
    asked='the old [MASK] saw the sea'
    [ $m = bert ] || asked='the old man saw'
    [ $m != tuned ] || asked='the old man saw a ship'
    "$l" attribute --model $m "$asked" --html $m.words.html >sum || wrong "$m: attribute fails"
    page $m.words.html
    awk '$1 == "sum" { s = $2 } $1 == "difference" { d = $2 }
        END { x = s - d; x = x < 0 ? -x : x; d = d < 0 ? -d : d; exit !(x <= 0.01 * d + 1e-4) }' sum ||
        wrong "$m: the parts do not add up: $(tail -n 2 sum)"
    for model in $m $m.half; do
        "$l" attend --model $model "the old man saw the sea" --html $model.a.html >said || wrong "$model: attend fails"
        "$l" attend --model $model "the old man saw the sea" --html $model.b.html --threads 2 >said
        page $model.a.html
        [ "$(grep -c 'data-w=' $model.a.html)" -ge 1 ] || wrong "$model: no head can be chosen"
        case $model in
        bert*) grep -q '>without special tokens, rows of sum 1<' $model.a.html || wrong "$model: no switch of tokens" ;;
        esac
        cmp -s $model.a.html $model.b.html || wrong "$model: another page with another number of threads"
    done
    "$l" surface --model $m --text $text "${more[@]}" --lines 16 --size 5 --table $m.tsv --html $m.svg >numbers 2>err ||
        wrong "$m: surface fails: $(cat err)"
    [ "$(wc -l <$m.tsv)" = 26 ] || wrong "$m: its table has $(wc -l <$m.tsv) lines"
    grep -q '^<svg xmlns' $m.svg || wrong "$m: no picture"
    head -n 9 $m.tsv >again.tsv
    "$l" surface --model $m --text $text "${more[@]}" --lines 16 --size 5 --table again.tsv --resume -q >more
    cmp -s $m.tsv again.tsv || wrong "$m: a surface that is resumed has other numbers"
    begun() { ends 3 "was started with another --size" "$l" surface --model $m --text $text --table again.tsv -r "$@"; }
    begun "${more[@]}" --lines 16 --size 7
    begun "${more[@]}" --lines 40 --size 5
    begun "${more[@]}" --lines 16 --size 5 --model $m.half
done
# One head step by step: with given vectors the weights of a causal mask by hand, 1, then 1 / (1 + e^(1/√2)) = 0.33; a
# model's head has the weights that the model computes (the program compares them).
printf 'a 1 0\nb 1 1\n' >ab.vec
printf 'q1 1 0\nq2 0 1\nk1 1 0\nk2 0 1\nv1 2 0\nv2 0 2\n' >abw.vec
"$l" walk --vectors ab.vec --matrices abw.vec --causal "a b" | sed -n '/^sum/,$p' | tr -s ' ' >steps
printf '%s\n' 'sum: the values, weighted' 'a 2.00 0.00' 'b 2.00 1.34' '' | diff - steps ||
    wrong "walk --vectors: $(cat steps)"
for m in bert tuned gpt tran; do
    "$l" walk --model $m --layer 2 --head 2 "the old man saw" >steps 2>err || wrong "walk --model $m: $(cat err)"
    [ "$(grep -q -- -inf steps && echo gpt)" = "${m/#[^g]*/}" ] || wrong "$m: the mask of walk: $(cat steps)"
done
ends 1 "the model computes this head without --causal" "$l" walk --model bert --causal "the old man saw"
ends 1 "--head 9 does not exist: this layer has" "$l" walk --model bert --head 9 "the man"
ends 1 "'c' has no vector in 'ab.vec'" "$l" walk --vectors ab.vec "a c"
ends 3 "'ab.vec' has no row 'q1'" "$l" walk --vectors ab.vec --matrices ab.vec "a b"
ends 2 "either --model or --vectors" "$l" walk "a b"
ends 2 "--matrices is for --vectors" "$l" walk --model bert --matrices ab.vec "a b"
"$l" positions --html positions.html >cosines && page positions.html || wrong "positions fails"
awk 'NR == 2 && $2 != 1 { exit 1 } NR > 2 && NR < 6 { if ($2 >= before) exit 1 } { before = $2 }' cosines ||
    wrong "near positions are not alike: $(cat cosines)"
"$l" positions --model bert --length 16 --html positions.svg >cosines && [ "$(head -c 4 positions.svg)" = "<svg" ] ||
    wrong "learned positions: $(cat cosines)"
ends 7 "has no table of positions" "$l" positions --model tran
"$l" align --model tran "the old man" --html align.html >said || wrong "align fails"
page align.html
"$l" surface --model bert --text text --lines 16 --size 9 --to bert -q >line || wrong "the line to another model"
"$l" surface --twins 3 --size 5 -q >twins && [ "$(wc -l <twins)" = 5 ] || wrong "twins: $(cat twins)"
"$l" surface --twins 2 --size 5 -q -o twins.html >twins && [ "$(grep -o 'maximum of the scale [0-9.e+-]*' twins.html |
    sort -u | wc -l)" = 1 ] && grep -q '>direction 2<' twins.html || wrong "twins: not one scale, or no names of axes"
"$l" surface --twins 2 --transformer --size 5 -q -o twins.svg >twins 2>err || wrong "Transformers: $(cat err)"
[ "$(awk -F '\t' 'NR > 1 && $5 >= 0 && $5 <= 1' twins | wc -l)" = 4 ] || wrong "Transformers: $(cat twins)"
[ "$(head -c 4 twins.svg)" = "<svg" ] || wrong "twins.svg is not an SVG file"
# 256 images of 14 x 14 and their labels, 0 to 9, as IDX.
{ printf '\0\0\010\003\0\0\001\0\0\0\0\016\0\0\0\016' && printf 'twins of digits\n%.0s' $(seq 3136); } >digits.idx
{ printf '\0\0\010\001\0\0\001\0' && for i in $(seq 0 255); do printf "\\$((i % 8))"; done; } >labels.idx
"$l" surface --twins 2 --size 3 --images digits.idx --labels labels.idx -q >digits && [ "$(wc -l <digits)" = 5 ] &&
    ! cut -f 2- digits | cmp -s - <("$l" surface --twins 2 --size 3 -q | cut -f 2-) || wrong "digits: $(cat digits)"
ends 3 "need at least 256 images" "$l" surface --twins 2 --images labels.idx --labels labels.idx
ends 2 "--images and --labels belong together" "$l" surface --twins 2 --images digits.idx
for command in "heads --text text" "attend the" "align the" "attribute the" "surface --text text"; do
    # shellcheck disable=SC2086 # words
    ends 2 'figures are written as .svg' "$l" ${command%% *} --model bert ${command#* } --html figure.png
done
"$l" probe --model bert --text trees --test trees --sentences 60 --steps 200 >layers || wrong "probe fails"
awk 'NR == 2 && $2 < 99 { exit 1 }' layers || wrong "the embeddings of a word do not tell its class: $(cat layers)"
for m in tuned gpt; do
    "$l" probe --model $m --text trees --test trees --sentences 20 --steps 50 >again || wrong "probe of $m fails"
    [ "$(wc -l <again)" -ge 4 ] || wrong "$m: $(cat again)"
done
"$l" heads --model tuned --text pairs --pairs --lines 20 >two || wrong "labelled pairs: heads fails"
"$l" attribute --model tuned --answer thing "the man saw a ship" >thing || wrong "another label than the likeliest"
awk '$1 == "sum" { exit !($2 < 0) }' thing || wrong "a man is thought to be a thing: $(cat thing)"
"$l" probe --model bert --heads --text trees --sentences 60 >heads || wrong "probe --heads fails"
[ "$(awk 'NR > 1 && $3 <= $4 && $4 <= 1' heads | wc -l)" = $(($(wc -l <heads) - 1)) ] || wrong "heads: $(cat heads)"

# Trees and relations of the layers: a line for each layer; the trees of this grammar are all equal, so that a probe
# finds them in the positions. The same numbers with any number of threads.
for threads in 1 2; do
    "$l" probe --model bert --trees --text trees --test trees --sentences 60 --rank 16 --html trees.html \
        --threads $threads >trees.$threads 2>err || wrong "probe --trees fails: $(cat err)"
    "$l" probe --model bert --edges --text trees --test trees --sentences 60 --steps 40 --html edges.html \
        --threads $threads >edges.$threads 2>err || wrong "probe --edges fails: $(cat err)"
done
cmp trees.1 trees.2 && cmp edges.1 edges.2 || wrong "another number of threads, other probes"
awk -F '\t' 'NF != 7 { exit 1 } NR == 2 && ($1 != "chain" || $2 != "75.00") { exit 1 } NR > 2 && $2 > best { best = $2 }
    END { exit !(NR == 5 && best > 95) }' trees.1 || wrong "probe --trees: $(cat trees.1)"
awk -F '\t' 'NR > 1 && NR < 5 && !(NF == 5 && $2 > 95) { exit 1 } NR > 5 && NR < 9 { sum += $2 }
    END { exit !(NR == 10 && sum > 0.99 && sum < 1.01) }' edges.1 || wrong "probe --edges: $(cat edges.1)"
page trees.html
page edges.html
[ "$(grep -c 'class="m"' trees.html)" -ge 30 ] && grep -q 'stroke="var(--good)"' trees.html ||
    wrong "no trees in the page"
"$l" probe --model gpt --trees --text trees --test trees --sentences 20 --rank 4 --html trees.svg >lines ||
    wrong "probe --trees of gpt fails"
[ "$(head -c 4 trees.svg)" = "<svg" ] || wrong "trees.svg is not an SVG file"
for study in --trees --edges; do
    more=(--steps 3)
    [ $study = --edges ] || more=(--rank 4)
    "$l" probe --model tuned $study --text trees --test trees --sentences 20 "${more[@]}" >lines 2>err ||
        wrong "probe $study of tuned fails: $(cat err)"
    ends 2 "--test is missing" "$l" probe --model bert $study --text trees
    ends 2 "exclude each other" "$l" probe --model bert $study --heads --text trees
    ends 3 "the heads do not form a tree with one root" "$l" probe --model bert $study --text trees --test roots
    ends 3 "sentence at line 1: the heads do not form a tree" "$l" probe --model bert $study --text cycle --test trees
done
ends 1 "needs at least 10" "$l" probe --model bert --trees --text trees --test trees --sentences 9
# Punctuation is no word of a tree, whatever the treebank's own tags.
for tag in _ . '$.'; do
    awk -v tag="$tag" '{ for (i = 1; i <= 6; i++) printf "%d\t%s\t_\t%s\t%s\t_\t%d\t%s\t_\t_\n", i, i < 6 ? $i : ".",
        i == 3 ? "VERB" : i == 6 ? "PUNCT" : "NOUN", i == 6 ? tag : "_", i == 3 ? 0 : 3, i == 3 ? "root" : "dep"
        print "" }' text >dots
    "$l" probe --model bert --trees --text dots --test dots --sentences 20 --rank 4 >"dots $tag" 2>err ||
        wrong "probe --trees with the tag $tag: $(cat err)"
    cmp "dots _" "dots $tag" || wrong "the tag $tag of punctuation changes a probe"
done
# Facts: a model knows what its text says; without the subject it cannot. The majority is computed by hand.
awk 'BEGIN { split("anna otto mary john", who); split("rome oslo", where)
    for (i = 0; i < 400; i++) print who[i % 4 + 1], "lives in", where[i % 2 + 1] }' >living
train "$build/bin/bert" train --text living --out knower --size tiny --steps 150 --length 8 --vocab-size 60 --lr 3e-3 \
    --objective roberta
printf '[X] lives in [Y]\t%s\t%s\n' anna rome otto oslo mary rome john 'new york' >facts
printf 'in [Y] lives [X]\tjohn\toslo\n' >>facts
"$l" probe --model knower --facts facts >lines 2>err || wrong "probe --facts fails: $(cat err)"
grep -q "1 of 5 facts are skipped, because their objects are not one token, for example 'new york'" err ||
    wrong "a skipped fact: $(cat err)"
awk -F '\t' 'NR == 2 && !($2 == 3 && $3 == 100 && $5 == 100 && $6 < 100 && $8 < 100 && $9 == 66.67 && $10 == 100 &&
    $11 == 83.33) { exit 1 } NR == 3 && !($2 == 1 && $9 == 100) { exit 1 } NR == 4 && $9 != 83.33 { exit 1 }
    END { exit NR != 4 }' lines || wrong "facts: $(cat lines)"
ends 7 "needs a masked language model" "$l" probe --model gpt --facts facts
ends 2 "--text is for sentences, which --facts does not use" "$l" probe --model bert --facts facts --text trees
ends 2 "--rank is for --trees" "$l" probe --model bert --facts facts --rank 3
ends 2 "figures are written as .svg" "$l" probe --model bert --trees --text trees --test trees --html x.png
ends 2 "--text is missing" "$l" probe --model bert --trees --test trees
printf '[X] lives here\tanna\trome\n' >bad
ends 3 "'bad', line 1: the template '\[X\] lives here' must contain" "$l" probe --model knower --facts bad
printf '[X] lives in [Y] or [Y]\tanna\trome\n' >bad
ends 3 "must contain \[X\] and \[Y\] once" "$l" probe --model knower --facts bad
printf '[X] lives in [Y]\tanna\n' >bad
ends 1 "'bad' has no column '3'; its first line has 2" "$l" probe --model knower --facts bad
printf '[X] lives in [Y]\ta [MASK]\trome\n' >bad
ends 3 "is reserved for the object" "$l" probe --model knower --facts bad
printf '[X] lives in [Y]\tanna\tnew york\n' >bad
ends 1 "no object is one token" "$l" probe --model knower --facts bad
: >bad
ends 3 "bad" "$l" probe --model knower --facts bad

"$l" guide --model bert --text trees --test trees --sentences 40 --layer 2 --head 1 --steps 60 --lr 3e-3 --out guided \
    -q >lines || wrong "guide fails"
awk -F '\t' 'NR == 3 && $2 < 60 { exit 1 }' lines || wrong "a guided head does not find heads: $(cat lines)"
# A table can be resumed only with the models and the texts with which it was started.
head -n 9 bert.tsv >again.tsv
begun()
{
    ends 3 "was started with another --size" "$l" surface --text text --lines 16 --size 5 --table again.tsv -r "$@"
}
begun --model guided
begun --model bert --text trees
begun --model bert --batch 8
begun --model bert --seed 2
"$l" surface --model bert --text text --lines 16 --size 5 --to guided --table line.tsv -q >line || wrong "a line"
cp line.tsv again.tsv
begun --model bert --to bert
"$l" surface --model bert --text text --lines 16 --size 5 --to guided --table line.tsv -r -q >line || wrong "and again"
ends 1 "'line.tsv' already exists" "$l" surface --model bert --text text --lines 16 --size 5 --table line.tsv
cmp -s line.tsv again.tsv || wrong "a table is written over"
# --out must not be a file or contain a model or a part of one; the error comes before the work.
cp -r gpt there && mkdir part && cp gpt/vocab.json part
cp -r there before
for to in there bert part text; do
    code=1 words="'$to' already contains a model"
    [ $to != text ] || code=5 words="'text' is a file"
    ends $code "$words" "$l" prune --model bert --text text --out $to
    [ ! -s out ] || wrong "prune begins, though there is no folder for what it makes: $(cat out)"
    ends $code "$words" "$l" guide --model bert --text trees --test trees --sentences 20 --steps 2 --out $to
    [ ! -s out ] || wrong "guide begins, though there is no folder for what it makes: $(cat out)"
done
diff -rq there before || wrong "a model was written into another's folder"
"$l" guide --model bert --text trees --test trees --sentences 20 --mask --steps 2 -q >lines ||
    wrong "guide --mask fails"
ends 1 "--layer 3 --head 1 does not exist" "$l" guide --model bert --text trees --test trees --layer 3

# A language model reads line ends as part of the text.
printf 'the old man saw\n a ship\n' >cut && printf 'the old man saw a ship\n' >whole
for f in cut whole; do "$l" prune --model gpt --text $f --share 0 | cut -f 3 >$f.loss; done
cmp -s cut.loss whole.loss && wrong "a writer is asked about lines without their ends"
# The loss is the mean over all tokens and does not depend on the batch size.
for b in 3 16; do
    "$l" surface --model gpt --text text --lines 20 --size 3 --batch $b -q |
        awk 'NR == 2 { printf "%.4f\n", $2 }' >$b.loss
    "$l" prune --model gpt --text text --lines 20 --share 0 --batch $b | awk 'NR == 2 { print $3 }' >>$b.loss
done
cmp -s 3.loss 16.loss || wrong "another --batch, another loss: $(cat 3.loss 16.loss)"
"$l" prune --model tuned --text labelled --lines 3 --share 0 | cut -f 3 >some.loss
head -n 3 labelled >three && "$l" prune --model tuned --text three --share 0 | cut -f 3 | cmp -s - some.loss ||
    wrong "--lines 3 of labelled texts are not the first three"
# In a LLaMA, the norms concentrate the integral of an attribution at its start.
train "$build/bin/gpt" train --text text --out llama --shape llama --size tiny --steps 3 --length 16 --vocab-size 300
"$l" attribute --model llama "the old man saw" >sum || wrong "attribute of LLaMA's kind fails"
awk '$1 == "sum" { s = $2 } $1 == "difference" { d = $2 }
    END { x = s - d; x = x < 0 ? -x : x; d = d < 0 ? -d : d; exit !(x <= 0.006 * d + 1e-4) }' sum ||
    wrong "LLaMA: the parts do not add up: $(tail -n 2 sum)"
# Layers that share one block are rejected before anything is written.
train "$build/bin/bert" train --text text --out albert --size tiny --steps 2 --length 16 --vocab-size 90 \
    --objective albert
ends 7 'runs 2 times' "$l" heads --model albert --text text --lines 8
ends 7 'runs 2 times' "$l" prune --model albert --text text --lines 8 --out albert.half
[ ! -e albert.half/config.json ] || wrong "an ALBERT is pruned"
ends 7 'runs 2 times' "$l" attend --model albert "the old man" --html albert.html
ends 7 'runs 2 times' "$l" probe --model albert --text trees --test trees --sentences 9 --steps 2
ends 7 'runs 2 times' "$l" probe --model albert --heads --text trees --sentences 9
# The heads of a pruned model keep their numbers in all commands.
"$l" heads --model bert.half --text text --lines 8 | awk 'NR > 1 { print $1, $2 }' >left
"$l" probe --model bert.half --heads --text trees --sentences 20 | awk 'NR > 1 { print $1, $2 }' | cmp -s - left ||
    wrong "probe --heads numbers the heads that are left otherwise than heads does"
for head in 1 2; do
    layer=$(awk '{ print $1 }' left | head -n 1 | tr -dc 0-9)
    grep -q "layers.$layer.self_attn $head$" left && code=0 || code=1
    for mask in '' --mask; do
        got=0
        "$l" guide --model bert.half --text trees --test trees --sentences 20 --layer $((layer + 1)) --head $head \
            $mask --steps 2 -q >out 2>err || got=$?
        [ $got = $code ] && { [ $code = 0 ] || grep -q 'was pruned from this model' err; } ||
            wrong "guide --head $head $mask of a pruned model ends with $got, not $code: $(cat err)"
    done
done
# Input without a meaningful result is rejected.
long=$(printf 'the old man saw the sea %.0s' {1..200})
ends 1 'tokens, but this model reads at most' "$l" attend --model bert "$long" --html no.html
ends 1 'tokens, but this model reads at most' "$l" attribute --model gpt "$long"
ends 2 'attribute writes a page' "$l" attribute --model gpt "the old" --html no.svg
ends 1 '--pairs is for models that assign a label to two texts' "$l" heads --model chain --text tags.conll --pairs
ends 6 'all vectors are equal' "$l" surface --model gpt --text text --lines 8 --size 3 --path gpt gpt
ends 1 'differ in more than their weights' "$l" surface --model gpt --text text --lines 8 --size 3 --to gpt.half
ends 3 'no word of the sentences has a syntactic head' "$l" probe --model bert --heads --text roots
ends 3 'no word of the sentences has a syntactic head' "$l" guide --model bert --text trees --test roots
printf 'the old\0man\n' >nul
ends 3 'contains a NUL byte' "$l" heads --model bert --text nul

# A figure replaces only an SVG file.
cp text kept.svg
ends 1 "'kept.svg' already exists and does not" "$l" heads --model bert --text text --lines 8 --html kept.svg
cmp -s text kept.svg || wrong "kept.svg was a text, and is written over"
"$l" heads --model bert --text text --lines 8 --html bert.svg >heads || wrong "a picture does not replace one"
# Weights that are NaN: every byte is 255.
cp -r bert nan && rm nan/SHA256SUMS && n=$(od -An -tu8 -N8 bert/model.safetensors)
head -c $((n + 8)) bert/model.safetensors | LC_ALL=C sed s/tenon.sums/other.sums/ >nan/model.safetensors
tail -c +$((n + 9)) bert/model.safetensors | LC_ALL=C tr '\0-\377' '\377' >>nan/model.safetensors
no_number() { ends 6 "look for NaN and Inf in the model's weights" "$l" "$@" --model nan; }
no_number heads --text text --lines 8
no_number prune --text text --lines 8 --order random
no_number surface --text text --lines 8 --size 3 -q
no_number attribute "the [MASK]"
no_number attend "the man" --html nan.html
no_number probe --text trees --test trees --sentences 10
no_number probe --text trees --heads --sentences 10
no_number guide --text trees --test trees --sentences 10 --steps 2
ends 2 "--weight is for the loss, which --mask does not use" "$l" guide --model bert --text trees --test trees --mask \
    --weight 2
train "$build/bin/bert" train --text text --out headless --size tiny --steps 2 --length 16 --vocab-size 90 \
    --objective electra
for option in --mask "--weight 2"; do # shellcheck disable=SC2086
    ends 1 "has no masked-LM head" "$l" guide --model headless --text trees --test trees --steps 2 $option
done
ends 2 "--resume needs --table" "$l" surface --model bert --text text --resume
for option in "text text" pairs "target other" "lines 9" "batch 9"; do # shellcheck disable=SC2086
    ends 2 "--${option% *} is for --model, which --twins does not use" "$l" surface --twins 1 --$option
done
ends 2 "--to gives a line and --path a plane" "$l" surface --model bert --text text --to bert --path bert bert
ends 2 "--path names 1 model; at least 2 are needed" "$l" surface --model bert --text text --path bert
for option in seed span; do
    ends 2 "--$option is for random directions" "$l" surface --model bert --text text --to bert --$option 2
    ends 2 "--$option is for random directions" "$l" surface --model bert --text text --path bert bert --$option 2
done
for option in hidden steps seed; do
    ends 2 "--$option is for probes" "$l" probe --model bert --to bert --text trees --$option 2
    ends 2 "--$option is for probes" "$l" probe --model bert --heads --text trees --$option 2
done
ends 2 "--test is for probes" "$l" probe --model bert --heads --text trees --test trees
ends 2 "--steps is for --method integrated" "$l" attribute --model bert --method gradient --steps 9 "the [MASK]"
ends 2 "--measure is for importance" "$l" prune --model bert --text text --order random --measure 9
ends 2 "--lr is for the training steps of --tune" "$l" prune --model bert --text text --lr 0.1
for command in heads prune; do
    ends 1 "--seed is for masked language models" "$l" $command --model gpt --text text --seed 2
done
ends 2 "--transformer needs --twins" "$l" surface --model bert --text text --transformer
"$l" probe --model bert --to bert --text trees --sentences 20 >alike || wrong "probe --to fails"
awk 'NR == 1 { next } $NR != "1.000" { exit 1 } NR == 2 && !($3 > 0 && $3 < 1) { exit 1 }' alike ||
    wrong "a model beside itself: $(cat alike)"
"$l" probe --model tuned --to gpt --text trees --sentences 20 >alike || wrong "probe --to of another kind fails"
ends 2 "exclude each other" "$l" probe --model bert --to gpt --text trees --heads
ends 2 "--test is missing" "$l" probe --model bert --text trees
ends 2 "give either --model and --text, or --twins" "$l" surface
ends 2 "--model needs --text" "$l" surface --model bert
ends 1 "is not a translation model" "$l" align --model bert "a" --html x.html
ends 1 "a translation model needs the translations" "$l" heads --model tran --text text
ends 1 "of the lines in 'text'; give them with --valid-target" "$l" prune --model tran --text text --target other \
    --valid text
ends 2 "--valid-target is for the translations of --valid" "$l" prune --model tran --text text --target other \
    --valid-target other
for command in heads prune surface; do
    ends 1 "--target is for translation models" "$l" $command --model gpt --text text --target nothing
done
ends 1 "--valid-target is for" "$l" prune --model gpt --text text --valid text --valid-target nothing
head -n 3 other >three
ends 3 "'text' has 300 lines, 'three' 3; line i of one must belong" "$l" heads --model tran --text text --target three
ends 1 "has no \[MASK\]" "$l" attribute --model bert "the old man"
ends 1 "is not a token of this model" "$l" attribute --model bert "the [MASK]" --answer unheardof
ends 1 "--layer 9 --head 1 does not exist" "$l" attend --model bert "a" --layer 9 --html x.html
ends 5 "none" "$l" heads --model none --text text
ends 5 "nothing" "$l" heads --model bert --text nothing
: >empty
ends 3 "contains no text" "$l" heads --model bert --text empty
printf '1\tthe\t_\tDET\t_\t_\t9\tdet\t_\t_\n2\tman\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n' >far
ends 3 "the head of word 1 is word 9, but there are 2 words" "$l" probe --model bert --heads --text far
printf '1\tthe\tDET\n\n' >short
ends 3 "short', line 1: 3 columns, expected 10" "$l" probe --model bert --heads --text short
printf '2\tthe\t_\tDET\t_\t_\t0\troot\t_\t_\n\n' >two
ends 3 "must number the words from 1" "$l" probe --model bert --heads --text two
printf '1\tthe\t_\tWORD\t_\t_\t0\troot\t_\t_\n\n' >class
ends 3 "must be a universal part of speech" "$l" probe --model bert --heads --text class
ends 7 "needs a bidirectional encoder" "$l" probe --model gpt --heads --text trees
ends 7 "probe supports models like BERT" "$l" probe --model tran --text trees --test trees
ends 7 "is already tuned for a task" "$l" guide --model tuned --text trees --test trees
ends 1 "has no label 'who'" "$l" attribute --model tuned --answer who "the old man"
ends 1 "is for tuned models" "$l" heads --model bert --text pairs --pairs
"$l" heads --model chain --text tags.conll --lines 20 >heads || wrong "of a CRF: heads fails"
ends 7 "does not support; use look heads" "$l" prune --model chain --text tags.conll --lines 20
printf 'the old man\tnobody\n' >unknown
ends 3 "nobody" "$l" heads --model tuned --text unknown
exit $wrong
