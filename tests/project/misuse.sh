#!/usr/bin/env bash
# Serious misuses of calls with keywords must not compile: a value without its name, an unknown name, too few arguments,
# an argument that is not a module. The corresponding correct uses must compile without warnings, with each installed
# compiler.
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
)
# clang accepts a value without a name after a named one.
of_gcc=('tn_linear_new(.in = 3, 4)|tn_linear_new(.in = 3, .out = 4, .no_bias = true)')
use() # EXPRESSION: a program that makes this call
{
    cat <<END
#include <tenon/tenon.h>
void use(tn_tensor *x, tn_sequential *m, tn_mha *a, tn_optimizer *o, tn_source s, tn_fit_loss l, tn_decoding *d,
         const tn_tokenizer *t, tn_encoding *e);
void use(tn_tensor *x, tn_sequential *m, tn_mha *a, tn_optimizer *o, tn_source s, tn_fit_loss l, tn_decoding *d,
         const tn_tokenizer *t, tn_encoding *e)
{
    (void)x, (void)m, (void)a, (void)o, (void)s, (void)l, (void)d, (void)t, (void)e;
    (void)$1;
}
END
}

tried=0
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    tried=1
    of=("${rows[@]}")
    [ $compiler = clang ] || of+=("${of_gcc[@]}")
    for row in "${of[@]}"; do
        use "${row#*|}" >right.c
        use "${row%%|*}" >wrong.c
        # shellcheck disable=SC2086 # flags, one word each
        $compiler $warnings -Werror -I "$build/include" right.c >out 2>&1 ||
            wrong "$compiler refuses ${row#*|}: $(cat out)"
        # shellcheck disable=SC2086
        ! $compiler $warnings -I "$build/include" wrong.c >out 2>&1 || wrong "$compiler takes ${row%%|*}"
    done
done
[ $tried = 1 ] || need gcc
exit $wrong
