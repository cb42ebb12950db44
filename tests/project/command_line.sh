#!/usr/bin/env bash
# What all programs share on their command lines: --help of every option, help and completion, options before the
# command, @FILE, and --seed random.
. "$(dirname "$0")/common.sh"
[ -x "$build/bin/bert" ] || { echo "SKIPPED: the programs are not built" && exit 77; }
fresh command_line
programs="bert gpt translate lm look vectors vit elmo tokenize"

# --help shows the choices of every option that has some, as whole words; and of each number or choice the default, or
# that it is required, or which option it replaces.
for program in $programs; do
    "$build/bin/$program" completion bash >script
    sed -n "s/^        \([a-z-]*\)) echo '\(.*\)' ;;$/\1 \2/p" script | grep -v '^commands ' >tables
    [ "$(wc -l <tables)" -gt 2 ] || wrong "$program completion bash has no tables: $(head -n 3 script)"
    while read -r command options; do
        "$build/bin/$program" help "$command" >shown || wrong "$program help $command fails"
        "$build/bin/$program" "$command" --help | cmp - shown || wrong "$program help $command is not its --help"
        awk '/^Options/ { on = 1 }
            on && /^  (-.,|   ) --/ { printf "\n"; sub(/^  (-.,|   ) /, "") }
            on { gsub(/ +/, " "); printf "%s", $0 }' shown >one
        for option in $options; do
            name=${option%%=*} choices=${option#*=}
            line=$(grep -E -- "^$name( |\$)" one | head -n 1)
            [ "$name" != "$option" ] || continue
            [[ $choices == *'|'* || $line =~ ^--[a-z0-9-]+\ [A-Z]\  || $line =~ ^--[a-z0-9-]+\ RATE\  ]] || continue
            [[ $line =~ default|required|instead ]] || wrong "$program $command: no default: $line"
            for choice in ${choices//|/ }; do
                [[ $choices != *'|'* ]] || grep -qwF -- "$choice" <<<"${line#"$name "}" ||
                    wrong "$program $command: $choice is not in: $line"
            done
        done
    done <tables
done

# -h is short: usage, at most five options, one example. --help has groups. A letter has one meaning: n is a number of
# things, o is where the result goes.
declare -A letter_of=([n]="documents lines sentences steps tokens" [o]="html out")
for program in $programs; do
    "$build/bin/$program" completion bash | sed -n "s/^        \([a-z-]*\)) echo '.*' ;;$/\1/p" |
        grep -v '^commands' >names
    while read -r command; do
        "$build/bin/$program" "$command" -h >short || wrong "$program $command -h fails"
        [ "$(wc -l <short)" -le 24 ] && [ "$(grep -cE '^  (-.,|   ) --' short)" -le 5 ] &&
            grep -q "^Usage: $program" short && [ "$(grep -cE "^ {2,4}([a-z].* )?$program " short)" = 1 ] ||
            wrong "$program $command -h: $(cat short)"
        "$build/bin/$program" "$command" --help | sed -n 's/^  -\(.\), --\([a-z-]*\).*/\1 \2/p' >letters
        while read -r letter name; do
            [[ " ${letter_of[$letter]:=$name} " == *" $name "* ]] ||
                wrong "$program $command: -$letter is --$name here, elsewhere --${letter_of[$letter]}"
        done <letters
    done <names
done
"$build/bin/gpt" train --help >all
for group in 'Options of the data:' 'Options of the model:' 'Options of the training:' 'Options of the output:'; do
    grep -qx "$group" all || wrong "gpt train --help has no group '$group'"
done

# Completion in bash: of commands, options, choices and files.
complete_of() # WORD...: the completions of the last one
{
    local name=$1
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    "_$name"
    echo "${COMPREPLY[*]}"
}
mkdir -p models/book && : >book.txt
for program in $programs; do eval "$("$build/bin/$program" completion bash)"; done
while IFS='|' read -r words expected; do
    read -ra list <<<"$words"
    [ "${list[-1]}" != EMPTY ] || list[-1]=
    got=$(complete_of "${list[@]}")
    [ "$got" = "$expected" ] || wrong "completion of '$words': '$got', expected '$expected'"
done <<'END'
bert tr|train
bert --color never tr|train
gpt c|convert completion
bert help cla|classify
bert completion EMPTY|bash zsh fish
bert train --obj|--objective
bert train --objective ro|roberta
bert train --objective = al|albert
lm train --cell EMPTY|lstm gru elman
bert train --text bo|book.txt
bert fill --model mod|models
bert fill --model bo|
bert --no|--no-progress
vectors neighbours --to|--top
END
"$build/bin/bert" completion zsh >script && grep -q bashcompinit script || wrong "completion zsh lacks bashcompinit"
"$build/bin/bert" completion fish >script
for line in "-l objective -x -a 'modernbert bert" '-l text -r -F' "-l out -x -a '(__fish_complete_directories)'" \
    "-c bert -l quiet"; do
    grep -qF -- "$line" script || wrong "completion fish lacks: $line"
done
! command -v fish >/dev/null || fish -n script || wrong "completion fish: fish rejects the script"
says 2 "completion needs a shell, bash, zsh or fish, got tcsh" "$build/bin/bert" completion tcsh
says 2 "unknown command 'trian'; did you mean train?" "$build/bin/bert" help trian
says 2 "unexpected argument 'b' after 'help train'" "$build/bin/bert" help train b
"$build/bin/bert" help | cmp - <("$build/bin/bert" --help) || wrong "bert help is not bert --help"

# Options of every command may precede it.
sample=("$build/bin/bert" sample-corpus -n 3)
"${sample[@]}" >three
"$build/bin/bert" --color never -q --threads 1 sample-corpus -n 3 | cmp - three || wrong "options before a command"
"$build/bin/bert" --help sample-corpus | cmp - <("$build/bin/bert" help sample-corpus) || wrong "--help before it"
grep -q '^bert 0' <("$build/bin/bert" -q --version) || wrong "--version after another option"
says 2 "unknown option --model; a command's options follow its name" "$build/bin/bert" --model x fill
says 2 "missing command" "$build/bin/bert" -q

# @FILE: words as in a shell, in the place of options; a text that starts with @ and names no file is an operand.
printf '%s\n' '# options' '-n' "'3'  --seed \\" '"1"' >words
"$build/bin/bert" sample-corpus @words | cmp - three || wrong "@FILE"
"$build/bin/bert" @words 2>err && wrong "a file of a command's options is read before the command"
printf '%s\n' -q 'sample-corpus -n 3' >whole
"$build/bin/bert" @whole | cmp - three || wrong "@FILE with the command"
printf -- '-n 3\n--seed '"'"'1\n' >quote
says 2 "'quote', line 2: a ' without its closing '" "${sample[@]}" @quote
printf -- '-n 3\n\n@words\n' >nested
says 2 "'nested', line 3: @FILE inside a file" "${sample[@]}" @nested
printf -- '-n 3\n\0' >binary
says 2 "'binary', line 2: a NUL byte" "${sample[@]}" @binary
printf -- '-n \\' >end
says 2 "'end', line 1: a \\ at the end of the file" "${sample[@]}" @end
head -c 1100000 /dev/zero | tr '\0' ' ' >large
says 2 "'large' has more than 1 MiB" "${sample[@]}" @large
says 2 "unexpected argument '@none'; this file of options cannot be read" "${sample[@]}" @none
says 2 "unexpected argument '@words'" "${sample[@]}" -- @words

# Started by another name, as Debian's package installs them, the programs call themselves and each other by it: in help
# texts, errors, hints, next lines and model cards.
commands_of() # PROGRAM
{
    "$build/bin/$1" completion bash | sed -n "s/^        commands) echo '\(.*\) help completion' ;;$/\1/p"
}
mentions= # "bert train|bert fill|..."
for program in $programs; do
    ln -sf "$build/bin/$program" "tenon-$program"
    names=$(commands_of "$program")
    mentions+="|$program (COMMAND|${names// /|})"
done
mentions="(^|[^-.a-z0-9])(${mentions#|})([^a-z]|$)"
unnamed() # FILE WHAT
{
    ! grep -nE "$mentions" "$1" >found || wrong "$2 names a program without its prefix: $(head -n 3 found)"
}
for program in $programs; do
    "./tenon-$program" --help >all
    for command in $(commands_of "$program"); do "./tenon-$program" help "$command" >>all; done
    unnamed all "tenon-$program help"
    grep -q "^Usage: tenon-$program " all || wrong "tenon-$program --help: $(head -n 3 all)"
done
says 2 "tenon-bert tune: unknown task 'tags'" ./tenon-bert tune tags --model x --train x --out x
grep -q "^Try 'tenon-bert tune --help'" err.txt || wrong "tenon-bert's hint: $(cat err.txt)"
./tenon-gpt train --text three --out named --size tiny --dim 16 --layers 1 --heads 2 --length 8 --batch 2 \
    --pieces characters --steps 2 >all 2>&1 || wrong "tenon-gpt train failed: $(cat all)"
grep -q '^next     tenon-gpt write --model named' all || wrong "no next line of tenon-gpt: $(cat all)"
cat named/README.md >>all
unnamed all "tenon-gpt train"
grep -q '^tenon-gpt write --model named' named/README.md || wrong "tenon-gpt's card: $(cat named/README.md)"
"$build/bin/gpt" train --quiet --out named --resume >/dev/null || wrong "gpt does not resume a run of tenon-gpt"
says 7 "; the program tenon-gpt opens it" ./tenon-bert fill --model named x

# --seed random prints the number that it drew, which gives the same text again.
"$build/bin/bert" sample-corpus -n 3 --seed random >text 2>err || wrong "--seed random fails: $(cat err)"
seed=$(sed -n 's/^seed     //p' err)
[[ $seed =~ ^[0-9]+$ ]] && "${sample[@]}" --seed "$seed" | cmp - text || wrong "--seed random says: $(cat err)"
"$build/bin/bert" sample-corpus -n 3 --seed=random 2>err | cmp -s - text && wrong "--seed=random draws the same again"
says 2 "--seed needs a whole number, got 'rando'" "${sample[@]}" --seed rando
"$build/bin/gpt" train --quiet --text three --out drawn --size tiny --dim 16 --layers 1 --heads 2 --length 8 --batch 2 \
    --pieces characters --steps 2 --seed random >/dev/null || wrong "gpt train --seed random failed"
seed=$(sed -n 's/^    "seed": \([0-9]*\),\?$/\1/p' drawn/run.json)
grep -q -- "\"--seed=$seed\"" drawn/run.json || wrong "run.json has not the seed that was drawn"
"$build/bin/gpt" train --quiet --out drawn --resume >/dev/null || wrong "a run of --seed random is not resumed"
exit $wrong
