/* sentence_attention.c — attention at its simplest: the cosines between the word vectors of a sentence, and the
 * attention weights softmax(Q Kᵀ / √d) if the vectors themselves are queries and keys. Printed as two tables, and
 * optionally written as an HTML page of figures:
 *     sentence_attention VECTORS ["a sentence" [SCALE [PAGE.html]]]
 * VECTORS is a file of word2vec, GloVe, FastText or safetensors; SCALE replaces √d if it is not 0.
 * Build: cc -O2 sentence_attention.c -o sentence_attention $(pkg-config --cflags --libs tenon) -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/extras.h>

enum { WORDS = 40, BYTES = 64 }; /* maximum words of a sentence; bytes of a word, with NUL */

typedef struct {
    int         n;
    char        text[WORDS][BYTES];
    const char *word[WORDS];
    tn_tensor  *rows; /* [n, dim] */
} words;

/* Splits a sentence at blanks and finds the vectors of its words. False: raised. */
static bool look_up(const tn_vectors *v, const char *vectors, const char *from, words *to)
{
    float *at;
    to->n = 0;
    to->rows = tn_zeros(TN_SHAPE(WORDS, tn_vectors_dim(v)));
    if (!to->rows || !(at = tn_data_mut(to->rows))) return false;
    for (size_t bytes; tn_error() == TN_OK && *(from += strspn(from, " \t\n\r")); from += bytes, to->n++) {
        bytes = strcspn(from, " \t\n\r");
        if (to->n == WORDS || bytes >= BYTES) {
            tn_raise(TN_EINVAL, "the sentence is too long; expected at most %d words of fewer than %d bytes each",
                     WORDS, BYTES);
            return false;
        }
        memcpy(to->text[to->n], from, bytes);
        to->text[to->n][bytes] = 0;
        to->word[to->n] = to->text[to->n];
        if (!tn_vectors_of(v, (tn_text){from, bytes}, at + to->n * tn_vectors_dim(v)) && tn_error() == TN_OK)
            tn_raise(TN_EINVAL, "'%s' has no vector in '%s'", to->word[to->n], vectors);
    }
    if (!to->n && tn_error() == TN_OK) tn_raise(TN_EINVAL, "the sentence has no word");
    if (tn_error() != TN_OK) return false;
    to->rows = tn_narrow(to->rows, 0, 0, to->n);
    return to->rows != NULL;
}

/* The number of characters of a word. */
static int width(const char *word)
{
    int n = 0;
    for (; *word; word++) n += ((unsigned char)*word & 0xc0) != 0x80;
    return n;
}

static void print_table(const char *title, const words *w, const tn_tensor *table)
{
    int left = 0;
    for (int i = 0; i < w->n; i++) left = width(w->word[i]) > left ? width(w->word[i]) : left;
    printf("%s\n%*s", title, left, "");
    for (int j = 0; j < w->n; j++) printf("  %*s%s", 5 - width(w->word[j]), "", w->word[j]);
    for (int i = 0; i < w->n; i++) {
        printf("\n%s%*s", w->word[i], left - width(w->word[i]), "");
        for (int j = 0; j < w->n; j++) {
            const int column = width(w->word[j]);
            printf("  %*.2f", column > 5 ? column : 5, tn_get(table, (int64_t)i * w->n + j));
        }
    }
    printf("\n");
}

/* Writes the HTML page. Negative cosines are drawn in white. */
static void draw(const char *html, const char *sentence, const words *w, const tn_tensor *cosine, tn_tensor *weights)
{
    tn_report *r = tn_report_new("Attention within a sentence");
    tn_report_paragraph(r, sentence);
    tn_report_heatmap(r, "Cosines of the word vectors", w->n, w->word, w->n, w->word,
                      tn_clamp((tn_tensor *)cosine, 0, 1));
    tn_report_heatmap(r, "Attention weights softmax(QKᵀ/√d): queries on the left, keys on top", w->n, w->word, w->n,
                      w->word, weights);
    tn_tensor *one = tn_reshape(weights, TN_SHAPE(1, 1, w->n, w->n));
    tn_report_attention(r, "The attention weights as lines", w->n, w->word, w->n, w->word, one, 0, 0);
    if (r && tn_report_save(r, html) == TN_OK) printf("\n%s\n", html);
    tn_report_free(r);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 5)
        return fprintf(stderr, "Usage: sentence_attention VECTORS [SENTENCE [SCALE [PAGE]]]\n"), 2;
    const char    *sentence = argc > 2 ? argv[2] : "i must go back to my ship and to my crew";
    double         scale = argc > 3 ? strtod(argv[3], NULL) : 0;
    static words   w;
    const tn_scope s = tn_no_grad_begin();
    tn_vectors    *v = tn_vectors_load(argv[1], TN_VECTORS_ANY);
    if (v && look_up(v, argv[1], sentence, &w)) {
        if (!(scale > 0)) scale = sqrt((double)tn_vectors_dim(v));
        tn_tensor *unit = tn_normalize(w.rows, -1);
        tn_tensor *cosine = tn_matmul(unit, tn_transpose(unit, 0, 1));
        tn_tensor *scores = tn_matmul(w.rows, tn_transpose(w.rows, 0, 1));
        tn_tensor *weights = tn_softmax(tn_mul_scalar(scores, 1 / scale), -1);
        if (tn_error() == TN_OK) {
            print_table("cosine", &w, cosine);
            print_table("\nsoftmax(QK^T/sqrt(d))", &w, weights);
            if (argc > 4) draw(argv[4], sentence, &w, cosine, weights);
        }
    }
    tn_vectors_free(v);
    tn_scope_end(s);
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    return tn_error() != TN_OK;
}
