/* score.c — translate score: BLEU, chrF and TER of a file or of standard input, computed as sacreBLEU does. */
#include "translate.h"

#include <string.h>

static option_list references;
static const char *tokenizer = "13a";
static bool        json, lower, lower_chrf, ter_case, sentences;

/* The lines of a file, or of standard input, which may be a pipe (file is NULL). */
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
        tn_string_add(&l->text, (tn_text){part, got});
    if (!path && ferror(stdin)) tn_raise(TN_EIO, "standard input cannot be read");
    for (size_t i = 0; i < l->text.bytes; i++) l->n += l->text.at[i] == '\n' || i + 1 == l->text.bytes;
    return tn_error() == TN_OK;
}
static tn_text lines_next(lines *l, int64_t i) /* call with i = 0, 1, 2, …, in order */
{
    if (l->file) return tn_lines_at(l->file, i);
    if (!l->text.at) return (tn_text){"", 0};
    const char *from = l->text.at + l->at, *end = memchr(from, '\n', l->text.bytes - l->at);
    tn_text     s = {from, end ? (size_t)(end - from) : l->text.bytes - l->at};
    l->at += s.bytes + 1;
    if (s.bytes && from[s.bytes - 1] == '\r') s.bytes--;
    return s;
}
static void lines_close(lines *l) { tn_lines_free(l->file), tn_string_free(&l->text); }

/* Accumulates the four scores. */
typedef struct {
    tn_bleu bleu;
    tn_chrf chrf, chrfpp;
    tn_ter  ter;
} scores;

static scores scores_new(void)
{
    scores s = {.bleu = {.lowercase = lower, .effective_order = sentences},
                .chrf = {.lowercase = lower_chrf},
                .chrfpp = {.word_order = 2, .lowercase = lower_chrf},
                .ter = {.case_sensitive = ter_case}};
    s.bleu.tokenize = !strcmp(tokenizer, "intl")   ? TN_BLEU_INTL
                      : !strcmp(tokenizer, "none") ? TN_BLEU_NONE
                                                   : TN_BLEU_13A;
    return s;
}
static void scores_add(scores *s, tn_text hypothesis, int n, const tn_text *reference)
{
    tn_bleu_add(&s->bleu, hypothesis, n, reference);
    tn_chrf_add(&s->chrf, hypothesis, n, reference);
    tn_chrf_add(&s->chrfpp, hypothesis, n, reference);
    tn_ter_add(&s->ter, hypothesis, n, reference);
}
static void scores_print(const scores *s)
{
    const double bleu = tn_bleu_score(&s->bleu), chrf = tn_chrf_score(&s->chrf), chrfpp = tn_chrf_score(&s->chrfpp),
                 ter = 100 * tn_ter_score(&s->ter);
    char text[TN_METRIC_TEXT];
    if (json) {
        printf("{\"bleu\":%.4f,\"chrf\":%.4f,\"chrfpp\":%.4f,\"ter\":%.4f}\n", bleu, chrf, chrfpp, ter);
    } else if (sentences) {
        printf("%.2f\t%.2f\t%.2f\t%.2f\n", bleu, chrf, chrfpp, ter);
    } else {
        printf("%s\n", tn_bleu_text(&s->bleu, 2, text));
        printf("%s\n", tn_chrf_text(&s->chrf, 2, text));
        printf("%s\n", tn_chrf_text(&s->chrfpp, 2, text));
        printf("%s\n", tn_ter_text(&s->ter, 2, text));
    }
}

static int run(int count, char **operands)
{
    enum { MAX_REFERENCES = 8 };
    tn_lines *ref[MAX_REFERENCES] = {NULL};
    lines     out;
    scores    all = scores_new();
    if (references.count > MAX_REFERENCES)
        return program_usage("--ref is given %d times, at most %d", references.count, MAX_REFERENCES);
    lines_open(&out, count ? operands[0] : NULL);
    for (int i = 0; i < references.count && tn_error() == TN_OK; i++) {
        ref[i] = tn_lines_load(references.value[i]);
        if (tn_error() == TN_OK && tn_lines_count(ref[i]) != out.n)
            tn_raise(TN_EFORMAT,
                     "'%s' has %lld lines, the translations %lld; line i of one must belong to line i of the other",
                     references.value[i], (long long)tn_lines_count(ref[i]), (long long)out.n);
    }
    for (int64_t i = 0; i < out.n && tn_error() == TN_OK; i++) {
        const tn_text hypothesis = lines_next(&out, i);
        tn_text       r[MAX_REFERENCES];
        for (int k = 0; k < references.count; k++) r[k] = tn_lines_at(ref[k], i);
        scores_add(&all, hypothesis, references.count, r);
        if (!sentences || tn_error() != TN_OK) continue;
        scores_print(&all);
        all = scores_new();
    }
    if (tn_error() == TN_OK && !sentences) scores_print(&all);
    lines_close(&out);
    for (int i = 0; i < MAX_REFERENCES; i++) tn_lines_free(ref[i]);
    return program_end();
}

static const option options[] = {
    OPTION_LIST("ref", 0, "FILE", &references, "reference translations, one per line; repeat for up to 8 files",
                .required = true, .single = true),
    OPTION_TEXT("tokenize", 0, "NAME", &tokenizer, "word tokenizer of BLEU", .choices = "13a|intl|none"),
    OPTION_FLAG("lowercase", 0, &lower, "ignore case in BLEU"),
    OPTION_FLAG("chrf-lowercase", 0, &lower_chrf, "ignore case in chrF and chrF++"),
    OPTION_FLAG("ter-case-sensitive", 0, &ter_case, "distinguish case in TER"),
    OPTION_FLAG("sentence", 0, &sentences, "print the scores of each line: BLEU, chrF, chrF++, TER"),
    OPTION_FLAG("json", 0, &json, "print JSON: bleu, chrf, chrfpp and ter in percent"),
    {0},
};
const command score_command =
    COMMAND("score", "compute BLEU, chrF and TER against reference translations", options, .operands = "[FILE]",
            .least = 0, .most = 1,
            .text = "Computes and prints BLEU, chrF, chrF++ and TER as sacreBLEU does, for FILE or standard input. The "
                    "defaults are also those of sacreBLEU: BLEU and chrF distinguish case, TER ignores it.\n\n"
                    "  translate score --ref test.de test.out");
