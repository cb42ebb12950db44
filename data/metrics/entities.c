/* entities.c — precision, recall and F1 of entities, by the rules of conlleval (the script of CoNLL-2000 … 2003).
 *
 * A tag is a prefix and a type: B-PER. The script decides from two adjacent tokens whether a chunk starts or ends
 * between them, so it keeps only the token before. `open` is its $inCorrect: a chunk that started in both
 * columns at once, with one type, and has not ended; it is correct if both columns end it at once. The script's
 * treatment of odd tags (other prefixes, no type, the type "0") is kept, so that its table is equal to the last digit.
 *
 * Strict BIO counts in the same way after replacing each I that continues no chunk of its type by O. */
#include "core/base/toolbox.h"
#include "core/tensor/print.h"
#include "data/metrics.h"
#include "data/text/data_private.h"

#include <stdlib.h>

typedef enum { OTHER = 0, OUTSIDE, BEGIN, INSIDE, END, DOT, BRACKET } prefix; /* OTHER: only the types matter */

typedef struct {
    prefix  prefix;
    int64_t type; /* index in `types`; 0: no type */
} tag;

typedef struct {
    int64_t gold, found, correct;
} counts;

struct tn_entities {
    tn_entities_rule rule;
    tag              gold, found; /* tags of the token before */
    bool             open;
    tn_accuracy      tokens;
    tn__strings      types;
    counts           all, *by_type;
    int64_t          n, room; /* size of by_type; `types` may have more after a failed call */
};

static const tag outside = {.prefix = OUTSIDE};

/* ---- tags -------------------------------------------------------------------------------------------------------- */

static bool same(tn_text a, tn_text b) { return a.bytes == b.bytes && (!a.bytes || !memcmp(a.at, b.at, a.bytes)); }

/* Splits as the script's ^([^-]*)-(.*)$: a type may have hyphens; "" and "0", false in Perl, are no type. */
static void split(tn_text text, tn_text *front, tn_text *type)
{
    const char *hyphen = text.bytes ? memchr(text.at, '-', text.bytes) : NULL;
    *front = text, *type = (tn_text){"", 0};
    if (!hyphen) return;
    front->bytes = (size_t)(hyphen - text.at);
    type->at = hyphen + 1, type->bytes = text.bytes - front->bytes - 1;
    if (same(*type, tn_text_of("0"))) type->bytes = 0;
}

/* Splits as seqeval: the prefix is one character, hyphens at either end of the rest are removed, and no type is the
 * type "_". */
static bool split_strictly(tn_text text, tn_text *front, tn_text *type)
{
    if (!text.bytes || !memchr("BIO", text.at[0], 3))
        return tn_raise_false(TN_EFORMAT, "tn_entities_add: '%.*s' is not a BIO tag; expected O, B-TYPE or I-TYPE",
                              (int)tn__min_i64((int64_t)text.bytes, 60), text.at ? text.at : "");
    *front = (tn_text){text.at, 1}, *type = (tn_text){text.at + 1, text.bytes - 1};
    while (type->bytes && type->at[0] == '-') type->at++, type->bytes--;
    while (type->bytes && type->at[type->bytes - 1] == '-') type->bytes--;
    if (text.at[0] == 'O') type->bytes = 0;
    else if (!type->bytes) *type = tn_text_of("_");
    return true;
}

static prefix prefix_of(tn_text front)
{
    if (front.bytes != 1) return OTHER;
    switch (front.at[0]) {
    case 'O': return OUTSIDE;
    case 'B': return BEGIN;
    case 'I': return INSIDE;
    case 'E': return END;
    case '.': return DOT;
    case '[':
    case ']': return BRACKET;
    default: return OTHER;
    }
}

/* false: raised */
static bool read_tag(tn_entities *e, tn_text text, const tag *last, tag *to, tn_text *front)
{
    const bool strict = e->rule == TN_ENTITIES_STRICT;
    tn_text    type;
    if (!strict) split(text, front, &type);
    else if (!split_strictly(text, front, &type)) return false;
    *to = (tag){prefix_of(*front), tn__strings_add(&e->types, type.at, type.bytes)};
    if (to->type < 0) return false;
    if (strict && to->prefix == INSIDE && last->type != to->type) *to = outside;
    return true;
}

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

static bool ends(tag last, tag now)
{
    const bool in = last.prefix == BEGIN || last.prefix == INSIDE;
    if (in && (now.prefix == BEGIN || now.prefix == OUTSIDE)) return true;
    if (last.prefix == END && (now.prefix == END || now.prefix == INSIDE || now.prefix == OUTSIDE)) return true;
    if (last.prefix != OUTSIDE && last.prefix != DOT && last.type != now.type) return true;
    return last.prefix == BRACKET;
}

static bool starts(tag last, tag now)
{
    const bool after_out = last.prefix == OUTSIDE, after_end = last.prefix == END;
    if (now.prefix == BEGIN && (after_out || last.prefix == BEGIN || last.prefix == INSIDE)) return true;
    if ((now.prefix == INSIDE || now.prefix == END) && (after_out || after_end)) return true;
    if (now.prefix != OUTSIDE && now.prefix != DOT && last.type != now.type) return true;
    return now.prefix == BRACKET;
}

static void step(tn_entities *e, tag gold, tag found)
{
    if (e->open) {
        const bool a = ends(e->gold, gold), b = ends(e->found, found);
        if (a && b && e->gold.type == e->found.type) {
            e->open = false;
            e->all.correct++, e->by_type[e->gold.type].correct++;
        } else if (a != b || gold.type != found.type) {
            e->open = false;
        }
    }
    const bool a = starts(e->gold, gold), b = starts(e->found, found);
    if (a && b && gold.type == found.type) e->open = true;
    if (a) e->all.gold++, e->by_type[gold.type].gold++;
    if (b) e->all.found++, e->by_type[found.type].found++;
    e->gold = gold, e->found = found;
}

tn_entities *tn_entities_new(tn_entities_rule rule)
{
    if (tn__blocked()) return NULL;
    if ((unsigned)rule > TN_ENTITIES_STRICT)
        return tn_raise_null(TN_EINVAL, "tn_entities_new: rule is not a tn_entities_rule");
    tn_entities *e = tn__mem_zeroed(sizeof *e);
    if (!e) return NULL;
    e->rule = rule, e->gold = e->found = outside;
    if (tn__strings_add(&e->types, "", 0) == 0 && tn__grown(&e->by_type, &e->room, 1, sizeof *e->by_type)) {
        e->by_type[e->n++] = (counts){0};
        return e;
    }
    tn_entities_free(e);
    return NULL;
}

tn_status tn_entities_add(tn_entities *e, tn_text gold, tn_text predicted)
{
    if (tn__blocked()) return tn__self.error;
    if (!e || (!gold.at && gold.bytes) || (!predicted.at && predicted.bytes))
        return tn_raise(TN_EINVAL, "tn_entities_add: %s is NULL",
                        !e                       ? "e"
                        : !gold.at && gold.bytes ? "gold"
                                                 : "predicted");
    tag     g, p;
    tn_text gold_front, front;
    if (!read_tag(e, gold, &e->gold, &g, &gold_front) || !read_tag(e, predicted, &e->found, &p, &front) ||
        !tn__grown((void *)&e->by_type, &e->room, e->types.n, sizeof *e->by_type))
        return tn__self.error;
    while (e->n < e->types.n) e->by_type[e->n++] = (counts){0};
    e->tokens.counted++;
    e->tokens.right +=
        e->rule == TN_ENTITIES_STRICT ? same(gold, predicted) : same(gold_front, front) && g.type == p.type;
    step(e, g, p);
    return TN_OK;
}

void tn_entities_end_sentence(tn_entities *e)
{
    if (e) step(e, outside, outside);
}

void tn_entities_free(tn_entities *e)
{
    if (!e) return;
    tn__strings_free(&e->types);
    tn__mem_put(e->by_type, (size_t)e->room * sizeof *e->by_type);
    tn__mem_put(e, sizeof *e);
}

/* ---- the scores -------------------------------------------------------------------------------------------------- */

/* Counts with a chunk that is open at the end as correct. */
static counts counted(const tn_entities *e, int64_t type)
{
    counts c = type < 0 ? e->all : type < e->n ? e->by_type[type] : (counts){0};
    c.correct += e->open && (type < 0 || type == e->gold.type);
    return c;
}

/* whole: 1 or 100. The script computes percentages, which may round differently. */
static tn_entities_score score(counts c, double whole)
{
    tn_entities_score s = {.gold = c.gold, .found = c.found, .correct = c.correct};
    if (c.found) s.precision = whole * (double)c.correct / (double)c.found;
    if (c.gold) s.recall = whole * (double)c.correct / (double)c.gold;
    if (s.precision + s.recall > 0) s.f1 = 2 * s.precision * s.recall / (s.precision + s.recall);
    return s;
}

tn_entities_score tn_entities_of(const tn_entities *e, const char *type)
{
    int64_t t = -1;
    if (!e || (type && (t = tn__strings_find(&e->types, type, strlen(type))) < 0)) return score((counts){0}, 1);
    return score(counted(e, t), 1);
}

const char *tn_entities_type(const tn_entities *e, int64_t i)
{
    return e && i >= 0 && i < e->types.n ? tn__strings_at(&e->types, i).at : NULL;
}

tn_accuracy tn_entities_tokens(const tn_entities *e) { return e ? e->tokens : (tn_accuracy){0}; }

/* ---- the table --------------------------------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b) /* Perl's order; all entries differ */
{
    const tn_text *s = a, *t = b;
    const size_t   n = s->bytes < t->bytes ? s->bytes : t->bytes;
    const int      first = n ? memcmp(s->at, t->at, n) : 0;
    return first ? first : (s->bytes > t->bytes) - (s->bytes < t->bytes);
}

static bool put(tn_string *to, const char *text) { return tn_string_add(to, tn_text_of(text)) == TN_OK; }

static bool put_number(tn_string *to, const char *name, double value, const char *after)
{
    char number[32], padded[40];
    snprintf(number, sizeof number, "%.2f", value);
    tn__c_decimal_point(number);
    snprintf(padded, sizeof padded, "%6s", number);
    return put(to, name) && put(to, padded) && put(to, after);
}

static bool put_scores(tn_string *to, tn_entities_score s)
{
    return put_number(to, "precision: ", s.precision, "%; ") && put_number(to, "recall: ", s.recall, "%; ") &&
           put_number(to, "FB1: ", s.f1, "");
}

static bool put_type(tn_string *to, const tn_entities *e, tn_text type)
{
    enum { WIDTH = 17 };
    const counts c = counted(e, tn__strings_find(&e->types, type.at, type.bytes));
    char         found[32];
    if (!c.gold && !c.found) return true;
    snprintf(found, sizeof found, "  %lld\n", (long long)c.found);
    /* The script lists a type once, but the empty one twice. */
    for (int i = 0; i < (!type.bytes && c.gold && c.found ? 2 : 1); i++) {
        for (size_t k = type.bytes; k < WIDTH; k++)
            if (!put(to, " ")) return false;
        if (tn_string_add(to, type) != TN_OK || !put(to, ": ") || !put_scores(to, score(c, 100)) || !put(to, found))
            return false;
    }
    return true;
}

static bool put_all(tn_string *to, const tn_entities *e)
{
    const counts c = counted(e, -1);
    char         line[128];
    snprintf(line, sizeof line, "processed %lld tokens with %lld phrases; found: %lld phrases; correct: %lld.\n",
             (long long)e->tokens.counted, (long long)c.gold, (long long)c.found, (long long)c.correct);
    if (!put(to, line)) return false;
    if (!e->tokens.counted) return true;
    return put_number(to, "accuracy: ", 100 * (double)e->tokens.right / (double)e->tokens.counted, "%; ") &&
           put_scores(to, score(c, 100)) && put(to, "\n");
}

tn_status tn_entities_text(const tn_entities *e, tn_string *to)
{
    if (tn__blocked()) return tn__self.error;
    if (!e || !to) return tn_raise(TN_EINVAL, "tn_entities_text: %s is NULL", e ? "to" : "e");
    tn_text *types = tn__mem_get((size_t)e->types.n * sizeof *types);
    if (!types) return tn__self.error;
    for (int64_t i = 0; i < e->types.n; i++) types[i] = tn__strings_at(&e->types, i);
    qsort(types, e->types.n, sizeof *types, by_bytes);
    to->bytes = 0;
    bool done = put_all(to, e);
    for (int64_t i = 0; done && i < e->types.n; i++) done = put_type(to, e, types[i]);
    tn__mem_put(types, (size_t)e->types.n * sizeof *types);
    return tn__self.error;
}
