/* score.c — translate score: BLEU, chrF and TER of standard input, as sacreBLEU has them. */
#include "translate.h"

#include <string.h>

static option_list references;
static const char *tokenizer = "13a";
static bool        json, lower;

/* The lines of a file, or of standard input, which may be a pipe. */
typedef struct {
    tn_lines *file;
    tn_string text;
    size_t    at;
    int64_t   n;
} lines;
static bool lines_open(lines *l, const char *path)
{
    char   part[65536];
    size_t got;
    *l = (lines){.file = path ? tn_lines_load(path) : NULL};
    if (path) l->n = tn_lines_count(l->file);
    while (!path && (got = fread(part, 1, sizeof part, stdin)) > 0 && tn_error() == TN_OK)
        tn_string_add(&l->text, (tn_span){part, got});
    for (size_t i = 0; i < l->text.bytes; i++) l->n += l->text.at[i] == '\n' || i + 1 == l->text.bytes;
    return tn_error() == TN_OK;
}
static tn_span lines_next(lines *l, int64_t i) /* one after the other */
{
    if (l->file) return tn_lines_at(l->file, i);
    if (!l->text.at) return (tn_span){"", 0};
    const char *from = l->text.at + l->at, *end = memchr(from, '\n', l->text.bytes - l->at);
    tn_span     s = {from, end ? (size_t)(end - from) : l->text.bytes - l->at};
    l->at += s.bytes + 1;
    if (s.bytes && from[s.bytes - 1] == '\r') s.bytes--;
    return s;
}
static void lines_close(lines *l) { tn_lines_free(l->file), tn_string_free(&l->text); }

static int run(int count, char **operands)
{
    enum { MOST = 8 };
    tn_lines *ref[MOST] = {NULL};
    lines     out;
    tn_bleu   bleu = {.lowercase = lower};
    tn_chrf   chrf = {.lowercase = lower}, chrfpp = {.word_order = 2, .lowercase = lower};
    tn_ter    ter = {.case_sensitive = !lower};
    char      text[TN_METRIC_TEXT];
    if (references.count > MOST) return program_usage("at most %d files of references", MOST);
    bleu.tokenize = !strcmp(tokenizer, "intl") ? TN_BLEU_INTL : !strcmp(tokenizer, "none") ? TN_BLEU_NONE : TN_BLEU_13A;
    lines_open(&out, count ? operands[0] : NULL);
    for (int i = 0; i < references.count && tn_error() == TN_OK; i++) {
        ref[i] = tn_lines_load(references.value[i]);
        if (tn_error() == TN_OK && tn_lines_count(ref[i]) != out.n)
            tn_raise(TN_EFORMAT, "'%s' has %lld lines, the translations %lld: they must belong together, line by line",
                     references.value[i], (long long)tn_lines_count(ref[i]), (long long)out.n);
    }
    for (int64_t i = 0; i < out.n && tn_error() == TN_OK; i++) {
        const tn_span said = lines_next(&out, i);
        tn_span       r[MOST];
        for (int k = 0; k < references.count; k++) r[k] = tn_lines_at(ref[k], i);
        tn_bleu_add(&bleu, said, references.count, r);
        tn_chrf_add(&chrf, said, references.count, r);
        tn_chrf_add(&chrfpp, said, references.count, r);
        tn_ter_add(&ter, said, references.count, r);
    }
    if (tn_error() == TN_OK && json)
        printf("{\"bleu\":%.4f,\"chrf\":%.4f,\"chrfpp\":%.4f,\"ter\":%.6f}\n", tn_bleu_score(&bleu),
               tn_chrf_score(&chrf), tn_chrf_score(&chrfpp), tn_ter_score(&ter));
    else if (tn_error() == TN_OK) {
        printf("%s\n", tn_bleu_text(&bleu, 2, text));
        printf("%s\n", tn_chrf_text(&chrf, 2, text));
        printf("%s\n", tn_chrf_text(&chrfpp, 2, text));
        printf("%s\n", tn_ter_text(&ter, 2, text));
    }
    lines_close(&out);
    for (int i = 0; i < MOST; i++) tn_lines_free(ref[i]);
    return program_end();
}

static const option options[] = {
    OPTION_LIST("ref", 'r', "FILE", &references, "translations by people, of as many lines", .required = true),
    OPTION_TEXT("tokenize", 0, "HOW", &tokenizer, "how BLEU cuts a line into words", .choices = "13a|intl|none"),
    OPTION_FLAG("lowercase", 'l', &lower, "capitals do not count"),
    OPTION_FLAG("json", 0, &json, "one line of JSON: bleu, chrf, chrfpp, ter"),
    {0},
};
const command score_command = {
    .name = "score",
    .summary = "how near translations are to those of people",
    .options = options,
    .run = run,
    .operands = "[FILE]",
    .least = 0,
    .most = 1,
    .text = "BLEU, chrF, chrF++ and TER as sacreBLEU computes and prints them, of a file or of standard input.",
};
