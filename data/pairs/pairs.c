/* pairs.c — reads pairs of lines from two parallel files or one with tabs, encodes them and filters them by length. */
#include "data/pairs/pairs_private.h"
#include "core/base/toolbox.h"

void tn_pairs_free(tn_pairs *p)
{
    if (!p) return;
    for (int i = 0; i < 2; i++) {
        tn_ids_free(&p->side[i].ids);
        tn__mem_put(p->side[i].start, (size_t)p->side[i].start_room * sizeof *p->side[i].start);
        tn__mem_put(p->side[i].length, (size_t)p->side[i].length_room * sizeof *p->side[i].length);
    }
    tn__mem_put(p->line, (size_t)p->line_room * sizeof *p->line);
    tn__mem_put(p, sizeof *p);
}

int64_t tn_pairs_count(const tn_pairs *p) { return p ? p->n : 0; }
int64_t tn_pairs_dropped(const tn_pairs *p) { return p ? p->dropped : 0; }
int64_t tn_pairs_line(const tn_pairs *p, int64_t pair) { return p && pair >= 0 && pair < p->n ? p->line[pair] : -1; }
int64_t tn_pairs_tokens(const tn_pairs *p, bool of_target) { return p ? p->side[of_target].ids.n : 0; }

uint64_t tn_pairs_checksum(const tn_pairs *p)
{
    uint64_t sum = 0;
    for (int i = 0; p && i < 2; i++) {
        sum = tn__sum(sum, p->side[i].length, (size_t)p->n * sizeof *p->side[i].length);
        sum = tn__sum(sum, p->side[i].ids.at, (size_t)p->side[i].ids.n * sizeof *p->side[i].ids.at);
    }
    return sum;
}

/* ---- a pair ------------------------------------------------------------------------------------------------------ */

static bool fits(const tn_pairs_config *c, const int64_t n[2])
{
    int64_t least = tn__min_i64(n[0], n[1]), most = tn__max_i64(n[0], n[1]);
    return least >= c->min_tokens && (!c->max_tokens || most <= c->max_tokens) &&
           !(c->max_ratio > 0 && (double)most > c->max_ratio * (double)least);
}

/* Raises an error that names the file and the line. */
static bool reject(const tn__reader *r, tn_status code, const char *error)
{
    return tn_raise_false(code, "%s: line %lld %s", r->label, (long long)r->line, error);
}

static bool add_pair(tn_pairs *p, const tn_text text[2], const tn__reader *const from[2])
{
    const tn_encoder *encoder[2] = {&p->config.source, &p->config.target};
    int64_t           before[2], n[2];
    for (int i = 0; i < 2; i++) {
        tn_ids *ids = &p->side[i].ids;
        before[i] = ids->n;
        tn_status s = encoder[i]->encode(encoder[i]->user, text[i], ids);
        if (tn__self.error != TN_OK) return false;
        if (s != TN_OK || ids->n < before[i]) return reject(from[i], s ? s : TN_EINVAL, "is rejected by the encoder");
        n[i] = ids->n - before[i];
        if (!n[i] && p->config.refuse_empty) return reject(from[i], TN_EFORMAT, "is empty");
        if (n[i] > INT32_MAX - 2) return reject(from[i], TN_EUNSUPPORTED, "has more than 2^31 tokens");
    }
    if (!fits(&p->config, n)) {
        for (int i = 0; i < 2; i++) p->side[i].ids.n = before[i];
        p->dropped++;
        return true;
    }
    if (!tn__grown((void *)&p->line, &p->line_room, p->n + 1, sizeof *p->line)) return false;
    for (int i = 0; i < 2; i++) {
        tn__side *s = &p->side[i];
        if (!tn__grown((void *)&s->start, &s->start_room, p->n + 1, sizeof *s->start) ||
            !tn__grown((void *)&s->length, &s->length_room, p->n + 1, sizeof *s->length))
            return false;
        s->start[p->n] = before[i];
        s->length[p->n] = (int32_t)n[i] + 1; /* with the end token */
    }
    p->line[p->n++] = from[0]->line - 1;
    return true;
}

static tn_text without_cr(tn_text t)
{
    if (t.bytes && t.at[t.bytes - 1] == '\r') t.bytes--;
    return t;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static tn_pairs *pairs_new(const char *who, const tn_pairs_config *c)
{
    const char *wrong = !c->source.encode || !c->target.encode           ? ".source and .target need an encoder each"
                        : c->max_tokens && c->max_tokens < c->min_tokens ? ".max_tokens is less than .min_tokens"
                        : c->min_tokens < 0 || c->max_tokens < 0   ? ".min_tokens and .max_tokens must not be negative"
                        : c->pad < 0 || c->begin < 0 || c->end < 0 ? ".pad, .begin and .end must not be negative"
                        : !(c->max_ratio >= 0)                     ? ".max_ratio must not be negative"
                                                                   : NULL;
    if (wrong) return tn_raise_null(TN_EINVAL, "%s: %s", who, wrong);
    tn_pairs *p = tn__mem_zeroed(sizeof *p);
    if (p) p->config = *c;
    return p;
}

static bool read_two(tn_pairs *p, tn__reader *a, tn__reader *b)
{
    const tn__reader *const from[2] = {a, b};
    for (;;) {
        tn_text text[2];
        bool    more[2] = {tn__reader_line(a, &text[0]), tn__reader_line(b, &text[1])};
        if (tn__self.error != TN_OK) return false;
        if (more[0] != more[1]) {
            const tn__reader *ends = more[0] ? b : a, *goes_on = more[0] ? a : b;
            int64_t           lines = ends->line;
            tn_text           rest;
            tn__reader       *left = more[0] ? a : b;
            while (tn__reader_line(left, &rest)) continue;
            if (tn__self.error != TN_OK) return false;
            const char *other = strchr(ends->label, '\'');
            return tn_raise_false(
                TN_EFORMAT,
                "%s: the file has %lld lines, but its counterpart %s ends after line %lld; line i of one must be "
                "the translation of line i of the other",
                goes_on->label, (long long)goes_on->line, other ? other : ends->label, (long long)lines);
        }
        if (!more[0]) return true;
        for (int i = 0; i < 2; i++) text[i] = without_cr(text[i]);
        if (!add_pair(p, text, from)) return false;
    }
}

tn_pairs *tn_pairs_load_run(const char *source, const char *target, tn_pairs_config config)
{
    if (tn__blocked()) return NULL;
    tn_pairs  *p = pairs_new("tn_pairs_load", &config);
    tn__reader a, b;
    bool       done = false;
    if (p && tn__reader_open(&a, "tn_pairs_load", source)) {
        if (tn__reader_open(&b, "tn_pairs_load", target)) {
            done = read_two(p, &a, &b);
            tn__reader_close(&b);
        }
        tn__reader_close(&a);
    }
    if (!done) tn_pairs_free(p), p = NULL;
    return p;
}

static bool read_tabs(tn_pairs *p, tn__reader *r)
{
    const tn__reader *const from[2] = {r, r};
    tn_text                 line;
    while (tn__reader_line(r, &line)) {
        line = without_cr(line);
        const char *tab = memchr(line.at, '\t', line.bytes), *end = line.at + line.bytes;
        if (!tab || memchr(tab + 1, '\t', (size_t)(end - tab - 1)))
            return reject(r, TN_EFORMAT, tab ? "has more than one tab" : "has no tab between source and target");
        tn_text text[2] = {{line.at, (size_t)(tab - line.at)}, {tab + 1, (size_t)(end - tab - 1)}};
        if (!add_pair(p, text, from)) return false;
    }
    return tn__self.error == TN_OK;
}

tn_pairs *tn_pairs_tsv_load_run(const char *path, tn_pairs_config config)
{
    if (tn__blocked()) return NULL;
    tn_pairs  *p = pairs_new("tn_pairs_tsv_load", &config);
    tn__reader r;
    bool       done = false;
    if (p && tn__reader_open(&r, "tn_pairs_tsv_load", path)) {
        done = read_tabs(p, &r);
        tn__reader_close(&r);
    }
    if (!done) tn_pairs_free(p), p = NULL;
    return p;
}
