/* request.c — a request becomes a job, or an error in OpenAI's form. Only the tokens of its texts are computed. */
#include "serve.h"

#include "../../../programs/common/files.h"

#include <math.h>
#include <stdarg.h>
#include <time.h>

bool request_fail(server *s, job *j, int status, const char *code, const char *what, const char *fmt, ...)
{
    char    text[800];
    va_list ap;
    if (j->done) return false;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    answer_error(s, j, status, code, what, text);
    return false;
}

bool request_raised(server *s, job *j)
{
    char            text[600];
    const tn_status e = tn_error();
    snprintf(text, sizeof text, "%s", tn_error_message());
    tn_clear_error();
    const bool refused = e == TN_EINVAL || e == TN_EUNSUPPORTED || e == TN_EFORMAT;
    return request_fail(s, j, refused ? 400 : 500, NULL, NULL, "%s", text);
}

/* ---- who may ask ------------------------------------------------------------------------------------------------- */

/* Compares in a time that depends only on the length of the key that was sent. */
static bool same_key(const char *key, const char *sent)
{
    const size_t n = strlen(key), m = strlen(sent);
    unsigned     differs = n != m;
    for (size_t i = 0; i < m; i++) differs |= (unsigned char)sent[i] ^ (unsigned char)key[n ? i % n : 0];
    return !differs;
}

static bool may_ask(const server *s, const http_request *r)
{
    static const char bearer[] = "Bearer ";
    if (!s->key) return true;
    return r->authorization && !strncmp(r->authorization, bearer, sizeof bearer - 1) &&
           same_key(s->key, r->authorization + sizeof bearer - 1);
}

static const struct {
    const char *path;
    job_kind    kind;
} paths[] = {{"/v1/chat/completions", JOB_CHAT},
             {"/v1/completions", JOB_COMPLETION},
             {"/v1/embeddings", JOB_EMBEDDINGS},
             {"/v1/models", JOB_NOTHING},
             {"/health", JOB_NOTHING}};
enum { PATHS = sizeof paths / sizeof *paths, HEALTH = PATHS - 1 };

static int path_of(const char *path)
{
    int i = 0;
    while (i < PATHS && strcmp(paths[i].path, path) != 0) i++;
    return i;
}

static job *new_job(server *s)
{
    job *j = tn_mem_get(sizeof *j);
    if (!j) return tn_clear_error(), NULL;
    j->server = s;
    j->created = (int64_t)time(NULL);
    j->status = 200, j->seed = -1;
    j->until = seconds_now() + s->seconds;
    j->how = (tn_generate_args){TN_GENERATE_ARGS_DEFAULTS};
    return j;
}

/* Makes j an error if the head of a request is wrong. */
static void check_head(server *s, job *j, const http_request *r)
{
    const int  at = path_of(r->path);
    const bool get = at < PATHS && paths[at].kind == JOB_NOTHING;
    if (at != HEALTH && !may_ask(s, r))
        request_fail(s, j, 401, "invalid_api_key", NULL, "the API key is missing or wrong");
    else if (at == PATHS)
        request_fail(s, j, 404, NULL, NULL,
                     "'%.200s' does not exist; this server has /v1/chat/completions, "
                     "/v1/completions, /v1/embeddings, /v1/models and /health",
                     r->path);
    else if (strcmp(r->method, get ? "GET" : "POST") != 0)
        request_fail(s, j, 405, NULL, NULL, "%s is not for %s; use %s", r->method, r->path, get ? "GET" : "POST");
    else if (!get && (!r->type || strncmp(r->type, "application/json", 16) != 0)) /* also keeps web pages out */
        request_fail(s, j, 415, NULL, NULL, "Content-Type is %.80s, expected application/json",
                     r->type ? r->type : "missing");
    else if (r->too_long)
        request_fail(s, j, 413, NULL, NULL, "the request is longer than %lld bytes", (long long)s->body);
}

job *request_refused(server *s, const http_request *r)
{
    job *j = new_job(s);
    if (j) check_head(s, j, r);
    if (j && !j->done) job_free(s, j), j = NULL;
    return j;
}

/* ---- what it asks for -------------------------------------------------------------------------------------------- */

static void check_model(server *s, job *j, const tn_json *o, const char *expected)
{
    const char *name = field_text(s, j, o, "model");
    if (j->done) return;
    if (!expected)
        request_fail(s, j, 404, "model_not_found", "model", "this server has no model for %s",
                     j->kind == JOB_EMBEDDINGS ? "embeddings" : "text");
    else if (name && strcmp(name, expected) != 0)
        request_fail(s, j, 404, "model_not_found", "model", "the model '%.100s' does not exist here; use '%.100s'",
                     name, expected);
}

/* The options of the texts, for all of them. */
static void read_options(server *s, job *j, const tn_json *o)
{
    static const char *const not [] = {"tools",           "tool_choice", "functions", "function_call",
                                       "response_format", "logit_bias",  "logprobs",  "top_logprobs",
                                       "audio",           "suffix",      "echo",      NULL};
    tn_generate_args *a = &j->how;
    field_unsupported(s, j, o, not );
    const double  t = field_number(s, j, o, "temperature", 1, 0, 2);
    const double  p = field_number(s, j, o, "top_p", 1, 0, 1), m = field_number(s, j, o, "min_p", 0, 0, 1);
    const int64_t k = field_whole(s, j, o, "top_k", 0, -1, 1 << 30);
    a->repetition_penalty = field_number(s, j, o, "repetition_penalty", 1, 0.01, 100);
    a->sample = t > 1e-6 && p > 0;
    if (a->sample) a->temperature = t, a->top_p = p, a->min_p = m, a->top_k = k > 0 ? k : 0;
    else a->unscored = true;
    j->frequency = field_number(s, j, o, "frequency_penalty", 0, -2, 2);
    j->presence = field_number(s, j, o, "presence_penalty", 0, -2, 2);
    j->seed = field_whole(s, j, o, "seed", -1, -9.2e18, 9.2e18);
    j->stream = field_flag(s, j, o, "stream");
    const tn_json *more = tn_json_get(o, "stream_options");
    if (tn_json_type_of(more) == TN_JSON_OBJECT) j->usage = field_flag(s, j, more, "include_usage");
}

static bool add_stop(server *s, job *j, const char *text, size_t bytes)
{
    if (!bytes) return request_fail(s, j, 400, NULL, "stop", "stop has an empty text; omit it");
    if (!j->stop.value && !(j->stop.value = tn_mem_get(STOPS_MOST * sizeof *j->stop.value)))
        return request_raised(s, j);
    char *copy = tn_mem_get(bytes + 1);
    if (!copy) return request_raised(s, j);
    memcpy(copy, text, bytes);
    j->stop.value[j->stop.count++] = copy;
    return true;
}

/* The tokens of a prompt, text or conversation, for the next choice. */
static bool add_prompt(server *s, job *j, const char *text, size_t bytes)
{
    if (!jobs_choices(j, j->count + 1)) return request_raised(s, j);
    choice *c = &j->choice[j->count - 1];
    if (j->kind == JOB_COMPLETION && s->first >= 0) tn_ids_add(&c->prompt, s->first);
    if (!texts_encode(s->lm.tokens, (tn_text){text, bytes}, false, &c->prompt)) return request_raised(s, j);
    if (!c->prompt.n) request_fail(s, j, 400, NULL, "prompt", "the prompt has no tokens");
    return !j->done;
}

/* The maximum new tokens of each text, which must fit with its prompt. */
static void set_most(server *s, job *j, const tn_json *o)
{
    int64_t most = field_whole(s, j, o, "max_tokens", 0, 1, 1 << 30);
    most = field_whole(s, j, o, "max_completion_tokens", most, 1, 1 << 30);
    if (most > s->tokens)
        request_fail(s, j, 400, NULL, "max_tokens", "%lld new tokens, but this server makes at most %lld",
                     (long long)most, (long long)s->tokens);
    for (int64_t i = 0; i < j->count && !j->done; i++) {
        const int64_t n = j->choice[i].prompt.n, room = s->length - n, usual = s->tokens < room ? s->tokens : room;
        j->choice[i].most = most ? most : usual;
        if (j->choice[i].most > room || room < 1)
            request_fail(s, j, 400, "context_length_exceeded", j->kind == JOB_CHAT ? "messages" : "prompt",
                         "a prompt of %lld tokens and %lld new ones are more than the %lld of a text", (long long)n,
                         (long long)(most ? most : 1), (long long)s->length);
    }
}

/* n texts for each prompt: the prompt's first one, and copies of it. */
static void repeat_prompts(server *s, job *j, int64_t n)
{
    const int64_t prompts = j->count;
    if (prompts * n > CHOICES_MOST)
        request_fail(s, j, 400, NULL, "n", "%lld texts, expected at most %d", (long long)(prompts * n), CHOICES_MOST);
    if (j->done || n == 1) return;
    if (!jobs_choices(j, prompts * n)) {
        request_raised(s, j);
        return;
    }
    for (int64_t i = prompts * n - 1; i >= 0; i--) {
        const tn_ids from = j->choice[i / n].prompt;
        if (i % n == 0) j->choice[i / n].prompt = (tn_ids){0}, j->choice[i].prompt = from;
        else
            for (int64_t k = 0; k < from.n; k++) tn_ids_add(&j->choice[i].prompt, from.at[k]);
    }
    if (tn_error() != TN_OK) request_raised(s, j);
}

static void read_texts(server *s, job *j, const tn_json *o)
{
    check_model(s, j, o, s->lm_name);
    read_options(s, j, o);
    field_texts(s, j, o, "stop", STOPS_MOST, add_stop);
    if (j->done) return;
    if (j->kind == JOB_CHAT && !s->lm.chat) {
        request_fail(s, j, 400, "no_chat_template", "model",
                     "the model has no chat template that this server can use; use /v1/completions");
    } else if (j->kind == JOB_CHAT) {
        tn_string text = {0};
        if (field_messages(s, j, o, &text)) add_prompt(s, j, text.at ? text.at : "", text.bytes);
        tn_string_free(&text);
    } else field_texts(s, j, o, "prompt", CHOICES_MOST, add_prompt);
    if (!j->done && !j->count && j->kind == JOB_COMPLETION) add_prompt(s, j, "", 0);
    repeat_prompts(s, j, field_whole(s, j, o, "n", 1, 1, CHOICES_MOST));
    set_most(s, j, o);
}

static bool add_input(server *s, job *j, const char *text, size_t bytes)
{
    const int64_t limit = s->encoder.bert->config.positions;
    if (!jobs_choices(j, j->count + 1)) return request_raised(s, j);
    choice      *c = &j->choice[j->count - 1];
    tn_encoding *e = tn_encoding_new();
    if (e && tn_tokenizer_encode(s->encoder.tokenizer, e, text, bytes) == TN_OK) {
        c->made = e->n;
        tn_string_add(&c->text, (tn_text){text, bytes + 1}); /* with its NUL */
        if (limit > 0 && e->n > limit)
            request_fail(s, j, 400, "context_length_exceeded", "input",
                         "text %lld has %lld tokens, expected at most %lld", (long long)j->count - 1, (long long)e->n,
                         (long long)limit);
    }
    tn_encoding_free(e);
    return tn_error() == TN_OK ? !j->done : request_raised(s, j);
}

static void read_embeddings(server *s, job *j, const tn_json *o)
{
    check_model(s, j, o, s->encoder_name);
    if (j->done) return;
    const char   *format = field_text(s, j, o, "encoding_format");
    const int64_t dim = s->encoder.bert->config.dim, asked = field_whole(s, j, o, "dimensions", dim, 1, 1 << 24);
    j->base64 = format && !strcmp(format, "base64");
    if (format && !j->base64 && strcmp(format, "float") != 0)
        request_fail(s, j, 400, NULL, "encoding_format", "encoding_format must be float or base64");
    if (asked != dim)
        request_fail(s, j, 400, NULL, "dimensions", "dimensions is %lld, but the model's vectors have %lld",
                     (long long)asked, (long long)dim);
    field_texts(s, j, o, "input", EMBEDDINGS_MOST, add_input);
    if (!j->done && !j->count) request_fail(s, j, 400, NULL, "input", "input must be a text or an array of texts");
}

job *request_job(server *s, const http_request *r)
{
    job *j = new_job(s);
    if (!j) return NULL;
    check_head(s, j, r);
    if (j->done) return j;
    j->kind = paths[path_of(r->path)].kind;
    j->number = s->made++;
    if (j->kind == JOB_NOTHING) {
        answer_state(s, j, path_of(r->path) != HEALTH);
        return j;
    }
    const tn_json_limits within = {.bytes = s->body, .values = s->body};
    tn_json             *o = tn_json_parse_within(r->body ? r->body : "", r->bytes, within);
    if (o && tn_json_type_of(o) != TN_JSON_OBJECT) request_fail(s, j, 400, NULL, NULL, "the request must be an object");
    else if (o && j->kind == JOB_EMBEDDINGS) read_embeddings(s, j, o);
    else if (o) read_texts(s, j, o);
    tn_json_free(o);
    if (tn_error() != TN_OK) request_raised(s, j);
    return j;
}
