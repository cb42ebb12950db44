/* seq2seq_numbers.c — writes the outputs of an encoder-decoder for tests/outside/seq2seq_parity.py:
 *
 *     seq2seq_numbers DIR IDS OUT        IDS: a safetensors file with "source" [B, S] and "target" [B, T]
 *     seq2seq_numbers DIR LINES BEAMS MOST [FROM TO]   prints per line its token ids, those generated, and the text
 *
 * Writes to the existing folder OUT: numbers.safetensors with "logits" and "loss"; `saved`, the model written by
 * Tenon; and `grads`, the same with the gradient of the loss instead of each parameter. Fails if the logits of a row
 * have other bits with a cache, token by token, or alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/tenon.h>

static bool same(tn_tensor *a, tn_tensor *b)
{
    const tn_shape s = tn_shape_of(a);
    if (!tn_shape_equal(s, tn_shape_of(b))) return false;
    for (int64_t i = 0; i < tn_shape_numel(s); i++)
        if (tn_get(a, i) != tn_get(b, i)) return false;
    return true;
}

/* Logits with a cache, token by token, and of a single row. */
static bool same_bits(tn_seq2seq *m, tn_tensor *source, tn_tensor *target, tn_tensor *logits)
{
    const int64_t  n = tn_size(target, 1);
    const tn_scope s = tn_no_grad_begin();
    tn_decoding   *d = tn_seq2seq_decoding(m, source, 1, n + 1);
    bool           fine = d != NULL;
    for (int64_t t = 0; fine && t < n; t++)
        fine = same(d->kind->scores(d, tn_narrow(target, 1, t, 1)), tn_select(logits, 1, t));
    tn_tensor *alone = tn_seq2seq_forward(m, tn_narrow(source, 0, 0, 1), tn_narrow(target, 0, 0, 1));
    fine = fine && same(alone, tn_narrow(logits, 0, 0, 1));
    tn_decoding_free(d);
    tn_scope_end(s);
    return fine && !tn_error();
}

static int numbers(const char *dir, const char *ids, const char *out)
{
    char                   path[3000];
    tn_seq2seq            *m = tn_seq2seq_load(dir);
    tn_safetensors        *f = tn_safetensors_open(ids);
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_tensor             *source = tn_safetensors_get(f, "source"), *target = tn_safetensors_get(f, "target");
    tn_tensor             *read = tn_narrow(target, 1, 0, tn_size(target, 1) - 1);
    tn_tensor             *logits = m ? tn_seq2seq_forward(m, source, read) : NULL;
    const bool             fine = tn_error() || same_bits(m, source, read, logits);
    if (!fine) fprintf(stderr, "%s: other bits with a cache, or alone\n", dir);
    tn_tensor *loss = m ? tn_seq2seq_loss(m, source, target) : NULL;
    tn_safetensors_put(w, "logits", logits), tn_safetensors_put(w, "loss", loss);
    snprintf(path, sizeof path, "%s/numbers.safetensors", out);
    tn_status status = tn_safetensors_save(w, path);
    snprintf(path, sizeof path, "%s/saved", out);
    mkdir(path, 0777);
    if (status == TN_OK) status = tn_seq2seq_save(m, path);
    tn_backward(loss);
    const tn_scope s = tn_no_grad_begin();
    for (tn_each p = tn_parameters(m); !tn_error() && tn_next(&p);) tn_copy_(p.tensor, tn_grad(p.tensor));
    tn_scope_end(s);
    snprintf(path, sizeof path, "%s/grads", out);
    mkdir(path, 0777);
    if (status == TN_OK) status = tn_seq2seq_save(m, path);
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_safetensors_writer_free(w), tn_safetensors_close(f), tn_free(m);
    return status != TN_OK || !fine;
}

static int lines(const char *dir, const char *path, int64_t beams, int64_t most, const char *from, const char *to)
{
    tn_model     m = tn_model_open(dir, .family = TN_MODEL_SEQ2SEQ, .needs_tokenizer = true, .from = from, .to = to);
    tn_lines    *file = tn_lines_load(path);
    tn_encoding *e = tn_encoding_new();
    for (int64_t i = 0; !tn_error() && i < tn_lines_count(file); i++) {
        const tn_scope s = tn_scope_begin();
        const tn_text  line = tn_lines_at(file, i);
        tn_string      said = {0};
        tn_tokenizer_encode(m.tokenizer, e, line.at, line.bytes);
        tn_tensor *source = tn_to(tn_from_data(TN_I32, TN_SHAPE(1, e->n), e->id), TN_I64);
        for (int64_t k = 0; k < e->n; k++) printf("%d ", e->id[k]);
        printf("|");
        if (most) {
            tn_generated  g = tn_seq2seq_generate(m.seq2seq, source, .beams = beams, .most = most,
                                                  .length_penalty = m.seq2seq->search.length_penalty,
                                                  .no_repeat = m.seq2seq->search.no_repeat);
            int32_t       id[1024];
            const int64_t n = g.lengths ? tn_get_i64(g.lengths, 0) : 0;
            for (int64_t k = 0; k < n && k < 1024; k++) printf(" %d", id[k] = (int32_t)tn_get_i64(g.tokens, k));
            if (g.tokens) tn_tokenizer_decode(m.target ? m.target : m.tokenizer, id, n, &said);
        }
        for (size_t k = 0; k < said.bytes; k++)
            if (said.at[k] == '\n') said.at[k] = ' '; /* a byte-level model generates any character */
        printf("|%s\n", said.at ? said.at : "");
        tn_string_free(&said);
        tn_scope_end(s);
    }
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    const bool fine = !tn_error();
    tn_encoding_free(e), tn_lines_free(file), tn_model_close(&m);
    return !fine;
}

int main(int n, char **arg)
{
    if (n == 4) return numbers(arg[1], arg[2], arg[3]);
    if (n == 5 || n == 7)
        return lines(arg[1], arg[2], atoi(arg[3]), atoi(arg[4]), n > 5 ? arg[5] : NULL, n > 6 ? arg[6] : NULL);
    return fprintf(stderr, "usage: seq2seq_numbers DIR IDS OUT, or DIR LINES BEAMS MOST [FROM TO]\n"), 2;
}
