/* word_vectors.c — initial embeddings from word vectors.
 *
 * A Transformer learns slowly from masked tokens which words occur together, that is the topic of a text: at first all
 * nouns have nearly the same embedding, and what they share hides how they differ. Skip-gram learns just this in
 * seconds. So skip-gram is trained first, with each token as a word. The embedding is initialised with its vectors,
 * after subtracting their mean and scaling all to the same length. */
#include "core/system/system.h"

#include "bert.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { NAME = 16, WINDOW = 15 };
/* The root mean square of a vector's elements. BERT's embeddings are initialised with 0.02; with so small a value, the
 * first thousand steps erase the information of the vectors. */
static const double spread = 0.05;

/* Writes the corpus as token ids separated by blanks, one sentence per line. Ids serve as words because a token may
 * contain a blank. */
static bool write_pieces(const tn_corpus *c, const char *path)
{
    FILE  *f = fopen(path, "wb");
    bool   fine = f != NULL;
    tn_ids ids = {0};
    for (int64_t i = 0; fine && i < tn_corpus_sentences(c); i++) {
        ids.n = 0;
        fine = tn_corpus_sentence(c, i, &ids) == TN_OK;
        for (int64_t k = 0; fine && k < ids.n; k++)
            fine = fprintf(f, "%" PRId32 "%c", ids.at[k], k + 1 < ids.n ? ' ' : '\n') > 0;
    }
    tn_ids_free(&ids);
    if (f && fclose(f)) fine = false;
    if (!fine && tn_error() == TN_OK) tn_raise(TN_EIO, "cannot write '%s'", path);
    return fine;
}

/* The vectors as rows [pieces, dim]: row i belongs to token i; zeros if it has no vector. */
static tn_tensor *rows_of(const tn_vectors *v, int64_t pieces)
{
    const int64_t dim = tn_vectors_dim(v);
    tn_tensor    *rows = tn_zeros(TN_SHAPE(pieces, dim));
    float        *x = tn_data_mut(rows);
    for (int64_t i = 0; x && i < pieces; i++) {
        char      name[NAME];
        const int bytes = snprintf(name, sizeof name, "%" PRId64, i);
        tn_vectors_of(v, (tn_text){name, (size_t)bytes}, x + i * dim);
    }
    return rows;
}

tn_tensor *word_vectors_train(const tn_corpus *c, int64_t pieces, int64_t dim, int64_t epochs, uint64_t seed,
                              const char *path)
{
    tn_vectors *v = NULL;
    if (write_pieces(c, path))
        v = tn_vectors_train(1, &path, .dim = dim, .window = WINDOW, .sample = 1e-3, .epochs = epochs, .min_count = 1,
                             .seed = seed);
    remove(path);
    tn_tensor *rows = v ? rows_of(v, pieces) : NULL;
    tn_vectors_free(v);
    return rows ? tn_take(rows) : NULL;
}

void word_vectors_apply(tn_tensor *weight, tn_tensor *rows)
{
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *known = tn_any(tn_ne(rows, tn_zeros(TN_SHAPE(1))), .dims = TN_DIMS(1), .keepdim = true);
    tn_tensor     *mean = tn_div(tn_sum(rows, .dims = TN_DIMS(0)), tn_sum(tn_to(known, TN_F32)));
    tn_tensor     *from = tn_sub(rows, mean);
    from = tn_mul_scalar(tn_normalize(from, 1), spread * sqrt((double)tn_size(rows, 1)));
    from = tn_where(known, from, weight);
    if (tn_error() == TN_OK) tn_copy_from(weight, from);
    tn_scope_end(s);
}
