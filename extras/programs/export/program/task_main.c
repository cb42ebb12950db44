/* task_main.c — part of an exported program: main of a model that classifies or embeds texts, or tags words. */

#ifdef MODEL_MAIN
static int id[LENGTH];

#if PICKS
static int largest(const float *score)
{
    int best = 0;
    for (int i = 1; i < CLASSES; i++) best = score[i] > score[best] ? i : best;
    return best;
}

#endif
#if TAGS
/* ---- the program: prints the words of each line and their tags, like bert tag ------------------------------------ */

static struct {
    int token, from, bytes; /* its first token; its place in the line */
} word_at[LENGTH];
static int n, words; /* of a row, which is a part of a long line */

static void tag_row(void)
{
    for (int i = 0; i < AFTER; i++) id[n++] = after[i];
    model_run(id, n);
    const float *scores = model_tag(n);
    for (int i = 0; i < words; i++) {
        static char word[3 * TEXT_MOST];
        fwrite(word, 1, (size_t)make_valid(line + word_at[i].from, word_at[i].bytes, 1, word), stdout);
        printf("\t%s\n", label[largest(scores + word_at[i].token * CLASSES_WIDE)]);
    }
    n = words = 0;
}

static void add_word(int from, int bytes)
{
    static int token[LENGTH];
    const int  most = LENGTH - BEFORE - AFTER;
    int        tokens = encode_bare(line + from, bytes, token, 0, most);
    if (tokens == 0) token[tokens++] = UNKNOWN;
    if (n > 0 && n - BEFORE + tokens > most) tag_row();
    for (int i = 0; n < BEFORE && i < BEFORE; i++) id[n++] = before[i];
    word_at[words].token = n, word_at[words].from = from, word_at[words++].bytes = bytes;
    for (int i = 0; i < tokens; i++) id[n++] = token[i];
}

static int is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

int main(void)
{
    for (int bytes; (bytes = read_line(0)) != -1;) {
        if (bytes < 0) return 1;
        for (int at = 0, from = 0; at <= bytes; at++) {
            if (at < bytes && !is_blank(line[at])) continue;
            if (at > from) add_word(from, at - from);
            from = at + 1;
        }
        if (n == 0) return fprintf(stderr, "a line has no word\n"), 1;
        tag_row();
        putchar('\n');
    }
    return 0;
}
#endif
#if CLASSIFIES
/* ---- the program: prints the label of each line, like bert classify ---------------------------------------------- */

static void print_result(const float *score)
{
#if SINGLE
    const int best = largest(score);
    double    sum = 0;
    for (int i = 0; i < CLASSES; i++) sum += exp((double)score[i] - (double)score[best]);
    printf("%s\t%.4f\n", label[best], 1 / sum);
#endif
#if MULTIPLE
    for (int i = 0, any = 0; i < CLASSES; i++)
        if (1 / (1 + exp(-(double)score[i])) >= 0.5) printf("%s%s", any++ ? "," : "", label[i]);
    putchar('\n');
#endif
#if REGRESSION
    printf("%.6g\n", (double)score[0]);
#endif
}

int main(void)
{
    for (int bytes; (bytes = read_line(0)) != -1;) {
        if (bytes < 0) return 1;
        int blank = 1;
        for (int i = 0; i < bytes; i++) {
            if (line[i] == '\t') return fprintf(stderr, "a line with a tab is two texts; expected one\n"), 1;
            blank = blank && (line[i] == ' ' || line[i] == '\r');
        }
        if (blank) return fprintf(stderr, "a line is empty\n"), 1;
        model_run(id, model_encode(line, bytes, id));
        print_result(model_classify());
    }
    return 0;
}
#endif
#if EMBEDS
/* ---- the program: prints the vector of each line, like bert embed ------------------------------------------------ */
#include <stdlib.h>

/* Prints the shortest number that is read as x, like Python: 0.25, 1e-05, 100.0. */
static void print_number(float x)
{
    char text[40];
    int  digits = 0, dot = 0, exponent = 0;
    do {
        snprintf(text, sizeof text, "%.*g", ++digits, (double)x);
        dot = exponent = 0;
        for (const char *p = text; *p; p++) dot |= *p == '.', exponent |= *p == '+';
    } while (digits < 17 && (strtof(text, NULL) != x || (exponent && fabsf(x) < 1e16f)));
    for (const char *p = text; *p; p++) dot |= *p == 'e';
    printf("%s%s", text, dot ? "" : ".0");
}

int main(void)
{
    for (int bytes; (bytes = read_line(0)) != -1;) {
        if (bytes < 0) return 1;
        const int    n = model_encode(line, bytes, id);
        const float *v = (model_run(id, n), model_embed(n));
        for (int i = 0; i < VECTOR; i++) i ? putchar(' ') : 0, print_number(v[i]);
        putchar('\n');
    }
    return 0;
}
#endif
#endif
