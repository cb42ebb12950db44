/* attribute.c — look attribute: the contribution of each token to a prediction. */
#include "look.h"

#include <string.h>

static const char *dir, *html, *answer, *method = "integrated";
static int64_t     steps = 32;

typedef struct {
    const model      *m;
    const token_list *p, *translation;
    int64_t           at, id; /* position of the prediction; id of the predicted token or label */
} question;

/* The logits at the position, [vocabulary], or of the labels, [labels]. */
static tn_tensor *scores(const question *q)
{
    tn_tensor *y;
    if (q->m->kind == TUNED) return tn_select(tn_tuned_forward((tn_tuned *)(void *)q->m->net, q->p->ids), 0, 0);
    if (q->m->kind == WRITER)
        return tn_select(tn_select(tn_lm_forward(q->m->net, q->p->ids, .last = true), 0, 0), 0, 0);
    y = tn_bert_forward(q->m->encoder, q->p->ids, .targets = tn_full_of(TN_I64, TN_SHAPE(1), (double)q->at),
                        .for_words = true);
    return tn_select(tn_bert_mlm_logits(q->m->encoder, y, NULL), 0, 0);
}

/* The log-probability of the answer; for a translator, the sum over the tokens of the translation. */
static tn_tensor *score(void *net, void *user)
{
    const question *q = user;
    if (q->m->kind == TRANSLATOR)
        return tn_mul_scalar(tn_sum(tn_seq2seq_loss((tn_seq2seq *)net, q->p->ids, q->translation->ids, .each = true)),
                             -1);
    return tn_select(tn_log_softmax(scores(q), -1), 0, q->id);
}

/* Finds the position of the mask token. */
static bool find_mask(question *q)
{
    const int32_t mask = tn_tokenizer_special(q->m->tokens).mask;
    q->at = -1;
    for (int64_t i = 0; i < q->p->n && q->at < 0; i++)
        if (tn_get_i64(q->p->ids, i) == mask) q->at = i;
    if (q->at < 0)
        tn_raise(TN_EINVAL, "the text has no %s; write it at the position to predict",
                 mask < 0 ? "[MASK]" : tn_tokenizer_token(q->m->tokens, mask));
    return q->at >= 0;
}

static const tn_tuned *tuned(const question *q) { return (const tn_tuned *)(const void *)q->m->net; }

/* Finds the index of the label `answer`. */
static bool find_label(question *q)
{
    q->id = -1;
    for (int64_t i = 0; i < tuned(q)->config.n; i++)
        if (!strcmp(tuned(q)->labels[i], answer)) q->id = i;
    if (q->id < 0)
        tn_raise(TN_EINVAL, "this model has no label '%s'; the first of its %lld is '%s'", answer,
                 (long long)tuned(q)->config.n, tuned(q)->labels[0]);
    return q->id >= 0;
}

static const char *answer_name(const question *q)
{
    return q->m->kind == TUNED ? tuned(q)->labels[q->id] : tn_tokenizer_token(q->m->tokens, (int32_t)q->id);
}

/* Sets the position and the answer; without --answer, the answer is the prediction with the highest logit. */
static bool choose_answer(question *q)
{
    if (q->m->kind == TRANSLATOR) return true;
    if (q->m->kind == TUNED &&
        (tuned(q)->config.task != TN_TASK_CLASSIFICATION || tuned(q)->config.problem != TN_SINGLE_LABEL))
        return tn_raise_false(TN_EUNSUPPORTED, "attribute supports only tuned models that assign one label to a text");
    if (q->m->kind == READER && !find_mask(q)) return false;
    if (answer && q->m->kind == TUNED) return find_label(q);
    if (answer) q->id = tn_tokenizer_id(q->m->tokens, answer);
    if (answer && q->id < 0)
        return tn_raise_false(
            TN_EINVAL, "--answer '%s' is not a token of this model; name one token, spelled as in its vocabulary",
            answer);
    if (!answer) {
        const tn_scope s = tn_no_grad_begin();
        q->id = tn_get_i64(tn_argmax(scores(q), -1, false), 0);
        tn_scope_end(s);
    }
    return tn_error() == TN_OK;
}

static void write_page(const question *q, const double *value, double difference)
{
    char       title[256];
    tn_report *r = report_new("contribution of each token", dir);
    if (q->m->kind == TRANSLATOR) snprintf(title, sizeof title, "to the translation: %.4g nats in total", difference);
    else snprintf(title, sizeof title, "to '%.100s': %.4g nats in total", answer_name(q), difference);
    tn_report_paragraph(r,
                        "The log-probability of the answer minus its log-probability for a text without tokens, split "
                        "into the contributions of the tokens: green for the answer, amber against it.");
    tn_report_values(r, title, q->p->n, q->p->name, value);
    if (q->translation->n) {
        tn_report_heading(r, "The translation");
        tn_string s = {0};
        for (int64_t i = 1; i + 1 < q->translation->n; i++) {
            if (i > 1) tn_string_add(&s, tn_text_of(" "));
            tn_string_add(&s, tn_text_of(q->translation->name[i]));
        }
        if (s.at) tn_report_paragraph(r, s.at);
        tn_string_free(&s);
    }
    write_report(r, html);
}

static void attribute_all(question *q)
{
    double     difference = 0, sum = 0, *value = tn_mem_get((size_t)q->p->n * sizeof *value);
    tn_tensor *y = tn_attribute(.model = q->m->net, .path = q->m->vectors, .score = score, .user = q,
                                .steps = strcmp(method, "gradient") ? steps : 1, .difference = &difference);
    for (int64_t i = 0; y && value && i < q->p->n; i++) sum += value[i] = tn_get(y, i);
    if (y && (!numbers_finite(difference, "the log-probability of the answer") ||
              !numbers_finite(sum, "the contribution of the tokens")))
        y = NULL;
    for (int64_t i = 0; y && value && i < q->p->n; i++) printf("%s\t%.6g\n", q->p->name[i], value[i]);
    if (y && value) printf("sum\t%.6g\ndifference\t%.6g\n", sum, difference);
    if (y && value && html) write_page(q, value, difference);
    if (value) tn_mem_put(value, (size_t)q->p->n * sizeof *value);
}

static int run(int count, char **operands)
{
    model      m;
    token_list p = {.n = 0}, translation = {.n = 0};
    (void)count;
    if (!strcmp(method, "gradient") && program_given("steps")) return program_stray("steps", "--method integrated");
    if (reject_png(html)) return EXIT_USAGE;
    if (html && is_svg(html))
        return program_usage("--html '%s': attribute writes a page, not an .svg; name an .html file", html);
    const tn_scope s = tn_scope_begin();
    if (model_open(dir, &m)) {
        question   q = {&m, &p, &translation, 0, 0};
        const bool translates = m.kind == TRANSLATOR;
        if (token_list_encode(&m, operands[0], false, false, &p) &&
            (!translates || (answer ? token_list_encode(&m, answer, true, false, &translation)
                                    : translate_greedily(&m, p.ids, &translation))) &&
            choose_answer(&q))
            attribute_all(&q);
        token_list_free(&p), token_list_free(&translation);
        model_close(&m);
    }
    tn_scope_end(s);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "folder of the model", .required = true),
    OPTION_TEXT("answer", 'a', "TEXT", &answer, "token, label or translation to explain (default: the most probable)"),
    OPTION_TEXT("method", 0, "NAME", &method, "integrated gradients, or gradient times input",
                .choices = "integrated|gradient"),
    OPTION_INT("steps", 'n', "N", &steps, "initial steps of the integral; increased until the sum is accurate",
               .least = 2, .most = 1024),
    OPTION_TEXT("html", 'o', "FILE", &html, "write a page with coloured tokens"),
    {0}};
const command attribute_command = COMMAND(
    "attribute", "compute the contribution of each token to a prediction", options, .operands = "TEXT", .least = 1,
    .most = 1,
    .text = "Prints each token of the text with its contribution to the log-probability of the answer, in nats; then "
            "the sum of the contributions and the exact difference that it approximates. The answer is the token at "
            "[MASK], the next token, the translation, or the label of a tuned model.");
