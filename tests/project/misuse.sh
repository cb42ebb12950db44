#!/usr/bin/env bash
# Serious misuses of calls with keywords and of lists must not compile: a value without its name, an unknown name, too
# few arguments, an argument that is not a module, a number for a list. The corresponding correct uses must compile
# without warnings, with each installed compiler.
. "$(dirname "$0")/common.sh"
warnings="-std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -fsyntax-only"
fresh misuse

# Wrong use | correct use.
rows=(
    'tn_mean(x, 1)|tn_mean(x, .dims = TN_DIMS(1))'
    'tn_sum(x, TN_DIMS(1))|tn_sum(x, .dims = TN_DIMS(1), .keepdim = true)'
    'tn_conv2d(x, x, x, 2, 1)|tn_conv2d(x, x, x, .stride = 2, .padding = 1)'
    'tn_conv2d(x, x)|tn_conv2d(x, x, NULL)'
    'tn_max_pool2d(x, 2)|tn_max_pool2d(x, .size = 2)'
    'tn_cross_entropy(x, x, x)|tn_cross_entropy(x, x, .weight = x)'
    'tn_attention(x, x, x, x)|tn_attention(x, x, x, .attn_mask = x)'
    'tn_dropout_new(0.5)|tn_dropout_new(.p = 0.5)'
    'tn_dropout_new(.rate = 0.5)|tn_dropout_new()'
    'tn_linear_new(3, 4)|tn_linear_new(.in = 3, .out = 4)'
    'tn_mha_forward(a, x, x, x, x)|tn_mha_forward(a, x, x, x, .causal = true)'
    'tn_adamw_new(m, 1e-3)|tn_adamw_new(m, .lr = 1e-3)'
    'tn_adamw_new(x, .lr = 1e-3)|tn_adamw_new(m, .lr = 1e-3, .beta2 = 0.95)'
    'tn_adamw_new()|tn_adamw_new(m)'
    'tn_group_new(o, m)|tn_group_new(o, .module = m, .lr = 0)'
    'tn_warmup_lr_new(o, 100)|tn_warmup_lr_new(o, .warmup = 100, .steps = 1000)'
    'tn_fit(m, s, l)|tn_fit(m, .train = s, .loss = l, .steps = 1)'
    'tn_generate(d, x, 3)|tn_generate(d, x, .most = 3)'
    'tn_tokenizer_encode(t, e, "a", 1, true)|tn_tokenizer_encode(t, e, "a", 1, .bare = true)'
    'tn_load(m, "a", "b")|tn_load(m, "a", .prefix = "b")'
    'tn_sum(x, .dims = {1})|tn_sum(x, .dims = {.n = 1, .d = {1}})'
    'tn_sum(x, .dims = {0})|tn_sum(x, .dims = TN_DIMS(0))'
    'tn_mean(x, .dims = {1, 2})|tn_mean(x, .dims = TN_DIMS(1, 2))'
    'tn_norm(x, .dims = {2, {0, 1}})|tn_norm(x, .dims = {.n = 2, .d = {0, 1}})'
    'tn_var(x, .dims = 1)|tn_var(x, .dims = TN_DIMS(-1), .biased = true)'
    'tn_amax(x, .dims = (tn_dims){1})|tn_amax(x, .dims = ((tn_dims){.n = 1, .d = {1}}))'
    'tn_zeros((tn_shape){2, 3})|tn_zeros(TN_SHAPE(2, 3))'
    'tn_zeros((tn_shape){5})|tn_zeros((tn_shape){.n = 1, .d = {5}})'
    'tn_zeros((tn_shape){0})|tn_zeros(TN_SCALAR)'
    'tn_permute(x, (tn_dims){1, 0})|tn_permute(x, TN_DIMS(1, 0))'
    'tn_reshape(x, ((tn_shape[]){{-1}})[0])|tn_reshape(x, ((tn_shape[]){TN_SHAPE(-1)})[0])'
    'tn_attention(x, x, x, .order = {2})|tn_attention(x, x, x, .order = TN_DIMS(0, 2, 1, 3))'
    'tn_multi_step_lr_new(o, {30, 80})|tn_multi_step_lr_new(o, .milestones = {30, 80})'
    'tn_multi_step_lr_new(o, .milestones = 30)|tn_multi_step_lr_new(o, .milestones = {30}, .gamma = 0)'
    'tn_sequential_lr_new(o, .parts = p)|tn_sequential_lr_new(o, .parts = {p, p}, .milestones = {10})'
    'tn_adaptive_softmax_new(.cutoffs = 2000)|tn_adaptive_softmax_new(.in = 8, .cutoffs = {2000, 10000})'
    'tn_rnn_lm_new(.cutoffs = TN_DIMS(3))|tn_rnn_lm_new(.vocab = 9, .cutoffs = {3})'
    'tn_dataset_new(.fields = x)|tn_dataset_new(.x = x, .fields = {{"mask", x}})'
)
# clang accepts a value without a name after a named one.
of_gcc=('tn_linear_new(.in = 3, 4)|tn_linear_new(.in = 3, .out = 4, .no_bias = true)')
# Writes a program that makes the calls: each is line I of the file "use", in a function of its own.
program() # EXPRESSION...
{
    local i=0 call parameters='(tn_tensor *x, tn_sequential *m, tn_mha *a, tn_optimizer *o, tn_source s, tn_fit_loss l,
         tn_decoding *d, const tn_tokenizer *t, tn_encoding *e, tn_schedule *p)'
    echo '#include <tenon/extras.h>'
    for call; do
        i=$((i + 1))
        printf 'void use_%d%s;\nvoid use_%d%s\n{\n' $i "$parameters" $i "$parameters"
        printf '    (void)x, (void)m, (void)a, (void)o, (void)s, (void)l, (void)d, (void)t, (void)e, (void)p;\n'
        printf '#line %d "use"\n(void)%s;\n}\n' $i "$call"
    done
}

tried=0
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    tried=1
    of=("${rows[@]}")
    # errors have the line of the use, not of the macro
    [ $compiler = clang ] && flags="$warnings -ferror-limit=0" || flags="$warnings -ftrack-macro-expansion=0"
    [ $compiler = clang ] || of+=("${of_gcc[@]}")
    program "${of[@]#*|}" >right.c
    program "${of[@]%%|*}" >wrong.c
    # shellcheck disable=SC2086 # flags, one word each
    $compiler $flags -Werror -I "$build/include" right.c >out 2>&1 || wrong "$compiler rejects a right use: $(cat out)"
    # shellcheck disable=SC2086
    ! $compiler $flags -I "$build/include" wrong.c >out 2>&1 || wrong "$compiler accepts all wrong uses"
    for i in "${!of[@]}"; do
        grep -qE "^use:$((i + 1)):.* error: " out || wrong "$compiler accepts ${of[i]%%|*}"
    done
done
[ $tried = 1 ] || need gcc
exit $wrong
