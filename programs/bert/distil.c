/* distil.c — bert distil: trains a smaller model to imitate a larger one, like DistilBERT (Sanh et al. 2019).
 *
 *   loss = 5 T² KL(softmax(teacher / T) ‖ softmax(student / T)) + 2 cross-entropy + 1 − cos(student's y, teacher's y)
 *
 * The first two terms are over the masked tokens, the last is over all tokens. The student is as wide as the teacher
 * and is initialised with its embeddings, its head and some of its layers, evenly spaced. The student of a BERT is a
 * DistilBERT. */
#include "../common/messages.h"
#include "../common/texts.h"
#include "bert.h"

#include <stdlib.h>
#include <string.h>

static bert_training *of(training *t) { return (bert_training *)t; }

static int check(training *t)
{
    bert_training *b = of(t);
    train_asked   *a = &t->asked;
    if (!(b->teacher = tn_bert_load(b->teacher_dir))) return 0; /* the error is reported at the end */
    const tn_bert_config *c = &b->teacher->config;
    a->size = "distilled", a->vocab = b->teacher_dir, a->heads = c->heads, a->dim = c->dim;
    if (c->kind == TN_XLNET) return program_usage("the teacher is an XLNet, which predicts no masked tokens");
    if (a->layers > c->layers)
        return program_usage("the teacher has %lld layers, fewer than --layers %lld", (long long)c->layers,
                             (long long)a->layers);
    if (!a->layers) a->layers = (c->layers + 1) / 2;
    if (b->length > c->positions)
        return program_usage("the teacher reads at most %lld tokens, fewer than --length %lld", (long long)c->positions,
                             (long long)b->length);
    return 0;
}

static tn_tokenizer *tokenizer(training *t, progress *bar)
{
    (void)bar;
    return tn_tokenizer_load(of(t)->teacher_dir);
}

static tn_bert_config student_of(const tn_bert_config *teacher, const train_asked *a)
{
    tn_bert_config c = *teacher;
    c.layers = a->layers, c.no_pooler = c.no_next = true;
    c.dropout = c.attention_dropout = a->dropout;
    if (c.groups > c.layers) c.groups = c.layers;
    if (c.kind == TN_BERT && !c.norm_first && c.eps == 1e-12) c.kind = TN_DISTILBERT, c.types = 0, c.head_dropout = -1;
    return c;
}

/* The teacher's parameter for a student's: layer i of n takes the teacher's layer ⌊i · all / n⌋. */
static const char *teacher_name(const char *name, int64_t n, int64_t all, char *to, size_t size)
{
    static const char layers[] = "bert.encoder.layers.";
    if (strncmp(name, layers, sizeof layers - 1) != 0) return name;
    char         *end;
    const int64_t i = strtoll(name + sizeof layers - 1, &end, 10);
    snprintf(to, size, "%s%lld%s", layers, (long long)(i * all / n), end);
    return to;
}

/* Copies the teacher's parameters into the student. If the student has no segment embeddings, the embedding of the
 * first segment is added to the position embeddings. */
static void copy_parameters(tn_bert *student, tn_bert *teacher)
{
    const int64_t  n = tn_length(student->encoder->layers), all = tn_length(teacher->encoder->layers);
    const tn_scope s = tn_no_grad_begin();
    char           there[256];
    for (tn_each p = tn_parameters(student); tn_error() == TN_OK && tn_next(&p);) {
        tn_tensor *from = tn_find_tensor(teacher, teacher_name(p.name, n, all, there, sizeof there));
        if (!from) tn_raise(TN_EUNSUPPORTED, "the teacher has no parameter '%s'", p.name);
        tn_copy_(p.tensor, from);
    }
    if (!student->types && teacher->types)
        tn_copy_(student->positions->weight,
                 tn_add(student->positions->weight, tn_narrow(teacher->types->weight, 0, 0, 1)));
    tn_scope_end(s);
}

static void *make(training *t)
{
    bert_training       *b = of(t);
    const tn_bert_config c = student_of(&b->teacher->config, &t->asked);
    tn_bert             *m = tn_bert_create(c);
    if (m) copy_parameters(m, b->teacher);
    if (tn_error() == TN_OK) return m;
    tn_free(m);
    return NULL;
}

/* ---- the loss ---------------------------------------------------------------------------------------------------- */

/* 1 − the mean cosine over all tokens except padding. */
static tn_tensor *cosine_loss(tn_tensor *y, tn_tensor *there, tn_tensor *padding)
{
    tn_tensor *cosine = tn_cosine_similarity(y, there, -1, 1e-8);
    return tn_rsub_scalar(tn_mean(tn_masked_select(cosine, tn_logical_not(padding))), 1);
}

/* The parts of the loss over masked tokens: of the teacher's distribution, and of the tokens. */
static void words_loss(const bert_training *t, tn_tensor *scores, tn_tensor *there, tn_tensor *right, tn_tensor *to[2])
{
    const double T = t->temperature;
    tn_tensor   *soft = tn_kl_div(tn_log_softmax(tn_mul_scalar(scores, 1 / T), -1),
                                  tn_softmax(tn_mul_scalar(there, 1 / T), -1), .reduction = TN_SUM);
    to[0] = tn_mul_scalar(soft, 5 * T * T / (double)tn_numel(right));
    to[1] = tn_mul_scalar(tn_cross_entropy(scores, right), 2);
}

static bert_training asked;

/* The parts of the loss: cosine, teacher's distribution, tokens; the last two are NULL if no token is masked. */
static void parts(void *student, const tn_batch *b, tn_tensor *to[3])
{
    const bert_training *t = &asked; /* step_seconds passes user NULL */
    tn_tensor           *padding = tn_batch_get(b, "padding"), *at = tn_batch_get(b, "masked_at");
    tn_tensor           *segments = tn_batch_get(b, "segments");
    const tn_scope       s = tn_no_grad_begin();
    tn_tensor           *there =
        tn_bert_forward(t->teacher, b->x, .types = segments, .key_padding_mask = padding, .for_words = true);
    tn_tensor *right = tn_numel(at) ? tn_bert_mlm_logits(t->teacher, there, at) : NULL;
    tn_tensor *both[] = {there, right};
    tn_scope_return_list(s, right ? 2 : 1, both);
    to[0] = to[1] = to[2] = NULL;
    if (!there) return;
    tn_tensor *y =
        tn_bert_forward((tn_bert *)student, b->x, .types = segments, .key_padding_mask = padding, .for_words = true);
    to[0] = cosine_loss(y, there, padding);
    if (right) words_loss(t, tn_bert_mlm_logits(student, y, at), right, b->y, to + 1);
}

static tn_tensor *loss(void *student, const tn_batch *b, void *user)
{
    tn_tensor *part[3];
    (void)user;
    parts(student, b, part);
    return part[1] ? tn_add(part[0], tn_add(part[1], part[2])) : part[0];
}

static bool print_parts(void *student, const tn_source *s)
{
    tn_tensor     *part[3] = {NULL};
    tn_batch       b = {0};
    const tn_scope scope = tn_no_grad_begin();
    if (!settings.quiet && (s->next(s->user, &b) || s->next(s->user, &b))) parts(student, &b, part);
    if (part[1] && tn_error() == TN_OK)
        tell("parts    %.4f, the teacher's distribution, + %.4f, the tokens, + %.4f, cosine, on one batch\n",
             tn_item(part[1]), tn_item(part[2]), tn_item(part[0]));
    tn_scope_end(scope);
    return tn_error() == TN_OK;
}

/* ---- the kind ---------------------------------------------------------------------------------------------------- */

static bool open_all(training *t)
{
    bert_training *b = of(t);
    if (!b->teacher->head)
        return tn_raise_false(TN_EUNSUPPORTED, "'%s' has no head for masked tokens, which a teacher needs",
                              b->teacher_dir);
    if (tn_tokenizer_size(t->tokens) > b->teacher->config.vocab)
        return tn_raise_false(
            TN_EFORMAT, "'%s': the tokenizer has more tokens than the model; the files belong to different models",
            b->teacher_dir);
    if (!bert_kind.open(t)) return false;
    t->unigram = 0; /* the loss is a weighted sum */
    t->fit.loss = loss;
    /* at most, because KL(teacher ‖ uniform) = log V − the teacher's entropy */
    t->uniform = (5 * b->temperature * b->temperature + 2) * log((double)tn_tokenizer_size(t->tokens)) + 2;
    return true;
}
static void say(training *t)
{
    tell("teacher  %lld layers, %.2f million parameters\n", (long long)of(t)->teacher->config.layers,
         (double)tn_count(of(t)->teacher) / 1e6);
    bert_kind.print_info(t);
}
static void describe(const training *t, tn_json_writer *w)
{
    const bert_training *b = (const bert_training *)t;
    bert_kind.describe(t, w);
    train_put_path(t, w, "teacher", b->teacher_dir);
    tn_json_put_double(w, "temperature", b->temperature);
}
static bool save(training *t, tn_fit_why why)
{
    return (t->world || print_parts(t->net, &t->fit.train)) && bert_kind.save(t, why);
}
static void close_all(training *t)
{
    bert_kind.close(t);
    tn_free(of(t)->teacher);
    of(t)->teacher = NULL;
}

static const train_kind distil_kind = {
    .title = "A distilled model",
    .max_interval = 500,
    .minutes = 20,
    .check = check,
    .tokenizer = tokenizer,
    .open = open_all,
    .make = make,
    .print_info = say,
    .describe = describe,
    .save = save,
    .close = close_all,
    .next = "bert fill --model %s \"The [MASK] is here.\"",
    .tag = "fill-mask",
};

/* ---- the command ------------------------------------------------------------------------------------------------- */

static bert_training asked = {.base = {.kind = &distil_kind, .asked = {TRAIN_DEFAULTS, .dropout = 0.1}},
                              .objective = "roberta",
                              .batch = 16,
                              .length = 128,
                              .temperature = 2};

#define OF asked.base.asked
static const option options[] = {
    OPTION_TEXT("teacher", 0, "DIR", &asked.teacher_dir, "folder of the model to learn from", .required = true),
    OPTION_LIST("text", 't', "FILE", &asked.text, "training text: files or folders; an empty line ends a document",
                .required = true),
    OPTION_LIST("valid", 0, "FILE", &asked.valid, "validation text"),
    OPTION_TEXT("out", 'o', "DIR", &OF.out, "folder of the new model", .required = true, .resume = RESUME_FOLDER),
    OPTION_INT("layers", 0, "N", &OF.layers, "number of layers of the new model (default: half of the teacher's)",
               .least = 1, .most = 1024),
    OPTION_REAL("temperature", 0, "T", &asked.temperature, "temperature that softens the teacher's probabilities",
                .least = 0.01, .most = 1000),
    OPTION_INT("batch", 'b', "N", &asked.batch, "examples per step", .least = 1, .most = 65536),
    OPTION_INT("length", 'l', "N", &asked.length, "tokens per example", .least = 8, .most = 16384),
    OPTION_FLAG("whole-words", 0, &asked.whole_words, "mask whole words instead of single tokens"),
    OPTION_FLAG("by-rule", 0, &asked.by_rule, "end sentences at . ! ? instead of at the end of a line"),
    OPTION_REAL("dropout", 0, "P", &OF.dropout, "dropout probability", .least = 0, .most = 0.9),
    TRAIN_RUN(OF, "texts", "20", NULL),
    TRAIN_RANKS(OF),
    {0},
};
const command distil_command = TRAIN_COMMAND(
    "distil", "train a smaller model from a larger one", options, &asked.base,
    .text =
        "The new model has the teacher's width and tokenizer, and starts with some of its layers. It learns the "
        "teacher's probabilities of masked tokens, the masked tokens themselves, and the teacher's hidden states.\n\n"
        "  bert distil --teacher book --text book.txt --out small --minutes 20");
