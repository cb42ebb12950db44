/* tokenizer_train.c — trains a tokenizer: texts are read in blocks that end with a line (or, in a line longer than a
 * block, before a space); threads count the words of the blocks, each in its own table; the sum of the tables goes to
 * train_merges.c or train_seed.c. The sums do not depend on which thread counted a word. */
#include "data/tokenizer/train/train_unigram.h"
#include "core/base/toolbox.h"
#include "core/base/parallel.h"

#include <string.h>

enum { BLOCK = 1 << 20, BLOCKS = 16 }; /* bytes of a block; blocks counted in parallel */

typedef struct {
    tn_encoding *encoder;
    tn__counted  words;
} counter;

typedef struct {
    const tn_tokenizer            *t;
    char                          *text; /* BLOCKS blocks, and the carried bytes */
    size_t                         bytes[BLOCKS];
    int                            blocks;
    counter                       *counters;
    int                            threads;
    const tn_tokenizer_train_args *args;
    int64_t                        read, total;
} work;

static bool count_word(void *user, const char *word, size_t bytes, bool last)
{
    tn__counted *c = user;
    if (bytes > TN__COUNTED_CHARS_MAX) {
        size_t letters = 0;
        for (size_t i = 0; i < bytes; i++) letters += ((unsigned char)word[i] & 0xc0) != 0x80;
        if (letters > TN__COUNTED_CHARS_MAX) return true;
    }
    if (last) {
        c->marked.bytes = 0;
        if (tn_string_add(&c->marked, (tn_text){word, bytes}) != TN_OK ||
            tn_string_add(&c->marked, (tn_text){"\n", 1}) != TN_OK)
            return false;
        word = c->marked.at, bytes = c->marked.bytes;
    }
    const uint32_t before = c->word.n;
    const int64_t  i = tn__strings_add(&c->word, word, bytes);
    if (i < 0 || !tn__grown((void *)&c->count, &c->room, i + 1, sizeof *c->count)) return false;
    if (i == before) c->count[i] = 0;
    c->count[i]++;
    return true;
}

static void count_block(int64_t from, int64_t to, void *user)
{
    work *w = user;
    for (int64_t b = from; b < to && tn_error() == TN_OK; b++) {
        counter    *c = w->counters + tn__worker();
        const char *text = w->text + b * BLOCK, *end = text + w->bytes[b];
        const bool  sentence = w->t->split == TN__SPLIT_SENTENCE;
        for (const char *line = text, *next; line < end; line = next) {
            const char *stop = memchr(line, '\n', (size_t)(end - line));
            next = stop ? stop + 1 : end; /* a line end is part of its line: GPT-2 has tokens for it */
            size_t n = (size_t)(next - line);
            if (sentence && n && line[n - 1] == '\n') n--;
            if (sentence && n && line[n - 1] == '\r') n--;
            if (!tn__each_word(w->t, c->encoder, line, n, count_word, &c->words)) return;
        }
    }
}

static bool count_blocks(work *w)
{
    tn_parallel_for(w->blocks, 1, count_block, w);
    w->blocks = 0;
    if (w->args->progress && w->total) w->args->progress("reading", (double)w->read / (double)w->total, w->args->user);
    return tn_error() == TN_OK;
}

/* Returns the number of text's n bytes to count now, at least half of them; the rest starts the next block. */
static size_t cut(const char *text, size_t n)
{
    for (size_t i = n; i > n / 2; i--)
        if (text[i - 1] == '\n') return i;
    for (size_t i = n; i > n / 2; i--)
        if (text[i - 1] == ' ') return i - 1;
    size_t i = n;
    while (i > n - 4 && ((unsigned char)text[i - 1] & 0xc0) == 0x80) i--;
    return (unsigned char)text[i - 1] < 0x80 ? n : i - 1; /* before a character that may be incomplete */
}

static bool read_source(work *w, const tn__source *source)
{
    size_t carried = 0;
    for (int64_t at = 0; at < source->size || carried;) {
        if (w->blocks == BLOCKS) {
            const char *from = w->text + (size_t)BLOCKS * BLOCK; /* the carried bytes are kept after the blocks */
            if (!count_blocks(w)) return false;
            memcpy(w->text, from, carried);
        }
        char        *block = w->text + (size_t)w->blocks * BLOCK;
        const size_t room = BLOCK - carried, left = (size_t)tn__min_i64(source->size - at, (int64_t)room);
        if (!tn__source_read(source, block + carried, at, left)) return false;
        const char *zero = memchr(block + carried, 0, left);
        if (zero)
            return tn_raise_false(TN_EFORMAT, "%s: byte %lld is NUL; expected a text in UTF-8", source->label,
                                  (long long)at + (zero - (block + carried)));
        at += (int64_t)left, w->read += (int64_t)left;
        const size_t n = carried + left, kept = at < source->size ? cut(block, n) : n;
        w->bytes[w->blocks++] = kept;
        carried = n - kept;
        memcpy(w->text + (size_t)w->blocks * BLOCK, block + kept, carried);
    }
    return true;
}

static bool add_up(counter *to, const counter *from)
{
    for (uint32_t i = 0; i < from->words.word.n; i++) {
        size_t         n;
        const char    *word = tn__strings_text(&from->words.word, i, &n);
        const uint32_t before = to->words.word.n;
        const int64_t  k = tn__strings_add(&to->words.word, word, n);
        if (k < 0 || !tn__grown((void *)&to->words.count, &to->words.room, k + 1, sizeof *to->words.count))
            return false;
        if (k == before) to->words.count[k] = 0;
        to->words.count[k] += from->words.count[i];
    }
    return true;
}

/* Counts all words of all sources into the first counter. */
static bool count_all(work *w, int n, const tn__source *sources)
{
    for (int i = 0; i < n; i++) w->total += sources[i].size;
    for (int i = 0; i < n; i++)
        if (!read_source(w, sources + i)) return false;
    if (w->blocks && !count_blocks(w)) return false;
    for (int i = 1; i < w->threads; i++)
        if (!add_up(w->counters, w->counters + i)) return false;
    if (w->counters->words.word.n) return true;
    return tn_raise_false(TN_EFORMAT, "%s: no words found in %s", sources->label,
                          n > 1 ? "this or the other texts" : "the text");
}

static bool add_special(tn_tokenizer *t, const tn_tokenizer_train_args *args)
{
    static const char *const bert[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", NULL};
    static const char *const gpt2[] = {"<|endoftext|>", NULL};
    static const char *const sentence[] = {"<unk>", "<s>", "</s>", NULL};
    const char *const       *special = args->special            ? args->special
                                       : t->kind == TN_BYTE_BPE ? gpt2
                                       : t->kind == TN_UNIGRAM  ? sentence
                                                                : bert;
    if (t->kind == TN_SUBWORD) return true;
    const char *unknown = t->kind == TN_UNIGRAM ? "<unk>" : "[UNK]";
    for (; *special; special++) {
        const uint32_t before = t->vocab.n;
        if (!**special || tn_utf8_valid(*special, strlen(*special)) < strlen(*special))
            return tn_raise_false(TN_EINVAL, "tn_tokenizer_train: special token %u is %s", before + 1,
                                  **special ? "not UTF-8" : "empty");
        const int64_t id = tn__strings_add(&t->vocab, *special, strlen(*special));
        if (id < 0) return false;
        const bool hidden = t->kind == TN_UNIGRAM; /* as in a .model */
        if (id == before && !(hidden && !strcmp(*special, unknown)) &&
            !tn__tokenizer_add(t, (tn__added){.id = (int32_t)id, .special = true, .hidden = hidden}))
            return false;
    }
    if (t->vocab.n >= args->vocab_size)
        return tn_raise_false(TN_EINVAL, "tn_tokenizer_train: .vocab_size is %lld, but there are %u special tokens",
                              (long long)args->vocab_size, t->vocab.n);
    t->unknown = t->kind == TN_BYTE_BPE ? -1 : (int32_t)tn_tokenizer_id(t, unknown);
    if (t->unknown >= 0 || t->kind == TN_BYTE_BPE) return true;
    return tn_raise_false(
        TN_EINVAL, "tn_tokenizer_train: %s is not among the special tokens; words that cannot be encoded need it",
        unknown);
}

static bool check(const tn_tokenizer_train_args *args)
{
    const char *invalid = args->vocab_size < 0 || args->vocab_size > INT32_MAX ? "vocab_size"
                          : args->min_count < 0                                ? "min_count"
                          : args->alphabet < 0                                 ? "alphabet"
                          : args->t5 < 0 || args->t5 > 1000                    ? "t5"
                          : (unsigned)args->kind > TN_SUBWORD                  ? "kind"
                                                                               : NULL;
    if (args->kind == TN_SENTENCE_BPE)
        return tn_raise_false(TN_EUNSUPPORTED, "tn_tokenizer_train: TN_SENTENCE_BPE cannot be trained; use TN_UNIGRAM "
                                               "or TN_BPE");
    if (args->t5 && args->kind != TN_UNIGRAM)
        return tn_raise_false(TN_EINVAL, "tn_tokenizer_train: .t5 is for TN_UNIGRAM");
    if (args->kind == TN_SUBWORD && args->special)
        return tn_raise_false(TN_EINVAL, "tn_tokenizer_train: .special is set, but TN_SUBWORD has no special tokens");
    if (invalid) tn_raise(TN_EINVAL, "tn_tokenizer_train: .%s is negative or too large", invalid);
    return !invalid;
}

/* Sets Unigram's rules: words start at each space. Its special tokens get types and scores. */
static bool setup_unigram(tn_tokenizer *t)
{
    const int64_t n = t->vocab.n;
    t->step[t->steps++].kind = TN__STEP_SENTENCE;
    tn__sentence *r = &t->sentence;
    *r = (tn__sentence){.squeeze = true,
                        .space = TN__SPACE_EACH,
                        .cut = true,
                        .each_byte = true,
                        .decode_space = true,
                        .decode_all = true};
    if (!tn__grown((void *)&t->type, &t->type_room, n + 1, 1) ||
        !tn__grown((void *)&t->score, &t->score_room, n + 1, sizeof *t->score))
        return false;
    for (int64_t i = 0; i < n; i++) t->type[i] = i == t->unknown ? TN_TYPE_UNKNOWN : TN_TYPE_CONTROL, t->score[i] = 0;
    return true;
}

static bool train_tokens(tn_tokenizer *t, const tn__counted *words, const tn_tokenizer_train_args *args)
{
    if (t->kind != TN_UNIGRAM) return tn__train_merges(t, words, args);
    t->sentence.cut = false; /* words were cut for counting; the trained tokenizer cuts none */
    return tn__train_unigram(t, words, args);
}

static tn_tokenizer *train(int n, const tn__source *sources, tn_tokenizer_train_args args)
{
    if (!check(&args)) return NULL;
    tn_tokenizer *t = tn__tokenizer_new(args.kind);
    if (!t) return NULL;
    if (args.kind == TN_SUBWORD) args.alphabet = INT64_MAX;
    if (args.cased) t->bert.lower = t->bert.strip = false;
    const int64_t longest_word = t->longest_word;
    t->longest_word = TN__COUNTED_CHARS_MAX + 1; /* longer words arrive shortened, and still too long to count */
    work         w = {.t = t, .threads = tn_threads(), .args = &args};
    const size_t text = (size_t)(BLOCKS + 1) * BLOCK, counters = (size_t)w.threads * sizeof(counter);
    bool         ok = add_special(t, &args) && (t->kind != TN_UNIGRAM || setup_unigram(t));
    w.text = ok ? tn__mem_get(text) : NULL;
    w.counters = w.text ? tn__mem_zeroed(counters) : NULL;
    ok = w.counters != NULL;
    for (int i = 0; ok && i < w.threads; i++) ok = (w.counters[i].encoder = tn_encoding_new()) != NULL;
    ok = ok && count_all(&w, n, sources) && train_tokens(t, &w.counters->words, &args);
    for (int i = 0; w.counters && i < w.threads; i++) {
        counter *c = w.counters + i;
        tn_encoding_free(c->encoder);
        tn__strings_free(&c->words.word);
        tn_string_free(&c->words.marked);
        tn__mem_put(c->words.count, (size_t)c->words.room * sizeof *c->words.count);
    }
    tn__mem_put(w.counters, counters);
    tn__mem_put(w.text, text);
    t->longest_word = longest_word;
    if (ok && t->split == TN__SPLIT_BERT) tn__template_bert(t);
    if (ok && args.cls_last && t->single.n == 3) tn__template_xlnet(t, t->single.part[0].id, t->single.part[2].id);
    if (ok && args.t5) ok = tn__t5_rules(t, "tn_tokenizer_train", args.t5);
    if (ok && tn__tokenizer_finish(t, "tn_tokenizer_train")) return t;
    return tn_tokenizer_free(t), NULL;
}

tn_tokenizer *tn_tokenizer_train_text_run(const char *text, size_t bytes, tn_tokenizer_train_args args)
{
    if (tn__blocked()) return NULL;
    tn__source s;
    return tn__source_memory(&s, "tn_tokenizer_train", text, bytes) ? train(1, &s, args) : NULL;
}

tn_tokenizer *tn_tokenizer_train_run(int n, const char *const *paths, tn_tokenizer_train_args args)
{
    if (tn__blocked()) return NULL;
    if (n < 1 || n > 1000 || !paths)
        return tn_raise_null(TN_EINVAL, "tn_tokenizer_train: n is %d, expected 1 to 1000 files", n);
    const size_t  bytes = (size_t)n * (sizeof(tn__source) + TN__LABEL);
    tn__source   *s = tn__mem_get(bytes);
    char         *label = s ? (char *)(s + n) : NULL;
    int           open = 0;
    tn_tokenizer *t = NULL;
    for (; s && open < n; open++, label += TN__LABEL)
        if (!tn__source_open(s + open, tn__label(label, "tn_tokenizer_train", paths[open]), paths[open])) break;
    if (s && open == n) t = train(n, s, args);
    for (int i = 0; i < open; i++) tn__source_close(s + i);
    tn__mem_put(s, bytes);
    return t;
}
