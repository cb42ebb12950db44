/* bert_words_slow.c — splits a text into words by the rules of BERT's slow tokenizer (Python), where they differ from
 * the fast ones (bert_words.c): unassigned code points are removed, too; the text between white space is composed
 * (NFC), then lower-cased as a whole, so that a Greek sigma at the end of a word becomes final; marks are removed and
 * punctuation splits only after that; the tables are of the current Unicode. */
#include "data/tokenizer/encode/bert_words.h"
#include "data/text/unicode.h"

enum { CHUNK = 1024 }; /* code points: a longer text without white space is composed in parts */

typedef struct {
    tn__bert w;
    int      n;
    uint32_t code[CHUNK];
    int32_t  from[CHUNK], to[CHUNK];
} chunk;

/* Composes the chunk. If that changes it, each letter comes from all bytes of the chunk. */
static void compose(chunk *x)
{
    utf8proc_int32_t out[4 * CHUNK];
    const int32_t    last = x->to[x->n - 1];
    long             n = 0;
    bool             same = true;
    for (int i = 0; i < x->n; i++) {
        uint32_t  part[TN__DECOMPOSED];
        const int parts = tn__decompose(x->code[i], utf8proc_get_property((utf8proc_int32_t)x->code[i]), part);
        if (n + parts > 4 * CHUNK) return;
        for (int k = 0; k < parts; k++) {
            const int class = utf8proc_get_property((utf8proc_int32_t)part[k])->combining_class;
            long at = n++;
            for (; class && at; at--) {
                if (utf8proc_get_property(out[at - 1])->combining_class <= class) break;
                out[at] = out[at - 1];
            }
            out[at] = (utf8proc_int32_t)part[k];
        }
    }
    n = (long)utf8proc_normalize_utf32(out, n, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (n < 0 || n > CHUNK) return;
    for (int i = 0; i < n; i++) same = same && i < x->n && x->code[i] == (uint32_t)out[i];
    if (same && n == x->n) return;
    for (int i = 0; i < n; i++) x->code[i] = (uint32_t)out[i], x->from[i] = x->from[0], x->to[i] = last;
    x->n = (int)n;
}

static bool flush(chunk *x)
{
    if (x->n) compose(x);
    for (int i = 0; i < x->n; i++) {
        uint32_t small[2] = {x->code[i]};
        int      n = 1;
        if (x->w.t->bert.lower && small[0] == 0x3a3) small[0] = tn__final_sigma(x->code, x->n, i) ? 0x3c2 : 0x3c3;
        else if (x->w.t->bert.lower) n = tn__lower(x->code[i], small);
        for (int k = 0; k < n; k++)
            if (!tn__bert_put(&x->w, small[k], x->from[i], x->to[i])) return false;
    }
    x->n = 0;
    return true;
}

static bool end(chunk *x) { return flush(x) && tn__bert_end(&x->w); }

bool tn__bert_words_slow(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                         int32_t *number)
{
    chunk x;
    x.w = (tn__bert){.t = t, .s = s, .number = number}, x.n = 0;
    for (int32_t at = from; at < to;) {
        size_t         next = (size_t)at;
        const uint32_t c = tn_utf8_next(text, (size_t)to, &next, NULL);
        const int      category = tn__category(c);
        const bool     blank = c == '\t' || c == '\n' || c == '\r', alone = t->bert.chinese && tn__is_chinese(t, c);
        const bool     removed = !blank && (!c || c == TN_REPLACEMENT || !category || tn__is_control(category));
        const int32_t  begin = at;
        at = (int32_t)next;
        if (t->bert.clean && removed) continue;
        if (blank || alone || tn__is_space(c)) {
            if (!end(&x)) return false;
            if (!alone) continue;
        } else if (x.n == CHUNK && !flush(&x)) {
            return false;
        }
        x.code[x.n] = c, x.from[x.n] = begin, x.to[x.n++] = at;
        if (alone && !end(&x)) return false;
    }
    return end(&x);
}
