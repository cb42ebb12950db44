/* fuzz_questions.c — any bytes as a file of questions to word vectors: word pairs with human scores, analogies; as a
 * file of lines; as a text with phrases; as a training run to resume. Scores stay in their ranges. Nothing stays
 * allocated. */
#define _GNU_SOURCE
#include "extras.h"
#include "tests/fuzz/memory_folder.h"
#include <math.h>

#define CHECK(x) ((x) ? (void)0 : abort())

static void refused(void)
{
    CHECK(tn_error() == TN_OK || tn_error() == TN_EFORMAT);
    tn_clear_error();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const float rows[5][2] = {{1, 0}, {0.5f, 0.5f}, {0, 1}, {-1, 0.25f}, {0, 0}};
    folder_begin();
    folder_put("in", data, size);
    const size_t   before = tn_memory_now().live;
    const tn_scope s = tn_scope_begin();
    tn_vectors    *v =
        tn_vectors_from(tn_text_of("king queen man woman zero"), tn_from_data(TN_F32, TN_SHAPE(5, 2), rows));
    CHECK(v);
    tn_vectors_score score = tn_vectors_similarity(v, "in");
    CHECK(score.value >= -1.0001 && score.value <= 1.0001 && score.asked >= 0 && score.missing >= 0);
    refused();
    for (int product = 0; product < 2; product++) {
        score = tn_vectors_analogies(v, "in", product);
        CHECK(score.value >= 0 && score.value <= 1 && score.asked >= 0 && score.missing >= 0);
        refused();
    }
    tn_vectors_free(v);
    tn_lines *lines = tn_lines_load("in");
    size_t    bytes = 0;
    for (int64_t i = 0; i < tn_lines_count(lines); i++) bytes += tn_lines_at(lines, i).bytes;
    CHECK(bytes <= size);
    refused();
    tn_lines_free(lines);
    const char              *path = "in";
    const tn_vectors_phrased p = tn_vectors_phrases(1, &path, "out", .min_count = 1, .threshold = 1);
    CHECK(p.joined <= p.words && p.phrases <= p.joined + p.words);
    refused();
    folder_put("text", (const uint8_t *)"a b a b", 7);
    const char *text = "text";
    v = tn_vectors_train(1, &text, .dim = 2, .epochs = 1, .min_count = 1, .checkpoint = "in", .resume = true);
    CHECK(v || tn_error() != TN_OK);
    tn_vectors_free(v);
    refused();
    tn_scope_end(s);
    folder_end();
    CHECK(tn_error() == TN_OK && tn_memory_now().tensors == 0 && tn_memory_now().live == before);
    return 0;
}
