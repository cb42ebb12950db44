/* verify.c — vectors verify: trains vectors again with the options of a record, which `vectors train --record` wrote,
 * and compares the hash of all weights after each epoch, and the vectors. An epoch is a segment. */
#include "programs/common/checksum.h"
#include "programs/common/messages.h"
#include "programs/common/record.h"
#include "../repeat/replay.h"
#include "programs/common/resume.h"
#include "vectors.h"

#include <stdlib.h>
#include <string.h>

static int64_t segments, seed;

const option verify_options[] = {
    OPTION_INT("segments", 0, "K", &segments, "compare K epochs, chosen at random (default: all)", .least = 1,
               .most = 1e6),
    OPTION_INT("seed", 0, "N", &seed, "random seed of the choice of epochs (default: from the clock)", .least = 1),
    {0}};

/* ---- writing the record ------------------------------------------------------------------------------------------ */

void epochs_add(epochs *e, const tn_vectors_event *event)
{
    if (event->epoch <= e->n) return;
    uint64_t *more = realloc(e->sum, (size_t)event->epoch * sizeof *more);
    if (!more) return;
    while (e->n < event->epoch) more[e->n++] = 0;
    e->sum = more, more[e->n - 1] = event->sum;
}

bool epochs_save(const epochs *e, const char *path, const char *vectors)
{
    tn_json_writer *w = tn_json_writer_new(2);
    char            sum[17];
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "made_by", tn_build_info());
    tn_json_put_string(w, "version", tn_version());
    resume_put(w, true);
    tn_json_open_array(w, "epochs");
    for (int64_t i = 0; i < e->n; i++) {
        checksum_text(e->sum[i], sum);
        tn_json_put_string(w, NULL, e->sum[i] ? sum : "");
    }
    tn_json_close(w);
    checksum_put(w, "vectors", checksum_file(CHECKSUM, vectors));
    tn_json_close(w);
    const bool fine = tn_error() == TN_OK && tn_json_save(w, path) == TN_OK;
    tn_json_writer_free(w);
    return fine;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

typedef struct {
    const tn_json *epochs;
    bool          *chosen;
    int64_t  n, last, compared, differs; /* epochs; the last chosen one; number; the first that differs, 0: none */
    char     changed[400];               /* names a text that has changed; else "" */
    progress bar;
} comparison;

static void compare(const tn_vectors_event *e, void *user)
{
    comparison *c = user;
    char        sum[17];
    progress_at(&c->bar, (int64_t)(e->done * 1000), "");
    if (!e->epoch || e->epoch > c->n || c->differs || stop_flag) return;
    const char *was = tn_json_string(tn_json_at(c->epochs, e->epoch - 1));
    checksum_text(e->sum, sum);
    c->compared += c->chosen[e->epoch - 1];
    if (c->chosen[e->epoch - 1] && *was && strcmp(sum, was) != 0) c->differs = e->epoch;
    if (c->differs || (e->epoch == c->last && e->epoch < c->n)) stop_flag = STOP_PLAN;
}

static void choose(comparison *c)
{
    tn_generator  g = {.seed = seed ? (uint64_t)seed : (uint64_t)(seconds_now() * 1e9)};
    const int64_t want = segments && segments < c->n && !*c->changed ? segments : c->n;
    for (int64_t i = 0, left = want; i < c->n; i++) {
        c->chosen[i] = tn_random_below(&g, c->n - i) < left;
        left -= c->chosen[i];
        if (c->chosen[i]) c->last = i + 1;
    }
    if (!settings.quiet)
        tell("verify   %lld of %lld epochs: training %lld epochs\n", (long long)want, (long long)c->n,
             (long long)c->last);
}

static int differs(int64_t step, const char *input, const char *text)
{
    printf("differs at step %lld: %s: %s\n", (long long)step, input, text);
    return EXIT_FAILED;
}

/* True if the file has the recorded checksum of the vectors; else sets a text. */
static bool same_vectors(const tn_json *saved, const char *path, char text[400])
{
    char        sum[17];
    const char *was = tn_json_string(tn_json_get(saved, "vectors"));
    checksum_text(checksum_file(CHECKSUM, path), sum);
    snprintf(text, 400, "'%.200s' has the checksum %s, in the record %.16s", train_out(), sum, was);
    return tn_error() != TN_OK || !strcmp(sum, was);
}

/* The vectors of the last epoch, saved as those of the record. */
static bool same_result(const tn_json *saved, const tn_vectors *v, char text[400])
{
    char       folder[1024], path[1024];
    const bool same =
        replay_folder(folder) && train_save(v, in_folder(folder, "vectors", path)) && same_vectors(saved, path, text);
    if (*folder) replay_delete(folder);
    return same || tn_error() != TN_OK;
}

static int repeat(comparison *c, const tn_json *saved)
{
    char        text[400] = "";
    const char *out = train_out();
    if (!*c->changed && !file_exists(out)) tn_raise(TN_EIO, "missing: '%s', the vectors of the training", out);
    if (tn_error() == TN_OK && !*c->changed && !same_vectors(saved, out, text)) return differs(c->n, "weights", text);
    if (tn_error() != TN_OK) return program_end();
    choose(c);
    c->bar = progress_begin("verify", 1000, "‰");
    stop_begin("ending");
    tn_vectors *v = train_again(compare, c);
    progress_end(&c->bar);
    if (stop_flag == STOP_PLAN) stop_flag = 0;
    const bool same = !v || c->differs || *c->changed || same_result(saved, v, text);
    tn_vectors_free(v);
    if (*c->changed && (tn_error() == TN_EFORMAT || tn_error() == TN_EINVAL))
        tn_clear_error(); /* not readable any more */
    if (tn_error() != TN_OK || stop_flag) return program_end();
    if (*c->changed) return differs(c->differs, "data", c->changed);
    if (c->differs) return differs(c->differs, "weights", "they have another hash than in the record");
    if (!same) return differs(c->n, "weights", text);
    if (!settings.quiet)
        tell("not compared: of the record, names of files and folders, white space, and of \"made_by\" all but the "
             "kernels\n");
    printf("identical %lld segments\n", (long long)c->compared);
    return program_end();
}

int run_verify(int count, char **operands)
{
    comparison c = {.n = 0};
    int        code = resume_open(train_command(), operands[0]);
    (void)count;
    if (code || tn_error() != TN_OK || (code = check_train())) return code ? code : program_end();
    tn_json       *saved = resume_find_files() ? tn_json_load(operands[0]) : NULL;
    const tn_json *version = tn_json_need(saved, "version");
    c.epochs = tn_json_need(saved, "epochs"), c.n = tn_json_count(c.epochs);
    if (tn_error() == TN_OK && strcmp(tn_json_string(version), tn_version()) != 0)
        tn_raise(TN_EUNSUPPORTED, "'%s' is of version %s, but this is version %s, whose results may differ",
                 operands[0], tn_json_string(version), tn_version());
    if (tn_error() == TN_OK && !resume_same_files_in(operands[0]) && tn_error() == TN_EINVAL) {
        snprintf(c.changed, sizeof c.changed, "%.*s", (int)strcspn(tn_error_message(), ";"), tn_error_message());
        tn_clear_error();
    }
    if (tn_error() == TN_OK) c.chosen = calloc((size_t)c.n + 1, sizeof *c.chosen);
    if (!c.chosen || !record_same_kernels(tn_json_string(tn_json_get(saved, "made_by")), "word vectors"))
        code = program_end();
    else if (c.n != train_epochs()) code = differs(0, "configuration", "the record has not the epochs of its options");
    else code = repeat(&c, saved);
    free(c.chosen);
    tn_json_free(saved);
    return code;
}
