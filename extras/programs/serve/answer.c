/* answer.c — what a job has made, in OpenAI's form: JSON, or server-sent events whose data are JSON. */
#include "serve.h"

/* Starts an object with the members that all answers have. */
static tn_json_writer *begin(server *s, const job *j, const char *object, const char *of)
{
    char id[48];
    tn_json_writer_clear(s->json);
    tn_json_open_object(s->json, NULL);
    if (j->kind != JOB_EMBEDDINGS) {
        snprintf(id, sizeof id, "%s-%llx-%llx", j->kind == JOB_CHAT ? "chatcmpl" : "cmpl", (long long)s->began,
                 (long long)j->number);
        tn_json_put_string(s->json, "id", id);
    }
    tn_json_put_string(s->json, "object", object);
    if (j->kind != JOB_EMBEDDINGS) tn_json_put_i64(s->json, "created", j->created);
    tn_json_put_string(s->json, "model", of);
    return s->json;
}

static void put_usage(const job *j, tn_json_writer *w)
{
    int64_t read = 0, made = 0;
    for (int64_t i = 0; i < j->count; i++) read += j->choice[i].prompt.n, made += j->choice[i].made;
    if (j->kind == JOB_EMBEDDINGS) read = made, made = 0;
    tn_json_open_object(w, "usage");
    tn_json_put_i64(w, "prompt_tokens", read);
    if (j->kind != JOB_EMBEDDINGS) tn_json_put_i64(w, "completion_tokens", made);
    tn_json_put_i64(w, "total_tokens", read + made);
    tn_json_close(w);
}

static void put_text(tn_json_writer *w, const char *key, const tn_string *text)
{
    tn_json_put_bytes(w, key, text->at ? text->at : "", text->bytes);
}

/* Ends the object and appends it to the answer: as it is, or as the data of an event. */
static void append(server *s, job *j, bool event)
{
    size_t n = 0;
    tn_json_close(s->json);
    const char *text = tn_json_text(s->json, &n);
    if (event) tn_string_add(&j->answer, tn_text_of("data: "));
    if (text) tn_string_add(&j->answer, (tn_text){text, n});
    tn_string_add(&j->answer, tn_text_of(event ? "\n\n" : "\n"));
    tn_json_writer_clear(s->json);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static void put_finish(tn_json_writer *w, const char *finish)
{
    if (finish) tn_json_put_string(w, "finish_reason", finish);
    else tn_json_put_null(w, "finish_reason");
    tn_json_put_null(w, "logprobs");
    tn_json_close(w);
}

void answer_whole(server *s, job *j)
{
    const bool      chat = j->kind == JOB_CHAT;
    tn_json_writer *w = begin(s, j, chat ? "chat.completion" : "text_completion", s->lm_name);
    tn_json_open_array(w, "choices");
    for (int64_t i = 0; i < j->count; i++) {
        choice *c = &j->choice[i];
        tn_json_open_object(w, NULL);
        tn_json_put_i64(w, "index", i);
        if (chat) {
            tn_json_open_object(w, "message");
            tn_json_put_string(w, "role", "assistant");
            put_text(w, "content", &c->text);
            tn_json_close(w);
        } else put_text(w, "text", &c->text);
        put_finish(w, c->finish);
    }
    tn_json_close(w);
    put_usage(j, w);
    append(s, j, false);
    j->done = true;
}

static void event(server *s, job *j, int64_t index, const tn_string *text, bool first, const char *finish)
{
    const bool      chat = j->kind == JOB_CHAT;
    tn_json_writer *w = begin(s, j, chat ? "chat.completion.chunk" : "text_completion", s->lm_name);
    tn_json_open_array(w, "choices");
    tn_json_open_object(w, NULL);
    tn_json_put_i64(w, "index", index);
    if (chat) {
        tn_json_open_object(w, "delta");
        if (first) tn_json_put_string(w, "role", "assistant");
        if (first || text->bytes) put_text(w, "content", text);
        tn_json_close(w);
    } else put_text(w, "text", text);
    put_finish(w, finish);
    tn_json_close(w);
    append(s, j, true);
}

void answer_event(server *s, job *j, choice *c)
{
    const tn_string none = {0};
    const int64_t   index = c - j->choice;
    if (c->number < 0 && !c->finish) return; /* it waits */
    if (!c->started || c->text.bytes) event(s, j, index, &c->text, !c->started, NULL);
    if (c->finish && c->of) event(s, j, index, &none, false, c->finish);
    if (c->finish) c->of = NULL; /* its last event was written */
    c->started = true, c->text.bytes = 0;
}

void answer_end(server *s, job *j)
{
    if (j->usage) {
        tn_json_writer *w = begin(s, j, j->kind == JOB_CHAT ? "chat.completion.chunk" : "text_completion", s->lm_name);
        tn_json_open_array(w, "choices");
        tn_json_close(w);
        put_usage(j, w);
        append(s, j, true);
    }
    tn_string_add(&j->answer, tn_text_of("data: [DONE]\n\n"));
    j->done = true;
}

/* ---- the others -------------------------------------------------------------------------------------------------- */

static void put_base64(tn_json_writer *w, const unsigned char *from, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    tn_string         text = {0};
    for (size_t i = 0; i < n; i += 3) {
        unsigned x = 0;
        char     out[4] = {'=', '=', '=', '='};
        for (size_t k = 0; k < 3; k++) x = x << 8 | (i + k < n ? from[i + k] : 0U);
        for (size_t k = 0; k < 4 && i + k <= n; k++) out[k] = digits[x >> (18 - 6 * k) & 63];
        tn_string_add(&text, (tn_text){out, 4});
    }
    put_text(w, "embedding", &text);
    tn_string_free(&text);
}

void answer_embeddings(server *s, job *j)
{
    const float    *v = (const float *)(const void *)j->vectors.at;
    const int64_t   dim = s->encoder.bert->config.dim;
    tn_json_writer *w = begin(s, j, "list", s->encoder_name);
    tn_json_open_array(w, "data");
    for (int64_t i = 0; i < j->count; i++, v += dim) {
        tn_json_open_object(w, NULL);
        tn_json_put_string(w, "object", "embedding");
        tn_json_put_i64(w, "index", i);
        if (j->base64) put_base64(w, (const unsigned char *)v, (size_t)dim * sizeof *v);
        else {
            tn_json_open_array(w, "embedding");
            for (int64_t k = 0; k < dim; k++) tn_json_put_float(w, NULL, v[k]);
            tn_json_close(w);
        }
        tn_json_close(w);
    }
    tn_json_close(w);
    put_usage(j, w);
    append(s, j, false);
    j->done = true;
}

void answer_state(server *s, job *j, bool models)
{
    const char *const names[] = {s->lm_name, s->encoder_name};
    tn_json_writer   *w = s->json;
    tn_json_writer_clear(w);
    tn_json_open_object(w, NULL);
    if (models) tn_json_put_string(w, "object", "list");
    else tn_json_put_string(w, "status", "ok");
    if (models) tn_json_open_array(w, "data");
    for (int i = 0; models && i < 2; i++) {
        if (!names[i]) continue;
        tn_json_open_object(w, NULL);
        tn_json_put_string(w, "id", names[i]);
        tn_json_put_string(w, "object", "model");
        tn_json_put_i64(w, "created", s->began);
        tn_json_put_string(w, "owned_by", "tenon");
        tn_json_close(w);
    }
    if (models) tn_json_close(w);
    append(s, j, false);
    j->done = true;
}

/* Of a stream whose head has been sent, the last event. */
void answer_error(server *s, job *j, int status, const char *code, const char *what, const char *message)
{
    const bool      within = j->stream && j->accepted;
    tn_json_writer *w = s->json;
    char           *valid = texts_valid(message);
    tn_json_writer_clear(w);
    tn_json_open_object(w, NULL);
    tn_json_open_object(w, "error");
    tn_json_put_string(w, "message", valid ? valid : "");
    tn_json_put_string(w, "type", status < 500 ? "invalid_request_error" : "server_error");
    if (what) tn_json_put_string(w, "param", what);
    else tn_json_put_null(w, "param");
    if (code) tn_json_put_string(w, "code", code);
    else tn_json_put_null(w, "code");
    tn_json_close(w);
    append(s, j, within);
    free(valid);
    tn_clear_error(); /* without memory, the answer is empty */
    j->done = true, j->status = status;
}
