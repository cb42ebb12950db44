#!/usr/bin/env bash
# PROGRAM export: models as C files. Each is compiled by gcc and clang as C99 without warnings (also for aarch64, if the
# tools are installed), refers to nothing but libm, prints what the program prints, and has the library's bits on random
# inputs: token ids, texts, logits, hidden states. Also the errors, and that the copies of tables in examples/export are
# equal to those of core/kernels.
#
#     export.sh [INPUTS]     random inputs for each model; default 60
. "$(dirname "$0")/common.sh"
fresh export
inputs=${1:-60}
gpt=$build/bin/gpt bert=$build/bin/bert stories=$root/../../shared/data/stories260K
flags=(-std=c99 -Wall -Wextra -pedantic)

# ---- models ----

awk 'BEGIN { srand(5)
    for (i = 0; i < 300; i++) {
        line = ""
        for (k = 0; k < 7; k++)
            line = line " " substr("thesunandseaoldmanwentfarwithwind", int(rand() * 28) + 1, 3 + int(rand() * 3))
        print line (i % 9 ? "." : " caf\303\251 12!")
    } }' >text
small=(--quiet --text text --layers 2 --steps 12 --batch 4 --length 32)
"$gpt" train "${small[@]}" --out gpt2 --dim 40 --heads 2 --vocab-size 300 >log
"$gpt" train "${small[@]}" --out llama --shape llama --dim 48 --heads 3 --vocab-size 300 >>log
"$bert" train "${small[@]}" --out bert --dim 40 --heads 2 --vocab-size 150 >>log
"$bert" train "${small[@]}" --out cased --dim 32 --heads 2 --vocab-size 150 --norm-last --cased >>log

# ---- the tables of functions: the same numbers as the library's ----

numbers() # FILE FROM TO: the numbers between two patterns
{
    sed -n "/$2/,/$3/p" "$1" | tail -n +2 | grep -oE -- '-?[0-9]+\.[0-9]+(e[-+]?[0-9]+)?f'
}
for table in TANH_COLUMNS GELU_TAIL GELU_TANH_TAIL SILU_TAIL; do
    numbers "$root/core/kernels/column_tables.c" "#define $table(X)" '^$' >ours
    numbers "$root/examples/export/program/columns.c" " ${table,,}\[32\]" '^};' >theirs
    [ "$(wc -l <ours)" = 256 ] || wrong "$table: found $(wc -l <ours) numbers in core/kernels, expected 256"
    cmp ours theirs || wrong "$table: examples/export/program/columns.c is not equal to core/kernels/column_tables.c"
done

# ---- each model ----

# Only libm's functions, and those that compilers call by themselves, also for programs without a C library.
only_libm() # OBJECT
{
    local others
    others=$(nm -u "$1" | awk '$2 !~ /^(fmaf|sqrt|fabsf|memset|memcpy|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_)$/')
    [ -z "$others" ] || wrong "$1 refers to $others"
}

# Compiles NAME.c with a compiler; the program prints what COMMAND prints for the same input.
prints() # NAME INPUT COMPILER COMMAND...
{
    local name=$1 input=$2 compiler=$3
    shift 3
    # shellcheck disable=SC2086
    $compiler "${flags[@]}" -O2 -DMODEL_MAIN "$name.c" -lm -o "$name.exe" >compiled 2>&1 && [ ! -s compiled ] ||
        wrong "$name.c, $compiler: $(head -n 5 compiled)"
    # shellcheck disable=SC2086
    $compiler "${flags[@]}" -c "$name.c" -o "$name.o" >compiled 2>&1 && [ ! -s compiled ] ||
        wrong "$name.c without main, $compiler: $(head -n 5 compiled)"
    only_libm "$name.o"
    ${run:-} "./$name.exe" <"$input" >"$name.printed" || wrong "$name with $compiler fails"
    [ -s "$name.expected" ] || "$@" <"$input" >"$name.expected" 2>/dev/null || wrong "$* fails"
    cmp "$name.printed" "$name.expected" || wrong "$name with $compiler prints other text than $*"
}

fma=
[ "$(uname -m)" != x86_64 ] || ! grep -qw fma /proc/cpuinfo || fma=-mfma
check() # NAME MODEL TOKENIZER INPUT COMMAND...
{
    local name=$1 model=$2 tokenizer=$3 input=$4 compiler
    shift 4
    [ "$name" != bert ] || prints bert "$input" gcc "$@" # fmaf of the C library
    for compiler in "gcc $fma" "clang $fma" tcc; do
        if command -v "${compiler%% *}" >/dev/null; then prints "$name" "$input" "$compiler" "$@"
        else echo "$name with ${compiler%% *} is not checked: not installed"; fi
    done
    if command -v aarch64-linux-gnu-gcc qemu-aarch64 >found && [ "$(wc -l <found)" = 2 ]; then
        run=qemu-aarch64 prints "$name" "$input" "aarch64-linux-gnu-gcc -static" "$@"
    else
        echo "$name on aarch64 is not checked: no aarch64-linux-gnu-gcc and qemu-aarch64"
    fi
    # shellcheck disable=SC2086
    gcc "${flags[@]}" -O2 $fma -shared -fPIC -fstack-usage "$name.c" -lm -o "$name.so"
    "$build/bin/tests/export_bits" "$model" "$tokenizer" "./$name.so" "$inputs" >bits ||
        wrong "$name: $(head -n 5 bits)"
    # the stack: all functions together need less than the file's comment says
    awk -v most="$(grep -oP 'on the stack at most \K[0-9]+' "$name.c")" \
        '{ sum += $2 } END { exit !(NR > 5 && sum < most) }' "$name"*.su ||
        wrong "$name.c needs more stack than it says: $(cat "$name"*.su)"
}

printf 'The sea was caf\303\251 12 \377x\n' >prompt
printf 'the [MASK] and the sea\n\n[MASK] Caf\303\251 [MASK].\n' | sed 2d >blanks
for name in gpt2 llama; do
    "$gpt" export --model $name --c $name.c >out || wrong "gpt export --model $name fails"
    [ "$(cat out)" = $name.c ] || wrong "gpt export prints '$(cat out)'"
    check $name $name - prompt "$gpt" write --model $name --temperature 0 --file -
done
for name in bert cased; do
    "$bert" export --model $name --c $name.c >out || wrong "bert export --model $name fails"
    check $name $name - blanks "$bert" fill --model $name
done
if [ -r "$stories/stories260K.bin" ]; then
    model=(--model "$stories/stories260K.bin" --tokenizer "$stories/tok512.bin")
    echo "Once upon a time" >once
    "$gpt" export "${model[@]}" --c stories.c >out || wrong "gpt export fails for stories260K.bin"
    check stories "$stories/stories260K.bin" "$stories/tok512.bin" once \
        "$gpt" write "${model[@]}" --temperature 0 --file -
fi

# Other activations and positions, by other members of config.json.
variant() # MODEL SCRIPT NAME
{
    rm -rf "$3"
    cp -r "$1" "$3"
    sed -i "$2" "$3/config.json"
    sed -i '/config.json/d' "$3/SHA256SUMS"
}
scaled='{"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0'
scaled="$scaled, \"original_max_position_embeddings\": 16}"
variant gpt2 's/"gelu_new"/"gelu"/' exact
variant gpt2 's/"gelu_new"/"relu"/' linear
variant llama "s/\"silu\"/\"gelu_pytorch_tanh\"/; s/\"rope_theta\"/\"rope_scaling\": $scaled, &/" turned
for name in exact linear turned; do
    "$gpt" export --model $name --c $name.c >out || wrong "gpt export --model $name fails"
    # shellcheck disable=SC2086
    gcc "${flags[@]}" -Werror -O1 $fma -shared -fPIC $name.c -lm -o $name.so
    "$build/bin/tests/export_bits" $name - ./$name.so "$inputs" >bits || wrong "$name: $(head -n 5 bits)"
done

# The comparison finds sums in another order.
sed 's/fmaf(x1, w1\[i\], fmaf(x0, w0\[i\], to\[i\]))/fmaf(x0, w0[i], fmaf(x1, w1[i], to[i]))/' llama.c >other.c
! cmp -s llama.c other.c || wrong "linear() of llama.c is not as expected"
gcc -std=c99 -shared -fPIC other.c -lm -o other.so
! "$build/bin/tests/export_bits" llama - ./other.so 3 >bits || wrong "export_bits finds no difference in other.c"

# ---- errors ----

variant llama 's/"model_type": "llama"/"model_type": "mistral", "sliding_window": 8/; s/LlamaFor/MistralFor/' windowed
variant llama 's/"max_position_embeddings": [0-9]*/"max_position_embeddings": 9000000/' large
says 7 "bytes of weights" "$gpt" export --model large --c no.c
says 7 "sliding_window: such a model cannot be exported" "$gpt" export --model windowed --c no.c
says 7 "model_type is 'gpt2'" "$bert" export --model gpt2 --c no.c
says 5 "no/such/folder" "$gpt" export --model gpt2 --c no/such/folder/gpt2.c
says 2 "--c" "$gpt" export --model gpt2
[ ! -e no.c ] && [ ! -e no.c.part ] || wrong "a failed export leaves a file"
exit $wrong
