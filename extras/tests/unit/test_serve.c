/* test_serve.c — the order in which serve answers: of requests that wait for a row the shortest one is next, but not
 * before one that has waited for long. */
#include "extras/programs/serve/serve.h"
#include "tests/common/check_main.h"

static server s;

static void begin(void)
{
    static const char words[] = "the old man and the sea";
    tn_seed(1);
    s = (server){.rows = 1, .chunk = 8, .length = 200, .tokens = 150, .body = 4096, .seconds = 1e6};
    s.lm.tokens = texts_characters(tn_text_of(words));
    s.lm.all.tokenizer = s.lm.tokens;
    s.lm.net = (tn_lm *)tn_llama_new(.vocab = tn_tokenizer_size(s.lm.tokens), .dim = 8, .layers = 1, .heads = 2,
                                     .kv_heads = 1, .ff = 8, .positions = 200);
    tn_eval(s.lm.net);
    s.lm.about = tn_lm_info_of(s.lm.net);
    s.lm_name = "lm", s.first = s.answer_end = -1;
    s.json = tn_json_writer_new(0);
}

static void end(void)
{
    tn_live_free(s.live);
    tn_json_writer_free(s.json);
    tn_tokenizer_free(s.lm.tokens);
    tn_free(s.lm.net);
}

static job *ask(int tokens)
{
    char text[100];
    snprintf(text, sizeof text, "{\"prompt\": \"the\", \"max_tokens\": %d, \"temperature\": 0}", tokens);
    const http_request r = {
        .method = "POST", .path = "/v1/completions", .type = "application/json", .body = text, .bytes = strlen(text)};
    job *j = request_job(&s, &r);
    ck_assert_msg(j && !j->done && tn_error() == TN_OK, "%s", j && j->answer.at ? j->answer.at : "no job");
    jobs_add(&s, j);
    return j;
}

/* Steps until a job is done; the one of the two that is done first. */
static const job *first_of(const job *a, const job *b)
{
    while (!a->done && !b->done) jobs_step(&s);
    ck_assert_int_eq(a->done + b->done, 1);
    return a->done ? a : b;
}

TEST(short_requests_first)
{
    begin();
    job *runs = ask(60);
    jobs_step(&s);
    job *waits = ask(60), *quick = ask(3);
    ck_assert_ptr_eq(first_of(runs, quick), runs); /* it is not interrupted */
    ck_assert_ptr_eq(first_of(waits, quick), quick);
    waits->until -= 10; /* it has waited for ten seconds */
    job *young = ask(3);
    ck_assert_ptr_eq(first_of(waits, young), waits);
    while (jobs_step(&s)) {}
    for (job *j = s.jobs; j; j = s.jobs) {
        ck_assert_int_eq(j->status, 200);
        job_free(&s, j);
    }
    end();
}
