/* test_program.c — code shared by all programs (programs/common): command line, its errors and help, exit codes,
 * Ctrl-C, progress bar. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "programs/common/messages.h"
#include "programs/common/options.h"
#include "programs/common/record.h"
#include "programs/common/stop.h"
#include "programs/common/train.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a program --------------------------------------------------------------------------------------------------- */

static int64_t     steps;
static double      rate;
static const char *out, *dtype;
static bool        resume;
static option_list texts;
static int         got, known; /* which of --steps, --learning-rate and --resume were given */
static char        operands[200];

static int train(int count, char **values)
{
    got = texts.count;
    known = program_given("steps") + 2 * program_given("learning-rate") + 4 * program_given("resume");
    *operands = 0;
    for (int i = 0; i < count; i++)
        snprintf(operands + strlen(operands), sizeof operands - strlen(operands), "%s ", values[i]);
    for (int i = 0; i < texts.count; i++)
        snprintf(operands + strlen(operands), sizeof operands - strlen(operands), "<%s> ", texts.value[i]);
    return EXIT_OK;
}
static int fail_with(int count, char **values)
{
    (void)count;
    tn_raise((tn_status)atoi(values[0]), "it failed");
    const int code = program_end();
    tn_clear_error();
    return code;
}

static const option  options[] = {OPTION_TEXT("out", 'o', "DIR", &out, "folder of the new model", .required = true),
                                  OPTION_LIST("text", 't', "FILE", &texts, "files to read"),
                                  OPTION_INT("steps", 'n', "N", &steps, "number of steps", .least = 1),
                                  OPTION_REAL("learning-rate", 0, "X", &rate,
                                              "the largest rate of learning, which is reached after the warm-up",
                                              .least = 0, .most = 1),
                                  OPTION_TEXT("dtype", 0, "TYPE", &dtype, "what to compute in", .choices = "f32|bf16"),
                                  OPTION_FLAG("resume", 'r', &resume, "resume the run in DIR"),
                                  {0}};
static const command commands[] = {
    {.name = "train", .summary = "train a model", .options = options, .run = train, .operands = "WORD...", .most = 2},
    {.name = "fail", .summary = "fail", .run = fail_with, .operands = "CODE", .least = 1, .most = 1},
    {0}};
static const program prog = {.name = "prog", .summary = "a program", .commands = commands, .text = "Some text."};

/* Runs the program with the words of a line as arguments; its standard error (or output) is captured in `said`. */
static char said[4000];
static int  call(int fd, const char *line)
{
    static char words[400]; /* static, because options point into it */
    char       *argv[40] = {(char *)"prog"};
    int         argc = 1;
    FILE       *file = tmpfile();
    snprintf(words, sizeof words, "%s", line);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) argv[argc++] = w;
    steps = 1000, rate = 1e-3, out = NULL, dtype = "f32", resume = false, got = -1;
    fflush(stdout), fflush(stderr);
    const int keep = dup(fd);
    dup2(fileno(file), fd);
    const int code = program_main(&prog, argc, argv);
    fflush(stdout), fflush(stderr);
    dup2(keep, fd);
    close(keep);
    rewind(file);
    said[fread(said, 1, sizeof said - 1, file)] = 0;
    fclose(file);
    tn_set_threads(0);
    return code;
}

TEST(options_are_read)
{
    ck_assert_int_eq(call(2, "train -o dir --steps=7 --learn 0.5 a --dtype bf16 -r b"), 0);
    ck_assert_str_eq(said, "");
    ck_assert(steps == 7 && rate == 0.5 && resume && !strcmp(out, "dir") && !strcmp(dtype, "bf16"));
    ck_assert_str_eq(operands, "a b ");
    ck_assert_int_eq(call(2, "train -odir -n12 -rqv -t a b c --text d -- -x"), 0);
    ck_assert_int_eq(known, 1 + 4);
    ck_assert(steps == 12 && resume && settings.quiet && settings.verbose && got == 4);
    ck_assert_str_eq(operands, "-x <a> <b> <c> <d> ");
    ck_assert_int_eq(call(2, "train --out dir - --threads 2"), 0);
    ck_assert_str_eq(operands, "- ");
    ck_assert_int_eq(known, 0);
    ck_assert(settings.threads == 2 && !settings.quiet && got == 0);
}

static const struct {
    const char *line, *says;
} wrong[] = {
    {"", "prog: missing command; 'prog --help' lists the commands\nTry 'prog --help'.\n"},
    {"trian", "prog: unknown command 'trian'; did you mean train?\nTry 'prog --help'.\n"},
    {"dance", "prog: unknown command 'dance'\nTry 'prog --help'.\n"},
#define TRAIN(line, text)                                                 \
    {                                                                     \
        "train " line, "prog train: " text "\nTry 'prog train --help'.\n" \
    }
    TRAIN("", "--out DIR is required: folder of the new model"),
    TRAIN("--lerning-rate 1", "unknown option --lerning-rate; did you mean --learning-rate?"),
    TRAIN("--le 1", "unknown option --le"),
    TRAIN("--no-progess", "unknown option --no-progess; did you mean --no-progress?"),
    TRAIN("--xyzzy", "unknown option --xyzzy"),
    TRAIN("-x", "unknown option -x"),
    TRAIN("--steps", "--steps needs N: number of steps"),
    TRAIN("--text --steps 2", "--text needs FILE: files to read"),
    TRAIN("--steps 0", "--steps needs a whole number of at least 1, got '0'"),
    TRAIN("--steps 1e3", "--steps needs a whole number of at least 1, got '1e3'"),
    TRAIN("--steps 99999999999999999999", "--steps needs a whole number of at least 1, got '99999999999999999999'"),
    TRAIN("--learning-rate 2", "--learning-rate needs a number from 0.0 to 1.0, got '2'"),
    TRAIN("--learning-rate x", "--learning-rate needs a number from 0.0 to 1.0, got 'x'"),
    TRAIN("--dtype f23", "--dtype must be one of f32|bf16, got 'f23'; did you mean f32?"),
    TRAIN("--dtype double", "--dtype must be one of f32|bf16, got 'double'"),
    TRAIN("--resume=1", "--resume takes no value"),
    TRAIN("-o d a b c", "unexpected argument 'c'"),
    {"fail", "prog fail: missing operand, expected CODE\nTry 'prog fail --help'.\n"}};

TEST_ROWS(wrong_lines, wrong)
{
    ck_assert_int_eq(call(2, wrong[_i].line), EXIT_USAGE);
    ck_assert_str_eq(said, wrong[_i].says);
    ck_assert_int_eq(got, -1);
}

TEST(helps)
{
    ck_assert_int_eq(call(1, "--help"), 0);
    ck_assert_str_eq(said, "prog: a program\n\nUsage: prog COMMAND [OPTION]...\n\nCommands:\n"
                           "  train                   train a model\n  fail                    fail\n\nSome text.\n\n"
                           "'prog COMMAND --help' or 'prog help COMMAND' describes a command and its options.\n"
                           "'prog completion bash' prints a script for the completion of options in bash, zsh or "
                           "fish.\n");
    ck_assert_int_eq(call(1, "train --help"), 0);
    ck_assert_msg(!strncmp(said,
                           "prog train: train a model\n\n"
                           "Usage: prog train --out DIR [OPTION]... WORD...\n\n"
                           "Options:\n"
                           "  -o, --out DIR           folder of the new model (required)\n"
                           "  -t, --text FILE...      files to read\n"
                           "  -n, --steps N           number of steps (default: 1000)\n"
                           "      --learning-rate X   the largest rate of learning, which is reached after\n"
                           "                          the warm-up (default: 0.001)\n"
                           "      --dtype TYPE        what to compute in (f32|bf16; default: f32)\n"
                           "  -r, --resume            resume the run in DIR\n\n"
                           "Options of every command:\n",
                           400),
                  "%s", said);
    ck_assert_int_eq(call(1, "train --version"), 0);
    ck_assert(strstr(said, "prog 0.")); /* with ThreadSanitizer, Archer prints first */
}

TEST(exit_codes)
{
    static const int code[] = {0, 4, 1, 1, 1, 1, 1, 5, 3, 7, 6};
    char             line[20];
    for (int s = TN_ENOMEM; s <= TN_ENUMERIC; s++) {
        snprintf(line, sizeof line, "fail %d", s);
        ck_assert_int_eq(call(2, line), code[s]);
        ck_assert_str_eq(said, "prog: it failed\n");
    }
}

/* A full standard output is an error. */
TEST(output_is_full)
{
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (full < 0) return;
    const pid_t child = fork();
    if (!child) {
        char *argv[] = {(char *)"prog", (char *)"--help", NULL};
        dup2(full, 1);
        if (!freopen("/dev/null", "w", stderr)) _exit(99);
        _exit(program_main(&prog, 2, argv));
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    close(full);
    ck_assert_int_eq(WEXITSTATUS(status), EXIT_IO);
}

TEST(colours)
{
    unsetenv("NO_COLOR");
    settings.color = "always";
    ck_assert(program_color(stdout));
    settings.color = "never";
    ck_assert(!program_color(stdout));
    settings.color = "auto";
    FILE *f = tmpfile();
    ck_assert(!program_color(f));
    fclose(f);
}

/* ---- Ctrl-C ------------------------------------------------------------------------------------------------------ */

static int end_by(int first, int second)
{
    int told[2];
    ck_assert_int_eq(pipe(told), 0);
    const pid_t child = fork();
    if (!child) {
        if (dup2(told[1], STDERR_FILENO) < 0) _exit(99);
        stop_begin("saving");
        raise(first);
        if (stop_flag != first) _exit(98);
        if (second) raise(second);
        _exit(stop_exit_code());
    }
    int  status = 0;
    char text[32] = "";
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    close(told[1]);
    ck_assert_int_gt(read(told[0], text, sizeof text - 1), 0);
    close(told[0]);
    ck_assert_str_eq(text, "saving\n");
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(signals)
{
    ck_assert_int_eq(end_by(SIGINT, 0), 130);
    ck_assert_int_eq(end_by(SIGTERM, 0), 143);
    ck_assert_int_eq(end_by(SIGINT, SIGINT), -SIGINT);
    ck_assert_int_eq(end_by(SIGTERM, SIGINT), -SIGINT);
}

/* ---- progress ---------------------------------------------------------------------------------------------------- */

static const char *line(int64_t done, int64_t total, double seconds, double per_second, bool blocks, const char *note)
{
    static char text[800];
    progress    p = {.title = "train", .unit = "it", .done = done, .total = total, .blocks = blocks};
    snprintf(p.note, sizeof p.note, "%s", note);
    progress_line(&p, seconds, per_second, 72, text, sizeof text);
    return text;
}

TEST(lines)
{
    ck_assert_str_eq(line(370, 1000, 12.6, 29.93, false, "loss=0.412"),
                     "train:  37%|####8        | 370/1000 [00:12<00:21, 29.93it/s, loss=0.412]");
    ck_assert_str_eq(line(500, 1000, 60, 8.333, true, ""),
                     "train:  50%|████████████▌            | 500/1000 [01:00<01:00,  8.33it/s]");
    ck_assert_str_eq(line(0, 10, 0, 0, false, ""),
                     "train:   0%|                                     | 0/10 [00:00<?, ?it/s]");
    ck_assert_str_eq(line(10, 10, 7300, 0.5, false, ""),
                     "train: 100%|##########################| 10/10 [2:01:40<00:00,  2.00s/it]");
    ck_assert_str_eq(line(7, 0, 61, 3.25, false, "x=1"), "train: 7it [01:01,  3.25it/s, x=1]");
}

TEST(lines_fit_the_terminal)
{
    static char text[800];
    progress    p = {.title = "train", .unit = "step", .done = 9876, .total = 100000};
    for (int wide = 20; wide <= 200; wide++) {
        snprintf(p.note, sizeof p.note, "loss=10.83, lr=0.000125");
        progress_line(&p, 4000, 29.93, wide, text, sizeof text);
        ck_assert_int_le((int)strlen(text), wide);
        ck_assert(!strncmp(text, "train:  10%|", 12));
        ck_assert(wide >= 60 || !strstr(text, "loss="));
        ck_assert(wide < 80 || strstr(text, "| 9876/100000 [1:06:40<50:11, 29.93step/s, loss=10.83"));
        ck_assert_int_eq(strstr(text, "lr=0.000125]") != NULL, wide >= 89);
    }
    p.blocks = true;
    for (int wide = 20; wide <= 200; wide++) {
        int characters = 0;
        progress_line(&p, 4000, 29.93, wide, text, sizeof text);
        for (const char *s = text; *s; s++) characters += ((unsigned char)*s & 0xc0) != 0x80;
        ck_assert_int_le(characters, wide);
    }
    p = (progress){.title = "tokenizer", .unit = "%", .done = 85, .total = 100, .note = "pairs"};
    progress_line(&p, 3, 29, 60, text, sizeof text);
    ck_assert_str_eq(text, "tokenizer:  85%|##################7   | [00:03<00:00, pairs]");
}

/* If standard error is not a terminal: a line every ten seconds, and a last one. */
TEST(plain_lines)
{
    progress p = {.title = "t", .unit = "it", .total = 100, .to = tmpfile()};
    for (int i = 1; i <= 100; i++) progress_show(&p, i, i == 60 ? "a=1" : NULL, 0.25 * i, 58);
    settings.quiet = false;
    progress_say(&p, "hello %d", 3);
    p.began = p.last = -1e9; /* so that the last line does not show the real time */
    char text[1000];
    rewind(p.to);
    text[fread(text, 1, sizeof text - 1, p.to)] = 0;
    fclose(p.to);
    ck_assert_str_eq(text, "t:  40%|######4         | 40/100 [00:10<00:15,  4.00it/s]\n"
                           "t:  80%|########8  | 80/100 [00:20<00:05,  4.00it/s, a=1]\nhello 3\n");
}

/* A run that was planned again continues the time; the rate is that of the new part. */
TEST(later_parts)
{
    progress p = {.title = "t", .unit = "it", .total = 100, .to = tmpfile(), .before = 50};
    char     text[200];
    for (int i = 1; i <= 40; i++) progress_show(&p, i, NULL, 0.25 * i, 58);
    rewind(p.to);
    text[fread(text, 1, sizeof text - 1, p.to)] = 0;
    fclose(p.to);
    ck_assert_str_eq(text, "t:  40%|######4         | 40/100 [01:00<00:15,  4.00it/s]\n");
}

/* A whole training run, reported by progress_fit. */
static bool batch(void *user, tn_batch *b) { return (void)user, (b->x = tn_ones(TN_SHAPE(2, 1))) != NULL; }
static bool once(void *user, tn_batch *b)
{
    int *n = user;
    return batch(NULL, b) && (*n = !*n) != 0;
}
static tn_tensor *loss(void *module, const tn_batch *b, void *user)
{
    return (void)user, tn_mean(tn_square(tn_module_call(module, b->x)));
}

TEST(recorded)
{
    int        n = 0;
    tn_linear *net = tn_linear_new(.in = 1, .out = 1);
    progress   bar = progress_begin("train", 0, "step");
    bar.to = tmpfile(), bar.live = bar.silent = false, bar.blocks = false;
    settings.quiet = false, settings.verbose = true;
    for (int i = 0; i < 2; i++) {
        tn_fit_result r =
            tn_fit(net, .train = {.next = batch}, .loss = loss, .steps = 3, .folder = tn_test_file("run"),
                   .resume = true, .valid = {.next = once, .user = &n}, .on = progress_fit, .on_user = &bar);
        ck_assert_int_eq(r.why, TN_FIT_DONE);
        bar.silent = i == 0;
    }
    char text[4000];
    rewind(bar.to);
    text[fread(text, 1, sizeof text - 1, bar.to)] = 0;
    fclose(bar.to);
    settings.verbose = false;
    ck_assert_msg(strstr(text, "saved ") && strstr(text, "step-000000000003.ckpt\n"), "%s", text);
    ck_assert_msg(strstr(text, "step 3: validation ") && strstr(text, ", the best yet\n"), "%s", text);
    ck_assert_msg(strstr(text, "train: 100%|####") && strstr(text, "| 3/3 [00:0"), "%s", text);
    ck_assert_msg(strstr(text, "done after 3 steps, 00:0"), "%s", text);
    ck_assert_msg(strstr(text, "resuming from step 3\n"), "%s", text);
    tn_free(net);
}

/* Checks of memory and disk space before a run. */
TEST(resources)
{
    ck_assert(record_space(".", 1, false) && record_memory(1, false));
    ck_assert(!record_space(".", 1e24, false));
    ck_assert_msg(tn_error() == TN_EIO && strstr(tn_error_message(), " GiB of disk space, but "), "%s",
                  tn_error_message());
    tn_clear_error();
    ck_assert(!record_memory(1e24, false));
    ck_assert_msg(tn_error() == TN_ENOMEM && strstr(tn_error_message(), " GiB of memory, but "), "%s",
                  tn_error_message());
    tn_clear_error();
    ck_assert(record_space(".", 1e24, true));
    ck_assert_int_eq(tn_error(), TN_OK);
}

/* The library's messages in the words of a program. */
TEST(messages)
{
    static const char *const is[][2] = {
        {"tn_load: 'a': tn_json_load: line 1 has 1 members", "'a': line 1 has 1 member"},
        {".steps is 3; raise it, or lower .learning_rate (.alphabet)",
         "--steps is 3; raise it, or lower --learning-rate (.alphabet)"},
        {"a.steps, 0.5 and 'x.text'", "a.steps, 0.5 and 'x.text'"},
        {"1 layers of 128, 1 sentences are bad, 11 sentences are bad",
         "1 layer of 128, 1 sentence is bad, 11 sentences are bad"},
        {"(1 entries) 1 classes have 1 bias, 1 loss; 1.1 bytes, x1 bytes",
         "(1 entry) 1 class has 1 bias, 1 loss; 1.1 bytes, x1 bytes"},
        {"'a': model_type is 'gpt2'; supported: 'bert'",
         "'a': model_type is 'gpt2'; supported: 'bert'; the program gpt opens it"},
        {"tn_x: byte 3 is NUL; expected text",
         "byte 3 is NUL; expected text (UTF-16? convert it with iconv -f utf-16 -t utf-8)"},
        {"", ""}};
    char text[200];
    for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
        message_for_user(is[i][0], options, text, sizeof text);
        ck_assert_str_eq(text, is[i][1]);
    }
    message_for_user("1 sentences", NULL, text, 6); /* cut */
    ck_assert_str_eq(text, "1 sen");
    message_for_user("word", NULL, text, 1);
    ck_assert_str_eq(text, "");
}

/* --minutes: a run that would end too late or too early is planned again; one that is on time is not. */
TEST(minutes)
{
    static const struct {
        double  all, since; /* seconds: of the run, and of the 10 steps so far, which began 10 s ago */
        int64_t steps, planned;
    } is[] = {{20, 10, 1000, 20}, {20, 10, 15, 20}, {20, 10, 20, 0},    {20, 10, 19, 0},
              {20, 5, 12, 30},    {0, 10, 1000, 0}, {200, 10, 1000, 0}, {9, 10, 50, 11},
              {99, 10, 105, 99},  {99, 10, 93, 99}, {99, 10, 101, 0}};
    for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
        progress     bar = {.silent = true, .to = stderr};
        plan         p = {.began = seconds_now() - 10, .all = is[i].all};
        tn_fit_event e = {.what = TN_FIT_START, .steps = is[i].steps};
        stop_flag = 0;
        plan_watch(&p, &e, &bar);
        p.time = seconds_now() - is[i].since;
        e.what = TN_FIT_STEP, e.step = 10;
        plan_watch(&p, &e, &bar);
        ck_assert_msg(llabs((long long)(p.steps - is[i].planned)) <= 1, "case %zu: %lld steps", i, (long long)p.steps);
        ck_assert_int_eq(stop_flag, is[i].planned ? STOP_PLAN : 0);
        const int64_t before = p.steps;
        e.step = 11;
        plan_watch(&p, &e, &bar); /* not twice */
        ck_assert_int_eq(p.steps, before);
    }
    /* the only step of a run took longer than all of it should: it is not followed by another one */
    progress     bar = {.silent = true, .to = stderr};
    plan         p = {.began = seconds_now() - 10, .all = 9};
    tn_fit_event e = {.what = TN_FIT_START, .steps = 1};
    stop_flag = 0;
    plan_watch(&p, &e, &bar);
    e.what = TN_FIT_STEP, e.step = 1;
    plan_watch(&p, &e, &bar);
    ck_assert(p.steps == 0 && stop_flag == 0);
}

/* What a run gets where the user sets nothing. */
TEST(choices)
{
    static const train_choice rows[] = {
        {0, "tiny", 8, 128}, {10, "mini", 16, 256}, {60, "baby", 32, 512}, {.size = NULL}};
    static const struct {
        double      minutes, kind;
        const char *size, *gets;
        int64_t     batch;
    } is[] = {{3, 20, NULL, "tiny", 8},    {0, 20, NULL, "mini", 16}, {9.99, 20, NULL, "tiny", 8},
              {10, 20, NULL, "mini", 16},  {0, 5, NULL, "tiny", 8},   {90, 5, NULL, "baby", 32},
              {3, 20, "large", "large", 8}};
    for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
        const train_kind kind = {.minutes = is[i].kind};
        training         t = {.kind = &kind, .asked = {.minutes = is[i].minutes, .size = is[i].size}};
        ck_assert_int_eq(train_choose(&t, rows, false)->batch, is[i].batch);
        ck_assert_str_eq(t.asked.size, is[i].gets);
        ck_assert(t.chosen == !is[i].size);
    }
    const train_kind kind = {.minutes = 20};
    for (int by_speed = 0; by_speed < 2; by_speed++) { /* the machine does not change the model of --steps */
        training t = {.kind = &kind, .asked = {.steps = 7}};
        ck_assert_int_eq(train_choose(&t, rows, by_speed)->batch, 16);
        ck_assert_int_eq(train_valid_tokens(&t), 20 << 11);
    }
    training timed = {.kind = &kind, .asked = {.minutes = 1}};
    train_choose(&timed, rows, true);
    ck_assert(timed.speed > 0.1 && timed.speed < 1e6);
    ck_assert_int_eq(train_valid_tokens(&timed), 1 << 14);
    static const struct {
        size_t  bytes;
        int     share;
        int64_t given, words;
    } text[] = {{0, 2, 0, 300},
                {10000, 2, 0, 300},
                {1000000, 2, 0, 2000},
                {4000000, 2, 0, 4000},
                {4000000, 6, 0, 12000},
                {16000000, 2, 0, 8000},
                {(size_t)1 << 40, 2, 0, 8000},
                {(size_t)1 << 40, 6, 0, 24000},
                {1000000, 6, 32000, 32000}};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        training t = {.asked = {.vocab_size = text[i].given}};
        train_choose_vocabulary(&t, text[i].bytes, text[i].share);
        ck_assert_int_eq(t.asked.vocab_size, text[i].words);
    }
    training t = {.asked = {.lr = NAN, .dim = 640}};
    ck_assert(train_shape(&t, 2, 4, 128, TRAIN_RATE) == 0 && fabs(t.asked.lr - 6e-4) < 1e-9 && t.asked.layers == 2);
    t.asked.lr = NAN;
    ck_assert(train_shape(&t, 2, 4, 128, 2 * TRAIN_RATE) == 0 && fabs(t.asked.lr - 12e-4) < 1e-9);
    t.asked.lr = NAN, t.asked.dim = 16;
    ck_assert(train_shape(&t, 2, 4, 128, TRAIN_RATE) == 0 && fabs(t.asked.lr - 4e-3) < 1e-9);
    t.asked.lr = 1;
    ck_assert(train_shape(&t, 2, 4, 128, TRAIN_RATE) == 0 && fabs(t.asked.lr - 1) < 1e-9);
}
