/* ask.c — vectors neighbours, analogy, similarity, convert. */
#include "../common/messages.h"
#include "../common/files.h"
#include "vectors.h"

#include <stdlib.h>

static int64_t     most = 10;
static bool        product, force;
static const char *to_format_name;

enum { MOST = 1000 };

#define MOST_WORDS OPTION_INT("top", 'k', "N", &most, "print N words", .least = 1, .most = MOST)
#define PRODUCT OPTION_FLAG("product", 0, &product, "combine cosines by product (3CosMul) instead of by sum (3CosAdd)")
const option near_options[] = {VECTORS, MOST_WORDS, {0}};
const option analogy_options[] = {VECTORS, MOST_WORDS, PRODUCT, {0}};
const option similarity_options[] = {VECTORS, {0}};
const option convert_options[] = {
    VECTORS,
    OPTION_TEXT("to", 0, "FORMAT", &to_format_name,
                "output format (default: by the name of OUT: .bin binary, .safetensors safetensors, other names text)",
                .choices = FORMATS),
    OPTION_FLAG("force", 0, &force, "overwrite an existing file"),
    {0}};

static void print_words(const tn_vectors *v, const tn_vectors_near *near, int64_t n)
{
    for (int64_t i = 0; i < n; i++) printf("%s\t%.6f\n", tn_vectors_word(v, near[i].word).at, (double)near[i].score);
}

int run_neighbours(int count, char **operands)
{
    tn_vectors     *v = load_vectors();
    float          *x = v ? malloc((size_t)tn_vectors_dim(v) * sizeof *x) : NULL;
    tn_vectors_near near[MOST];
    for (int k = 0; x && k < count && tn_error() == TN_OK; k++) {
        const int64_t self = tn_vectors_find(v, tn_text_of(operands[k]));
        if (!tn_vectors_of(v, tn_text_of(operands[k]), x)) {
            tn_raise(TN_EINDEX, "'%s' has no word '%s'", vectors_file, operands[k]);
            break;
        }
        if (count > 1) printf(k ? "\n%s\n" : "%s\n", operands[k]);
        print_words(v, near, tn_vectors_nearest(v, x, &self, self >= 0, most, near));
    }
    free(x);
    tn_vectors_free(v);
    return program_end();
}

int run_analogy(int count, char **operands)
{
    if (count == 2) return program_usage("2 operands; expected three words, or one file of questions");
    const int code = count == 1 ? program_stray("top", "the form with three words") : 0;
    if (code) return code;
    tn_vectors *v = load_vectors();
    if (v && count == 1) {
        const tn_vectors_score s = tn_vectors_analogies(v, operands[0], product);
        if (tn_error() == TN_OK) printf("accuracy %.2f asked %lld\n", 100 * s.value, (long long)s.asked);
    } else if (v) {
        int64_t         abc[3];
        tn_vectors_near near[MOST];
        for (int k = 0; k < 3; k++) abc[k] = find_word(v, operands[k]);
        if (tn_error() == TN_OK) print_words(v, near, tn_vectors_analogous(v, abc, product, most, near));
    }
    tn_vectors_free(v);
    return program_end();
}

int run_similarity(int count, char **operands)
{
    (void)count;
    tn_vectors *v = load_vectors();
    if (v) {
        const tn_vectors_score s = tn_vectors_similarity(v, operands[0]);
        if (tn_error() == TN_OK)
            printf("spearman %.4f pairs %lld missing %lld\n", s.value, (long long)s.asked, (long long)s.missing);
    }
    tn_vectors_free(v);
    return program_end();
}

int run_convert(int count, char **operands)
{
    (void)count;
    if (file_exists(operands[0]) && !force) {
        tn_raise(TN_EINVAL, "'%s' already exists; name another file or use --force", operands[0]);
        return program_end();
    }
    tn_vectors *v = load_vectors();
    if (v &&
        tn_vectors_save(v, operands[0], to_format_name ? format_of(to_format_name) : format_of_path(operands[0])) ==
            TN_OK &&
        !settings.quiet)
        tell("%s: %lld words, dimension %lld\n", operands[0], (long long)tn_vectors_size(v),
             (long long)tn_vectors_dim(v));
    tn_vectors_free(v);
    return program_end();
}
