/* batch.c — sentences of different lengths in one batch: 0 is padding, 1 an unknown word, words start at 2. A mask
 * (id == 0) excludes padding from attention, and the layer's norm gives each row the mean 0 and the deviation 1.
 * Build: cc -O2 batch.c -o batch $(pkg-config --cflags --libs tenon) -lm */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>

enum { DIM = 16 };

static void show(const char *what, const tn_tensor *t)
{
    printf("%s\n", what);
    tn_print(stdout, t);
    printf("\n");
}

int main(void)
{
    static const char *const known = "when you play the game of thrones", *const short_one = "you play the piano";
    const tn_scope s = tn_no_grad_begin();
    tn_vocab      *v = tn_vocab_new();
    tn_seed(1);
    tn_vocab_read(v, known, strlen(known));
    tn_tensor *a = tn_vocab_encode(v, known, strlen(known)), *b = tn_vocab_encode(v, short_one, strlen(short_one));
    const int64_t *const rows[] = {tn_data(a), tn_data(b)}, lengths[] = {tn_numel(a), tn_numel(b)};
    tn_tensor           *ids = tn_pad_sequences(2, rows, lengths);     /* [2, T] */
    tn_tensor           *padding = tn_eq(ids, tn_zeros_like(ids)), *w; /* bool [2, T] */
    show("ids", ids);

    tn_embedding  *words = tn_embedding_new(.count = tn_vocab_size(v), .dim = DIM);
    tn_mha        *mha = tn_mha_new(.dim = DIM, .heads = 1);
    tn_layer_norm *norm = tn_layer_norm_new(.dim = DIM);
    tn_tensor     *x = tn_call(words, ids); /* [2, T, DIM] */
    tn_tensor     *y = tn_mha_forward(mha, x, x, x, .key_padding_mask = padding, .weights = &w);
    if (w) show("weights of the first word of each sentence", tn_select(w, 1, 0));

    y = tn_call(norm, tn_add(x, y)); /* residual addition, then the norm */
    if (!tn_error()) {
        tn_tensor *row = tn_select(tn_select(y, 0, 0), 0, 0);
        printf("after addition and norm: mean %.3f, deviation %.3f\n", fabs(tn_item(tn_mean(row))),
               sqrt(tn_item(tn_mean(tn_mul(row, row)))));
    }
    tn_free(words), tn_free(mha), tn_free(norm);
    tn_vocab_free(v);
    tn_scope_end(s);
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    return tn_error() != TN_OK;
}
