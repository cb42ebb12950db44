/* encoder_numbers.c — writes the outputs of an encoder for tests/outside/encoders_parity.py:
 *
 *     encoder_numbers DIR BATCH OUT
 *
 * BATCH is a safetensors file with "ids" and "real" [B, T], and optionally "types" [B, T], "masked" and "words" [N],
 * "next" [B], "replaced" and "order" [B, T]. Writes to the existing folder OUT: numbers.safetensors with those of "y",
 * "pooled", "words", "next", "replaced" and "loss" that the model has; `saved`, the model written by Tenon; and
 * `grads`, the same with the gradient of the loss instead of each parameter. Fails if a single row has other bits than
 * in the batch. */
#include <stdio.h>
#include <sys/stat.h>
#include <tenon/extras.h>

static tn_safetensors *f;
static tn_tensor *in(const char *name) { return tn_safetensors_find(f, name) < 0 ? NULL : tn_safetensors_get(f, name); }

/* The loss of a model without a training head: over all elements except padding. */
static tn_tensor *squares(tn_bert *m, tn_tensor *y, tn_tensor *padding)
{
    tn_tensor *loss = tn_mean(tn_square(tn_masked_fill(y, tn_unsqueeze(padding, 2), 0)));
    return m->pooler ? tn_add(loss, tn_mean(tn_square(tn_bert_pooled(m, y)))) : loss;
}

/* Checks that the last row, which has no padding, has the same bits alone. */
static bool same_bits(tn_bert *m, tn_tensor *ids, tn_tensor *types, tn_tensor *y)
{
    const tn_scope s = tn_no_grad_begin();
    const int64_t  row = tn_size(ids, 0) - 1;
    tn_tensor     *alone =
        tn_bert_forward(m, tn_narrow(ids, 0, row, 1), .types = types ? tn_narrow(types, 0, row, 1) : NULL);
    tn_tensor *there = tn_narrow(y, 0, row, 1);
    bool       same = alone != NULL;
    for (int64_t i = 0; same && i < tn_numel(there); i++) same = tn_get(alone, i) == tn_get(there, i);
    tn_scope_end(s);
    return same;
}

static void write_into(tn_bert *m, const char *out, const char *name)
{
    char path[3000];
    snprintf(path, sizeof path, "%s/%s", out, name);
    mkdir(path, 0777);
    if (tn_bert_save(m, path) != TN_OK) fprintf(stderr, "%s: not written\n", path);
}

int main(int n, char **arg)
{
    tn_extras_register(); /* XLNet */
    char path[3000];
    if (n != 4) return fprintf(stderr, "usage: encoder_numbers DIR BATCH OUT\n"), 2;
    tn_model               model = tn_model_open(arg[1]);
    tn_bert               *m = model.family == TN_MODEL_ENCODER ? model.bert : NULL;
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    f = tn_safetensors_open(arg[2]);
    if (!m || !f) return fprintf(stderr, "%s\n", tn_error_message()), 1;
    tn_tensor *ids = in("ids"), *types = in("types"), *real = in("real");
    tn_tensor *padding = tn_eq(real, tn_zeros_like(real));
    tn_tensor *y = tn_bert_forward(m, ids, .types = types, .key_padding_mask = padding);
    tn_safetensors_put(w, "y", y);
    if (m->pooler) tn_safetensors_put(w, "pooled", tn_bert_pooled(m, y));
    if (m->head) tn_safetensors_put(w, "words", tn_bert_mlm_logits(m, y, NULL));
    if (m->next) tn_safetensors_put(w, "next", tn_bert_nsp_logits(m, y));
    if (m->replaced) tn_safetensors_put(w, "replaced", tn_bert_replaced_logits(m, y));
    tn_tensor *loss =
        !m->head && !m->replaced
            ? squares(m, y, padding)
            : tn_bert_loss(m, .ids = ids, .types = types, .key_padding_mask = padding,
                           .masked = m->head ? in("masked") : NULL, .words = m->head ? in("words") : NULL,
                           .next = m->next ? in("next") : NULL, .replaced = m->replaced ? in("replaced") : NULL,
                           .order = m->streams ? in("order") : NULL);
    tn_safetensors_put(w, "loss", loss);
    snprintf(path, sizeof path, "%s/numbers.safetensors", arg[3]);
    if (tn_safetensors_save(w, path) != TN_OK) return fprintf(stderr, "%s\n", tn_error_message()), 1;
    const bool fine = same_bits(m, ids, types, y);
    if (!fine) fprintf(stderr, "%s: other bits alone\n", arg[1]);
    write_into(m, arg[3], "saved");
    if (tn_backward(loss) == TN_OK) {
        const tn_scope s = tn_no_grad_begin();
        for (tn_each p = tn_parameters(m); !tn_error() && tn_next(&p);)
            if (tn_grad(p.tensor)) tn_copy_(p.tensor, tn_grad(p.tensor));
            else tn_fill(p.tensor, 0);
        tn_scope_end(s);
        write_into(m, arg[3], "grads");
    }
    const bool failed = tn_error() != TN_OK;
    if (failed) fprintf(stderr, "%s\n", tn_error_message());
    tn_safetensors_writer_free(w), tn_safetensors_close(f), tn_model_close(&model);
    return failed || !fine;
}
