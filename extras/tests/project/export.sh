#!/usr/bin/env bash
# PROGRAM export: models as C files. Each is compiled by gcc as C99 without warnings, refers to nothing but libm, prints
# what the program prints, and has the library's bits on random inputs: token ids, texts, logits, hidden states. Also
# the errors, and that the copies of tables in extras/programs/export are equal to those of core/kernels. With INPUTS
# all kinds and variants of models, in f32 and int8, also with clang, tcc and for 64-bit and 32-bit arm, if they are
# installed, and that with each compiler a changed weight or constant is found.
#
#     export.sh [INPUTS]     random inputs for each model; default: 6 for a few models
. "$(dirname "$0")/../../../tests/project/common.sh"
fresh export
inputs=${1:-6} all=${1:-}
bin=$build/bin stories=$root/../shared/data/stories260K
gpt=$bin/gpt bert=$bin/bert lm=$bin/lm vit=$bin/vit translate=$bin/translate
flags=(-std=c99 -Wall -Wextra -pedantic)

# ---- models ----

awk 'BEGIN { srand(5)
    for (i = 0; i < 300; i++) {
        line = ""
        for (k = 0; k < 7; k++)
            line = line " " substr("thesunandseaoldmanwentfarwithwind", int(rand() * 28) + 1, 3 + int(rand() * 3))
        print line (i % 9 ? "." : " caf\303\251 12!")
    } }' >text
awk '{ print $0 "\t" (NR % 3 ? NR % 3 > 1 ? "up" : "down" : "no\\\"") }' text >labelled
awk '{ for (i = 1; i <= NF; i++) print $i "\t" (length($i) > 4 ? "B-LONG" : "O"); print "" }' text >tagged
{
    printf '\0\0\x08\3\0\0\0\x28\0\0\0\x0c\0\0\0\x0c' # 40 images of 12 x 12 pixels
    awk 'BEGIN { for (i = 0; i < 40 * 144; i++) printf "%c", i * i % 97 + int(i / 144) % 3 * 10 + 1 }' </dev/null
} >images
{
    printf '\0\0\x08\1\0\0\0\x28'
    for ((i = 0; i < 40; i++)); do printf '\0\1\2' | head -c $((i % 3 + 1)) | tail -c 1; done
} >labels
small=(--quiet --text text --layers 2 --steps 12 --batch 4 --length 32)
pairs=(--quiet --src text --tgt text --size tiny --steps 3 --vocab-size 300 --dim 48 --heads 4 --layers 2)
states=(--quiet --text text --layers 2 --steps 12 --batch 4 --length 16 --dim 24)
{
    "$gpt" train "${small[@]}" --out llama --shape llama --dim 48 --heads 3 --vocab-size 300
    "$gpt" train "${small[@]}" --shape gpt2 --out gpt2 --dim 40 --heads 2 --vocab-size 300
    "$gpt" train --quiet --text text --out large --dim 512 --heads 4 --layers 2 --steps 1 --batch 1 --length 32 \
        --vocab-size 300 # 25 MB of weights
    "$bert" train "${small[@]}" --out bert --objective roberta --dim 40 --heads 2 --vocab-size 150
    "$bert" tune classify --quiet --model bert --train labelled --out films --epochs 1
    "$bert" tune tag --quiet --model bert --train tagged --out names --epochs 1
    "$lm" train "${states[@]}" --out lstm --hidden 40
    "$vit" train --quiet --images images --labels labels --out vit --size tiny --layers 2 --dim 40 --heads 2 --steps 9
    "$translate" train "${pairs[@]}" --out ende
} >log 2>&1 || wrong "a training fails: $(tail -n 3 log)"

# ---- the tables of functions: the same numbers as the library's ----

numbers() # FILE FROM TO: the numbers between two patterns
{
    sed -n "/$2/,/$3/p" "$1" | tail -n +2 | grep -oE -- '-?[0-9]+\.[0-9]+(e[-+]?[0-9]+)?f'
}
cut=$(sed -n 's/.*v_less(x, v_set1(\(-[0-9]*\))), v_zero_f32.*/\1/p' "$root/core/kernels/attention.k.c")
grep -q "return x < ${cut:-none} ? 0" "$root/extras/programs/export/program/functions.c" ||
    wrong "exp_fused of extras/programs/export/program/functions.c is not 0 below $cut, as attention's in core/kernels"
for table in TANH_COLUMNS SIGMOID_TAIL GELU_TAIL GELU_TANH_TAIL SILU_TAIL; do
    numbers "$root/core/kernels/column_tables.c" "#define $table(X)" '^$' >ours
    numbers "$root/extras/programs/export/program/columns.c" " ${table,,}\[32\]" '^};' >theirs
    [ "$(wc -l <ours)" = 256 ] ||
        wrong "$table in extras/programs/export/program/columns.c is not that of core/kernels/column_tables.c"
    cmp ours theirs ||
        wrong "$table in extras/programs/export/program/columns.c is not that of core/kernels/column_tables.c"
done

# ---- each model ----

# Only libm's functions, and those that compilers call by themselves, also for programs without a C library.
only_libm() # OBJECT
{
    local others
    others=$(nm -u "$1" | awk '$2 !~ /^(exp|fmaf|sqrt|fabsf|mem(set|cpy|move)|__stack_chk_fail|__aeabi_.*)$/ &&
                               $2 != "_GLOBAL_OFFSET_TABLE_"')
    [ -z "$others" ] || wrong "$1 refers to $others"
}

fma='' native='' # also without AVX2, where int8 is other code
[ "$(uname -m)" != x86_64 ] || ! grep -qw fma /proc/cpuinfo || fma=-mfma native=-march=native
installed() { command -v "$@" >found && [ "$(wc -l <found)" = $# ]; }
silent() { "$@" >compiled 2>&1 && [ ! -s compiled ] || wrong "$*: $(head -n 5 compiled)"; }

# The result of replaying the records of NAME in an object: any compiler's, linked by gcc or a cross compiler. $run: an
# emulator.
# shellcheck disable=SC2086
replay() # NAME OBJECT GCC
{
    local driver=replay-${3%% *}.o
    [ -e "$driver" ] || $3 -O2 -c "$root/extras/tests/project/export_replay.c" -o "$driver"
    $3 -Wl,-z,noexecstack "$driver" "$2" -lm -o "$1.replay" && { ${run:-} "./$1.replay" "$1.records" || true; }
}
same_bits() # NAME OBJECT GCC COMPILER
{
    replay "$1" "$2" "$3" >replayed 2>&1
    [ "$(cat replayed)" = "$inputs inputs have equal bits" ] || wrong "$1 with $4: $(head -n 3 replayed)"
}

# NAME.made prints for an input what COMMAND prints.
prints() # NAME INPUT COMPILER COMMAND...
{
    local name=$1 input=$2 compiler=$3
    shift 3
    ${run:-} "./$name.made" <"$input" >"$name.printed" || wrong "$name with $compiler fails"
    [ -s "$name.expected" ] || "$@" <"$input" >"$name.expected" 2>/dev/null || wrong "$* fails"
    cmp "$name.printed" "$name.expected" || wrong "$name with $compiler prints other text than $*"
}

# Another value of the lowest byte of the first weight; of the factor of attention scores or a coefficient of sigmoid.
sed_weight='/^static const union weights weights = /{n;s/"(\\[0-7]+|.)/"\\125/}'
sed_constant='s/^#define SCALE .*p/#define SCALE 0x1.7p/;/^static const float sigmoid_tail.*= /{n;s/-0\.25f/-0.24f/}'

# 32-bit arm without fused multiply-add: the C library's fmaf takes an emulator minutes for each model.
slow='arm-linux-gnueabihf-gcc -static'

# Compiles NAME.c with another compiler. With the slow one, only the texts of a few inputs are compared.
# shellcheck disable=SC2086
compile() # COMPILER NAME [INPUT COMMAND...]
{
    local compiler=$1 name=$2 gcc=gcc run='' fault
    shift 2
    case $compiler in *-linux-*) gcc=$compiler run=qemu-${compiler%%-*} ;; esac
    if ! installed ${compiler%% *} $run; then
        echo "$name with ${compiler%% *} is not checked: not installed"
        return
    fi
    silent $compiler "${flags[@]}" -O2 -DMODEL_MAIN "$name.c" -lm -o "$name.made"
    [ $# = 0 ] || [ "$compiler $1" = "$slow short" ] || prints "$name" "$1" "$compiler" "${@:2}"
    silent $compiler "${flags[@]}" -O2 -c "$name.c" -o "$name.o"
    only_libm "$name.o"
    [ "$compiler" != "$slow" ] || return 0
    same_bits "$name" "$name.o" "$gcc" "$compiler"
    [[ " llama bert films-8 lstm vit ende " = *" $name "* ]] || return 0
    for fault in weight constant; do
        [ $fault = weight ] && sed -E "$sed_weight" "$name.c" >faulty.c || sed -E "$sed_constant" "$name.c" >faulty.c
        ! cmp -s "$name.c" faulty.c || wrong "$name.c has no $fault to change"
        silent $compiler "${flags[@]}" -O2 -c faulty.c -o faulty.o
        replay "$name" faulty.o "$gcc" >replayed 2>&1
        [[ $(cat replayed) = "input "* ]] || wrong "$name with $compiler: a changed $fault is not found"
    done
}

# Checks NAME.c. COMMAND prints what its program prints.
check() # NAME MODEL TOKENIZER [INPUT COMMAND...]
{
    local name=$1 model=$2 tokenizer=$3 compiler type=()
    shift 3
    [ "$name" = "${name%-8}" ] || type=(int8)
    grep -q 'model_embed' "$name.c" && type=(embed)
    "$bin/tests/export_records" "$model" "$tokenizer" "$name.records" "$inputs" "${type[@]}" ||
        wrong "$name has no records"
    # shellcheck disable=SC2086
    silent gcc "${flags[@]}" -O2 $native -fstack-usage -DMODEL_MAIN -c "$name.c" -o "$name.both.o"
    awk -v most="$(grep -oP 'on the stack at most \K[0-9]+' "$name.c")" \
        '{ sum += $2 } END { exit !(NR > 5 && sum < most) }' "$name.both.su" ||
        wrong "$name.c needs more stack than it says: $(cat "$name.both.su")"
    gcc "$name.both.o" -lm -o "$name.made" && objcopy -L main "$name.both.o" "$name.o" || wrong "$name is not linked"
    cp "$name.made" "$name.exe"
    [ $# = 0 ] || prints "$name" "$1" "gcc $native" "${@:2}"
    same_bits "$name" "$name.o" gcc "gcc $native"
    [ "$all" ] || return 0
    [ "$name" != bert ] || compile gcc bert "$@" # fmaf of the C library
    for compiler in "gcc $fma" "clang $native" tcc "aarch64-linux-gnu-gcc -static" "$slow" "$slow -mfpu=vfpv4"; do
        compile "$compiler" "$name" "$@"
    done
}

# Exports MODEL as NAME.c, and checks it.
export_and_check() # NAME MODEL INPUT PROGRAM COMMAND [OPTION...]
{
    local name=$1 model=$2 input=$3 program=$4 type=()
    shift 4
    [ "$name" = "${name%-8}" ] || type=(--dtype int8)
    "$program" export --model "$model" "${type[@]}" --c "$name.c" >out || wrong "$program export --model $model fails"
    [ "$(cat out)" = "$name.c" ] || wrong "$program export prints '$(cat out)'"
    [ "$program" != "$gpt" ] || type=("${type[@]/dtype/type}")
    check "$name" "$model" - "$input" "$program" "$1" --model "$model" "${@:2}" "${type[@]}"
}

printf 'The sea was caf\303\251 12 \377x\n' >prompt
printf 'the sea man went\n' >words
printf 'the [MASK] and the sea\n[MASK] Caf\303\251 [MASK].\n' >blanks
head -n 20 text >lines
printf 'new w\303\266rds , 12!\n' >>lines
printf '\n \t\nnew w\303\266rds\t, 12!\n' | cat lines - >pages
awk -v n="$inputs" '{ word[NR] = $1 } END { srand(3); for (i = 0; i < n; i++) {
    printf "%s", word[int(rand() * NR) + 1]
    for (k = int(rand() * 3); k > 0; k--) printf " %s", word[int(rand() * NR) + 1]
    print "" } }' text | cat lines - >short
head -c 160 images | tail -c 144 >pixels
{ printf 'P5 12 12 255\n' && cat pixels; } >picture.pgm
classify_picture() { "$vit" classify "${@:2}" picture.pgm | cut -f 2-; }
check_images() # NAME [OPTION]: vit, whose input is not lines
{
    "$vit" export --model vit "${@:2}" --c "$1.c" >out || wrong "vit export fails"
    check "$1" vit - pixels classify_picture classify --model vit "${@:2}"
    "./$1.exe" <images >printed || wrong "$1.exe fails for an IDX file"
    [ "$(wc -l <printed)" = 40 ] && cmp <(head -n 1 printed) "$1.printed" || wrong "$1.exe reads IDX in another way"
}
write=(write --temperature 0)

export_and_check llama llama prompt "$gpt" "${write[@]}" --file -
head -n 1 llama.c | grep -q -- '-march=native' || wrong "llama.c does not begin with the flag: $(head -n 1 llama.c)"
[ ! -e llama.bin ] || wrong "a small model has a file of weights"
export_and_check large large prompt "$gpt" "${write[@]}" --file -
[ "$(wc -c <large.c)" -lt 1000000 ] || wrong "large.c has $(wc -c <large.c) bytes, expected its weights in large.bin"
[ "$(wc -c <large.bin)" -gt $((16 << 20)) ] || wrong "large.bin has $(wc -c <large.bin) bytes"
mkdir -p elsewhere
(cd elsewhere && silent gcc "${flags[@]}" -c -DMODEL_WEIGHTS='"../large.bin"' ../large.c -o large.o) ||
    wrong "large.c is not compiled in another folder"
export_and_check bert bert blanks "$bert" fill
export_and_check names-8 names lines "$bert" tag
export_and_check films films lines "$bert" classify
export_and_check lstm lstm words "$lm" "${write[@]}" --prompt "$(cat words)"
# Several texts at the same time, and drawn tokens.
for name in llama lstm; do
    silent gcc "${flags[@]}" -O1 -I. "-DMODEL_HEADER=\"$name.h\"" "$root/extras/tests/project/export_texts.c" $name.o \
        -lm -o $name.texts
    ./$name.texts >texts.out || wrong "$name with several texts: $(head -n 3 texts.out)"
done
# For Windows, as far as a compiler without its headers can tell.
if installed clang; then
    mkdir -p windows
    printf '%s\n' '#define INFINITY ((float)1e300)' 'double exp(double), sqrt(double);' \
        'float fmaf(float, float, float), fabsf(float);' >windows/math.h
    for name in llama lstm bert; do
        silent clang --target=x86_64-pc-windows-msvc -fms-compatibility "${flags[@]}" -isystem windows \
            -fsyntax-only $name.c
    done
fi
if installed x86_64-w64-mingw32-gcc; then
    for name in llama lstm bert; do
        silent x86_64-w64-mingw32-gcc "${flags[@]}" -DMODEL_MAIN -fsyntax-only $name.c
    done
fi
check_images vit
export_and_check ende ende pages "$translate" run --beam 1
"$bert" export --model bert --embed --c vectors.c >out || wrong "bert export --embed fails"
check vectors bert - short "$bert" embed --model bert
# The header file declares what the C file defines, also for C++.
for name in llama bert names-8 films lstm vit ende vectors; do
    { sed '/^enum {$/,/^};$/d' $name.h && cat $name.c; } >declared.c # both have the constants
    silent gcc "${flags[@]}" -Wmissing-prototypes -I. -fsyntax-only declared.c
    [ "$(grep -cE '^[a-z].*\bmodel_[a-z]+\(.*\);$' $name.h)" = "$(nm $name.o | grep -c ' T model_')" ] ||
        wrong "$name.h does not declare all functions of $name.c"
    ! installed g++ || silent g++ -x c++ -Wall -Wextra -pedantic -fsyntax-only $name.h
done
gcc "${flags[@]}" -Werror -c llama.c -o llama.o && only_libm llama.o
for name in llama bert films vit ende; do # the Transformer: from the arithmetic to the tokenizer or main
    lines=$(awk '/^\/\* ---- arithmetic/ { from = NR }
        /^\/\* ---- (text|the program)/ { print NR - from; exit }' $name.c)
    [ "$lines" -le 400 ] || wrong "$name.c: the Transformer has $lines lines, expected at most 400"
done

# Variants of configurations, by other members of config.json.
variant() # MODEL SCRIPT NAME
{
    rm -rf "$3"
    cp -r "$1" "$3"
    sed -i "$2" "$3/config.json"
    sed -i '/config.json/d' "$3/SHA256SUMS"
}

# A folder of sentence-transformers, whose Dense has 24 outputs: sentences DIR POOLING ACTIVATION
sentences()
{
    local names='{"linear.weight": {"dtype": "F32", "shape": [24, 40], "data_offsets": [0, 3840]}'
    names="$names, \"linear.bias\": {\"dtype\": \"F32\", \"shape\": [24], \"data_offsets\": [3840, 3936]}} "
    cp -r bert "$1" && mkdir "$1/1" "$1/2" "$1/3"
    printf '[%s {"type": "Pooling", "path": "1"}, {"type": "Dense", "path": "2"}, {"type": "Normalize", "path": "3"}]' \
        '{"type": "Transformer", "path": ""},' >"$1/modules.json"
    echo "{\"pooling_mode\": \"$2\"}" >"$1/1/config.json"
    echo "{\"in_features\": 40, \"out_features\": 24, \"activation_function\": \"$3\"}" >"$1/2/config.json"
    { # the bytes of some weights
        printf "\\x$(printf %02x ${#names})\\0\\0\\0\\0\\0\\0\\0" && printf %s "$names"
        tail -c 3936 bert/model.safetensors
    } >"$1/2/model.safetensors"
}

if [ "$all" ]; then
    sentences first_token cls Tanh
    sentences greatest max GELU
    for name in first_token greatest; do export_and_check $name $name short "$bert" embed; done
    {
        "$bert" train "${small[@]}" --out cased --dim 32 --heads 2 --vocab-size 150 --norm-last --cased
        "$lm" train "${states[@]}" --out gru --cell gru --pieces bpe --vocab-size 300 --untied --hidden 40
        "$lm" train "${states[@]}" --out elman --cell elman --pieces characters
        "$translate" train "${pairs[@]}" --out first --norm-first
    } >log 2>&1 || wrong "a training fails: $(tail -n 3 log)"
    for name in gpt2 gpt2-8 llama-8; do
        export_and_check $name ${name%-8} prompt "$gpt" "${write[@]}" --file -
    done
    export_and_check cased cased blanks "$bert" fill
    "$bert" export --model bert --dtype int8 --c bert-8.c >out && check bert-8 bert - # fill is in f32
    export_and_check names names lines "$bert" tag
    export_and_check films-8 films lines "$bert" classify
    for name in gru elman; do
        export_and_check $name $name words "$lm" "${write[@]}" --prompt "$(cat words)"
    done
    check_images vit-8 --dtype int8
    for name in first ende-8; do export_and_check $name ${name%-8} pages "$translate" run --beam 1; done
    if [ -r "$stories/stories260K.bin" ]; then
        model=(--model "$stories/stories260K.bin" --tokenizer "$stories/tok512.bin")
        echo "Once upon a time" >once
        "$gpt" export "${model[@]}" --c stories.c >out || wrong "gpt export fails for stories260K.bin"
        check stories "$stories/stories260K.bin" "$stories/tok512.bin" once \
            "$gpt" "${write[@]}" "${model[@]}" --file -
    fi
    scaled='{"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0'
    scaled="$scaled, \"original_max_position_embeddings\": 16}"
    variant gpt2 's/"gelu_new"/"gelu"/' exact
    variant gpt2 's/"gelu_new"/"relu"/' linear
    variant llama "s/\"silu\"/\"gelu_pytorch_tanh\"/; s/\"rope_theta\"/\"rope_scaling\": $scaled, &/" turned
    for name in exact linear turned; do
        "$gpt" export --model $name --c $name.c >out || wrong "gpt export --model $name fails"
        check $name $name -
    done
fi

# The comparison finds sums in another order.
sed 's/for (int k = 0; k < in; k++) {/for (int k = in - 1; k >= 0; k--) {/' llama.c >faulty.c
! cmp -s llama.c faulty.c || wrong "add_panels() of llama.c is not as expected"
gcc -std=c99 -O1 -c faulty.c -o faulty.o
replay llama faulty.o gcc >replayed 2>&1
[ "$(cat replayed)" = "input 0: other logits" ] || wrong "no difference is found in faulty.c: $(cat replayed)"

# ---- unusual input ----

refuses() # NAME TEXT: the program fails with this text for standard input
{
    ! "./$1.exe" >printed 2>refused || wrong "$1.exe accepts what has to fail with '$2'"
    grep -qF "$2" refused || wrong "$1.exe says '$(cat refused)', expected '$2'"
}
printf 'the sun\n \r\nman\n' | refuses films "a line is empty"
printf 'the\tsun\n' | refuses films "a line with a tab is two texts"
printf 'the %09000d\n' 0 | refuses films "a line has more than"
for name in films names-8 bert vectors; do
    [ -e $name.exe ] && printf 'the [MASK]\0sun\n' | refuses $name "a line has a NUL byte"
done
head -c 1000 images | refuses vit "expected images of 144 bytes"
head -c 100 pixels | refuses vit "expected images of 144 bytes"
{ printf '\0\0\x08\7' && tail -c +5 pixels; } | ./vit.exe >printed || wrong "vit.exe rejects the pixels 0 0 8 7"
printf 'the [MASK] and\r\n' | ./bert.exe >printed
printf 'the [MASK] and\r\n' | "$bert" fill --model bert 2>errors | cmp - printed || wrong "bert.exe: CRLF"
printf 'caf\355\240\200 the\n' | ./names-8.exe >printed
printf 'caf\355\240\200 the\n' | "$bert" tag --model names --dtype int8 2>errors | cmp - printed ||
    wrong "names-8.exe: another text for invalid UTF-8"

# ---- errors ----

variant llama 's/"model_type": "llama"/"model_type": "mistral", "sliding_window": 8/; s/LlamaFor/MistralFor/' windowed
variant llama 's/"max_position_embeddings": [0-9]*/"max_position_embeddings": 9000000/' large
says 7 "bytes of weights" "$gpt" export --model large --c no.c
says 7 "sliding_window: such a model cannot be exported" "$gpt" export --model windowed --c no.c
says 7 "model_type is 'gpt2'" "$bert" export --model gpt2 --c no.c
says 5 "no/such/folder" "$gpt" export --model gpt2 --c no/such/folder/gpt2.c
says 2 "--c" "$gpt" export --model gpt2
if [ "$all" ]; then
    "$lm" train "${states[@]}" --out tails --untied --cutoffs 20 >log 2>&1
    "$translate" train "${pairs[@]:0:9}" --vocab-size 300 --out luong --model luong >log 2>&1
    "$bert" tune tag --quiet --model bert --train tagged --out chain --epochs 1 --crf >log 2>&1
    "$vit" train --quiet --images images --labels labels --out plain --model convolutions --size tiny --steps 2 >log
    says 7 "adaptive softmax" "$lm" export --model tails --c no.c
    says 7 "luong" "$translate" export --model luong --c no.c
    says 7 "crf" "$bert" export --model chain --c no.c
    "$bert" train "${small[@]}" --out apart --dim 32 --heads 2 --vocab-size 150 --objective deberta >log 2>&1
    says 7 "disentangled attention of DeBERTa" "$bert" export --model apart --c no.c
    sed 's/}$/, "use_residual": true}/' -i first_token/2/config.json
    says 7 "use_residual" "$bert" export --model first_token --c no.c
    echo '{"prompts": {"query": "query: "}, "default_prompt_name": "query"}' >greatest/config_sentence_transformers.json
    says 7 "default_prompt_name" "$bert" export --model greatest --c no.c
    says 7 "convolutional" "$vit" export --model plain --c no.c
fi
[ ! -e no.c ] && [ ! -e no.c.part ] || wrong "a failed export leaves a file"
exit $wrong
