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
    if (m->config.task >= TN_TASK_ANSWERS) return;
    tn__labels_put(w, m->config.n, (const char *const *)m->labels);
    if (m->config.task == TN_TASK_CLASSES) tn_json_put_string(w, "problem_type", problems[m->config.problem]);
}

tn_status tn_tuned_save(tn_tuned *m, const char *dir)
{
    if (!tn_ready(m)) return tn_error();
    if (m->lora)
        return tn_raise(TN_EUNSUPPORTED,
                        "tn_tuned_save: the model has adapters, which its directory cannot contain; merge them first "
                        "(tn_tuned_merge), or save them (tn_tuned_save_adapter)");
    const tn__head     h = tn__head_for(&m->encoder->config, m->config.task);
    const tn__hf_extra more = {
        tn__task_name(m->config.task), put_members, m, {{m->dense, h.dense}, {m->classifier, h.out}, {m->crf, "crf"}}};
    return tn__bert_save_extra(m->encoder, dir, &more);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The task of an architecture: "BertForTokenClassification" is TN_TASK_TAGS. False: none. */
static bool task_of(const char *architecture, tn_task *to)
{
    for (int i = 0; i <= TN_TASK_CHOICES; i++) {
        const char *end = strstr(architecture, "For");
        if (end && !strcmp(end, tn__task_name((tn_task)i))) return *to = (tn_task)i, true;
    }
    return false;
}

static tn_problem problem_of(const tn_json *doc, int64_t n, const char *path)
{
    const char *said = tn_json_string_or(tn_json_get(doc, "problem_type"), NULL);
    for (int i = 0; said && i < 3; i++)
        if (!strcmp(said, problems[i])) return (tn_problem)i;
    if (said) tn_raise(TN_EUNSUPPORTED, "'%s': problem_type is '%.60s', which is not supported", path, said);
    return n == 1 ? TN_REGRESSION : TN_ONE_LABEL; /* as in transformers */
}

static const char *architecture_of(const tn_json *doc)
{
    return tn_json_string_or(tn_json_first(tn_json_get(doc, "architectures")), "");
}

/* Loads config.json and sets its path; NULL: raised. */
static tn_json *config_of(const char *dir, char path[1024])
{
    const tn_json_limits limits = {.depth = 32, .bytes = 16 << 20, .values = 1 << 21};
    return tn__path_in(dir, "config.json", path, 1024) ? tn_json_load_within(path, limits) : NULL;
}

bool tn__is_tuned_directory(const char *dir)
{
    char       path[1024];
    tn_task    task;
    tn_json   *doc = config_of(dir, path);
    const bool is = doc && task_of(architecture_of(doc), &task);
    tn_json_free(doc);
    return is && tn_error() == TN_OK;
}

/* Raises if the head needs a pooler and the file has none, because a randomly initialised one would be useless. */
static tn_bert *check_pooler(tn_bert *m, tn_task task, const char *dir)
{
    if (!m || m->pooler || !tn__head_for(&m->config, task).pooled) return m;
    tn_raise(TN_EFORMAT, "'%s': the weights of the pooler are missing, which …%s needs", dir, tn__task_name(task));
    return tn_free(m), NULL;
}

/* Creates the model that config.json describes, with its encoder loaded; *f: the file with the head's weights. */
static tn_tuned *create_model(const char *dir, const tn_json *doc, const char *path, tn_safetensors **f,
                              char weights[1024])
{
    tn_tuned_config c = {TN_TUNED_DEFAULTS};
    const tn_json  *map = tn_json_get(doc, "id2label");
    const char     *architecture = architecture_of(doc);
    if (tn_error() != TN_OK) return NULL;
    if (!task_of(architecture, &c.task))
        return tn_raise(TN_EUNSUPPORTED,
                        "'%s': architectures is '%.60s'; supported are …ForSequenceClassification, "
                        "…ForTokenClassification, …ForQuestionAnswering and …ForMultipleChoice",
                        path, architecture),
               NULL;
    const bool named = c.task <= TN_TASK_TAGS && map;
    c.n = c.task <= TN_TASK_TAGS ? (named ? tn_json_count(map) : 2) : 0;
    if (c.task == TN_TASK_CLASSES) c.problem = problem_of(doc, c.n, path);
    if (tn_error() != TN_OK || (named && !tn__within(path, "id2label", c.n, 1, 1 << 20))) return NULL;
    const size_t bytes = (size_t)(c.n + 1) * sizeof(char *);
    const char **names = named ? tn__mem_zeroed(bytes) : NULL;
    tn_tuned    *m = NULL;
    if (!named || (names && tn__labels_read(map, path, c.n, names))) {
        *f = tn__weights_open(dir, weights);
        c.labels = names, c.crf = *f && tn_safetensors_find(*f, "crf.transitions") >= 0;
        m = tn_tuned_create(check_pooler(tn_bert_load(dir), c.task, dir), c);
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

static tn_tuned *load(const char *dir)
{
    char path[1024], weights[1024];
    if (tn_error() != TN_OK) return NULL;
    tn_json        *doc = config_of(dir, path);
    tn_safetensors *f = NULL;
    tn_tuned       *m = doc ? create_model(dir, doc, path, &f, weights) : NULL;
    tn_json_free(doc);
    if (m) {
        const tn__head h = tn__head_for(&m->encoder->config, m->config.task);
        if (m->dense) read_part(m->dense, f, weights, h.dense);
        read_part(m->classifier, f, weights, h.out);
        if (m->crf) read_part(m->crf, f, weights, "crf");
    }
    tn_safetensors_close(f);
    if (tn_error() != TN_OK) return tn_free(m), NULL;
    tn_eval(m);
    return m;
}

tn_tuned *tn_tuned_load(const char *dir)
{
    const tn_scope blank = tn__blank_begin();
    tn_tuned      *m = load(dir);
    tn_scope_end(blank);
    return m;
}
