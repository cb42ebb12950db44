/* einsum_equation.c — parser of einsum's equation: operands of letters and "...", separated by commas, optionally "->"
 * and an output. Anything else is an error that quotes the equation and names the place. */
#include "autograd/rooms/einsum_equation.h"

#define FAIL(code, fmt, ...) tn_infer_fail(c, code, "'%.200s': " fmt, q->text, __VA_ARGS__)

static int label_of(char ch) { return ch >= 'A' && ch <= 'Z' ? ch - 'A' : ch >= 'a' && ch <= 'z' ? ch - 'a' + 26 : -1; }
static char letter_of(int label) { return (char)(label < 26 ? 'A' + label : 'a' + label - 26); }

static const char *skip(const char *p)
{
    while (*p == ' ') p++;
    return p;
}

/* Reads one operand or the output, from *p to the next ',', '->' or the end. rest: the number of dims denoted by "...".
 * `name` names the term in messages. */
static bool read_term(const tn_ctx *c, const tn__equation *q, const char **p, const char *name, int rest, tn__term *t,
                      int *letters, bool *dots)
{
    const char *s = skip(*p);
    t->n = *letters = 0, *dots = false;
    for (; *s && *s != ',' && *s != '-'; s = skip(s + 1)) {
        int count = 1, label = label_of(*s);
        if (*s == '.') {
            if (s[1] != '.' || s[2] != '.') return FAIL(TN_EINVAL, "%s has a dot that is not part of '...'", name);
            if (*dots) return FAIL(TN_EINVAL, "%s has '...' twice", name);
            *dots = true, count = rest, label = TN__LETTERS + rest - 1, s += 2;
        } else if (label < 0 && (*s < '!' || *s > '~')) {
            return FAIL(TN_EINVAL,
                        "byte 0x%02x is not a letter; an equation consists of letters, ',', '...', '->' and spaces",
                        (unsigned)(unsigned char)*s);
        } else if (label < 0) {
            return FAIL(TN_EINVAL, "'%c' is not a letter; an equation consists of letters, ',', '...', '->' and spaces",
                        *s);
        } else {
            ++*letters;
        }
        for (int i = 0; i < count; i++) {
            if (t->n == TN_MAX_DIMS) return FAIL(TN_ESHAPE, "%s has more than %d dims", name, TN_MAX_DIMS);
            t->d[t->n++] = label - i;
        }
    }
    if (*s == '-' && s[1] != '>') return FAIL(TN_EINVAL, "%s is followed by '-' without '>'", name);
    *p = s;
    return true;
}

bool tn__equation_operand(const tn_ctx *c, const tn__equation *q, const char **p, int i, tn__term *t)
{
    const tn_shape    x = c->in[i]->l.shape;
    const char *const start = *p;
    char              name[32], text[192];
    int               letters;
    bool              dots;
    snprintf(name, sizeof name, "operand %d", i);
    if (!read_term(c, q, p, name, 0, t, &letters, &dots)) return false;
    if (dots ? letters > x.n : letters != x.n)
        return FAIL(TN_ESHAPE, "operand %d has %d letters%s, its tensor is %s", i, letters, dots ? " and '...'" : "",
                    tn_shape_text(x, text, sizeof text));
    *p = start;
    if (!read_term(c, q, p, name, x.n - letters, t, &letters, &dots)) return false;
    if (**p == ',') ++*p;
    return true;
}

static bool read_sizes(const tn_ctx *c, tn__equation *q, int i, const tn__term *t)
{
    for (int k = 0; k < t->n; k++) {
        const int     label = t->d[k];
        const int64_t size = c->in[i]->l.shape.d[k], have = q->size[label];
        q->times[label]++;
        if (label >= TN__LETTERS) {
            if (label - TN__LETTERS >= q->dots) q->dots = label - TN__LETTERS + 1;
            if (have != -1 && size == 1) continue;
            if (have != -1 && have != 1 && have != size)
                return FAIL(TN_ESHAPE, "the dims of '...' do not broadcast: %lld in operand %d and %lld in operand %d",
                            (long long)have, q->operand[label], (long long)size, i);
        } else if (have != -1 && have != size) {
            return FAIL(TN_ESHAPE, "letter '%c' is %lld in operand %d and %lld in operand %d", letter_of(label),
                        (long long)have, q->operand[label], (long long)size, i);
        }
        q->size[label] = size, q->operand[label] = i;
    }
    return true;
}

/* Without "->" the output is the dims of "...", then the letters that occur once. */
static bool imply_output(const tn_ctx *c, tn__equation *q)
{
    q->out.n = 0;
    for (int i = q->dots - 1; i >= 0; i--) q->out.d[q->out.n++] = TN__LETTERS + i;
    for (int label = 0; label < TN__LETTERS; label++) {
        if (q->times[label] != 1) continue;
        if (q->out.n == TN_MAX_DIMS) return FAIL(TN_ESHAPE, "the output has more than %d dims", TN_MAX_DIMS);
        q->out.d[q->out.n++] = label;
    }
    return true;
}

static bool read_output(const tn_ctx *c, tn__equation *q, const char *p)
{
    bool     dots;
    int      letters;
    uint64_t seen = 0;
    if (!read_term(c, q, &p, "the output", q->dots, &q->out, &letters, &dots)) return false;
    if (*p) return FAIL(TN_EINVAL, "'%c' in the output, which must be one term", *p);
    for (int i = 0; i < q->out.n; i++) {
        const int label = q->out.d[i];
        if (q->size[label] == -1)
            return FAIL(TN_EINVAL, "letter '%c' of the output is in no operand", letter_of(label));
        if (seen & tn__label_bit(label)) return FAIL(TN_EINVAL, "letter '%c' is twice in the output", letter_of(label));
        seen |= tn__label_bit(label);
    }
    return true;
}

uint64_t tn__equation_kept(const tn__equation *q, tn_shape x, const tn__term *t)
{
    uint64_t s = 0;
    for (int k = 0; k < t->n; k++)
        if (x.d[k] == q->size[t->d[k]]) s |= tn__label_bit(t->d[k]);
    return s;
}

bool tn__equation_read(const tn_ctx *c, const char *text, tn__equation *q)
{
    const char *p = text;
    tn__term    t;
    int         operands = 1;
    *q = (tn__equation){.text = text};
    for (int i = 0; i < TN__LABELS; i++) q->size[i] = -1;
    for (const char *s = text; *s && *s != '-'; s++) operands += *s == ',';
    if (operands != c->nin)
        return FAIL(TN_EINVAL, "the equation has %d operand%s, %d tensor%s given", operands, operands == 1 ? "" : "s",
                    c->nin, c->nin == 1 ? " was" : "s were");
    for (int i = 0; i < c->nin; i++)
        if (!tn__equation_operand(c, q, &p, i, &t) || !read_sizes(c, q, i, &t)) return false;
    if (*p ? !read_output(c, q, p + 2) : !imply_output(c, q)) return false;
    p = text;
    for (int i = 0; i < c->nin; i++) {
        tn__equation_operand(c, q, &p, i, &t);
        const uint64_t s = tn__equation_kept(q, c->in[i]->l.shape, &t);
        for (int label = 0; label < TN__LABELS; label++) q->uses[label] += (int)(s >> label & 1);
    }
    return true;
}

void tn__equation_used(tn__equation *q, uint64_t labels)
{
    for (int label = 0; label < TN__LABELS; label++) q->uses[label] -= (int)(labels >> label & 1);
}

uint64_t tn__equation_needed(const tn__equation *q)
{
    uint64_t s = tn__labels_of(&q->out);
    for (int label = 0; label < TN__LABELS; label++)
        if (q->uses[label] > 0) s |= tn__label_bit(label);
    return s;
}
