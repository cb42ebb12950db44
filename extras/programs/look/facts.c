/* facts.c — look probe --facts: whether a masked language model knows facts (Petroni et al. 2019): in a template such
 * as "[X] is the capital of [Y] ." with its subject and a masked object, the rank of the object among all tokens.
 *
 * Two controls: the subject is masked, too; and objects are ranked by how often they occur in the facts of the
 * template. */
#include "programs/common/messages.h"
#include "probe.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t id, relation, rank[3]; /* id of the object's token; -1: skipped. Ranks: see below */
} fact;
enum { KNOWN, WITHOUT_SUBJECT, MAJORITY, WAYS };
typedef struct {
    const model *m;
    const char  *path;
    tn_labelled *file; /* templates, subjects, objects */
    int64_t      n, relations, skipped, first_skipped;
    fact        *fact;
    int64_t *template; /* index of the first fact of each relation */
} fact_list;

static const char *text_at(const fact_list *f, int64_t i, int k) { return tn_labelled_at(f->file, i).text[k]; }

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Returns the only occurrence of `what`; NULL: none, or several. */
static const char *only(const char *text, const char *what)
{
    const char *at = strstr(text, what);
    return at && !strstr(at + 1, what) ? at : NULL;
}

/* The id of an object, as it is written in the template; -1: it is not one token. */
static int64_t object_id(const fact_list *f, const char *template, const char *object)
{
    const char  *at = strstr(template, "[Y]");
    tn_string    text = {0};
    tn_encoding *e = tn_encoding_new();
    int64_t      id = -1;
    if (at > template && at[-1] == ' ') tn_string_add(&text, tn_text_of(" "));
    tn_string_add(&text, tn_text_of(object));
    if (e && tn_tokenizer_encode(f->m->tokens, e, text.at, text.bytes, .bare = true, .literal = true) == TN_OK &&
        e->n == 1 && e->id[0] != tn_tokenizer_special(f->m->tokens).unknown)
        id = e->id[0];
    tn_encoding_free(e);
    tn_string_free(&text);
    return id;
}

static bool add_fact(fact_list *f, int64_t i, const char *mask)
{
    const tn_example e = tn_labelled_at(f->file, i);
    if (!only(e.text[0], "[X]") || !only(e.text[0], "[Y]"))
        return tn_raise_false(TN_EFORMAT, "'%s', line %lld: the template '%s' must contain [X] and [Y] once", f->path,
                              (long long)e.line, e.text[0]);
    if (strstr(e.text[0], mask) || strstr(e.text[1], mask))
        return tn_raise_false(TN_EFORMAT, "'%s', line %lld: %s is reserved for the object; remove it", f->path,
                              (long long)e.line, mask);
    fact *x = &f->fact[i];
    while (x->relation < f->relations && strcmp(text_at(f, f->template[x->relation], 0), e.text[0]) != 0) x->relation++;
    if (x->relation == f->relations) f->template[f->relations++] = i;
    x->id = object_id(f, e.text[0], e.label[0]);
    if (x->id < 0 && !f->skipped++) f->first_skipped = i;
    return tn_error() == TN_OK;
}

static bool facts_open(const model *m, const char *path, fact_list *f)
{
    const int32_t mask = tn_tokenizer_special(m->tokens).mask;
    *f = (fact_list){.m = m, .path = path};
    if (m->kind != READER || !m->encoder->head || mask < 0)
        return tn_raise_false(TN_EUNSUPPORTED, "--facts needs a masked language model, such as BERT with its head");
    f->file = tn_labelled_load(path, .kind = TN_LABELLED_TEXTS, .form = "tsv", .pairs = true, .text = "1", .pair = "2",
                               .label = "3", .no_header = true);
    f->n = tn_labelled_count(f->file);
    f->fact = calloc((size_t)f->n + 1, sizeof *f->fact), f->template = calloc((size_t)f->n + 1, sizeof *f->template);
    if (!f->fact || !f->template) tn_raise(TN_ENOMEM, "no memory for %lld facts", (long long)f->n);
    for (int64_t i = 0; f->fact && f->template && i < f->n && tn_error() == TN_OK; i++)
        add_fact(f, i, tn_tokenizer_token(m->tokens, mask));
    if (tn_error() == TN_OK && f->skipped == f->n)
        tn_raise(TN_EINVAL, "'%s': no object is one token of this model; give objects of one token", path);
    if (tn_error() == TN_OK && f->skipped)
        tell("%lld of %lld facts are skipped, because their objects are not one token, for example '%s'\n",
             (long long)f->skipped, (long long)f->n, tn_labelled_at(f->file, f->first_skipped).label[0]);
    return tn_error() == TN_OK;
}

static void facts_close(fact_list *f)
{
    tn_labelled_free(f->file);
    free(f->fact), free(f->template);
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

/* Writes the logits of the object for a template and a subject; subject NULL: masked. The caller's scope owns them. */
static const float *logits_of(const fact_list *f, const char *template, const char *subject)
{
    const int32_t id = tn_tokenizer_special(f->m->tokens).mask;
    const char *mask = tn_tokenizer_token(f->m->tokens, id), *x = strstr(template, "[X]"), *y = strstr(template, "[Y]");
    const char *a = x < y ? x : y, *b = x < y ? y : x;
    const char *first = x < y ? subject : NULL, *second = x < y ? NULL : subject;
    tn_string   text = {0};
    token_list  p = {.n = 0};
    int64_t     at = -1, nth = !subject && x < y ? 2 : 1;
    tn_string_add(&text, (tn_text){template, (size_t)(a - template)});
    tn_string_add(&text, tn_text_of(first ? first : mask));
    tn_string_add(&text, (tn_text){a + 3, (size_t)(b - a - 3)});
    tn_string_add(&text, tn_text_of(second ? second : mask));
    tn_string_add(&text, tn_text_of(b + 3));
    if (tn_error() == TN_OK && token_list_encode(f->m, text.at, false, false, &p))
        for (int64_t i = 0; i < p.n && nth; i++)
            if (tn_get_i64(p.ids, i) == id && !--nth) at = i;
    tn_tensor *scores = NULL;
    if (at >= 0)
        scores = tn_bert_mlm_logits(f->m->encoder,
                                    tn_bert_forward(f->m->encoder, p.ids, .for_words = true,
                                                    .targets = tn_full_of(TN_I64, TN_SHAPE(1), (double)at)),
                                    NULL);
    else if (tn_error() == TN_OK) tn_raise(TN_EFORMAT, "the tokenizer removes the mask token from '%s'", text.at);
    token_list_free(&p);
    tn_string_free(&text);
    if (!scores || !numbers_finite(tn_item(tn_sum(scores)), "the logits of an object")) return NULL;
    return tn_data(tn_contiguous(tn_to(scores, TN_F32)));
}

/* 1 and the number of tokens that are not special and have a larger logit. */
static int64_t rank_of(const fact_list *f, const float *logit, int64_t id)
{
    int64_t       rank = 1;
    const int64_t n = f->m->encoder->config.vocab;
    for (int64_t i = 0; i < n; i++) rank += logit[i] > logit[id] && !tn_tokenizer_is_special(f->m->tokens, (int32_t)i);
    return rank;
}

/* The rank of each object by its number of facts in the relation; of equal numbers, the first object is first. x: the n
 * facts of a relation; count and first: room for n numbers each. */
static void rank_by_number(int64_t n, fact *const *x, int64_t *count, int64_t *first)
{
    for (int64_t i = 0; i < n; i++) {
        count[i] = 0, first[i] = n;
        for (int64_t j = n; j-- > 0;)
            if (x[j]->id == x[i]->id) count[i]++, first[i] = j;
    }
    for (int64_t i = 0; i < n; i++) {
        x[i]->rank[MAJORITY] = 1;
        for (int64_t j = 0; j < n; j++)
            if (first[j] == j) /* once for each object */
                x[i]->rank[MAJORITY] += count[j] > count[i] || (count[j] == count[i] && j < first[i]);
    }
}

static void rank_objects(fact_list *f, int64_t relation)
{
    fact   **of = calloc((size_t)f->n, sizeof *of);
    int64_t *number = calloc(2 * (size_t)f->n, sizeof *number), n = 0;
    if (!of || !number) tn_raise(TN_ENOMEM, "no memory for %lld facts", (long long)f->n);
    for (int64_t i = 0; of && number && i < f->n; i++)
        if (f->fact[i].relation == relation && f->fact[i].id >= 0) of[n++] = &f->fact[i];
    rank_by_number(n, of, number, number ? number + f->n : NULL);
    free(of), free(number);
}

static bool rank_relation(fact_list *f, int64_t relation)
{
    const tn_scope outer = tn_no_grad_begin();
    const char *template = text_at(f, f->template[relation], 0);
    const float *without = logits_of(f, template, NULL);
    for (int64_t i = 0; i < f->n && without && tn_error() == TN_OK; i++) {
        fact *x = &f->fact[i];
        if (x->relation != relation || x->id < 0) continue;
        const tn_scope s = tn_scope_begin();
        const float   *logit = logits_of(f, template, text_at(f, i, 1));
        if (logit) x->rank[KNOWN] = rank_of(f, logit, x->id);
        x->rank[WITHOUT_SUBJECT] = rank_of(f, without, x->id);
        tn_scope_end(s);
    }
    rank_objects(f, relation);
    tn_scope_end(outer);
    return tn_error() == TN_OK;
}

/* ---- look probe --facts ------------------------------------------------------------------------------------------ */

enum { MEASURES = 3 }; /* P@1, P@10, mean reciprocal rank, in percent */

/* Adds the scores of a relation to `to`; returns its number of facts. */
static int64_t score(const fact_list *f, int64_t relation, double to[WAYS][MEASURES])
{
    int64_t n = 0;
    for (int64_t i = 0; i < f->n; i++) n += f->fact[i].relation == relation && f->fact[i].id >= 0;
    for (int64_t i = 0; i < f->n; i++)
        for (int k = 0; k < WAYS && f->fact[i].relation == relation && f->fact[i].id >= 0; k++) {
            const int64_t rank = f->fact[i].rank[k];
            to[k][0] += rank <= 1 ? 100 / (double)n : 0, to[k][1] += rank <= 10 ? 100 / (double)n : 0;
            to[k][2] += 100 / (double)rank / (double)n;
        }
    return n;
}

static void print_line(const char *name, int64_t n, double s[WAYS][MEASURES], double divisor)
{
    printf("%s\t%lld", name, (long long)n);
    for (int k = 0; k < WAYS * MEASURES; k++) printf("\t%.2f", s[k / MEASURES][k % MEASURES] / divisor);
    printf("\n");
    fflush(stdout);
}

void probe_facts(const model *m, const char *path)
{
    fact_list f;
    double    all[WAYS][MEASURES] = {{0}};
    int64_t   facts = 0, relations = 0;
    if (facts_open(m, path, &f)) {
        printf("template\tfacts\tP@1\tP@10\tMRR\tno subject P@1\tP@10\tMRR\tmajority P@1\tP@10\tMRR\n");
        for (int64_t r = 0; r < f.relations && rank_relation(&f, r); r++) {
            double        s[WAYS][MEASURES] = {{0}};
            const int64_t n = score(&f, r, s);
            if (!n) continue;
            print_line(text_at(&f, f.template[r], 0), n, s, 1);
            score(&f, r, all);
            facts += n, relations++;
        }
        if (tn_error() == TN_OK) print_line("mean of the templates", facts, all, (double)relations);
    }
    facts_close(&f);
}
