/* phrases.c — vectors phrases: joins frequent pairs of words into one word, before word vectors are trained. */
#include "core/system/system.h"

#include "programs/common/messages.h"
#include "programs/common/files.h"
#include "programs/common/progress.h"
#include "programs/common/stop.h"
#include "vectors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static option_list text;
static const char *out;
static int64_t     min_count = 5, passes = 1;
static double      threshold = 100;
static bool        force;

const option phrases_options[] = {
    OPTION_LIST("text", 0, "FILE", &text, "text files of any size, words separated by blanks", .required = true),
    OPTION_TEXT("out", 'o', "FILE", &out, "file for the text with joined words", .required = true),
    OPTION_INT("min-count", 0, "N", &min_count, "join only words with at least N occurrences", .least = 1,
               .most = 1e12),
    OPTION_REAL("threshold", 0, "T", &threshold, "minimum score of a phrase in the last pass; higher: fewer phrases",
                .least = 0, .most = 1e12),
    OPTION_INT("passes", 0, "N", &passes, "number of passes for longer phrases; each pass halves the threshold",
               .least = 1, .most = 10),
    OPTION_FLAG("force", 0, &force, "overwrite an existing file"),
    {0}};

/* Returns the path of the file that a pass writes for the next pass, in the folder of the result; the caller frees it
 * with free. Returns NULL if an error is set. */
static char *pass_file(int64_t pass)
{
    const size_t room = strlen(out) + 32;
    char        *path = malloc(room);
    if (!path) return tn_raise_null(TN_ENOMEM, "no memory for a file name");
    snprintf(path, room, "%s.pass%lld", out, (long long)pass);
    if (!file_exists(path) || force) return path;
    tn_raise(TN_EINVAL, "'%s', the output of a pass, already exists; remove it or use --force", path);
    free(path);
    return NULL;
}

static tn_vectors_phrased one_pass(int n, const char *const *from, const char *to, int64_t pass)
{
    char title[32];
    snprintf(title, sizeof title, passes > 1 ? "pass %lld" : "phrases", (long long)pass);
    progress                 bar = progress_begin(title, 100, "%");
    const tn_vectors_phrased p =
        tn_vectors_phrases(n, from, to, .min_count = min_count, .threshold = ldexp(threshold, (int)(passes - pass)),
                           .progress = progress_part, .user = &bar, .stop = &stop_flag);
    progress_end(&bar);
    if (p.words && !settings.quiet)
        tell("%s: %lld phrases in %lld words, %lld joins\n", to, (long long)p.phrases, (long long)p.words,
             (long long)p.joined);
    return p;
}

int run_phrases(int count, char **operands)
{
    (void)count, (void)operands;
    const int code = check_not_text("out", out, &text);
    if (code) return code;
    if (!may_write(out) || !may_create(out, force)) return program_end();
    stop_begin("ending; nothing will be written");
    char              *before = NULL;
    tn_vectors_phrased p = {.words = 1};
    for (int64_t pass = 1; pass <= passes && p.words && tn_error() == TN_OK; pass++) {
        char       *next = pass < passes ? pass_file(pass) : NULL;
        const char *to = pass < passes ? next : out, *const from = before;
        if (to) p = before ? one_pass(1, &from, to, pass) : one_pass(text.count, text.value, to, pass);
        if (before) remove(before);
        free(before);
        before = next;
    }
    free(before);
    if (p.words && tn_error() == TN_OK)
        printf("words %lld phrases %lld joined %lld\n", (long long)p.words, (long long)p.phrases, (long long)p.joined);
    return program_end();
}
