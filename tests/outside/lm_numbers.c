/* lm_numbers.c — writes the outputs of a language model for tests/outside/lm_parity.py:
 *
 *     lm_numbers DIR IDS OUT
 *
 * IDS is a safetensors file with "ids" [B, T]. Writes to the existing folder OUT: numbers.safetensors with "logits" and
 * "loss"; `saved`, the model written by Tenon; and `grads`, the same with the gradient of the loss instead of each
 * parameter. Fails if the logits of a row have other bits with a cache, token by token, or alone. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/extras.h>

static bool same(tn_tensor *a, tn_tensor *b)
{
    const tn_shape s = tn_shape_of(a);
    if (!tn_shape_equal(s, tn_shape_of(b))) return false;
    for (int64_t i = 0; i < tn_shape_numel(s); i++)
        if (tn_get(a, i) != tn_get(b, i)) return false;
    return true;
}

/* Logits with a cache, token by token, and of a single row. */
static bool same_bits(tn_lm *m, tn_tensor *ids, tn_tensor *logits)
{
    const int64_t  rows = tn_size(ids, 0), n = tn_size(ids, 1);
    const tn_scope s = tn_no_grad_begin();
    bool           fine = true;
    const bool     cached = strcmp(tn_lm_info_of(m).type, "reformer") != 0;
    tn_kv_cache   *cache = cached ? tn_blocks_cache(tn_lm_blocks(m), rows, n, 0) : NULL;
    for (int64_t t = 0; cached && fine && t < n; t++)
        fine = same(tn_lm_forward(m, tn_narrow(ids, 1, t, 1), .cache = cache), tn_narrow(logits, 1, t, 1));
    fine = fine && same(tn_lm_forward(m, tn_narrow(ids, 0, 1, 1)), tn_narrow(logits, 0, 1, 1));
    tn_kv_cache_free(cache);
    tn_scope_end(s);
    return fine && !tn_error();
}

int main(int n, char **arg)
{
    char path[3000];
    if (n < 4) return fprintf(stderr, "usage: lm_numbers DIR IDS OUT [--growing]\n"), 2;
    tn_lm                 *m = tn_extras_register() == TN_OK ? tn_lm_load(arg[1]) : NULL;
    tn_safetensors        *f = tn_safetensors_open(arg[2]);
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_tensor             *ids = tn_safetensors_get(f, "ids"), *logits = m ? tn_lm_forward(m, ids) : NULL;
    const bool             fine = n > 4 || tn_error() || same_bits(m, ids, logits);
    if (!fine) fprintf(stderr, "%s: other bits with a cache, or alone\n", arg[1]);

    tn_tensor *loss = m ? tn_lm_loss(m, ids, NULL) : NULL;
    tn_safetensors_put(w, "logits", logits), tn_safetensors_put(w, "loss", loss);
    snprintf(path, sizeof path, "%s/numbers.safetensors", arg[3]);
    tn_status status = tn_safetensors_save(w, path);
    snprintf(path, sizeof path, "%s/saved", arg[3]);
    mkdir(path, 0777);
    if (status == TN_OK) status = tn_lm_save(m, path);
    tn_backward(loss);
    const tn_scope s = tn_no_grad_begin();
    for (tn_each p = tn_parameters(m); !tn_error() && tn_next(&p);) tn_copy_(p.tensor, tn_grad(p.tensor));
    tn_scope_end(s);
    snprintf(path, sizeof path, "%s/grads", arg[3]);
    mkdir(path, 0777);
    if (status == TN_OK) status = tn_lm_save(m, path);
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_safetensors_writer_free(w), tn_safetensors_close(f), tn_free(m);
    return status != TN_OK || !fine;
}
