#!/usr/bin/env bash
# Progress on a terminal: no line is wider than the terminal, at several widths and after a resize, and a bar that ends
# is complete.
. "$(dirname "$0")/common.sh"
need script stty
fresh terminal
for i in $(seq 120); do echo "the old man number $i sails to the island and comes home again"; done >book.txt

# on_terminal WIDTH COMMAND: the output of a command on a pseudo-terminal, a line per drawing.
on_terminal()
{
    { script -qc "stty cols $1 rows 24; $2" /dev/null </dev/null || true; } | sed 's/\x1b\[K//g' | tr '\r' '\n'
}
widest() { wc -L; }

train="'$build/bin/gpt' train --size tiny --length 16 --vocab-size 300 --threads 1"
export LC_ALL=C.UTF-8
for columns in 40 80 120; do
    on_terminal $columns "$train --text book.txt --steps 20 --out w$columns" >out-$columns
    grep -q 'train' out-$columns || wrong "gpt train shows no progress at $columns columns: $(head -c 300 out-$columns)"
    bars=$(grep -aE '^(train|tokenizer)[^|]*\|' out-$columns)
    n=$(widest <<<"$bars")
    [ "$n" -lt $columns ] || wrong "gpt train's bar is $n characters wide on a terminal of $columns columns"
done
grep -q 'loss=' out-120 || wrong "the bar has no loss at 120 columns"
grep -q 'tokenizer: 100%' out-120 || wrong "the tokenizer's bar does not end at 100 %: $(cat out-120)"

# Information breaks between words at the terminal's width, below its heading, which is bold; a command that the user
# may copy is not broken. Neither without a terminal; no colours with NO_COLOR.
plain() { sed 's/\x1b\[[0-9;]*m//g' | grep .; }
for columns in 40 60; do
    on_terminal $columns "$train --text book.txt --steps 3 --no-progress --out info$columns" >out
    n=$(plain <out | grep -vE '^(next |info)' | widest)
    [ "$n" -lt $columns ] || wrong "information is $n characters wide on a terminal of $columns columns"
    plain <out | grep -A 1 '^model  ' | tail -n 1 | grep -q '^         [a-z0-9]' ||
        wrong "at $columns columns the model's line does not continue below its heading: $(cat out)"
    grep -q $'\e\[1mmodel\e\[0m    tiny: ' out || wrong "a heading is not bold: $(cat -v out)"
    grep -q ' gpt write --model info'$columns' --prompt "Once"$' out || wrong "the command is broken: $(cat out)"
done
on_terminal 40 "NO_COLOR=1 $train --text book.txt --steps 3 --no-progress --out nocolor" >out
! grep -q $'\e' out || wrong "NO_COLOR is ignored: $(cat -v out)"
"$build/bin/gpt" train --size tiny --length 16 --vocab-size 300 --text book.txt --dtype f32 --steps 3 --out file \
    2>err >out
! grep -q $'\e' err && grep -q '^model    tiny: .* in f32$' err || wrong "information in a file: $(cat err)"

# After a resize the bar has the new width.
on_terminal 120 "$train --text book.txt --steps 100000 --out resized & p=\$!
    until grep -qs '^20,' resized/log.csv; do sleep 0.1; done
    stty cols 50; sleep 1; kill -INT \$p; wait \$p" >out
grep -aE '^train' out | tail -n 3 | widest >n
[ "$(cat n)" -lt 50 ] || wrong "after a resize to 50 columns a bar has $(cat n) characters"

# Long inputs of bert embed and translate run have a bar, unless the results are printed on the same terminal.
"$build/bin/bert" train -q --text book.txt --out bert --size tiny --length 16 --steps 2 --vocab-size 200 >/dev/null
"$build/bin/translate" train -q --src book.txt --tgt book.txt --out tran --size tiny --steps 2 --vocab-size 300 \
    >/dev/null 2>&1
for i in $(seq 40); do cat book.txt; done >many.txt
for run in "bert' embed --model bert" "translate' run --model tran --beam 1 --longest 4"; do
    on_terminal 80 "'$build/bin/$run <many.txt >results" >out
    grep -aqE '^(embed|translate): *[0-9]+' out || wrong "no bar of $run: $(head -c 300 out)"
    on_terminal 80 "head -n 1 book.txt | '$build/bin/$run" >out
    ! grep -aqE '^(embed|translate):' out || wrong "a bar within the results of $run"
done

# A command that fails leaves no bar.
on_terminal 80 "$train --text missing.txt --steps 20 --out never" >out
grep -aq '|' out && wrong "a command that fails leaves a bar: $(cat out)"
exit $wrong
