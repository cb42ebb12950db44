/* memory.c — attention as a memory: facts are looked up in a table by keys that need not match exactly. A key is the
 * vector of a word's letter pairs, a value the fact; the answer to a query is the value whose weight in
 * softmax(β q Kᵀ) V is largest. With β = 0 all facts are mixed, with a large β it is a table of a program.
 *     memory [QUERY...]
 * Build: cc -O2 memory.c -o memory $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>

enum { FACTS = 6, DIM = 27 * 27 };
static const char *const keys[FACTS] = {"france", "germany", "thailand", "norway", "peru", "kenya"};
static const char *const values[FACTS] = {"paris", "berlin", "bangkok", "oslo", "lima", "nairobi"};

/* The counts of a word's letter pairs, as a vector of length 1; a word begins and ends with a blank. */
static tn_tensor *pairs_of(const char *word)
{
    tn_tensor *x = tn_zeros(TN_SHAPE(1, DIM));
    for (int before = 0, now; x && *word | before; before = now, word += *word != 0) {
        now = *word >= 'a' && *word <= 'z' ? *word - 'a' + 1 : 0;
        tn_set(x, before * 27 + now, tn_get(x, before * 27 + now) + 1);
    }
    return tn_div(x, tn_add_scalar(tn_norm(x), 1e-9));
}

static void look_up(const char *word, tn_tensor *table, double beta)
{
    tn_tensor *scores = tn_matmul(pairs_of(word), tn_transpose(table, 0, 1)); /* [1, FACTS]: cosines */
    tn_tensor *weights = tn_softmax(tn_mul_scalar(scores, beta), -1);
    tn_tensor *sum = tn_matmul(weights, tn_eye(FACTS, FACTS)); /* the values are the rows of a unit matrix */
    if (tn_error()) return;
    const int64_t best = tn_get_i64(tn_argmax(sum, -1, false), 0);
    printf("%-9s", word);
    for (int i = 0; i < FACTS; i++) printf(" %.2f", tn_get(weights, i));
    printf("  %s\n", values[best]);
}

int main(int argc, char **argv)
{
    static const char *const asked[] = {"thailand", "germny", "norwege"};
    const tn_scope           s = tn_no_grad_begin();
    tn_tensor               *table = pairs_of(keys[0]);
    for (int i = 1; i < FACTS; i++) table = tn_cat(0, table, pairs_of(keys[i]));
    printf("%9s", "");
    for (int i = 0; i < FACTS; i++) printf(" %.4s", keys[i]);
    printf("\n");
    for (int i = 0; i < 3 && argc < 2; i++) look_up(asked[i], table, 10);
    for (int i = 1; i < argc; i++) look_up(argv[i], table, 10);
    if (argc < 2) printf("the same with β = 1\n"), look_up(asked[0], table, 1);
    tn_scope_end(s);
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    return tn_error() != TN_OK;
}
