/* fuzz_serve.c — any bytes as requests to serve: answered, or refused with an error in OpenAI's form. Requests are
 * separated by a byte 1; each starts with a line: the path, and perhaps " !" if its client goes after two steps, or "?"
 * if its head is wrong. All run at the same time, with tiny models. Nothing stays allocated. */
#include "extras/programs/serve/serve.h"

#define CHECK(x) ((x) ? (void)0 : abort())

enum { REQUESTS = 8, STEPS_MOST = 4000, BODY = 4096 };
static server      s;
static tn_llama   *lm;
static const char *words = "the old man and the sea a ship of kind boys";
static const char template[] = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\\n' }}{% endfor %}"
                               "{% if add_generation_prompt %}assistant: {% endif %}";

static void free_models(void)
{
    tn_chat_free(s.lm.chat);
    tn_tokenizer_free(s.lm.tokens), tn_tokenizer_free(s.encoder.tokenizer);
    tn_free(lm), tn_free(s.encoder.bert);
}

static void make_models(void)
{
    tn_seed(1);
    tn_set_packing_limit(0); /* so that nothing stays allocated */
    s = (server){.rows = 3, .chunk = 8, .length = 40, .tokens = 5, .body = BODY, .seconds = 1e6, .key = "k"};
    s.lm.tokens = texts_characters(tn_text_of(words));
    s.lm.all.tokenizer = s.lm.tokens;
    lm = tn_llama_new(.vocab = tn_tokenizer_size(s.lm.tokens) + 2, .dim = 8, .layers = 1, .heads = 2, .kv_heads = 1,
                      .ff = 8, .positions = 40);
    s.lm.net = (tn_lm *)lm;
    s.lm.chat = tn_chat_parse(template, sizeof template - 1);
    s.encoder.tokenizer = tn_tokenizer_train_text(words, strlen(words), .vocab_size = 40);
    s.encoder.bert = tn_bert_new(.vocab = 60, .dim = 8, .layers = 1, .heads = 2, .ff = 8, .positions = 30);
    CHECK(s.lm.net && s.lm.chat && s.encoder.tokenizer && s.encoder.bert);
    tn_eval(lm), tn_eval(s.encoder.bert);
    s.lm.about = tn_lm_info_of(lm);
    s.lm_name = "lm", s.encoder_name = "encoder", s.first = s.answer_end = -1;
    atexit(free_models);
}

/* The answer is JSON, or events whose data are JSON, and then [DONE] or an error. */
static void check_answer(const job *j)
{
    const bool  events = j->stream && j->accepted;
    const char *at = j->answer.at;
    size_t      left = j->answer.bytes;
    CHECK(j->done && left > 1);
    for (; events && left; left = j->answer.bytes - (size_t)(at - j->answer.at)) {
        const char *end = strstr(at, "\n\n");
        CHECK(end && !strncmp(at, "data: ", 6));
        tn_json *o = tn_json_parse(at + 6, (size_t)(end - at) - 6);
        CHECK(o || (!strncmp(at + 6, "[DONE]", 6) && left == 14));
        tn_clear_error(), tn_json_free(o);
        at = end + 2;
    }
    tn_json *o = events ? NULL : tn_json_parse(at, left);
    CHECK(events || o);
    CHECK(events || (tn_json_get(o, "error") != NULL) == (j->status != 200));
    tn_json_free(o);
}

static job *ask(const char *text, size_t n, bool *leaves)
{
    char         path[64] = "";
    const char  *end = memchr(text, '\n', n);
    const size_t line = end ? (size_t)(end - text) : n;
    snprintf(path, sizeof path, "%.*s", (int)(line < 60 ? line : 60), text);
    char      *mark = strpbrk(path, " !?");
    const char what = mark ? mark[strlen(mark) - 1] : 0;
    if (mark) *mark = 0;
    *leaves = what == '!';
    const bool   get = !strcmp(path, "/health") || !strcmp(path, "/v1/models");
    http_request r = {.method = get ? "GET" : "POST",
                      .path = path,
                      .type = what == '?' ? path : "application/json",
                      .authorization = "Bearer k",
                      .body = end ? end + 1 : NULL,
                      .bytes = end ? n - line - 1 : 0};
    r.too_long = r.bytes > BODY;
    job *j = request_refused(&s, &r);
    if (!j) j = request_job(&s, &r);
    CHECK(j && tn_error() == TN_OK);
    return j;
}

static void answer_all(const uint8_t *data, size_t size)
{
    job        *all[REQUESTS];
    bool        leaves[REQUESTS];
    int         n = 0, steps = 0;
    const char *at = (const char *)data, *end = at + size;
    s.json = tn_json_writer_new(0);
    for (bool more = size > 0; more && n < REQUESTS; n++) {
        const char *cut = memchr(at, 1, (size_t)(end - at));
        all[n] = ask(at, (size_t)((cut ? cut : end) - at), &leaves[n]);
        if (!all[n]->done) jobs_add(&s, all[n]);
        more = cut != NULL;
        if (cut) at = cut + 1;
    }
    while (jobs_step(&s)) {
        CHECK(tn_error() == TN_OK && ++steps < STEPS_MOST);
        for (int i = 0; i < n && steps == 2; i++)
            if (leaves[i]) job_free(&s, all[i]), all[i] = NULL;
    }
    for (int i = 0; i < n; i++)
        if (all[i]) check_answer(all[i]), job_free(&s, all[i]);
    CHECK(!s.jobs && !s.count && tn_error() == TN_OK);
    tn_live_free(s.live), s.live = NULL;
    tn_json_writer_free(s.json), s.json = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { TRIES = 4 }; /* a list that the library keeps may grow, but not with the same input each time */
    if (!lm) make_models();
    size_t        live = 0;
    const int64_t tensors = tn_memory_now().tensors;
    for (int i = 0; i < TRIES && live != tn_memory_now().live; i++) {
        live = tn_memory_now().live;
        answer_all(data, size);
    }
    CHECK(tn_memory_now().tensors == tensors && tn_memory_now().live == live);
    return 0;
}
