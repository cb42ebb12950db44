#!/usr/bin/env bash
# 45 mistakes of a newcomer: each is made with a tiny model, and its message must name the cause and what to do. A row
# is GRADE|EXIT CODE|WORDS OF THE MESSAGE, with a semicolon between them|COMMAND. Grades, given by a reader: good: what,
# where and what to do; fair: what and where; vague: something; silent: nothing. No mistake is silent, at most 3 are
# vague. `mistakes.sh --show` prints each command with its message, for a reader who grades them again.
. "$(dirname "$0")/common.sh"
need python3
fresh mistakes
PATH=$build/bin:$PATH
for program in bert gpt vit translate tokenize vectors look; do
    [ -x "$build/bin/$program" ] || { echo "SKIPPED: $program is not built" && exit 77; }
done

bert sample-corpus -n 40 >text
head -n 60 text >source && head -n 50 text >target
bert train -q --objective bert --size tiny --steps 2 --batch 2 --length 16 --vocab-size 200 --text text \
    --out hub/bert >/dev/null
gpt train -q --size tiny --steps 2 --batch 2 --length 16 --vocab-size 300 --text text --out gpt >/dev/null
gpt train -q --size tiny --steps 2 --batch 2 --length 16 --vocab-size 400 --text text --out other >/dev/null
vectors train -q --text text --dim 4 --min-count 1 --out words.vec >/dev/null
printf 'good film\tpos\nbad film\tneg\ngood book\tpos\nbad book\tneg\n' >reviews.tsv
tr '\t' ';' <reviews.tsv >reviews.csv
cut -f1 reviews.tsv >one
for i in 1 2 3 4; do printf 'label %s\tthe man saw number %s\n' $i $i; done >swapped.tsv
bert tune classify -q --model hub/bert --train reviews.tsv --epochs 1 --out tuned >/dev/null
printf 'zzz\tyyy\t3\nman\tyyy\t4\n' >pairs
printf '%%PDF-1.4\n1 0 obj\n' >book.pdf
printf 'PK\3\4\24\0\0\0' >book.docx
printf 'ab\ncd\0ef\n' >binary
printf '\377\376h\0e\0' >utf16
: >empty
gzip -c text >text.gz
mkdir -p images/cats && printf '\211PNG\r\n\032\n' >images/cats/1.png
cp -r gpt pointer && rm -f pointer/SHA256SUMS
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n' >pointer/model.safetensors
cp -r gpt cut && rm -f cut/SHA256SUMS && head -c 20000 gpt/model.safetensors >cut/model.safetensors

# A \ at the end of a line continues it.
sed -e ':a' -e '/\\$/{N;s/\\\n *//;ta' -e '}' >rows <<'END'
good|2|--out DIR is required: folder of the new model|bert train --text text
good|2|unknown option --txt;did you mean --text?|bert train --txt text --out new
good|2|unknown command 'trian';did you mean train?|bert trian --text text --out new
good|2|unknown option -steps;did you mean --steps?|gpt train --text text --out new -steps 5
good|2|--size must be one of tiny|mini|baby|small|medium|large, got 'huge'@gpt train --text text --out new --size huge
good|2|--steps needs a whole number from 1 to;got 'ten'|gpt train --text text --out new --steps ten
good|2|--lr needs a number from;got '-1'|gpt train --text text --out new --lr -1
good|2|a width of 10 is not divisible by 4 heads;change --dim or --heads|\
    gpt train --text text --out new --dim 10 --heads 4
good|2|--steps, --epochs and --minutes exclude each other|gpt train --text text --out new --steps 5 --minutes 1
good|2|missing command;bert --help|bert
good|2|--model PATH is required|gpt write --prompt a
good|2|unexpected argument 'hello'|gpt write --model gpt hello
good|2|--top-p needs a number from;to 1.0, got '1.5'|gpt write --model gpt --top-p 1.5
good|5|'missing.txt';no such file|gpt train --text missing.txt --out new --steps 1
good|3|'empty' contains no text|gpt train --text empty --out new --steps 1
good|3|'binary': byte 5 is NUL;expected a text in UTF-8|bert train --text binary --out new --steps 1
good|3|UTF-16?;iconv -f utf-16 -t utf-8|bert train --text utf16 --out new --steps 1
good|3|'book.pdf' is a PDF, not a text;pdftotext|bert train --text book.pdf --out new --steps 1
good|3|'text.gz' is compressed by gzip, not a text;gunzip -k|gpt train --text text.gz --out new --steps 1
good|3|'book.docx' is a ZIP archive, as .docx;plain text|gpt eval --model gpt book.docx
good|3|'images/cats/1.png' is a PNG image, not a text;the program vit|gpt train --text images/cats --out new --steps 1
good|5|'nowhere': no such file or directory|gpt write --model nowhere
good|5|'HuggingFaceTB/SmolLM2-135M': no such folder;https://huggingface.co/HuggingFaceTB/SmolLM2-135M;git clone|\
    gpt write --model HuggingFaceTB/SmolLM2-135M
good|5|is a web address;git clone;git-lfs|\
    bert fill --model https://huggingface.co/google-bert/bert-base-uncased "A [MASK]."
good|1|'hub' contains no model itself;'hub/bert'|bert fill --model hub "A [MASK]."
good|7|the program bert opens it|gpt write --model hub/bert
good|7|the program gpt opens it|bert fill --model gpt "A [MASK]."
good|1|no [MASK] in the text;write it where a token is missing|bert fill --model hub/bert "The man."
good|1|has no head for masked tokens;bert classify|bert fill --model tuned "A [MASK]."
good|7|make such a model with bert tune|bert classify --model hub/bert good
good|3|'text' is not a supported model;supported are directories in Hugging Face's format, .gguf files|\
    gpt write --model text
good|3|'pointer/model.safetensors' is a pointer of git-lfs;git lfs pull|gpt write --model pointer
good|3|'cut/model.safetensors';the file is truncated|gpt write --model cut
good|3|tokens;use the model's own tokenizer|gpt write --model gpt --tokenizer other --prompt a
fair|3|is a duplicate of line;expected a vocabulary, one token per line|\
    gpt write --model gpt --tokenizer text --prompt a
good|1|'reviews.csv';name two columns;separated by tabs;semicolons|\
    bert tune classify --model hub/bert --train reviews.csv --epochs 1 --out new
good|3|'swapped.tsv': each of the 4 texts has a label of its own;are the columns swapped?|\
    bert tune classify --model hub/bert --train swapped.tsv --epochs 1 --out new
good|1|'one';name two columns|bert tune classify --model hub/bert --train one --epochs 1 --out new
good|3|the first column has several words;one word per line, with its tag|\
    bert tune tag --model hub/bert --train reviews.tsv --epochs 1 --out new
good|3|'source': the file has 60 lines;'target' ends after line 50;must be the translation of|\
    translate train --src source --tgt target --out new --steps 1
good|0|warning: 'source' and 'source' are the same text|\
    translate train --src source --tgt source --out same --steps 1 --size tiny --tokens 200 --no-progress
good|1|'gpt' already contains a model;--resume|gpt train --text text --out gpt --steps 1
good|1|--lr is 0.004 in the run, 0.1 here;omit it to resume it|gpt train --text text --out gpt --resume --lr 0.1
good|6|the loss is;Start again in another folder, with a smaller --lr than 100|\
    gpt train --text text --out nan --size tiny --vocab-size 300 --steps 40 --batch 2 --length 16 --lr 100 \
    --no-progress
good|3|'pairs': the vectors have no pair of its words;lower case?|vectors similarity --vectors words.vec pairs
good|3|expected {"prompt": ..., "answer": ...}|gpt tune --model gpt --chat text --out new --steps 1
good|0|'reviews.tsv' is taken as a text, but is also a file|bert embed --model hub/bert reviews.tsv
END

made=0
declare -A grades=([silent]=0 [vague]=0 [fair]=0 [good]=0)
while IFS= read -r row; do
    IFS='|' read -r grade code words line <<<"$row"
    if [[ $row == *@* ]]; then # words that contain |
        line=${row##*@} words=${row#*|*|} words=${words%@*}
    fi
    got=0
    eval "$line" </dev/null >out 2>err || got=$?
    [ "${1:-}" != --show ] || printf '%s\n    %s\n' "$line" "$(tail -n 3 err)"
    [ $got = "$code" ] || wrong "'$line' ends with $got, expected $code: $(tail -n 3 err)"
    IFS=';' read -ra parts <<<"$words"
    for part in "${parts[@]}"; do
        grep -qiF -- "$part" err || wrong "'$line': '$part' is not in: $(tail -n 3 err)"
    done
    [ -z "$(ls -A new 2>/dev/null)" ] || wrong "'$line' leaves a folder: $(ls new)"
    rm -rf new
    made=$((made + 1)) grades[$grade]=$((grades[$grade] + 1))
done <rows
echo "$made mistakes: good ${grades[good]}, fair ${grades[fair]}, vague ${grades[vague]}, silent ${grades[silent]}"
[ $made -ge 45 ] || wrong "only $made mistakes are made"
[ "${grades[silent]}" = 0 ] && [ "${grades[vague]}" -le 3 ] || wrong "too many vague or silent messages"
exit $wrong
