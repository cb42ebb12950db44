#!/usr/bin/env bash
# The program tokenize: it opens the tokenizers that it trains, decoding restores the text, files do not depend on the
# number of threads, and wrong input gives the expected exit code and message.
. "$(dirname "$0")/common.sh"
fresh tokenize
t=$build/bin/tokenize
[ -x "$t" ] || { echo "SKIPPED: the programs are not built" && exit 77; }

for i in $(seq 200); do
    echo "Line $i: the quick brown fox isn't lazy; 狐狸 and café — the foxes jump over $((i * 7)) dogs."
done >text

# ends CODE WORDS COMMAND...: checks the exit code, and that standard error contains WORDS
ends()
{
    local code=$1 words=$2 got=0
    shift 2
    "$@" </dev/null >out 2>err || got=$?
    [ $got = "$code" ] && grep -q -- "$words" err || wrong "'$*' ends with $got, not $code, and says: $(cat err)"
}

for type in unigram wordpiece bpe byte-bpe; do
    for threads in 1 3; do
        "$t" train --type $type --size 400 --threads $threads --out $type.$threads text 2>err ||
            wrong "$type: $(cat err)"
    done
    diff -r $type.1 $type.3 >/dev/null || wrong "$type: other files with 3 threads than with 1"
    "$t" encode --model $type.1 <text >ids
    [ "$(wc -l <ids)" = 200 ] || wrong "$type: $(wc -l <ids) lines of numbers"
    "$t" decode --model $type.1 <ids >back
    "$t" encode --model $type.1 <back | cmp -s - ids || wrong "$type: what it decodes it does not encode as the same"
done
cmp -s text back || wrong "byte-bpe does not give the text back"
[ "$("$t" encode --model wordpiece.1/vocab.txt --lowercase --special --pieces <<<'The FOX [MASK]')" = \
    "[CLS] the fox [MASK] [SEP]" ] || wrong "the special tokens are not there"
"$t" train --type subword --size 50 --out codes text 2>err || wrong "subword: $(cat err)"
"$t" encode --type subword --model codes <text | "$t" decode --type subword --model codes | cmp -s - text ||
    wrong "subword does not give the text back"

reference=$root/../shared/data/subword-nmt # subword-nmt's own test files, if present
if [ -d "$reference" ]; then
    "$t" train --quiet --type subword --size 1000 --out ref "$reference/corpus.en" && cmp -s ref "$reference/bpe.ref" ||
        wrong "subword learns other merges than subword-nmt"
    "$t" encode --type subword --model ref <"$reference/corpus.en" | cmp -s - "$reference/corpus.bpe.ref.en" ||
        wrong "subword splits words differently from subword-nmt"
fi

# --trace: each merge and the number of its pairs; of low, lower, newest, widest the first two tie with others.
for pair in low:5 lower:2 newest:6 widest:3; do
    for ((i = 0; i < ${pair#*:}; i++)); do echo ${pair%:*}; done
done >four
"$t" train --quiet --type byte-bpe --size 259 --trace --out traced four >merges &&
    printf '%s\t%s\t%s\n' 1 'e s' 9 2 'es t' 9 | cmp -s - merges || wrong "--trace: $(cat merges)"
"$t" train --quiet --type byte-bpe --size 259 --out untraced four && diff -r traced untraced >/dev/null ||
    wrong "--trace changes the tokenizer"
ends 2 "--trace prints merges, which --type unigram does not have" "$t" train --type unigram --trace --out new four

: >empty
printf 'ab\377\n' >broken
ends 1 "already contains a tokenizer" "$t" train --type bpe --out bpe.1 text
ends 3 "no words found" "$t" train --type bpe --out new empty
ends 5 "no such file" "$t" train --type bpe --out new missing
ends 1 "there are 5 special tokens" "$t" train --type bpe --size 3 --out new text
ends 2 "" "$t" train --type trigram --out new text
for type in byte-bpe unigram subword; do
    ends 2 "--alphabet is for --type wordpiece and bpe" "$t" train --type $type --alphabet 9 --out new text
done
for option in lowercase slow literal strict-utf8 special; do
    ends 2 "--$option is for tokenizers other than" "$t" encode --type subword --model codes --$option
done
for option in special pieces; do
    ends 2 "--$option is for tokenizers other than" "$t" decode --type subword --model codes --$option
done
ends 1 "'bpe.1' is of type bpe, not --type wordpiece" "$t" encode --type wordpiece --model bpe.1
"$t" decode --type byte-bpe --model byte-bpe.1 </dev/null || wrong "a tokenizer that is what --type says is refused"
"$t" encode --model unigram.1/tokenizer.model <text | cmp -s - <("$t" encode --model unigram.1 <text) ||
    wrong "unigram: tokenizer.model and tokenizer.json give other numbers"
ends 2 "" "$t" encode
ends 5 "neither a file nor a folder" "$t" encode --model nowhere
cp empty text.txt
ends 3 "unknown token" "$t" encode --model text.txt
ends 3 "line 1: byte 2 of the text is not UTF-8" \
    bash -c "'$t' encode --model bpe.1 --strict-utf8 <broken"
ends 0 "warning: 1 invalid byte sequences of UTF-8 were replaced" bash -c "'$t' encode --model bpe.1 <broken"
ends 3 "line 1: expected token ids" bash -c "echo 1 x | '$t' decode --model bpe.1"
[ "$(printf 'GOOD  day()!!!!!\n' | "$t" thai)" = 'good<_>day!' ] || wrong "thai does not prepare a line"
ends 3 "line 1: a line of more than" bash -c "head -c 70000000 /dev/zero | '$t' encode --model bpe.1"
[ ! -e /dev/full ] || ends 5 "standard output" bash -c "'$t' encode --model bpe.1 <text >/dev/full"
exit $wrong
