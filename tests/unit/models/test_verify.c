/* test_verify.c — tn_verify: a run has the same bits again, whatever interrupted it; each change of the record, a
 * training checkpoint, the data or the arguments is found, with its step. */
#include "tests/common/check_main.h"

#include "tests/common/faults.h"
#include "tests/common/fit_case.h"
#include <unistd.h>

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

static tn_verify_result verified(const char *folder, int kind, tn_fit_args (*args)(fit_case *, const char *),
                                 int64_t segments)
{
    fit_case    c = fit_case_begin(kind);
    tn_fit_args a = args(&c, folder);
    tn_seed(5);
    tn_verify_result v = tn_verify(&a, .segments = segments, .seed = 3);
    fit_case_end(&c);
    return v;
}

static void identical(tn_verify_result v, int64_t segments)
{
    ck_assert_msg(v.why == TN_VERIFY_IDENTICAL, "%d at step %lld: %s: %s; error: %s", (int)v.why, (long long)v.step,
                  v.input, v.text, tn_error_message());
    ck_assert_int_eq(v.segments, segments);
}

static void differs(tn_verify_result v, int64_t step, const char *input, const char *text)
{
    ck_assert_msg(v.why == TN_VERIFY_DIFFERS && v.step == step && !strcmp(v.input, input) && strstr(v.text, text),
                  "%d at step %lld: %s: %s; error: %s", (int)v.why, (long long)v.step, v.input, v.text,
                  tn_error_message());
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

/* ---- identical --------------------------------------------------------------------------------------------------- */

TEST(identical_on_any_threads)
{
    const char *names[] = {"a0", "a1", "a2", "a3"};
    for (int way = 0; way < 4; way++) {
        tn_fit_args (*args)(fit_case *, const char *) = way / 2 ? own_of : args_of;
        const char *folder = tn_test_file(names[way]);
        make(folder, way % 2, args);
        for (int threads = 1; threads <= 3; threads++) {
            tn_set_threads(threads);
            identical(verified(folder, way % 2, args, 0), 5); /* 4, 8, 12, 16, 18 */
            identical(verified(folder, way % 2, args, threads), threads);
        }
        tn_set_threads(0);
    }
}

/* After tn_verify the module has the weights that tn_fit ended with. */
TEST(ends_with_the_runs_weights)
{
    const char *folder = tn_test_file("weights");
    for (int best = 0; best < 2; best++) {
        fit_case    c = fit_case_begin(0), d = fit_case_begin(0);
        tn_fit_args a = args_of(&c, best ? folder : tn_test_file("last")), b = args_of(&d, a.folder);
        a.restore_best = b.restore_best = best;
        tn_seed(5);
        ck_assert(tn_fit_run(a).why == TN_FIT_DONE);
        tn_seed(5);
        identical(tn_verify(&b, .segments = 1, .seed = 1), 1);
        for (tn_each p = tn_parameters(c.net), q = tn_parameters(d.net); tn_next(&p) && tn_next(&q);)
            ck_assert(tn_same_bits(p.tensor, q.tensor));
        fit_case_end(&c), fit_case_end(&d);
    }
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
            if (part < 2) identical(verified(folder, 0, args_of, 0), r.steps / 4 + (r.steps % 4 > 0));
        }
        char *parts = read_all(tn_test_in(folder, "record.jsonl"), &other);
        ck_assert_msg(!strcmp(whole, parts), "stopped at %d:\n%s\nnot\n%s", at, parts, whole);
        free(parts);
        if (at % 6 == 0) identical(verified(folder, 0, args_of, 0), 5);
    }
    free(whole);
}

static int64_t     more_steps;
static tn_fit_args longer_of(fit_case *c, const char *folder)
{
    tn_fit_args a = own_of(c, folder);
    a.steps = more_steps, a.warmup = more_steps / 6, a.lr = more_steps == 30 ? 0.02 : 0.01;
    return a;
}

/* Lengthened twice, with another learning rate: each part is repeated with its own arguments. */
TEST(lengthened)
{
    const char *folder = tn_test_file("longer");
    for (more_steps = 10; more_steps <= 30; more_steps += 10) {
        fit_case    c = fit_case_begin(0);
        tn_fit_args a = longer_of(&c, folder);
        a.resume = true;
        if (more_steps == 10) tn_seed(5);
        ck_assert_msg(tn_fit_run(a).why == TN_FIT_DONE, "%s", tn_error_message());
        fit_case_end(&c);
    }
    more_steps = 30;
    tn_verify_result v = verified(folder, 0, longer_of, 0);
    identical(v, 8);
    ck_assert_int_eq(v.steps, 30);
    for (int i = 1; i < 8; i++) identical(verified(folder, 0, longer_of, i), i);
    more_steps = 20;
    differs(verified(folder, 0, longer_of, 0), 0, "configuration", "steps is 20, in the record 30");
}

/* Without the training checkpoints before a segment, it is repeated from the beginning. */
TEST(few_checkpoints)
{
    const char *folder = tn_test_file("few");
    make(folder, 0, args_of);
    for (int step = 0; step < 16; step += 4) {
        char name[40];
        snprintf(name, sizeof name, "step-%012d.ckpt", step);
        ck_assert_int_eq(unlink(tn_test_in(folder, name)), 0);
    }
    tn_verify_result v = verified(folder, 0, args_of, 0);
    identical(v, 5);
    ck_assert_int_eq(v.steps, STEPS);
    unlink(tn_test_in(folder, "step-000000000018.ckpt"));
    unlink(tn_test_in(folder, "best.safetensors"));
    v = verified(folder, 0, args_of, 1);
    ck_assert_int_eq(v.why, TN_VERIFY_FAILED);
    ck_error_has(TN_EIO, "best.safetensors");
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

/* Adapters: the training checkpoints hold what is trained, and a sum of the frozen weights. */
static tn_fit_args adapters_of(fit_case *c, const char *folder)
{
    tn_seed(9);
    tn_lora(c->net, .rank = 2);
    return own_of(c, folder);
}

TEST(adapters)
{
    const char *folder = tn_test_file("adapters");
    make(folder, 0, adapters_of);
    identical(verified(folder, 0, adapters_of, 0), 5);
    identical(verified(folder, 0, adapters_of, 2), 2);
}

static void stop_soon(const tn_fit_event *e, void *user)
{
    if (e->what == TN_FIT_STEP && e->step == 6) ((fit_case *)user)->stop = 1;
}

TEST(stopped)
{
    const char *folder = tn_test_file("stopped");
    make(folder, 0, own_of);
    fit_case    c = fit_case_begin(0);
    tn_fit_args a = own_of(&c, folder);
    a.on = stop_soon, a.on_user = &c, a.stop = &c.stop;
    tn_seed(5);
    tn_verify_result v = tn_verify(&a, .whole = true);
    ck_assert_msg(v.why == TN_VERIFY_STOPPED && v.steps == 6, "%d after %lld steps", (int)v.why, (long long)v.steps);
    fit_case_end(&c);
}

/* ---- differences ------------------------------------------------------------------------------------------------- */

/* One bit of any byte of the record, of a training checkpoint after "format": "pt", which nothing reads, or of the best
 * weights after their header. */
TEST(flipped_bits)
{
    static const struct {
        const char *name;
        int64_t     step;
    } files[] = {{"record.jsonl", -1}, {"step-000000000008.ckpt", 8}, {"best.safetensors", -1}};
    const char  *folder = tn_test_file("flipped");
    tn_generator chance = {.seed = 9};
    const int    tries = tn_test_slow() ? 10 : 100;
    make(folder, 0, args_of);
    for (int i = 0; i < tries; i++) {
        const char *path = tn_test_in(folder, files[i % 3].name);
        long        bytes;
        char       *text = read_all(path, &bytes), was;
        const long  header = 8 + (unsigned char)text[0] + 256 * (unsigned char)text[1];
        const long  from = i % 3 == 2 ? header : i % 3 ? 8 + (long)strlen("{\"__metadata__\":{\"format\":\"pt\"") : 0;
        const long  at = from + (long)tn_random_below(&chance, bytes - from);
        was = text[at];
        text[at] = (char)(was ^ 1 << tn_random_below(&chance, 7));
        write_all(path, text, bytes);
        tn_verify_result v = verified(folder, 0, args_of, 2);
        ck_assert_msg(v.why == TN_VERIFY_DIFFERS && (files[i % 3].step < 0 || v.step == files[i % 3].step),
                      "%s, byte %ld of %ld: %d at step %lld: %s; error: %s", files[i % 3].name, at, bytes, (int)v.why,
                      (long long)v.step, v.text, tn_error_message());
        text[at] = was;
        write_all(path, text, bytes);
        free(text);
    }
    identical(verified(folder, 0, args_of, 0), 5);
}

/* Writes the record with valid chain sums, after the number that follows `key` in the n-th line that has it was changed
 * to 7; returns the step of that line. */
static int64_t forge(const char *path, const char *key, int n)
{
    long     bytes;
    char    *text = read_all(path, &bytes), *made = calloc(2 * (size_t)bytes, 1), line[4000];
    uint64_t chain = UINT64_C(0xcbf29ce484222325);
    int64_t  step = -1;
    for (char *at = text; at < text + bytes; at = strchr(at, '\n') + 1) {
        const char *tail = strstr(at, ",\"chain\":");
        ck_assert(tail && tail - at < 2000);
        snprintf(line, sizeof line, "%.*s", (int)(tail - at), at);
        char *key_at = strstr(line, key);
        if (key_at && n-- == 0) {
            char *value = key_at + strlen(key), *end = value + strcspn(value, ",}");
            step = strtoll(strchr(line, ':') + 1, NULL, 10);
            if (*value == '"') value[1] = value[1] == '7' ? '8' : '7';
            else memmove(value + 1, end, strlen(end) + 1), *value = '7';
        }
        for (const char *p = line; *p; p++) chain = (chain ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
        snprintf(made + strlen(made), 2 * (size_t)bytes - strlen(made), "%s,\"chain\":\"%016llx\"}\n", line,
                 (unsigned long long)chain);
    }
    write_all(path, made, (long)strlen(made));
    free(text), free(made);
    return step;
}

/* A record whose chain was computed again: the replay finds the change. */
TEST(forged_records)
{
    static const struct {
        const char *key, *input, *text;
    } ways[] = {{"\"batch\":", "data", "the batch has the sum"},
                {"\"lr\":", "learning rate", "in the record 7"},
                {"\"loss\":", "configuration", "the loss is"},
                {"\"value\":", "data", "the validation's value is"},
                {"\"weights\":", "weights", "in the record"},
                {"\"optimizer\":", "optimizer", "the optimizer's state has"},
                {"\"generators\":", "random generator", "the generators have"}};
    const char *folder = tn_test_file("forged"), *path = tn_test_in(folder, "record.jsonl");
    long        bytes;
    make(folder, 0, args_of);
    char *record = read_all(path, &bytes);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (int n = w == 1; n < (w < 3 ? STEPS : 4); n += 3) {
            const int64_t step = forge(path, ways[w].key, n);
            ck_assert_int_ge(step, 0);
            tn_verify_result v = verified(folder, 0, args_of, 0);
            const bool       after = w == 2 && (step - 1) % 4 == 0 && step > 1; /* of the first step of a checkpoint */
            differs(v, step, after && !strcmp(v.input, "weights") ? "weights" : ways[w].input, ways[w].text);
            write_all(path, record, bytes);
        }
    write_all(path, record, bytes - 1); /* without the last line end */
    differs(verified(folder, 0, args_of, 0), STEPS, "record", "was changed or is not complete");
    *strstr(strstr(record, "\"point\":8") + 1, "\n") = 0; /* lines are missing */
    write_all(path, record, (long)strlen(record));
    differs(verified(folder, 0, args_of, 0), 8, "record", "was changed or is not complete");
    free(record);
}

static void change_weight(fit_case *c)
{
    const tn_scope s = tn_no_grad_begin();
    tn_each        p = tn_parameters(c->net);
    float         *w = tn_next(&p) ? tn_data_mut(p.tensor) : NULL;
    ck_assert_ptr_nonnull(w);
    w[0] += 1;
    tn_scope_end(s);
}

/* A training checkpoint that was written again with another weight. */
TEST(forged_checkpoint)
{
    const char *folder = tn_test_file("checkpoint"), *path = tn_test_in(folder, "step-000000000008.ckpt");
    make(folder, 0, args_of);
    fit_case            c = fit_case_begin(0);
    tn_checkpoint_file *f = tn_checkpoint_open(path);
    tn_schedule_follow(c.lr);
    ck_assert_int_eq(tn_checkpoint_restore(f, .module = c.net, .optimizer = c.o, .ema = c.ema), TN_OK);
    change_weight(&c);
    ck_assert_int_eq(tn_checkpoint_save(path, .module = c.net, .optimizer = c.o, .ema = c.ema, .step = 8), TN_OK);
    tn_checkpoint_close(f);
    fit_case_end(&c);
    differs(verified(folder, 0, args_of, 1), 8, "weights", "in the training checkpoint, in the record");
}

/* Other data, another initial weight, another rate, another argument, another config, another seed. */
TEST(other_inputs)
{
    const char *folder = tn_test_file("inputs");
    fit_case    other = fit_case_begin(1);
    make(folder, 0, own_of);
    for (int way = 0; way < 7; way++) {
        fit_case    c = fit_case_begin(0);
        tn_fit_args a = own_of(&c, folder);
        if (way == 1) change_weight(&c);
        if (way == 2) a.lr = 0.02;
        if (way == 3) a.accumulate = 2;
        if (way == 4) a.config = "{\"dim\": 9}";
        if (way == 5) a.weight_decay = 0.5;
        if (way == 6) a.train = other.train;
        tn_seed(way == 0 ? 6 : 5);
        tn_verify_result v = tn_verify(&a);
        if (way == 0) differs(v, 0, "random generator", "the generators have");
        if (way == 1) differs(v, 0, "weights", "the weights have");
        if (way == 2) differs(v, 0, "learning rate", "lr is 0.02, in the record 0.01");
        if (way == 3) differs(v, 0, "configuration", "accumulate is 2, in the record 1");
        if (way == 4) differs(v, 0, "configuration", "dim is 9, in the record 8");
        if (way == 5) differs(v, 0, "configuration", "weight_decay is 0.5, in the record 0.01");
        if (way == 6) differs(v, 1, "data", "the batch has the sum");
        fit_case_end(&c);
    }
    fit_case_end(&other);
}

TEST(errors)
{
    const char *folder = tn_test_file("errors"), *path = tn_test_in(folder, "record.jsonl");
    fit_case    c = fit_case_begin(0);
    tn_fit_args a = args_of(&c, NULL);
    ck_assert_int_eq(tn_verify(NULL).why, TN_VERIFY_FAILED);
    ck_error(TN_EINVAL, "tn_verify: the run is NULL");
    a.config = NULL;
    ck_assert_int_eq(tn_verify(&a).why, TN_VERIFY_FAILED);
    ck_error(TN_EINVAL, "tn_verify: .folder of the run is NULL");
    a = args_of(&c, folder);
    ck_assert_int_eq(tn_verify(&a, .segments = -1).why, TN_VERIFY_FAILED);
    ck_error(TN_EINVAL, "tn_verify: .segments is -1, but must not be negative");
    ck_assert_int_eq(tn_verify(&a).why, TN_VERIFY_FAILED);
    ck_error_has(TN_EIO, "record.jsonl' does not exist; a run of an earlier version has none");
    fit_case_end(&c);
    make(folder, 0, args_of);
    long        bytes;
    char       *record = read_all(path, &bytes);
    const char *version = strstr(record, "\"version\":\"");
    ck_assert(version);
    forge(path, "\"version\":", 0);
    ck_assert_int_eq(verified(folder, 0, args_of, 0).why, TN_VERIFY_FAILED);
    ck_error_has(TN_EUNSUPPORTED, "; verify it with its own version");
    free(record);
}

/* An allocation fails: an error, and the next call succeeds. */
TEST(memory_fails)
{
    const char *folder = tn_test_file("memory");
    make(folder, 0, own_of);
    tn_faulty_memory_begin();
    const int tries = tn_test_slow() ? 10 : 60;
    for (int i = 0; i < tries; i++) {
        tn_fail_memory(7 * i, false);
        tn_verify_result v = verified(folder, 0, own_of, 2);
        tn_fail_memory(-1, false);
        if (v.why == TN_VERIFY_FAILED) {
            ck_assert_msg(tn_error() == TN_ENOMEM, "%s", tn_error_message());
            tn_clear_error();
        } else identical(v, 2);
    }
    tn_faulty_memory_end();
    identical(verified(folder, 0, own_of, 0), 5);
}
