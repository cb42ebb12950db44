/* heads_files.c — a tuned model's directory: the encoder's, plus the head's weights, and in config.json the labels and
 * the problem type. */
#include "models/heads/heads_private.h"
#include "models/bert/bert_private.h"

#include <string.h>

static const char *const problems[] = {"single_label_classification", "multi_label_classification", "regression"};

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_members(tn_json_writer *w, const void *user)
{
    const tn_tuned *m = user;
    if (m->config.task >= TN_TASK_QUESTION_ANSWERING) return;
    tn_hf_labels_put(w, m->config.n, (const char *const *)m->labels);
    if (m->config.task == TN_TASK_CLASSIFICATION) tn_json_put_string(w, "problem_type", problems[m->config.problem]);
}

tn_status tn_tuned_save(tn_tuned *m, const char *dir)
{
    if (!tn_ready(m)) return tn_error();
    const tn__head     h = tn__head_for(&m->encoder->config, m->config.task);
    const tn__hf_extra more = {tn__task_class(&m->encoder->config, m->config.task),
                               put_members,
                               m,
                               {{m->dense, h.dense}, {m->norm, h.norm}, {m->classifier, h.out}, {m->crf, "crf"}}};
    return tn__bert_save_extra(m->encoder, dir, &more);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The task of an architecture: "BertForTokenClassification" is TN_TASK_TOKEN_CLASSIFICATION. False: none. */
static bool task_of(const char *architecture, tn_task *to)
{
    for (int i = 0; i <= TN_TASK_MULTIPLE_CHOICE; i++) {
        const char *end = strstr(architecture, "For"), *name = tn__task_name((tn_task)i);
        if (end && (!strcmp(end, name) || !strcmp(architecture, tn_name("XLNet%sSimple", name))) &&
            strcmp(architecture, "XLNetForQuestionAnswering") != 0)
            return *to = (tn_task)i, true;
    }
    return false;
}

static tn_problem_type problem_of(const tn_json *doc, int64_t n, const char *path)
{
    const char *said = tn_json_string_or(tn_json_get(doc, "problem_type"), NULL);
    for (int i = 0; said && i < 3; i++)
        if (!strcmp(said, problems[i])) return (tn_problem_type)i;
    if (said) tn_raise(TN_EUNSUPPORTED, "'%s': problem_type is '%.60s', which is not supported", path, said);
    return n == 1 ? TN_REGRESSION : TN_SINGLE_LABEL; /* as in transformers */
}

static const char *architecture_of(const tn_hf_source *s)
{
    return tn_json_string_or(tn_json_first(tn_json_get(s->config, "architectures")), "");
}

bool tn__is_tuned(const tn_hf_source *s) { return task_of(architecture_of(s), &(tn_task){TN_TASK_CLASSIFICATION}); }

/* Raises if the head needs a pooler and the file has none, because a randomly initialised one would be useless. */
static tn_bert *check_pooler(tn_bert *m, tn_task task, const char *path)
{
    if (!m || m->pooler || !tn__head_for(&m->config, task).pooled) return m;
    tn_raise(TN_EFORMAT, "'%s': the weights of the pooler are missing, which …%s needs", path, tn__task_name(task));
    return tn_free(m), NULL;
}

/* Creates the model that config.json describes, with its encoder loaded; *f: the file with the head's weights. */
static tn_tuned *create_model(const tn_hf_source *s, tn_safetensors **f, char path[1024])
{
    tn_tuned_config c = {TN_TUNED_DEFAULTS};
    const tn_json  *map = tn_json_get(s->config, "id2label");
    if (!task_of(architecture_of(s), &c.task))
        return tn_raise_null(TN_EUNSUPPORTED,
                             "'%s': architectures is '%.60s'; supported are …ForSequenceClassification, "
                             "…ForTokenClassification, …ForQuestionAnswering and …ForMultipleChoice",
                             s->name, architecture_of(s));
    const bool named = c.task <= TN_TASK_TOKEN_CLASSIFICATION && map;
    c.n = c.task <= TN_TASK_TOKEN_CLASSIFICATION ? (named ? tn_json_count(map) : 2) : 0;
    if (c.task == TN_TASK_CLASSIFICATION) c.problem = problem_of(s->config, c.n, s->name);
    if (tn_error() != TN_OK || (named && !tn__within(s->name, "id2label", c.n, 1, 1 << 20))) return NULL;
    const size_t bytes = (size_t)(c.n + 1) * sizeof(char *);
    const char **names = named ? tn__mem_zeroed(bytes) : NULL;
    tn_tuned    *m = NULL;
    if (!named || (names && tn_hf_labels_read(s, c.n, names))) {
        *f = tn__weights_file(s->path, path);
        c.labels = names, c.crf = *f && tn_safetensors_find(*f, "crf.transitions") >= 0;
        m = tn_tuned_create(check_pooler(tn__bert_load(s), c.task, s->path), c);
    }
    if (names) tn__mem_put(names, bytes);
    return m;
}

static void read_part(void *m, tn_safetensors *f, const char *path, const char *name)
{
    char prefix[64];
    snprintf(prefix, sizeof prefix, "%s.", name);
    tn_load_run(m, (tn_load_args){.path = path, .file = f, .prefix = prefix});
}

void *tn__tuned_load(const tn_hf_source *s)
{
    char            path[1024];
    const tn_scope  blank = tn__blank_begin();
    tn_safetensors *f = NULL;
    tn_tuned       *m = create_model(s, &f, path);
    if (m) {
        const tn__head h = tn__head_for(&m->encoder->config, m->config.task);
        if (m->dense) read_part(m->dense, f, path, h.dense);
        if (m->norm) read_part(m->norm, f, path, h.norm);
        read_part(m->classifier, f, path, h.out);
        if (m->crf) read_part(m->crf, f, path, "crf");
    }
    tn_safetensors_close(f);
    if (tn_error() != TN_OK) tn_free(m), m = NULL;
    if (m) tn_eval(m);
    tn_scope_end(blank);
    return m;
}
tn_tuned *tn_tuned_load(const char *dir) { return tn_hf_load(dir, tn__tuned_load); }
