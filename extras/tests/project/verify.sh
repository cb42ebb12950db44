#!/usr/bin/env bash
# PROGRAM verify: a run of each program has the same bits on 1 to 3 threads, also after interruptions; random changes of
# texts, weights, options and checksums are found, with the step; missing files are named.
#
#     verify.sh [CHANGES [PROGRAM...]]     CHANGES random changes for each program; default 3
. "$(dirname "$0")/../../../tests/project/common.sh"
fresh verify
changes=${1:-3}
programs=("${@:2}")
[ ${#programs[@]} -gt 0 ] || programs=(gpt bert lm translate vit)
RANDOM=7
export TMPDIR=$PWD

awk 'BEGIN { srand(5)
    for (i = 0; i < 500; i++) {
        line = ""
        for (k = 0; k < 7; k++)
            line = line " " substr("thesunandseaoldmanwentfarwithwind", int(rand() * 28) + 1, 3 + int(rand() * 3))
        print substr(line, 2) "."
        if (i % 9 == 8) print ""
    } }' >text
head -n 100 text >other
grep -m 300 . text >source
rev source >target
# 120 images of 8 x 8 pixels in 2 classes, as IDX files
{ printf '\0\0\10\3\0\0\0\170\0\0\0\10\0\0\0\10' && head -c 7680 text; } >images
{ printf '\0\0\10\1\0\0\0\170' && for _ in $(seq 60); do printf '\0\1'; done; } >labels

declare -A train=(
    [gpt]="--text text --size tiny --dim 32 --layers 1 --heads 2 --length 16 --batch 4 --vocab-size 300"
    [bert]="--text text --valid other --size tiny --dim 32 --layers 1 --heads 2 --length 32 --batch 4 --vocab-size 200"
    [lm]="--text source --pieces characters --size tiny --dim 16 --batch 16 --length 40"
    [translate]="--src source --tgt target --valid-src target --valid-tgt source --size nano --dim 32 --layers 1
                 --heads 2 --tokens 200 --vocab-size 300"
    [vit]="--images images --labels labels --size tiny --dim 32 --layers 1 --heads 2 --batch 16"
)
declare -A data=([gpt]="text" [bert]="text other" [lm]="source" [translate]="source target" [vit]="images labels")

flip() # FILE OFFSET: another bit at this byte
{
    local byte
    byte=$(od -An -tu1 -j"$2" -N1 "$1")
    # shellcheck disable=SC2059
    printf "\\x$(printf %02x $((byte ^ 1 << RANDOM % 5)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

offset() { # FILE [FROM]: a random byte of it
    echo $((${2:-0} + (RANDOM * 32768 + RANDOM) % ($(stat -c %s "$1") - ${2:-0})))
}

# Makes one random change in the run, or in its data; prints what it is.
change() # PROGRAM RUN
{
    local list file
    [ $((RANDOM % 2)) = 0 ] || sed -i '/ run.json$/d' "$2/SHA256SUMS"
    case $((RANDOM % 7)) in
        0) # shellcheck disable=SC2206
            list=(${data[$1]})
            file=${list[RANDOM % ${#list[@]}]}
            flip "$file" "$(offset "$file" 16)" && echo "a byte of $file" ;;
        1) flip "$2/model.safetensors" "$(offset "$2/model.safetensors")" && echo "a byte of the model" ;;
        2) # shellcheck disable=SC2206
            list=("$2"/checkpoints/step-*.ckpt)
            file=${list[RANDOM % ${#list[@]}]}
            flip "$file" "$(offset "$file")" && echo "a byte of ${file##*/}" ;;
        3) sed -i -E 's/("lr": )[0-9.e-]+/\10.0123/' "$2/run.json" && echo "the learning rate" ;;
        4) sed -i -E 's/("(batch|tokens)": )([0-9]+)/\1\31/; s/(--(batch|tokens)=[0-9]+)/\11/' "$2/run.json" &&
            echo "the batch size" ;;
        5) file=$2/checkpoints/record.jsonl
            flip "$file" "$(offset "$file")" && echo "a byte of the record" ;;
        6) sed -i -E 's/("sum": "[0-9a-f]{15})[0-7]/\18/; t; s/("sum": "[0-9a-f]{15})[8-9a-f]/\10/' "$2/run.json" &&
            echo "the checksum of a text" ;;
    esac
}

# Changes a record so that its lines have the right checksums: the FNV-1a of all characters so far.
forge() # RECORD SED
{
    local chain=$((0xcbf29ce484222325)) line i code
    sed -E "$2" "$1" | while IFS= read -r line; do
        line=${line%,\"chain\":*}
        for ((i = 0; i < ${#line}; i++)); do
            printf -v code %d "'${line:i:1}"
            chain=$(((chain ^ code) * 0x100000001b3))
        done
        printf '%s,"chain":"%016x"}\n' "$line" $chain
    done >forged
    mv forged "$1"
}

for name in "${programs[@]}"; do
    program=$build/bin/$name
    # shellcheck disable=SC2206
    options=(${train[$name]})
    run=$name.run
    "$program" train --quiet "${options[@]}" --steps 40 --keep 100 --out "$run" >/dev/null || wrong "$name train failed"
    all=$(($(ls "$run/checkpoints" | grep -c '^step-') - 1)) # segments
    [ $all -ge 3 ] || wrong "$name has only $all segments"
    for threads in 1 2 3; do
        got=$("$program" verify --quiet "$run" --threads $threads | tail -n 1) || true
        [ "$got" = "identical $all segments" ] || wrong "$name verify --threads $threads: $got"
    done
    "$program" verify "$run" --segments 2 --seed 3 >out 2>err && [ "$(tail -n 1 out)" = "identical 2 segments" ] ||
        wrong "$name verify --segments 2: $(cat out err)"
    grep -qE '^verify +2 of '$all' segments: [0-9]+ of 40 steps(; about |$)' err || wrong "the cost: $(cat err)"
    compgen -G "tenon-replay-*" && wrong "$name verify leaves its temporary folder behind"

    # The same training, interrupted, in fewer checkpoints: it has the same record.
    "$program" train --quiet "${options[@]}" --steps 40 --out parts >/dev/null 2>&1 &
    while [ ! -e parts/checkpoints/step-000000000000.ckpt ] && kill -0 $! 2>/dev/null; do sleep 0.01; done
    kill -INT $! 2>/dev/null || true
    wait $! || true
    "$program" train --quiet --out parts --resume >/dev/null || wrong "$name train --resume failed"
    got=$("$program" verify --quiet parts | tail -n 1) || true
    [ "$got" = "identical $all segments" ] || wrong "$name verify of an interrupted run: $got"
    got=$("$program" verify --quiet parts --segments 1 --seed 1 | tail -n 1) || true
    [ "$got" = "identical 1 segments" ] || wrong "$name verify --segments 1 of an interrupted run: $got"
    cmp "$run/checkpoints/record.jsonl" parts/checkpoints/record.jsonl || wrong "$name: the record has other lines"
    rm -r parts
    if [ "$name" = gpt ]; then # lengthened twice, once from the middle; and one that was stopped, and not resumed
        "$program" train --quiet "${options[@]}" --steps 25 --keep 100 --out parts >/dev/null || wrong "gpt train"
        for steps in 37 60; do
            "$program" train --quiet --out parts --resume --steps $steps >/dev/null || wrong "gpt train --resume failed"
        done
        for n in 1 2 100; do
            got=$("$program" verify --quiet parts --segments $n | tail -n 1) || true
            [[ $got == "identical $n segments" || $n.$got == 100.identical* ]] || wrong "a lengthened run: $got"
        done
        rm -r parts
        "$program" train --quiet "${options[@]}" --steps 20000 --keep 100 --out parts >/dev/null 2>&1 &
        while [ ! -e parts/checkpoints/step-000000000500.ckpt ] && kill -0 $! 2>/dev/null; do sleep 0.01; done
        kill -INT $! && wait $! || true
        got=$("$program" verify --quiet parts --segments 2 | tail -n 1) || true
        # one segment if it was stopped before the step after the checkpoint
        [[ $got =~ ^identical\ [12]\ segments$ ]] || wrong "a stopped run: $got"
        rm -r parts
    fi

    mkdir -p kept
    # shellcheck disable=SC2086
    cp ${data[$name]} kept
    cp -r "$run" whole
    found=0
    for ((i = 0; i < changes; i++)); do
        what=$(change "$name" "$run")
        code=0 && "$program" verify --quiet "$run" --segments 1 >out 2>err || code=$?
        [ $code = 1 ] && tail -n 1 out | grep -qE '^differs at step [0-9]+: ' && found=$((found + 1)) ||
            wrong "$name, $what: exit code $code: $(cat out err)"
        rm -r "$run" && cp -r whole "$run"
        cp kept/* .
    done
    echo "$name: $found of $changes random changes found"

    # SHA256SUMS is compared, and files in folders; the files that are not compared are listed.
    for file in "$run/SHA256SUMS" "$run"/generator/*.safetensors "$run"/generator/SHA256SUMS; do
        [ -e "$file" ] || continue
        cp "$file" away
        flip "$file" 20
        got=$("$program" verify --quiet "$run" 2>&1) && wrong "$name: a change of $file is not found"
        [[ $got == *"differs"* || $got == *"SHA256SUMS"* ]] || wrong "$name: $file: $got"
        mv away "$file"
    done
    rest=$("$program" verify "$run" 2>&1 | sed -n 's/^not compared: \(.*\);.*/\1/p')
    for file in log.csv log.jsonl report.html checkpoints/lock; do
        [[ " $rest " == *" $file "* ]] || wrong "$name verify does not list $file: $rest"
    done

    # Missing files are named.
    file=${data[$name]%% *}
    mv "$file" away
    says 5 "missing: '$file' of --" "$program" verify "$run"
    mv away "$file"
    mv "$run/checkpoints/record.jsonl" away
    says 5 "record.jsonl' does not exist; a run of an earlier version has none" "$program" verify "$run"
    mv away "$run/checkpoints/record.jsonl"
    # A forged record is found by the repeated step; runs of other versions and commands are rejected.
    forge "$run/checkpoints/record.jsonl" '/^."step":17,/ s/"loss":[^,]*/"loss":1.5/'
    got=$("$program" verify --quiet "$run") || true
    [[ $got == "differs at step 17: "*"the loss is "*", in the record 1.5, "* ]] || wrong "a forged record: $got"
    forge "$run/checkpoints/record.jsonl" 's/"version":"[^"]*"/"version":"0.0.1"/'
    says 7 "checkpoints' is a run of version 0.0.1, but this is version" "$program" verify "$run"
    sed -i "s/\"of\": \"$name train\"/\"of\": \"$name tune\"/" "$run/run.json"
    sed -i '/ run.json$/d' "$run/SHA256SUMS"
    says 7 "is of a run of '$name tune', but only runs of '$name train' can be repeated" "$program" verify "$run"
    sed -i "s/\"of\": \"$name tune\"/\"of\": \"$name train\"/" "$run/run.json"
    truncate -s -30 "$run/checkpoints/record.jsonl"
    got=$("$program" verify --quiet "$run") || true
    [[ $got == "differs at step 40: record: line "*"was changed or is not complete" ]] || wrong "a short record: $got"
    rm -r "$run/checkpoints"
    says 5 "'$run' has no training checkpoints; they were deleted" "$program" verify "$run"
    rm -r whole "$run"
done

says 5 "'nowhere/run.json' does not exist" "$build/bin/gpt" verify nowhere
says 2 "missing operand, expected DIR" "$build/bin/gpt" verify
exit $wrong
