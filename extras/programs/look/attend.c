/* attend.c — look attend and look align: pages with figures of the attention weights. */
#include "look.h"

#include <stdlib.h>
#include <string.h>

static const char *dir, *html, *target;
static int64_t     layer = 1, head = 1;

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* The attentions whose path contains `part`, in order. */
enum { MAX_LAYERS = 128 };
typedef struct {
    int     n;
    tn_mha *mha[MAX_LAYERS];
    char    path[MAX_LAYERS][TN_PATH_BYTES + 16];
} attentions;

static bool attentions_in(tn_module *net, const char *part, attentions *a)
{
    a->n = 0;
    for (tn_each e = tn_modules(net); tn_next(&e);) {
        tn_mha *m = tn_mha_of(e.module);
        if (!m || !strstr(e.name, part) || a->n == MAX_LAYERS) continue;
        a->mha[a->n] = m;
        snprintf(a->path[a->n++], sizeof a->path[0], "%s.weights", e.name);
    }
    return a->n > 0;
}

static bool attentions_of(tn_module *net, const char *part, attentions *a)
{
    return attentions_in(net, part, a) || tn_raise_false(TN_EINVAL, "this model has no attention of this kind");
}

/* The weights of all heads, [layers, heads, m, n]; those of pruned heads are 0. */
static tn_tensor *stack_heads(const attentions *a, const tn_look *l)
{
    int64_t heads = 1;
    for (int i = 0; i < a->n; i++) heads = a->mha[i]->made_heads > heads ? a->mha[i]->made_heads : heads;
    tn_tensor *first = tn_look_at(l, a->path[0]);
    if (!first || !runs_once(l, a->path[0])) return NULL;
    const int64_t m = tn_size(first, 2), n = tn_size(first, 3);
    tn_tensor    *all = tn_zeros(TN_SHAPE(a->n, heads, m, n));
    for (int i = 0; i < a->n && tn_error() == TN_OK; i++) {
        tn_tensor *w = tn_look_at(l, a->path[i]);
        for (int64_t h = 0; w && h < a->mha[i]->heads; h++)
            tn_copy_from(tn_select(tn_select(all, 0, i), 0, a->mha[i]->left[h]), tn_select(tn_select(w, 0, 0), 0, h));
    }
    return all;
}

/* Runs the model. Returns the weights of all heads, and writes those of each layer, [1, heads, m, n], to `each`. */
static tn_tensor *attention_weights(const model *m, const attentions *a, const token_list *p,
                                    const token_list *translation, tn_tensor **each)
{
    tn_look *l = tn_look_new();
    for (int i = 0; i < a->n; i++) tn_look_request(l, a->path[i]);
    const tn_scope s = tn_look_begin(l);
    run_model(m, p->ids, m->kind == TRANSLATOR ? tn_narrow(translation->ids, 1, 0, translation->n - 1) : NULL);
    tn_scope_end(s);
    tn_tensor *all = tn_error() == TN_OK ? stack_heads(a, l) : NULL;
    for (int i = 0; each && i < a->n && tn_error() == TN_OK; i++) each[i] = tn_clone(tn_look_at(l, a->path[i]));
    tn_look_free(l);
    return all;
}

static bool check_selection(tn_tensor *all)
{
    if (!all) return false;
    if (layer <= tn_size(all, 0) && head <= tn_size(all, 1))
        return numbers_finite(tn_item(tn_sum(all)), "the attention");
    return tn_raise_false(TN_EINVAL,
                          "--layer %lld --head %lld does not exist: this model has %lld layers of %lld heads",
                          (long long)layer, (long long)head, (long long)tn_size(all, 0), (long long)tn_size(all, 1));
}

/* ---- look attend ------------------------------------------------------------------------------------------------- */

/* ½ (mean of the heads + identity) of each layer, rows normalised to sum 1: [layers, n, n]. */
static tn_tensor *layer_attention(tn_tensor *all, const attentions *a)
{
    const int64_t n = tn_size(all, 2);
    tn_tensor    *sum = tn_sum(all, .dims = TN_DIMS(1)), *heads = tn_ones(TN_SHAPE(a->n, 1, 1));
    for (int i = 0; i < a->n; i++) tn_set(heads, i, a->mha[i]->heads ? (double)a->mha[i]->heads : 1);
    sum = tn_add(tn_div(sum, heads), tn_unsqueeze(tn_eye(n, n), 0));
    return tn_div(sum, tn_sum(sum, .dims = TN_DIMS(2), .keepdim = true));
}

/* Divides by the maximum. */
static tn_tensor *relative(tn_tensor *w)
{
    tn_tensor *most = tn_amax(tn_reshape(w, TN_SHAPE(-1)), .dims = TN_DIMS(0));
    return tn_div(w, tn_add_scalar(most, 1e-9));
}

/* The maximum number of tokens of figures that grow too large for a page. */
enum { MAX_PATHS = 60, MAX_FLOW = 40, MAX_TOKENS = 200 };

static void note_limit(tn_report *r, const char *figure, int64_t limit)
{
    char text[128];
    snprintf(text, sizeof text, "%s for texts of at most %lld tokens.", figure, (long long)limit);
    tn_report_paragraph(r, text);
}

static void add_paths(tn_report *r, const token_list *p, tn_tensor *each)
{
    const int64_t most = p->n < MAX_PATHS ? p->n : MAX_PATHS;
    for (int64_t i = 0; i < most && tn_error() == TN_OK; i++) {
        tn_report_choice(r, "From layer to layer, for the token", p->name[i], i == 0);
        tn_report_paths(r, p->name[i], p->n, p->name, each, i);
    }
    tn_report_choice_end(r);
    if (p->n > MAX_PATHS) note_limit(r, "Only the first tokens are shown; all are shown", MAX_PATHS);
}

/* The weights of the tokens that are not special, [..., k, k], with rows of sum 1 if `rows`. */
static tn_tensor *without_special(tn_tensor *w, tn_tensor *keep, bool rows)
{
    w = tn_index_select(tn_index_select(w, -1, keep), -2, keep);
    if (!rows) return w;
    return tn_div(w, tn_add_scalar(tn_sum(w, .dims = TN_DIMS(-1), .keepdim = true), 1e-12));
}

typedef struct {
    token_list shown; /* borrows the names of another list */
    tn_tensor *keep;  /* NULL: all tokens */
} selection;

/* The tokens that are not special. False: there are no others, or raised. */
static bool select_tokens(const model *m, const token_list *p, selection *s)
{
    int64_t index[MAX_TOKENS], n = 0;
    *s = (selection){.shown = {.name = malloc((size_t)p->n * sizeof *s->shown.name)}};
    for (int64_t i = 0; i < p->n && s->shown.name; i++) {
        if (tn_tokenizer_is_special(m->tokens, (int32_t)tn_get_i64(p->ids, i))) continue;
        s->shown.name[n] = p->name[i], index[n++] = i;
    }
    s->shown.n = n;
    if (s->shown.name && n && n < p->n) s->keep = tn_from_data(TN_I64, TN_SHAPE(n), index);
    return s->keep != NULL;
}

/* The figures that have a row and a column for each token. */
static void add_matrices(tn_report *r, const selection *s, tn_tensor *all, const attentions *a, tn_tensor **each)
{
    const token_list *p = &s->shown;
    tn_tensor        *rollout = tn_select(tn_attention_rollout(a->n, each), 0, 0), *flow = NULL;
    if (tn_size(each[0], -1) <= MAX_FLOW) flow = tn_select(tn_attention_flow(a->n, each), 0, 0);
    if (s->keep) {
        all = without_special(all, s->keep, true), rollout = without_special(rollout, s->keep, true);
        if (flow) flow = without_special(flow, s->keep, false);
    }
    tn_report_attention(r, "Lines", p->n, p->name, p->n, p->name, all, layer - 1, head - 1);
    char title[80];
    snprintf(title, sizeof title, "Layer %lld, head %lld as a matrix: rows attend to columns", (long long)layer,
             (long long)head);
    tn_report_heatmap(r, title, p->n, p->name, p->n, p->name, tn_select(tn_select(all, 0, layer - 1), 0, head - 1));
    tn_report_heatmap(r, "Attention rollout: from the token on the left to the tokens on top, relative to the maximum",
                      p->n, p->name, p->n, p->name, relative(rollout));
    if (!flow) note_limit(r, "Attention flow takes long to compute and is shown only", MAX_FLOW);
    else
        tn_report_heatmap(r,
                          "Attention flow: the maximum flow with attention weights as capacities, relative to the "
                          "maximum",
                          p->n, p->name, p->n, p->name, relative(flow));
}

static void add_figures(tn_report *r, const model *m, const token_list *p, tn_tensor *all, const attentions *a,
                        tn_tensor **each)
{
    selection other;
    progress  bar = progress_begin("figures", 3, "part");
    if (select_tokens(m, p, &other)) tn_report_choice(r, "Tokens", "all", true);
    add_matrices(r, &(selection){*p, NULL}, all, a, each);
    progress_at(&bar, 1, "all tokens");
    if (other.keep) {
        tn_report_choice(r, "Tokens", "without special tokens, rows of sum 1", false);
        add_matrices(r, &other, all, a, each);
        tn_report_choice_end(r);
    }
    free(other.shown.name);
    progress_at(&bar, 2, "paths");
    tn_report_heading(r, "Through all layers");
    add_paths(r, p, layer_attention(all, a));
    progress_at(&bar, 3, "");
    progress_end(&bar);
}

static int run_attend(int count, char **operands)
{
    static attentions a;
    model             m;
    token_list        p = {.n = 0}, translation = {.n = 0};
    (void)count;
    if (reject_png(html)) return EXIT_USAGE;
    const tn_scope s = tn_no_grad_begin();
    if (model_open(dir, &m)) {
        tn_tensor *all = NULL, *each[MAX_LAYERS] = {NULL};
        const bool translates = m.kind == TRANSLATOR;
        if (token_list_encode(&m, operands[0], false, false, &p) && p.n > MAX_TOKENS)
            tn_raise(TN_EINVAL, "the text has %lld tokens, but a page shows at most %d; give a shorter text",
                     (long long)p.n, MAX_TOKENS);
        if (tn_error() == TN_OK && (!translates || translate_greedily(&m, p.ids, &translation)) &&
            attentions_of(m.net, translates ? "encoder.layers" : "self_attn", &a))
            all = attention_weights(&m, &a, &p, &translation, each);
        if (check_selection(all)) {
            tn_report *r = report_new(operands[0], dir);
            add_figures(r, &m, &p, all, &a, each);
            if (write_report(r, html)) printf("%s\n", html);
        }
        token_list_free(&p), token_list_free(&translation);
        model_close(&m);
    }
    tn_scope_end(s);
    return program_end();
}

#define ATTEND_OPTIONS                                                                                  \
    OPTION_TEXT("model", 'm', "DIR", &dir, "folder of the model", .required = true),                    \
        OPTION_TEXT("html", 'o', "FILE", &html, "HTML page to write, or .svg file for its last figure", \
                    .required = true),                                                                  \
        OPTION_INT("layer", 0, "N", &layer, "layer to show large", .least = 1, .most = 1024),           \
        OPTION_INT("head", 0, "N", &head, "head of this layer to show large", .least = 1, .most = 1024)
static const option attend_options[] = {ATTEND_OPTIONS, {0}};
const command       attend_command = {
          .name = "attend",
          .summary = "plot the attention between the tokens of a text",
          .options = attend_options,
          .operands = "TEXT",
          .least = 1,
          .most = 1,
          .run = run_attend,
          .text = "Writes a self-contained HTML page: all heads small and one large, as lines and as a matrix; "
                        "the attention from layer to layer for each token; attention rollout and attention flow. A "
                        "click on a small head enlarges it; a switch omits special tokens, such as [CLS]. For a "
                        "translation model, it shows the encoder."};

/* ---- look align -------------------------------------------------------------------------------------------------- */

/* The alignment of a model with recurrent layers: one row per output token. */
static void add_alignment(tn_report *r, const model *m, const token_list *p, const token_list *translation)
{
    tn_tensor *w = NULL;
    tn_seq2seq_forward((tn_seq2seq *)(void *)m->net, p->ids, tn_narrow(translation->ids, 1, 0, translation->n - 1),
                       .alignment = &w);
    if (w)
        tn_report_heatmap(r, "Attention of the decoder", translation->n - 1, translation->name + 1, p->n, p->name,
                          tn_select(w, 0, 0));
}

/* One row per output token: the input at that row is the token before it. */
static void add_heads(tn_report *r, const model *m, const attentions *a, const token_list *p,
                      const token_list *translation)
{
    tn_tensor *all = attention_weights(m, a, p, translation, NULL);
    if (!check_selection(all)) return;
    tn_report_attention(r, "All heads", translation->n - 1, translation->name + 1, p->n, p->name, all, layer - 1,
                        head - 1);
    tn_report_heatmap(r, "Last layer, mean of the heads", translation->n - 1, translation->name + 1, p->n, p->name,
                      tn_mean(tn_select(all, 0, a->n - 1), .dims = TN_DIMS(0)));
}

static int run_align(int count, char **operands)
{
    static attentions a;
    model             m;
    token_list        p = {.n = 0}, translation = {.n = 0};
    (void)count;
    if (reject_png(html)) return EXIT_USAGE;
    const tn_scope s = tn_no_grad_begin();
    if (model_open(dir, &m)) {
        tn_report *r = report_new(operands[0], dir);
        if (m.kind != TRANSLATOR) tn_raise(TN_EINVAL, "'%s' is not a translation model; use look attend", dir);
        else if (token_list_encode(&m, operands[0], false, false, &p) &&
                 (target ? token_list_encode(&m, target, true, false, &translation)
                         : translate_greedily(&m, p.ids, &translation))) {
            if (attentions_in(m.net, "multihead_attn", &a)) add_heads(r, &m, &a, &p, &translation);
            else add_alignment(r, &m, &p, &translation);
        }
        if (write_report(r, html)) {
            for (int64_t i = 1; i + 1 < translation.n; i++) printf("%s%s", i > 1 ? " " : "", translation.name[i]);
            printf("\n");
        }
        token_list_free(&p), token_list_free(&translation);
        model_close(&m);
    }
    tn_scope_end(s);
    return program_end();
}

static const option align_options[] = {
    ATTEND_OPTIONS, OPTION_TEXT("target", 0, "TEXT", &target, "translation of TEXT (default: the model's own)"), {0}};
const command align_command = {
    .name = "align",
    .summary = "plot the attention from a translation to its source text",
    .options = align_options,
    .operands = "TEXT",
    .least = 1,
    .most = 1,
    .run = run_align,
    .text = "Prints the tokens of the translation and writes a page: all heads of the attention from translation to "
            "text, and a heatmap of the mean of the last layer."};
