/* syntax.c — finds attention heads that follow syntax: for each word, the word with the largest attention weight is
 * compared with its syntactic head (directed), or with its head and its dependents (undirected).
 *
 * As in Clark et al. 2019: attention to a word of several tokens is their sum, attention from it their mean; special
 * tokens and the word itself are excluded. The root of a sentence is not evaluated. */
#include "trees.h"

#include <stdlib.h>
#include <string.h>

enum { RELATIONS = 64, MAX_ATTENTIONS = 1024 };
typedef struct {
    int64_t directed, undirected, by[RELATIONS];
} counts;
typedef struct {
    tn_text name[RELATIONS];
    int64_t n, seen[RELATIONS], words;
} relations;

/* The index of a relation; a subtype after a colon is ignored. */
static int64_t relation_of(relations *r, tn_text name)
{
    const char *colon = memchr(name.at, ':', name.bytes);
    if (colon) name.bytes = (size_t)(colon - name.at);
    for (int64_t i = 0; i < r->n; i++)
        if (r->name[i].bytes == name.bytes && !memcmp(r->name[i].at, name.at, name.bytes)) return i;
    if (r->n == RELATIONS) return RELATIONS - 1;
    r->name[r->n] = name;
    return r->n++;
}

/* Converts weights between tokens w [T, T] to weights between words [n, n]; `to` has room for n (n + 1) values. */
static void by_words(const float *w, const encoded_sentence *x, int64_t n, double *to)
{
    const int64_t t = x->p.n;
    double       *size = to + n * n; /* number of tokens of each word */
    memset(to, 0, (size_t)(n * n + n) * sizeof *to);
    for (int64_t p = 0; p < t; p++)
        if (x->word_of[p] >= 0) size[x->word_of[p]]++;
    for (int64_t p = 0; p < t; p++)
        for (int64_t q = 0; x->word_of[p] >= 0 && q < t; q++)
            if (x->word_of[q] >= 0) to[x->word_of[p] * n + x->word_of[q]] += (double)w[p * t + q] / size[x->word_of[p]];
}

static void count_hits(const node *word, int64_t n, const double *w, const int64_t *relation, counts *c)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t best = i == 0;
        for (int64_t j = best + 1; j < n; j++)
            if (j != i && w[i * n + j] > w[i * n + best]) best = j;
        if (word[i].head < 0) continue;
        const bool hit = best == word[i].head;
        c->directed += hit, c->by[relation[i]] += hit;
        c->undirected += hit || word[best].head == i;
    }
}

typedef struct {
    const model  *m;
    const trees  *t;
    tn_look      *look;
    relations     relations;
    int64_t       attentions, heads[MAX_ATTENTIONS];
    const tn_mha *mha[MAX_ATTENTIONS];
    char          path[MAX_ATTENTIONS][256];
    counts       *counts; /* [attentions, 64] */
} evaluation;

static void each_head(evaluation *k, const encoded_sentence *x, const sentence *s, const int64_t *relation,
                      double *buffer)
{
    for (int64_t a = 0; a < k->attentions && tn_error() == TN_OK; a++) {
        tn_tensor *w = tn_look_at(k->look, k->path[a]);
        if (w && !runs_once(k->look, k->path[a])) return;
        if (w && !numbers_finite(tn_item(tn_sum(w)), "the attention")) return;
        for (int64_t h = 0; w && h < k->heads[a] && h < 64; h++) {
            const float *data = tn_data(tn_contiguous(tn_select(tn_select(w, 0, 0), 0, h)));
            if (!data) return;
            by_words(data, x, s->n, buffer);
            count_hits(&k->t->node[s->first], s->n, buffer, relation, &k->counts[a * 64 + h]);
        }
    }
}

static void each_sentence(evaluation *k)
{
    for (int64_t i = 0; i < k->t->sentences && tn_error() == TN_OK; i++) {
        const sentence  *s = &k->t->sentence[i];
        const tn_scope   scope = tn_no_grad_begin();
        encoded_sentence x;
        double          *buffer = calloc((size_t)(s->n * s->n + s->n), sizeof *buffer);
        int64_t         *relation = calloc((size_t)s->n, sizeof *relation);
        if (buffer && relation && sentence_encode(k->m, k->t, i, &x)) {
            tn_look_clear(k->look);
            const tn_scope in = tn_look_begin(k->look);
            tn_bert_forward(k->m->encoder, x.p.ids);
            tn_scope_end(in);
            for (int64_t j = 0; j < s->n; j++) {
                const node *w = &k->t->node[s->first + j];
                relation[j] = relation_of(&k->relations, w->relation);
                if (w->head >= 0) k->relations.seen[relation[j]]++, k->relations.words++;
            }
            each_head(k, &x, s, relation, buffer);
        }
        sentence_free(&x);
        free(buffer), free(relation);
        tn_scope_end(scope);
    }
}

static void print_all(const evaluation *k)
{
    const relations *r = &k->relations;
    printf("attention\thead\tdirected\tundirected\trelation\taccuracy\n");
    for (int64_t a = 0; a < k->attentions; a++)
        for (int64_t h = 0; h < k->heads[a]; h++) {
            const counts *c = &k->counts[a * 64 + h];
            int64_t       best = -1;
            for (int64_t i = 0; i < r->n; i++) /* only relations with at least 100 words */
                if (r->seen[i] >= 100 && (best < 0 || c->by[i] * r->seen[best] > c->by[best] * r->seen[i])) best = i;
            printf("%.*s\t%lld\t%.4f\t%.4f\t%.*s\t%.2f\n", (int)(strlen(k->path[a]) - strlen(".weights")), k->path[a],
                   (long long)k->mha[a]->left[h] + 1, (double)c->directed / (double)r->words,
                   (double)c->undirected / (double)r->words, best < 0 ? 1 : (int)r->name[best].bytes,
                   best < 0 ? "-" : r->name[best].at, best < 0 ? 0 : 100 * (double)c->by[best] / (double)r->seen[best]);
        }
}

/* Evaluates the heads of the attention with the path `only`; NULL: of all attentions. */
static bool evaluate_heads(evaluation *k, const model *m, const trees *t, const char *only)
{
    if (!m->encoder) return tn_raise_false(TN_EUNSUPPORTED, "--heads needs a bidirectional encoder such as BERT");
    *k = (evaluation){.m = m, .t = t, .look = tn_look_new()};
    for (tn_each e = tn_modules(m->encoder); tn_next(&e);) {
        const tn_mha *a = tn_mha_of(e.module);
        if (!a || k->attentions == MAX_ATTENTIONS || strlen(e.name) > 240 || (only && strcmp(only, e.name) != 0))
            continue;
        k->heads[k->attentions] = a->heads < 64 ? a->heads : 64, k->mha[k->attentions] = a;
        snprintf(k->path[k->attentions], sizeof k->path[0], "%.240s.weights", e.name);
        tn_look_request(k->look, k->path[k->attentions++]);
    }
    k->counts = calloc((size_t)(64 * k->attentions + 1), sizeof *k->counts);
    if (k->counts) each_sentence(k);
    if (k->counts && tn_error() == TN_OK && !k->relations.words)
        tn_raise(TN_EFORMAT, "no word of the sentences has a syntactic head; give sentences with dependency trees");
    return k->counts && tn_error() == TN_OK;
}

static void evaluation_free(evaluation *k)
{
    free(k->counts);
    tn_look_free(k->look);
}

bool syntactic_heads(const model *m, const trees *t)
{
    static evaluation k;
    if (evaluate_heads(&k, m, t, NULL)) print_all(&k);
    evaluation_free(&k);
    return tn_error() == TN_OK;
}

int64_t head_index(const tn_mha *m, int64_t head)
{
    for (int64_t i = 0; i < m->heads; i++)
        if (m->left[i] == head) return i;
    return -1;
}

bool head_evaluate(const model *m, const trees *t, const char *path, int64_t head, double *directed, double *undirected)
{
    static evaluation k;
    const bool        ok = evaluate_heads(&k, m, t, path);
    *directed = *undirected = 0;
    const int64_t at = ok && k.attentions ? head_index(k.mha[0], head) : -1;
    if (ok && (at < 0 || at >= k.heads[0]))
        tn_raise(TN_EINVAL, "this model has no head %lld of '%s'", (long long)head, path);
    else if (ok)
        *directed = (double)k.counts[at].directed / (double)k.relations.words,
        *undirected = (double)k.counts[at].undirected / (double)k.relations.words;
    evaluation_free(&k);
    return tn_error() == TN_OK;
}
