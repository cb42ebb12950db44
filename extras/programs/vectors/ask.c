/* ask.c — vectors neighbours, analogy, similarity, convert. */
#include "programs/common/messages.h"
#include "programs/common/numbers.h"
#include "programs/common/records.h"
#include "programs/common/texts.h"
#include "programs/common/files.h"
#include "vectors.h"

#include <stdlib.h>

static int64_t     most = 10;
static bool        product, force, json;
static const char *to_format_name;

enum { MOST = 1000 };

#define MOST_WORDS OPTION_INT("top", 'k', "N", &most, "print N words", .least = 1, .most = MOST)
#define PRODUCT OPTION_FLAG("product", 0, &product, "combine cosines by product (3CosMul) instead of by sum (3CosAdd)")
#define JSON(each) OPTION_FLAG("json", 0, &json, "print a line of JSON" each)
const option near_options[] = {VECTORS, MOST_WORDS, JSON(" for each word"), {0}};
const option analogy_options[] = {VECTORS, MOST_WORDS, PRODUCT, JSON(""), {0}};
const option similarity_options[] = {VECTORS, JSON(""), {0}};
const option info_options[] = {VECTORS_FORMAT, JSON(""), {0}};
const option convert_options[] = {VECTORS,
                                  TO_FORMAT("to", &to_format_name, "OUT"),
                                  OPTION_FLAG("force", 0, &force, "overwrite an existing file"),
                                  {0}};

/* Prints the words nearest to n words: a line each, or a line of JSON. */
static void print_words(const tn_vectors *v, char **of, int count, const tn_vectors_near *near, int64_t n)
{
    tn_json_writer *w = json ? tn_json_writer_new(0) : NULL;
    if (w) tn_json_open_object(w, NULL), tn_json_open_array(w, "of");
    for (int i = 0; w && i < count; i++) texts_put(w, NULL, of[i]);
    if (w) tn_json_close(w), tn_json_open_array(w, "words");
    for (int64_t i = 0; i < n; i++) {
        const char *word = tn_vectors_word(v, near[i].word).at;
        if (!json) printf("%s\t%.6f\n", word, (double)near[i].score);
        if (!w) continue;
        tn_json_open_object(w, NULL);
        texts_put(w, "word", word), numbers_put(w, "score", (double)near[i].score, 6);
        tn_json_close(w);
    }
    if (w) tn_json_close(w), tn_json_close(w), records_print(w);
    tn_json_writer_free(w);
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
        if (count > 1 && !json) printf(k ? "\n%s\n" : "%s\n", operands[k]);
        print_words(v, &operands[k], 1, near, tn_vectors_nearest(v, x, &self, self >= 0, most, near));
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
        if (tn_error() == TN_OK && json)
            numbers_json("{\"accuracy\":", 100 * s.value, 4), printf(",\"asked\":%lld}\n", (long long)s.asked);
        else if (tn_error() == TN_OK) printf("accuracy %.2f %% of %lld questions\n", 100 * s.value, (long long)s.asked);
    } else if (v) {
        int64_t         abc[3];
        tn_vectors_near near[MOST];
        for (int k = 0; k < 3; k++) abc[k] = find_word(v, operands[k]);
        if (tn_error() == TN_OK) print_words(v, operands, 3, near, tn_vectors_analogous(v, abc, product, most, near));
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
        if (tn_error() == TN_OK && json)
            numbers_json("{\"spearman\":", s.value, 4),
                printf(",\"pairs\":%lld,\"missing\":%lld}\n", (long long)s.asked, (long long)s.missing);
        else if (tn_error() == TN_OK)
            printf("spearman %.4f pairs %lld missing %lld\n", s.value, (long long)s.asked, (long long)s.missing);
    }
    tn_vectors_free(v);
    return program_end();
}

int run_info(int count, char **operands)
{
    (void)count;
    vectors_file = operands[0];
    tn_vectors *v = load_vectors();
    if (v && json) {
        tn_json_writer *w = tn_json_writer_new(0);
        tn_json_open_object(w, NULL);
        tn_json_put_i64(w, "words", tn_vectors_size(v)), tn_json_put_i64(w, "dimension", tn_vectors_dim(v));
        tn_json_close(w), records_print(w);
        tn_json_writer_free(w);
    } else if (v) {
        printf("words       %lld\ndimension   %lld\nfirst", (long long)tn_vectors_size(v),
               (long long)tn_vectors_dim(v));
        for (int64_t i = 0; i < 8 && i < tn_vectors_size(v); i++)
            printf("%s%s", i ? " " : "       ", tn_vectors_word(v, i).at);
        printf("\n");
    }
    tn_vectors_free(v);
    return program_end();
}

int run_convert(int count, char **operands)
{
    (void)count;
    tn_vectors *v = may_create(operands[0], force) ? load_vectors() : NULL;
    if (v && save_vectors(v, operands[0], to_format_name) == TN_OK && !settings.quiet)
        tell("%s: %lld words, dimension %lld\n", operands[0], (long long)tn_vectors_size(v),
             (long long)tn_vectors_dim(v));
    tn_vectors_free(v);
    return program_end();
}
