/* train_seed.c — the seed of Unigram's training: the characters that cover 99.95 % of the text, and every run of 2 to
 * 16 characters of one script that has different continuations in the text. The runs are the branches of the suffix
 * tree: the suffixes are sorted, and a run is a common prefix of neighbours.
 *
 * The end of a word counts as one continuation; the end of a line, as another. */
#include "data/tokenizer/train/train_unigram.h"
#include "data/text/unicode.h"
#include "core/base/toolbox.h"

#include <string.h>

enum { LONGEST = 16, MOST = 1000000, SPACE = 0x2581, LINE_END = 0, WORD_END = 1 };
#define COVERAGE 0.9995

/* ---- characters -------------------------------------------------------------------------------------------------- */

/* Scripts, roughly: the first code point of each block. The scripts that Japanese combines are one. */
static int script(uint32_t c)
{
    enum { COMMON = -1, LATIN = 0x41, GREEK = 0x370, CYRILLIC = 0x400, HAN = 0x2e80, HANGUL = 0x1100, ARABIC = 0x600 };
    static const struct {
        uint32_t begin;
        int      is; /* 0: named by its first code point */
    } block[] = {
        {0, LATIN},         {0x300, 0},       {GREEK, 0},       {CYRILLIC, 0},    {0x530, 0},         {0x590, 0},
        {ARABIC, 0},        {0x700, 0},       {0x750, ARABIC},  {0x780, 0},       {0x7c0, 0},         {0x800, 0},
        {0x860, ARABIC},    {0x900, 0},       {0x980, 0},       {0xa00, 0},       {0xa80, 0},         {0xb00, 0},
        {0xb80, 0},         {0xc00, 0},       {0xc80, 0},       {0xd00, 0},       {0xd80, 0},         {0xe00, 0},
        {0xe80, 0},         {0xf00, 0},       {0x1000, 0},      {0x10a0, 0},      {HANGUL, 0},        {0x1200, 0},
        {0x13a0, 0},        {0x1400, 0},      {0x1680, 0},      {0x16a0, 0},      {0x1700, 0},        {0x1780, 0},
        {0x1800, 0},        {0x1900, 0},      {0x1ab0, 0x300},  {0x1b00, 0},      {0x1c80, CYRILLIC}, {0x1c90, 0x10a0},
        {0x1d00, LATIN},    {0x1f00, GREEK},  {0x2071, LATIN},  {0x20d0, 0x300},  {0x2c00, 0},        {0x2c60, LATIN},
        {0x2c80, 0},        {0x2d00, 0x10a0}, {0x2d30, 0},      {0x2d80, 0x1200}, {0x2de0, CYRILLIC}, {HAN, 0},
        {0x3100, 0},        {0x3130, HANGUL}, {0x31a0, 0x3100}, {0x31f0, HAN},    {0xa000, 0},        {0xa4d0, 0},
        {0xa640, CYRILLIC}, {0xa720, LATIN},  {0xa840, 0},      {0xa8e0, 0x900},  {0xa900, 0},        {0xac00, HANGUL},
        {0xf900, HAN},      {0xfb00, LATIN},  {0xfb13, 0x530},  {0xfb1d, 0x590},  {0xfb50, ARABIC},   {0xff21, LATIN},
        {0xff66, HAN},      {0xffa0, HANGUL}, {0x10000, 0},     {0x20000, HAN}};
    const int k = tn__category(c);
    if (!tn__is_letter(k) && !(k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME))
        return c == 0x30fc ? HAN : COMMON;
    size_t i = sizeof block / sizeof *block - 1;
    while (block[i].begin > c) i--;
    return block[i].is ? block[i].is : (int)block[i].begin;
}

typedef struct {
    tn__strings letter;
    int64_t    *count;
    int64_t     room;
    uint32_t   *order;
    uint32_t    kept;
} letters;

static bool rarer(const void *owner, uint32_t a, uint32_t b)
{
    const letters *x = owner;
    if (x->count[a] != x->count[b]) return x->count[a] > x->count[b];
    size_t      na, nb;
    const char *s = tn__strings_text(&x->letter, a, &na), *t = tn__strings_text(&x->letter, b, &nb);
    return strcmp(s, t) < 0;
}

static bool count_letters(letters *x, const tn__unigram *u)
{
    for (uint32_t i = 0; i < u->words.n; i++) {
        size_t      n;
        const char *text = tn__strings_text(&u->words, i, &n);
        for (size_t at = 0, next = 0; at < n; at = next) {
            tn_utf8_next(text, n, &next, NULL);
            const uint32_t before = x->letter.n;
            const int64_t  id = tn__strings_add(&x->letter, text + at, next - at);
            if (id < 0 || !tn__grown((void *)&x->count, &x->room, id + 1, sizeof *x->count)) return false;
            if (id == before) x->count[id] = 0;
            x->count[id] += u->count[i];
        }
    }
    return true;
}

static bool put(tn__unigram *u, const char *text, size_t n, double weight)
{
    const uint32_t i = u->tokens.n;
    if (!tn__grown((void *)&u->score, &u->score_room, (int64_t)i + 1, sizeof *u->score)) return false;
    const int64_t id = tn__strings_add(&u->tokens, text, n);
    if (id == i) u->score[i] = weight;
    return id >= 0;
}

static bool seed_letters(tn__unigram *u)
{
    letters x = {0};
    bool    ok = count_letters(&x, u);
    x.order = ok ? tn__mem_get(((size_t)x.letter.n + 1) * sizeof *x.order) : NULL;
    double all = 0, so_far = 0;
    for (uint32_t i = 0; x.order && i < x.letter.n; i++) x.order[i] = i, all += (double)x.count[i];
    if (x.order) tn__sort(x.order, x.letter.n, rarer, &x);
    ok = x.order != NULL;
    for (uint32_t i = 0; ok && i < x.letter.n && so_far / all < COVERAGE; i++) {
        size_t      n;
        const char *text = tn__strings_text(&x.letter, x.order[i], &n);
        so_far += (double)x.count[x.order[i]];
        ok = put(u, text, n, (double)x.count[x.order[i]]);
    }
    u->letters = u->tokens.n;
    if (x.order) tn__mem_put(x.order, ((size_t)x.letter.n + 1) * sizeof *x.order);
    tn__mem_put(x.count, (size_t)x.room * sizeof *x.count);
    tn__strings_free(&x.letter);
    return ok;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t *letter; /* of all words, one after the other, each with its end */
    int64_t  *weight; /* at each character: the count of the word */
    int64_t   letter_room, weight_room;
    uint32_t  n;
    uint32_t *suffix; /* their start offsets, sorted */
    int64_t   suffix_room;
    uint32_t  suffixes;
    uint32_t *run; /* candidates: start offset, length, count */
    int64_t  *often;
    uint8_t  *length;
    int64_t   run_room, often_room, length_room;
    uint32_t  runs;
} suffixes;

static bool before(const void *owner, uint32_t a, uint32_t b)
{
    const suffixes *x = owner;
    for (int i = 0; i <= LONGEST; i++) {
        const uint32_t p = x->letter[a + (uint32_t)i], q = x->letter[b + (uint32_t)i];
        if (p != q) return p < q;
        if (p <= WORD_END) break;
    }
    return a < b;
}

/* Returns the length of the common prefix of two suffixes, including an end; at most LONGEST + 1. */
static int common(const suffixes *x, uint32_t a, uint32_t b)
{
    int i = 0;
    while (i <= LONGEST && x->letter[a + (uint32_t)i] == x->letter[b + (uint32_t)i])
        if (x->letter[a + (uint32_t)i++] <= WORD_END) break;
    return i;
}

static bool add_letter(suffixes *x, uint32_t c, int64_t weight)
{
    if (x->n >= UINT32_MAX - 64)
        return tn_raise_false(TN_EUNSUPPORTED, "tn_tokenizer_train: the distinct words have too many characters");
    if (!tn__grown((void *)&x->letter, &x->letter_room, (int64_t)x->n + 1, sizeof *x->letter) ||
        !tn__grown((void *)&x->weight, &x->weight_room, (int64_t)x->n + 1, sizeof *x->weight))
        return false;
    x->letter[x->n] = c, x->weight[x->n++] = weight;
    return true;
}

static bool spell(suffixes *x, const tn__counted *words, const uint32_t *order)
{
    for (uint32_t i = 0; i < words->word.n; i++) {
        size_t         n, at = 0;
        const char    *text = tn__strings_text(&words->word, order[i], &n);
        const int64_t  weight = words->count[order[i]];
        const uint32_t end = n && text[n - 1] == '\n' ? LINE_END : WORD_END;
        n -= end == LINE_END;
        while (at < n) {
            if (!tn__grown((void *)&x->suffix, &x->suffix_room, (int64_t)x->suffixes + 1, sizeof *x->suffix))
                return false;
            x->suffix[x->suffixes++] = x->n;
            if (!add_letter(x, tn_utf8_next(text, n, &at, NULL), weight)) return false;
        }
        if (!add_letter(x, end, weight)) return false;
    }
    return true;
}

/* True if these characters may form a token: a space only at the start, one script, no character that is too rare. */
static bool is_piece(const tn__unigram *u, const uint32_t *letter, int n)
{
    int first = 0;
    for (int i = 0; i < n; i++) {
        char text[4];
        if (letter[i] <= WORD_END || (letter[i] == SPACE && i)) return false;
        if (tn__strings_find(&u->tokens, text, (size_t)tn_utf8_put(letter[i], text)) < 0) return false;
        if (letter[i] == SPACE) continue;
        const int s = script(letter[i]);
        if (first && s != first) return false;
        first = s;
    }
    return true;
}

static bool add_run(suffixes *x, const tn__unigram *u, uint32_t at, int n, int64_t often, int64_t least)
{
    if (n < 2 || n > LONGEST || often < least || !is_piece(u, x->letter + at, n)) return true;
    if (!tn__grown((void *)&x->run, &x->run_room, (int64_t)x->runs + 1, sizeof *x->run) ||
        !tn__grown((void *)&x->often, &x->often_room, (int64_t)x->runs + 1, sizeof *x->often) ||
        !tn__grown((void *)&x->length, &x->length_room, (int64_t)x->runs + 1, 1))
        return false;
    x->run[x->runs] = at, x->often[x->runs] = often, x->length[x->runs++] = (uint8_t)n;
    return true;
}

/* Finds the branches of the tree with a stack of the runs that are prefixes of the current suffix, the shortest
 * first. */
static bool branches(suffixes *x, const tn__unigram *u, int64_t least)
{
    struct {
        int     n;
        int64_t sum; /* of the weights before it */
    } open[LONGEST + 3] = {{0, 0}};
    int     depth = 0;
    int64_t sum = 0;
    for (uint32_t i = 0; i < x->suffixes; i++) {
        const int n = i + 1 < x->suffixes ? common(x, x->suffix[i], x->suffix[i + 1]) : 0;
        int64_t   begin = sum;
        sum += x->weight[x->suffix[i]];
        while (open[depth].n > n) {
            begin = open[depth].sum;
            if (!add_run(x, u, x->suffix[i], open[depth].n, sum - begin, least)) return false;
            depth--;
        }
        if (open[depth].n < n) open[++depth].n = n, open[depth].sum = begin;
    }
    return true;
}

static bool heavier(const void *owner, uint32_t a, uint32_t b)
{
    const suffixes *x = owner;
    const int64_t   p = x->often[a] * x->length[a], q = x->often[b] * x->length[b];
    return p != q ? p > q : a < b;
}

static bool put_runs(tn__unigram *u, const suffixes *x)
{
    const size_t bytes = ((size_t)x->runs + 1) * sizeof(uint32_t);
    uint32_t    *order = tn__mem_get(bytes);
    bool         ok = order != NULL;
    for (uint32_t i = 0; ok && i < x->runs; i++) order[i] = i;
    if (ok) tn__sort(order, x->runs, heavier, x);
    for (uint32_t i = 0; ok && i < x->runs && i < MOST; i++) {
        char           text[4 * LONGEST];
        size_t         n = 0;
        const uint32_t r = order[i];
        for (int k = 0; k < x->length[r]; k++) n += (size_t)tn_utf8_put(x->letter[x->run[r] + (uint32_t)k], text + n);
        ok = put(u, text, n, (double)(x->often[r] * x->length[r]));
    }
    tn__mem_put(order, bytes);
    return ok;
}

/* ---- the whole seed ---------------------------------------------------------------------------------------------- */

static bool earlier(const void *owner, uint32_t a, uint32_t b)
{
    size_t      n;
    const char *x = tn__strings_text(owner, a, &n), *y = tn__strings_text(owner, b, &n);
    return strcmp(x, y) < 0;
}

/* Adds each word once, regardless of its place in a line. */
static bool merge_words(tn__unigram *u, const tn__counted *words, const uint32_t *order)
{
    for (uint32_t i = 0; i < words->word.n; i++) {
        size_t      n;
        const char *text = tn__strings_text(&words->word, order[i], &n);
        n -= n && text[n - 1] == '\n';
        if (!n) continue;
        const uint32_t had = u->words.n;
        const int64_t  id = tn__strings_add(&u->words, text, n);
        if (id < 0 || !tn__grown((void *)&u->count, &u->count_room, id + 1, sizeof *u->count)) return false;
        if (id == had) u->count[id] = 0;
        u->count[id] += words->count[order[i]];
    }
    return true;
}

static bool first_scores(tn__unigram *u)
{
    const int64_t n = (int64_t)u->tokens.n + 1;
    double        sum = 0;
    if (!tn__grown((void *)&u->expected, &u->expected_room, n, sizeof *u->expected) ||
        !tn__grown((void *)&u->loss, &u->loss_room, n, sizeof *u->loss) ||
        !tn__grown((void *)&u->alive, &u->alive_room, n, 1) ||
        !tn__grown((void *)&u->order, &u->order_room, n, sizeof *u->order))
        return false;
    for (uint32_t i = 0; i < u->tokens.n; i++) sum += u->score[i];
    for (uint32_t i = 0; i < u->tokens.n; i++)
        u->score[i] = tn__libm_log(u->score[i]) - tn__libm_log(sum), u->alive[i] = true;
    return true;
}

static bool make_seed(tn__unigram *u, const tn__counted *words, const tn_tokenizer_train_args *args)
{
    suffixes     x = {0};
    const size_t bytes = ((size_t)words->word.n + 1) * sizeof(uint32_t);
    uint32_t    *order = tn__mem_get(bytes);
    bool         ok = order != NULL;
    for (uint32_t i = 0; ok && i < words->word.n; i++) order[i] = i;
    if (ok) tn__sort(order, words->word.n, earlier, &words->word);
    ok = ok && merge_words(u, words, order) && seed_letters(u) && spell(&x, words, order);
    if (ok) tn__sort(x.suffix, x.suffixes, before, &x);
    ok = ok && branches(&x, u, tn__max_i64(args->min_count, 2)) && put_runs(u, &x) && first_scores(u);
    tn__mem_put(x.letter, (size_t)x.letter_room * sizeof *x.letter);
    tn__mem_put(x.weight, (size_t)x.weight_room * sizeof *x.weight);
    tn__mem_put(x.suffix, (size_t)x.suffix_room * sizeof *x.suffix);
    tn__mem_put(x.run, (size_t)x.run_room * sizeof *x.run);
    tn__mem_put(x.often, (size_t)x.often_room * sizeof *x.often);
    tn__mem_put(x.length, (size_t)x.length_room);
    tn__mem_put(order, bytes);
    return ok;
}

static void unigram_free(tn__unigram *u)
{
    tn__strings_free(&u->words), tn__strings_free(&u->tokens);
    tn__trie_free(&u->trie);
    tn__mem_put(u->count, (size_t)u->count_room * sizeof *u->count);
    tn__mem_put(u->score, (size_t)u->score_room * sizeof *u->score);
    tn__mem_put(u->expected, (size_t)u->expected_room * sizeof *u->expected);
    tn__mem_put(u->loss, (size_t)u->loss_room * sizeof *u->loss);
    tn__mem_put(u->alive, (size_t)u->alive_room);
    tn__mem_put(u->order, (size_t)u->order_room * sizeof *u->order);
    tn__mem_put(u->alpha, (size_t)u->alpha_room * sizeof *u->alpha);
    tn__mem_put(u->beta, (size_t)u->beta_room * sizeof *u->beta);
    tn__mem_put(u->from, (size_t)u->from_room * sizeof *u->from);
    tn__mem_put(u->token_at, (size_t)u->token_room * sizeof *u->token_at);
}

bool tn__train_unigram(tn_tokenizer *t, const tn__counted *words, const tn_tokenizer_train_args *args)
{
    tn__unigram    u = {0};
    const uint32_t wanted = (uint32_t)args->vocab_size - t->vocab.n;
    bool           ok = make_seed(&u, words, args);
    if (ok && u.letters > wanted)
        tn_raise(TN_EINVAL,
                 "tn_tokenizer_train: .vocab_size is %lld, but the text has %u characters and %u special tokens",
                 (long long)args->vocab_size, u.letters, t->vocab.n),
            ok = false;
    ok = ok && tn__unigram_rounds(&u, (uint32_t)args->vocab_size, args);
    ok = ok && tn__unigram_finish(t, &u, wanted);
    unigram_free(&u);
    return ok;
}
