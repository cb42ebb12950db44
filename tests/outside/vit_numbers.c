/* vit_numbers.c — writes the outputs of a ViT for tests/outside/vit_parity.py:
 *
 *     vit_numbers DIR IMAGES OUT
 *
 * IMAGES is a safetensors file with "x" [B, C, H, W]. Writes to the existing folder OUT: numbers.safetensors with
 * "vectors" and "y" (logits, or the pooler's output); `saved`, the model written by Tenon; and `grads`, the same with
 * the gradient of Σ i y_i instead of each parameter. Fails if a single image has other bits than in the batch. */
#include <stdio.h>
#include <sys/stat.h>
#include <tenon/extras.h>

static tn_tensor *answer(tn_vit *m, tn_tensor *vectors)
{
    return m->classifier ? tn_vit_logits(m, vectors, NULL) : m->pooler ? tn_vit_pooled(m, vectors) : vectors;
}

static bool same(tn_tensor *a, tn_tensor *b)
{
    const tn_shape s = tn_shape_of(a);
    if (!tn_shape_equal(s, tn_shape_of(b))) return false;
    for (int64_t i = 0; i < tn_shape_numel(s); i++)
        if (tn_get(a, i) != tn_get(b, i)) return false;
    return true;
}

int main(int n, char **arg)
{
    char path[3000];
    if (n != 4) return fprintf(stderr, "usage: vit_numbers DIR IMAGES OUT\n"), 2;
    tn_vit                *m = tn_vit_load(arg[1]);
    tn_safetensors        *f = tn_safetensors_open(arg[2]);
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_tensor             *x = tn_safetensors_get(f, "x"), *v = NULL, *y = NULL, *loss = NULL, *alone;
    if (m) v = tn_vit_forward(m, x, .interpolate = true), y = answer(m, v);
    if (y) loss = tn_sum(tn_mul(tn_reshape(y, TN_SHAPE(-1)), tn_arange_of(TN_F32, 1, 1 + (double)tn_numel(y), 1)));
    bool fine = loss != NULL;
    if (fine) {
        alone = tn_vit_forward(m, tn_narrow(x, 0, tn_size(x, 0) - 1, 1), .interpolate = true);
        if (!(fine = same(alone, tn_narrow(v, 0, tn_size(x, 0) - 1, 1))))
            fprintf(stderr, "%s: other bits alone\n", arg[1]);
    }
    tn_safetensors_put(w, "vectors", v), tn_safetensors_put(w, "y", y);
    snprintf(path, sizeof path, "%s/numbers.safetensors", arg[3]);
    tn_status status = tn_safetensors_save(w, path);
    snprintf(path, sizeof path, "%s/saved", arg[3]);
    mkdir(path, 0777);
    if (status == TN_OK) status = tn_vit_save(m, path);
    tn_backward(loss);
    const tn_scope s = tn_no_grad_begin();
    for (tn_each p = tn_parameters(m); !tn_error() && tn_next(&p);) {
        tn_tensor *g = tn_grad(p.tensor);
        if (g) tn_copy_(p.tensor, g);
        else tn_fill(p.tensor, 0); /* an unused classifier or pooler */
    }
    tn_scope_end(s);
    snprintf(path, sizeof path, "%s/grads", arg[3]);
    mkdir(path, 0777);
    if (status == TN_OK) status = tn_vit_save(m, path);
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_safetensors_writer_free(w), tn_safetensors_close(f), tn_free(m);
    return status != TN_OK || !fine;
}
