/* fuzz_labelled.c — any bytes as labelled texts, in all formats: they are rejected, or read and converted to
 * features. */
#include "data/data.h"
#include <stdlib.h>
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : abort())

static const struct {
    tn_labelled_kind kind;
    tn_problem_type  problem;
    const char      *form;
} forms[] = {{TN_LABELLED_TEXTS, TN_SINGLE_LABEL, "tsv"},    {TN_LABELLED_TEXTS, TN_MULTI_LABEL, "csv"},
             {TN_LABELLED_TEXTS, TN_REGRESSION, "tsv"},      {TN_LABELLED_TEXTS, TN_MULTI_LABEL, "jsonl"},
             {TN_LABELLED_TEXTS, TN_SINGLE_LABEL, "mrpc"},   {TN_LABELLED_WORDS, TN_SINGLE_LABEL, "conll"},
             {TN_LABELLED_WORDS, TN_SINGLE_LABEL, "conllu"}, {TN_LABELLED_ANSWERS, TN_SINGLE_LABEL, "squad"},
             {TN_LABELLED_CHOICES, TN_SINGLE_LABEL, "csv"}};
enum { FORMS = sizeof forms / sizeof *forms };

static void use(const tn_labelled *l, const tn_tokenizer *t, tn_problem_type problem)
{
    tn_labels   *s = tn_labels_of(l);
    tn_features *f = tn_features_new(l, t, s, .problem = problem, .length = 12, .stride = 3, .batch = 2);
    CHECK(f || tn_error() == TN_EFORMAT); /* endings of another number */
    tn_clear_error();
    const tn_source src = tn_features_source(f);
    tn_batch        b;
    for (bool more = f != NULL; more;) {
        const tn_scope scope = tn_scope_begin();
        more = tn_source_next(&src, &b);
        tn_scope_end(scope);
    }
    CHECK(tn_error() == TN_OK);
    tn_features_free(f), tn_labels_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char    text[] = "the cat sat on the mat";
    static tn_tokenizer *t;
    if (!t) { /* and a scope's list, which stays */
        const tn_scope s = tn_scope_begin();
        for (int i = 0; i < 8; i++) tn_zeros(TN_SHAPE(1));
        tn_scope_end(s);
        t = tn_tokenizer_train_text(text, strlen(text), .vocab_size = 40, .min_count = 1);
    }
    const size_t before = tn_memory_now().live;
    for (int i = 0; i < FORMS && size; i++) {
        tn_labelled *l = tn_labelled_parse(
            (const char *)data + 1, size - 1, .kind = forms[i].kind, .problem = forms[i].problem, .form = forms[i].form,
            .skip = data[0] % 8, .no_label = data[0] & 8, .pairs = data[0] & 16 && forms[i].kind == TN_LABELLED_TEXTS,
            .bio = data[0] & 32 && forms[i].kind == TN_LABELLED_WORDS);
        CHECK(l || tn_error() == TN_EFORMAT || tn_error() == TN_EINVAL || tn_error() == TN_EINDEX);
        tn_clear_error();
        if (l && tn_labelled_count(l)) use(l, t, forms[i].problem);
        tn_labelled_free(l);
    }
    CHECK(tn_error() == TN_OK && tn_memory_now().live == before);
    return 0;
}
