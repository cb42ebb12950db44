/* corpus_build.c — writes the cache of a corpus: reads texts by line, splits sentences, encodes and writes them. The
 * file gets its name only when it is complete. */
#include "data/corpus/corpus_private.h"
#include "core/base/toolbox.h"

enum { MAX_LINE = 16 << 20, MAX_SENTENCE = 1 << 16, SPOOL = 1 << 16 };

typedef struct {
    const tn_corpus_config *config;
    tn__sink                sink;
    tn__corpus_footer       footer;
    tn_ids                  ids;    /* token ids of one sentence */
    tn_string               text;   /* joined lines, not yet split */
    size_t                  looked; /* bytes of the text already searched */
    char                   *spool;  /* SPOOL bytes, a buffer before the file */
    size_t                  spooled;
    uint32_t               *length, *document;                /* tokens of each sentence; sentences of each document */
    int64_t                 length_room, document_room, here; /* here: sentences of the current document */
    int                     width;
} maker;

static bool flush(maker *m)
{
    m->footer.body = tn__sum(m->footer.body, m->spool, m->spooled);
    m->sink.size += (int64_t)m->spooled; /* the total size is not known in advance */
    bool done = tn__sink_write(&m->sink, m->spool, m->spooled);
    m->spooled = 0;
    return done;
}

static bool put(maker *m, uint64_t value, int bytes)
{
    if (m->spooled + 8 > SPOOL && !flush(m)) return false;
    for (int i = 0; i < bytes; i++) m->spool[m->spooled++] = (char)(value >> 8 * i);
    return true;
}

static bool add_sentence(maker *m, const tn__reader *r, tn_text text)
{
    while (text.bytes && (*text.at == ' ' || *text.at == '\t')) text.at++, text.bytes--;
    if (!text.bytes) return true;
    m->ids.n = 0;
    tn_status s = m->config->encoder.encode(m->config->encoder.user, text, &m->ids);
    if (tn__self.error == TN_OK && s != TN_OK)
        tn_raise(s, "%s: line %lld: the encoder returned an error", r->label, (long long)r->line);
    if (tn__self.error != TN_OK) return false;
    if (!m->ids.n) return true; /* no known characters */
    for (int64_t i = 0; i < m->ids.n; i++) {
        if (m->ids.at[i] < 0 || m->ids.at[i] >= m->config->vocabulary)
            return tn_raise_false(TN_EINDEX, "%s: line %lld: the encoder returned token %d, outside 0 … %lld", r->label,
                                  (long long)r->line, (int)m->ids.at[i], (long long)m->config->vocabulary - 1);
        if (!put(m, (uint64_t)m->ids.at[i], m->width)) return false;
    }
    int64_t n = (int64_t)m->footer.sentences;
    if (n >= UINT32_MAX - 1 || m->ids.n > UINT32_MAX)
        return tn_raise_false(TN_EUNSUPPORTED, "%s: more than 2^32 sentences", r->label);
    if (!tn__grown((void *)&m->length, &m->length_room, n + 1, sizeof *m->length)) return false;
    m->length[n] = (uint32_t)m->ids.n;
    m->footer.sentences++, m->here++;
    m->footer.tokens += (uint64_t)m->ids.n;
    return true;
}

/* Splits the joined text into sentences; with `end`, also its last, possibly unfinished sentence. */
static bool cut_text(maker *m, const tn__reader *r, bool end)
{
    const char *text = m->text.at;
    size_t      bytes = m->text.bytes, from = 0, stop;
    for (;;) {
        stop = tn__sentence_end(text + from, bytes - from, m->looked);
        m->looked = 0;
        if (!stop) break;
        if (!add_sentence(m, r, (tn_text){text + from, stop})) return false;
        from += stop;
    }
    while (bytes - from > MAX_SENTENCE) { /* an implausibly long sentence: cut at a blank */
        for (stop = MAX_SENTENCE; stop > MAX_SENTENCE / 2 && text[from + stop] != ' ';) stop--;
        while (((unsigned char)text[from + stop] & 0xc0) == 0x80 && stop > 1) stop--; /* not inside a UTF-8 character */
        if (!add_sentence(m, r, (tn_text){text + from, stop})) return false;
        from += stop;
    }
    if (end && !add_sentence(m, r, (tn_text){text + from, bytes - from})) return false;
    m->text.bytes = end ? 0 : bytes - from;
    if (from && !end) memmove(m->text.at, text + from, bytes - from);
    /* a sentence's end depends on the text after it, so search the last characters again */
    m->looked = m->text.bytes > 64 ? m->text.bytes - 64 : 0;
    while (m->looked && ((unsigned char)m->text.at[m->looked] & 0xc0) == 0x80) m->looked--;
    return true;
}

static bool end_document(maker *m, const tn__reader *r)
{
    if (m->text.bytes && !cut_text(m, r, true)) return false;
    if (!m->here) return true;
    int64_t n = (int64_t)m->footer.documents;
    if (!tn__grown((void *)&m->document, &m->document_room, n + 1, sizeof *m->document)) return false;
    m->document[n] = (uint32_t)m->here;
    m->footer.documents++, m->here = 0;
    return true;
}

static bool add_line(maker *m, const tn__reader *r, tn_text line)
{
    while (line.bytes && strchr(" \t\r", line.at[line.bytes - 1]) && line.at[line.bytes - 1]) line.bytes--;
    if (memchr(line.at, 0, line.bytes))
        return tn_raise_false(TN_EFORMAT, "%s: line %lld has a NUL byte; expected text in UTF-8", r->label,
                              (long long)r->line);
    size_t blank = 0;
    while (blank < line.bytes && (line.at[blank] == ' ' || line.at[blank] == '\t')) blank++;
    if (blank == line.bytes) return end_document(m, r);
    if (!m->config->by_rule) return add_sentence(m, r, line);
    if (m->text.bytes && tn_string_add(&m->text, (tn_text){" ", 1}) != TN_OK) return false;
    return tn_string_add(&m->text, line) == TN_OK && cut_text(m, r, false);
}

static bool add_file(maker *m, const char *path)
{
    tn__reader r;
    tn_text    line;
    if (!tn__reader_open(&r, "tn_corpus_open", path)) return false;
    r.most = MAX_LINE;
    bool done = true;
    while (done && tn__reader_line(&r, &line)) done = add_line(m, &r, line);
    done = done && tn__self.error == TN_OK && end_document(m, &r);
    m->footer.texts = tn__sum(m->footer.texts ^ r.sum, "", 1); /* bytes split differently are other documents */
    tn__reader_close(&r);
    return done;
}

static bool add_rest(maker *m)
{
    for (uint64_t i = 0; i < m->footer.sentences; i++)
        if (!put(m, m->length[i], 4)) return false;
    for (uint64_t i = 0; i < m->footer.documents; i++)
        if (!put(m, m->document[i], 4)) return false;
    if (!flush(m)) return false;
    tn__corpus_footer *f = &m->footer;
    const uint64_t     values[] = {f->texts,  f->encoder,   f->vocabulary, f->by_rule,
                                   f->tokens, f->sentences, f->documents,  f->body};
    for (size_t i = 0; i < 8; i++)
        if (!put(m, values[i], 8)) return false;
    uint64_t self = tn__sum(0, m->spool, m->spooled);
    return put(m, self, 8) && flush(m);
}

bool tn__corpus_build(const tn_corpus_config *c, const char *label)
{
    maker m = {.config = c, .width = c->vocabulary > 65536 ? 4 : 2};
    m.footer.encoder = c->encoder_sum, m.footer.vocabulary = (uint64_t)c->vocabulary, m.footer.by_rule = c->by_rule;
    bool opened = tn__sink_open(&m.sink, label, c->cache, 0), done = opened && (m.spool = tn__mem_get(SPOOL));
    for (int i = 0; done && i < 8; i++) m.spool[m.spooled++] = "TNCORPUS"[i];
    done = done && put(&m, TN__CORPUS_VERSION, 4) && put(&m, (uint64_t)m.width, 4);
    for (int i = 0; done && i < c->n; i++) done = add_file(&m, c->files[i]);
    if (done && !m.footer.tokens)
        done = false, tn_raise(TN_EFORMAT, "tn_corpus_open: no text found in %s%s", c->files[0],
                               c->n > 1 ? " and the other files" : "");
    done = done && add_rest(&m);
    if (opened) tn__sink_end(&m.sink, done);
    tn_ids_free(&m.ids);
    tn_string_free(&m.text);
    tn__mem_put(m.spool, SPOOL);
    tn__mem_put(m.length, (size_t)m.length_room * sizeof *m.length);
    tn__mem_put(m.document, (size_t)m.document_room * sizeof *m.document);
    return tn__self.error == TN_OK;
}
