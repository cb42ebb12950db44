/* corpus.c — opens a corpus: checks that the cache exists, is complete and was made from these texts, then reads its
 * index. */
#include "data/corpus/corpus_private.h"
#include "core/base/toolbox.h"

void tn_corpus_close(tn_corpus *c)
{
    if (!c) return;
    tn__source_close(&c->source);
    tn__mem_put(c->start, c->start ? (size_t)(c->footer.sentences + 1) * sizeof *c->start : 0);
    tn__mem_put(c->document, c->document ? (size_t)(c->footer.documents + 1) * sizeof *c->document : 0);
    tn__mem_put(c, sizeof *c);
}

bool     tn_corpus_made(const tn_corpus *c) { return c && c->made; }
int64_t  tn_corpus_documents(const tn_corpus *c) { return c ? (int64_t)c->footer.documents : 0; }
int64_t  tn_corpus_sentences(const tn_corpus *c) { return c ? (int64_t)c->footer.sentences : 0; }
int64_t  tn_corpus_tokens(const tn_corpus *c) { return c ? (int64_t)c->footer.tokens : 0; }
uint64_t tn_corpus_checksum(const tn_corpus *c) { return c ? c->footer.self : 0; }

/* ---- the cache --------------------------------------------------------------------------------------------------- */

enum { BLOCK = 1 << 16, FOOTER = 72 };

static uint64_t little(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes; i-- > 0;) v = v << 8 | p[i];
    return v;
}

static bool checksum_of(const char *path, uint64_t *sum)
{
    tn__reader r;
    if (!tn__reader_open(&r, "tn_corpus_open", path)) return false;
    bool done = tn__reader_rest(&r);
    *sum = tn__sum(*sum ^ r.sum, "", 1);
    tn__reader_close(&r);
    return done;
}

/* True if the file starts as a cache does, as far as it goes. Any other file is a user's and must not be replaced. */
static bool is_cache(tn_corpus *c)
{
    char   head[8];
    size_t n = (size_t)tn__min_i64(c->source.size, sizeof head);
    if (!tn__source_read(&c->source, head, 0, n)) return false;
    if (memcmp(head, "TNCORPUS", n) != 0)
        return tn_raise_false(
            TN_EINVAL, "%s: the file exists and is not a corpus cache; choose another name or remove it", c->label);
    return true;
}

/* False if the cache is damaged or was made from other texts; raises only if reading fails or memory runs out. */
static bool read_footer(tn_corpus *c)
{
    unsigned char      head[TN__CORPUS_HEAD], p[FOOTER];
    tn__corpus_footer *f = &c->footer;
    if (c->source.size < TN__CORPUS_HEAD + FOOTER || !tn__source_read(&c->source, head, 0, sizeof head) ||
        !tn__source_read(&c->source, p, c->source.size - FOOTER, FOOTER))
        return false;
    c->width = (int)little(head + 12, 4);
    if (memcmp(head, "TNCORPUS", 8) != 0 || little(head + 8, 4) != TN__CORPUS_VERSION ||
        (c->width != 2 && c->width != 4) || tn__sum(0, p, FOOTER - 8) != little(p + FOOTER - 8, 8))
        return false;
    *f = (tn__corpus_footer){little(p, 8),      little(p + 8, 8),  little(p + 16, 8),
                             little(p + 24, 8), little(p + 32, 8), little(p + 40, 8),
                             little(p + 48, 8), little(p + 56, 8), little(p + 64, 8)};
    uint64_t size = (uint64_t)c->source.size;
    return f->sentences < UINT32_MAX && f->documents <= f->sentences && f->tokens <= size / 2 && f->documents &&
           size == TN__CORPUS_HEAD + f->tokens * (uint64_t)c->width + (f->sentences + f->documents) * 4 + FOOTER;
}

/* Reads the whole file once: verifies the checksum and loads the index at its end. */
static bool read_body(tn_corpus *c, unsigned char *block)
{
    const tn__corpus_footer *f = &c->footer;
    int64_t                  end = c->source.size - FOOTER, index = TN__CORPUS_HEAD + (int64_t)f->tokens * c->width;
    uint64_t                 sum = 0, entry = 0;
    for (int64_t at = 0; at < end;) {
        int64_t stop = at < index ? index : end, n = tn__min_i64(stop - at, BLOCK); /* entries are not split */
        if (!tn__source_read(&c->source, block, at, (size_t)n)) return false;
        sum = tn__sum(sum, block, (size_t)n);
        for (int64_t i = 0; at >= index && i < n; i += 4, entry++) {
            int64_t v = (int64_t)little(block + i, 4), k = (int64_t)entry, d = (int64_t)entry - (int64_t)f->sentences;
            bool    fits = d < 0 ? v <= (int64_t)f->tokens - c->start[k] : v <= (int64_t)f->sentences - c->document[d];
            if (!v || !fits) return false; /* no sentence or document is empty or longer than the total */
            if (d < 0) c->start[k + 1] = c->start[k] + v;
            else c->document[d + 1] = c->document[d] + (uint32_t)v;
        }
        at += n;
    }
    return sum == f->body && c->start[f->sentences] == (int64_t)f->tokens && c->document[f->documents] == f->sentences;
}

static bool read_cache(tn_corpus *c, const tn_corpus_config *config, uint64_t texts)
{
    const tn__corpus_footer *f = &c->footer;
    if (!tn__source_open(&c->source, c->label, config->cache)) return false;
    bool same = is_cache(c) && read_footer(c) && f->texts == texts && f->encoder == config->encoder_sum &&
                f->vocabulary == (uint64_t)config->vocabulary && f->by_rule == config->by_rule;
    if (same) {
        unsigned char *block = tn__mem_get(BLOCK);
        c->start = block ? tn__mem_zeroed((size_t)(f->sentences + 1) * sizeof *c->start) : NULL;
        c->document = c->start ? tn__mem_zeroed((size_t)(f->documents + 1) * sizeof *c->document) : NULL;
        same = c->document && read_body(c, block);
        tn__mem_put(block, BLOCK);
    }
    if (same) return true;
    tn__source_close(&c->source);
    tn__mem_put(c->start, c->start ? (size_t)(f->sentences + 1) * sizeof *c->start : 0);
    tn__mem_put(c->document, c->document ? (size_t)(f->documents + 1) * sizeof *c->document : 0);
    c->start = NULL, c->document = NULL;
    return false;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool check(const tn_corpus_config *c)
{
    const char *wrong = c->n < 1 || !c->files                    ? ".files is empty; name at least one text file"
                        : !c->cache || !*c->cache                ? ".cache is empty; name the cache file"
                        : !c->encoder.encode                     ? "there is no encoder; set .tokenizer or .encoder"
                        : c->vocabulary < 1                      ? ".vocabulary must be at least 1"
                        : c->vocabulary > (int64_t)INT32_MAX + 1 ? ".vocabulary is larger than 2^31"
                                                                 : NULL;
    for (int i = 0; !wrong && i < c->n; i++)
        if (!c->files[i]) wrong = "an entry of .files is NULL";
    if (wrong) tn_raise(TN_EINVAL, "tn_corpus_open: %s", wrong);
    return !wrong;
}

static tn_corpus *open_corpus(tn_corpus_config config)
{
    tn_corpus *c = check(&config) ? tn__mem_zeroed(sizeof *c) : NULL;
    if (!c) return NULL;
    c->source.fd = -1;
    tn__label(c->label, "tn_corpus_open", config.cache);
    uint64_t texts = 0;
    bool     done = true;
    for (int i = 0; done && i < config.n; i++) done = checksum_of(config.files[i], &texts);
    if (done && !read_cache(c, &config, texts)) { /* a missing or outdated cache is not an error */
        done = tn__self.error == TN_OK || tn__self.error == TN_EIO;
        if (done) tn_clear_error();
        c->made = true;
        done = done && tn__corpus_build(&config, c->label) && read_cache(c, &config, texts);
        if (!done && tn__self.error == TN_OK)
            tn_raise(TN_EIO,
                     "%s: the written cache differs from what is read, or the texts changed meanwhile; try again",
                     c->label);
    }
    if (!done) tn_corpus_close(c), c = NULL;
    return c;
}

tn_corpus *tn_corpus_open_run(tn_corpus_config config)
{
    if (tn__blocked()) return NULL;
    const tn_tokenizer *t = config.tokenizer;
    if (!t) return open_corpus(config);
    tn_encoding *e = config.encoder.encode ? NULL : tn_encoding_new();
    if (e) config.encoder = tn_tokenizer_encoder(t, e);
    if (!config.encoder_sum) config.encoder_sum = tn_tokenizer_checksum(t);
    if (!config.vocabulary) config.vocabulary = tn_tokenizer_size(t);
    tn_corpus *c = tn_error() == TN_OK ? open_corpus(config) : NULL;
    tn_encoding_free(e);
    return c;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

bool tn__corpus_read(const tn_corpus *c, int64_t from, int64_t n, int32_t *to)
{
    /* the ids are read into the upper part of `to` and widened from the front */
    unsigned char *p = (unsigned char *)(to + n) - n * c->width;
    if (!n || !tn__source_read(&c->source, p, TN__CORPUS_HEAD + from * c->width, (size_t)(n * c->width))) return !n;
    for (int64_t i = 0; i < n; i++) {
        uint64_t id = little(p + i * c->width, c->width);
        if (id >= c->footer.vocabulary)
            return tn_raise_false(TN_EFORMAT, "%s: a token is outside the vocabulary; the file was changed, remove it",
                                  c->label);
        to[i] = (int32_t)id;
    }
    return true;
}

tn_status tn_corpus_sentence(const tn_corpus *c, int64_t i, tn_ids *to)
{
    if (tn__blocked()) return tn__self.error;
    if (!c || !to) return tn_raise(TN_EINVAL, "tn_corpus_sentence: %s is NULL", c ? "to" : "c");
    if (i < 0 || i >= tn_corpus_sentences(c))
        return tn_raise(TN_EINDEX, "tn_corpus_sentence: no sentence %lld; the corpus has %lld, counted from 0",
                        (long long)i, (long long)tn_corpus_sentences(c));
    int64_t n = c->start[i + 1] - c->start[i];
    if (tn__ids_room(to, n) && tn__corpus_read(c, c->start[i], n, to->at + to->n)) to->n += n;
    return tn__self.error;
}
