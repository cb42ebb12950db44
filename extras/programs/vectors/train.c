/* train.c — vectors train: trains word vectors on texts. */
#include "core/system/system.h"

#include "programs/common/messages.h"
#include "programs/common/files.h"
#include "programs/common/progress.h"
#include "programs/common/resume.h"
#include "programs/common/stop.h"
#include "vectors.h"

#include <stdlib.h>
#include <string.h>

static option_list text;
static const char *out, *kind = "skipgram", *loss = "negative", *to_format_name, *checkpoint;
static int64_t dim = 100, window = 5, negatives = 5, epochs_asked = 5, min_count = 5, seed = 1, min_n = 3, max_n = 6,
               buckets = 2000000;
static double sample = 1e-4, rate, x_max = 100;
static bool   force, resume;

#define KINDS "skipgram|cbow|glove|fasttext"
#define LOSSES "negative|nce|hierarchical|softmax"

const option train_options[] = {
    OPTION_LIST("text", 0, "FILE", &text, "text files of any size, words separated by blanks", .required = true),
    OPTION_TEXT("out", 'o', "FILE", &out, "file for the vectors", .required = true, .resume = RESUME_FREE),
    OPTION_TEXT("kind", 0, "KIND", &kind, "training method", .choices = KINDS),
    OPTION_INT("dim", 'd', "N", &dim, "dimension of the vectors", .least = 1, .most = 16384),
    OPTION_INT("window", 0, "N", &window, "context words on each side", .least = 1, .most = 255),
    OPTION_INT("negatives", 0, "N", &negatives, "negative samples per word (--loss negative and nce)", .least = 1,
               .most = 63),
    OPTION_REAL("sample", 0, "P", &sample, "subsample words with a frequency above P; 0: off (not glove)", .least = 0,
                .most = 1),
    OPTION_INT("epochs", 'e', "N", &epochs_asked, "training epochs", .least = 1, .most = 1e6),
    OPTION_INT("min-count", 0, "N", &min_count, "omit words with fewer than N occurrences", .least = 1, .most = 1e12),
    OPTION_TEXT("loss", 0, "LOSS", &loss, "training objective (not glove)", .choices = LOSSES),
    OPTION_REAL("lr", 0, "RATE", &rate, "learning rate (default: 0.025 for skipgram, 0.05 for the others)", .least = 0,
                .most = 10),
    OPTION_INT("min-n", 0, "N", &min_n, "fasttext: minimum characters of an n-gram", .least = 1, .most = 100),
    OPTION_INT("max-n", 0, "N", &max_n, "fasttext: maximum characters of an n-gram", .least = 1, .most = 100),
    OPTION_INT("buckets", 0, "N", &buckets, "fasttext: number of hash buckets for n-grams", .least = 1, .most = 1e9),
    OPTION_REAL("x-max", 0, "X", &x_max, "glove: count from which a pair has full weight", .least = 1e-6),
    OPTION_SEED(0, &seed, "", .least = 0),
    TO_FORMAT("format", &to_format_name, "--out"),
    OPTION_TEXT(
        "checkpoint", 0, "FILE", &checkpoint,
        "save the training state to FILE, and the options to FILE.json; both are deleted when the vectors are complete",
        .resume = RESUME_FILE),
    OPTION_FLAG("resume", 'r', &resume, "resume the run of --checkpoint, with the options that are saved there",
                .resume = RESUME_NOT),
    OPTION_FLAG("force", 0, &force, "overwrite an existing file", .resume = RESUME_NOT),
    {0}};

static progress         bar;
static tn_vectors_event last;

static void show_progress(const tn_vectors_event *e, void *user)
{
    char note[64];
    (void)user;
    last = *e;
    snprintf(note, sizeof note, "lr=%.5f, %.0f words/s", e->rate, e->seconds > 0 ? (double)e->words / e->seconds : 0.0);
    progress_at(&bar, (int64_t)(e->done * 1000), note);
}

static int index_of(const char *name, const char *names) /* index of name in "a|b|c"; -1: not found */
{
    int i = 0;
    for (const size_t n = strlen(name); *names; i++) {
        if (!strncmp(names, name, n) && (names[n] == '|' || !names[n])) return i;
        names += strcspn(names, "|");
        names += *names == '|';
    }
    return -1;
}

/* Checks that --out, --checkpoint and the texts are different files. Returns 0 or the exit code of program_usage. */
static int check_files(void)
{
    if (checkpoint && same_file(out, checkpoint))
        return program_usage(
            "--out '%s' and --checkpoint '%s' are one file, but the checkpoint is deleted at the end; name "
            "two different files",
            out, checkpoint);
    int code = check_not_text("out", out, &text);
    return code ? code : check_not_text("checkpoint", checkpoint, &text);
}

static bool check_can_start(void)
{
    if (!may_write(out) || (checkpoint && !may_write(checkpoint)) || !may_create(out, force)) return false;
    if (resume && !file_exists(checkpoint))
        return tn_raise_false(TN_EINVAL, "checkpoint '%s' does not exist; omit --resume to start a new run",
                              checkpoint);
    if (checkpoint && !resume && !force && file_exists(checkpoint))
        return tn_raise_false(TN_EINVAL,
                              "'%s' already contains a run; continue it with --resume, or start again with --force",
                              checkpoint);
    return true;
}

/* The file next to the checkpoint with the options of the run, which --resume reads. */
static const char *options_file(char path[1024])
{
    if (snprintf(path, 1024, "%s.json", checkpoint) >= 1024)
        tn_raise(TN_EINVAL, "the name '%s' is too long", checkpoint);
    return path;
}

/* After an error of a resumed run: if a text differs, raises an error that names it instead. */
static void name_the_text(void)
{
    tn_error_state e;
    tn_error_push(&e);
    if (resume_same_files()) tn_error_pop(&e);
}

static tn_vectors *train(void)
{
    char path[1024];
    if (checkpoint && !resume && !resume_save(options_file(path))) return NULL;
    bar = progress_begin("train", 1000, "‰");
    stop_begin(checkpoint ? "saving, then ending; press again to end at once" : "ending; nothing will be written");
    tn_vectors *v = tn_vectors_train(text.count, text.value, .kind = (tn_vectors_kind)index_of(kind, KINDS),
                                     .loss = (tn_vectors_loss)index_of(loss, LOSSES), .dim = dim, .window = window,
                                     .negatives = negatives, .sample = sample, .epochs = epochs_asked,
                                     .min_count = min_count, .lr = rate, .min_n = min_n, .max_n = max_n,
                                     .buckets = buckets, .x_max = x_max, .seed = (uint64_t)seed, .on = show_progress,
                                     .stop = &stop_flag, .checkpoint = checkpoint, .resume = resume);
    progress_end(&bar);
    if (resume && tn_error() == TN_EINVAL) name_the_text();
    if (!v && checkpoint && stop_flag && file_exists(checkpoint) && tn_error() == TN_OK && !settings.quiet)
        tell("stopped; vectors train --checkpoint %s --resume continues\n", checkpoint);
    return v;
}

/* Checks that no option of another --kind or --loss is given. Returns 0 or the exit code of program_usage. */
static int check_options(void)
{
    static const char *const of_fasttext[] = {"min-n", "max-n", "buckets", NULL}, *const of_others[] = {"loss",
                                                                                                        "negatives",
                                                                                                        "sample", NULL};
    int code = strcmp(kind, "fasttext") ? program_strays(of_fasttext, "--kind fasttext") : 0;
    if (!code && strcmp(kind, "glove") != 0) code = program_stray("x-max", "--kind glove");
    else if (!code) code = program_strays(of_others, "the other kinds; glove trains on counts of pairs");
    if (!code && strcmp(loss, "negative") != 0 && strcmp(loss, "nce") != 0)
        code = program_stray("negatives", "--loss negative and nce");
    if (!code && to_format_name && format_of(to_format_name) == TN_VECTORS_FASTTEXT_BIN &&
        strcmp(kind, "fasttext") != 0)
        return program_usage("--format fasttext is for --kind fasttext; other vectors have no n-grams");
    return code;
}

int run_train(int count, char **operands)
{
    (void)count, (void)operands;
    if (resume && !checkpoint) return program_usage("--resume needs --checkpoint");
    int code = check_files();
    if (code || (code = check_options())) return code;
    if (!check_can_start()) return program_end();
    char        path[1024];
    tn_vectors *v = train();
    if (v && save_vectors(v, out, to_format_name) == TN_OK) {
        if (checkpoint) remove(checkpoint), remove(options_file(path));
        if (!settings.quiet)
            tell("%s: %lld words, dimension %lld, counted in %.2f s\n", out, (long long)tn_vectors_size(v),
                 (long long)dim, last.counting);
        printf("words %lld seconds %.3f rate %.0f\n", (long long)last.words, last.seconds,
               last.seconds > 0 ? (double)last.words / last.seconds : 0.0);
    }
    tn_vectors_free(v);
    return program_end();
}
