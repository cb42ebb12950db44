/* test_fit_record.c — record.jsonl: a run that was stopped, or that starts from any training checkpoint of another one,
 * writes the same lines and the same checkpoints. */
#include "tests/common/check_main.h"

#include "tests/common/fit_case.h"

enum { STEPS = 18 };

/* The arguments of a run of a fit_case. */
static tn_fit_args args_of(fit_case *c, const char *folder)
{
    tn_fit_args a = TN_WITH(tn_fit_args, TN_FIT_ARGS_DEFAULTS, .module = c->net, .train = c->train,
                            .loss = fit_case_loss, .user = c, .optimizer = c->o, .schedule = c->lr, .ema = c->ema);
    a.valid = c->valid, a.valid_every = 4, a.restore_best = true;
    a.steps = STEPS, a.save_every = 4, a.keep = 100, a.folder = folder;
    a.config = "{\"dim\": 8}";
    return a;
}
/* The same with tn_fit's own optimizer. */
static tn_fit_args own_of(fit_case *c, const char *folder)
{
    tn_fit_args a = args_of(c, folder);
    a.optimizer = NULL, a.schedule = NULL, a.ema = NULL;
    a.lr = 0.01, a.warmup = 3;
    return a;
}

static void make(const char *folder, int kind, tn_fit_args (*args)(fit_case *, const char *))
{
    fit_case    c = fit_case_begin(kind);
    tn_fit_args a = args(&c, folder);
    tn_seed(5);
    ck_assert_msg(tn_fit_run(a).why == TN_FIT_DONE, "%s", tn_error_message());
    fit_case_end(&c);
}

static char *read_all(const char *path, long *bytes)
{
    FILE *f = fopen(path, "rb");
    ck_assert(f && !fseek(f, 0, SEEK_END));
    *bytes = ftell(f);
    char *text = calloc((size_t)*bytes + 1, 1);
    ck_assert(text && !fseek(f, 0, SEEK_SET) && fread(text, 1, (size_t)*bytes, f) == (size_t)*bytes && !fclose(f));
    return text;
}
static void write_all(const char *path, const char *text, long bytes)
{
    FILE *f = fopen(path, "wb");
    ck_assert(f && fwrite(text, 1, (size_t)bytes, f) == (size_t)bytes && !fclose(f));
}

/* A run that was stopped at any step, also within a validation, has the record of an uninterrupted one. */
TEST(interruptions_leave_no_trace)
{
    long  bytes, other;
    char *whole;
    make(tn_test_file("whole"), 0, args_of);
    whole = read_all(tn_test_in(tn_test_file("whole"), "record.jsonl"), &bytes);
    for (int at = 0; at < 2 * STEPS; at += tn_test_slow() ? 5 : 1) {
        char          name[32];
        tn_fit_result r = {.why = TN_FIT_STOPPED};
        snprintf(name, sizeof name, "parts%d", at);
        const char *folder = tn_test_file(name);
        for (int part = 0; r.why == TN_FIT_STOPPED || part < 3; part++) { /* the last parts find nothing to do */
            fit_case    c = fit_case_begin(0);
            tn_fit_args a = args_of(&c, folder);
            a.on = fit_case_listen, a.on_user = &c, a.stop = &c.stop, a.resume = true;
            c.stop_at = part ? -1 : at / 2, c.stop_in_valid = !part && at % 2;
            c.stop = part == 1 && at % 3 == 0; /* resumed, and stopped before the next step */
            if (!part) tn_seed(5);
            r = tn_fit_run(a);
            ck_assert_msg(r.why != TN_FIT_FAILED, "%s", tn_error_message());
            fit_case_end(&c);
        }
        char *parts = read_all(tn_test_in(folder, "record.jsonl"), &other);
        ck_assert_msg(!strcmp(whole, parts), "stopped at %d:\n%s\nnot\n%s", at, parts, whole);
        free(parts);
    }
    free(whole);
}

/* Adapters: the training checkpoints hold what is trained, and a sum of the frozen weights. */
static tn_fit_args adapters_of(fit_case *c, const char *folder)
{
    tn_seed(9);
    tn_lora(c->net, .rank = 2);
    return own_of(c, folder);
}

/* Compares the lines without "chain", the sum of all lines before, and without those of best weights. */
static void same_lines(const char *was, const char *now)
{
    ck_assert(was && now);
    while (*was && *now) {
        const size_t n = (size_t)(strstr(was, ",\"chain\"") - was);
        if (strncmp(was, "{\"best\"", 7) != 0) {
            ck_assert_msg(!strncmp(was, now, n) && !strncmp(now + n, ",\"chain\"", 8), "%.200s\nnot\n%.200s", now, was);
            now = strchr(now, '\n') + 1;
            while (!strncmp(now, "{\"best\"", 7)) now = strchr(now, '\n') + 1;
        }
        was = strchr(was, '\n') + 1;
    }
    ck_assert_msg(!*was && !*now, "%s\nand\n%s", was, now);
}

/* From each training checkpoint, in a folder with nothing else, tn_fit writes the lines of the run after it, and the
 * same last checkpoint. */
static void repeat(const char *folder, int kind, tn_fit_args (*args)(fit_case *, const char *), const char *again)
{
    static const int starts[] = {0, 4, 12};
    long             bytes, size, others, more;
    char            *was = read_all(tn_test_in(folder, "record.jsonl"), &bytes);
    char            *end = read_all(tn_test_in(folder, "step-000000000018.ckpt"), &size);
    for (int i = 0; i < 3; i++) {
        char name[32], point[32], start[40];
        snprintf(name, sizeof name, "%s%d", again, i);
        snprintf(point, sizeof point, "{\"point\":%d,", starts[i]);
        snprintf(start, sizeof start, "step-%012d.ckpt", starts[i]);
        char *file = read_all(tn_test_in(folder, start), &more);
        tn_set_threads(1 + i);
        mkdir(tn_test_file(name), 0777);
        write_all(tn_test_in(tn_test_file(name), start), file, more);
        fit_case    c = fit_case_begin(kind);
        tn_fit_args a = args(&c, tn_test_file(name));
        a.resume = true;
        a.restore_best = i == 0; /* else its file is another run's */
        ck_assert_msg(tn_fit_run(a).why == TN_FIT_DONE, "%s", tn_error_message());
        fit_case_end(&c);
        char *now = read_all(tn_test_in(tn_test_file(name), "record.jsonl"), &others);
        char *last = read_all(tn_test_in(tn_test_file(name), "step-000000000018.ckpt"), &more);
        same_lines(strstr(was, point), strstr(now, point));
        ck_assert(size == more && !memcmp(end, last, (size_t)size));
        free(file), free(now), free(last);
    }
    tn_set_threads(0);
    free(was), free(end);
}

TEST(repeated_from_any_checkpoint)
{
    static const char *const names[] = {"a0", "a1", "a2", "a3", "a4"};
    for (int way = 0; way < 5; way++) {
        tn_fit_args (*args)(fit_case *, const char *) = way == 4 ? adapters_of : way / 2 ? own_of : args_of;
        make(tn_test_file(names[way]), way % 2, args);
        repeat(tn_test_file(names[way]), way % 2, args, (const char *[]){"b0", "b1", "b2", "b3", "b4"}[way]);
    }
}

/* The state without a file is the record that the file has. */
TEST(state_is_the_record)
{
    fit_case    c = fit_case_begin(0);
    const char *path = tn_test_file("state.ckpt"), *text[2];
    ck_assert_int_eq(tn_checkpoint_save(path, .module = c.net, .optimizer = c.o, .ema = c.ema, .step = 7,
                                        .config = "{\"dim\": 8}", .data = "[1.5]"),
                     TN_OK);
    tn_json            *state = tn_checkpoint_state(.module = c.net, .optimizer = c.o, .ema = c.ema, .step = 7,
                                                    .config = "{\"dim\": 8}", .data = "[1.5]");
    tn_checkpoint_file *f = tn_checkpoint_open(path);
    tn_json_writer     *w[2] = {tn_json_writer_new(0), tn_json_writer_new(0)};
    ck_assert(state && f);
    tn_json_put(w[0], NULL, state), tn_json_put(w[1], NULL, tn_checkpoint_record(f));
    for (int i = 0; i < 2; i++) ck_assert((text[i] = tn_json_text(w[i], NULL)));
    ck_assert_str_eq(text[0], text[1]);
    ck_assert(strstr(text[0], "\"crc32\":{\"model.0.weight\""));
    for (int i = 0; i < 2; i++) tn_json_writer_free(w[i]);
    tn_json_free(state), tn_checkpoint_close(f);
    ck_assert(!tn_checkpoint_record(NULL) && !tn_checkpoint_state(.step = 1));
    ck_error_has(TN_EINVAL, "nothing to save");
    fit_case_end(&c);
}
