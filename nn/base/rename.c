/* rename.c — rewrites names in files to names in modules and back, by patterns of dotted parts. */
#include "nn/base/nn_private.h"
#include "nn/base/state_private.h"

enum { MOST_PARTS = 64 };

typedef struct {
    const char *at;
    size_t      bytes;
} part;

/* Splits a name at its dots. Returns the number of parts (0 for ""), or -1 if there are too many. */
static int split(const char *name, part *to)
{
    int n = 0;
    for (; *name; n++) {
        if (n == MOST_PARTS) return -1;
        const size_t bytes = strcspn(name, ".");
        to[n] = (part){name, bytes};
        name += bytes + (name[bytes] == '.');
    }
    return n;
}

static bool part_is(const part *p, const char *text)
{
    return p->bytes == strlen(text) && !memcmp(p->at, text, p->bytes);
}
static bool rename_same(const part *a, const part *b)
{
    return a->bytes == b->bytes && !memcmp(a->at, b->at, a->bytes);
}

/* The match of a pattern: star i matches n[i] parts of the name, starting at from[i]. */
typedef struct {
    int stars, from[TN__MOST_STARS], n[TN__MOST_STARS], rest; /* rest: index of the first part after the match */
} found;

static bool match(const part *p, int np, const part *x, int nx, found *f)
{
    const int any = nx - (np - 1); /* number of parts that ** matches */
    f->stars = 0;
    int at = 0;
    for (int i = 0; i < np; i++) {
        const bool one = part_is(&p[i], "*"), many = part_is(&p[i], "**");
        const int  take = many ? any : 1;
        if (take < 0 || at + take > nx || (!one && !many && !rename_same(&p[i], &x[at]))) return false;
        if (one || many) f->from[f->stars] = at, f->n[f->stars] = take, f->stars++;
        at += take;
    }
    f->rest = at;
    return true;
}

static bool append(char *to, size_t *at, const part *p)
{
    if (*at + p->bytes + 2 > TN_PATH_BYTES) return false;
    if (*at) to[(*at)++] = '.';
    memcpy(to + *at, p->at, p->bytes);
    to[ *at += p->bytes] = 0;
    return true;
}

bool tn__name_matches(const char *pattern, const char *name)
{
    part      p[MOST_PARTS], x[MOST_PARTS];
    found     f = {0};
    const int np = split(pattern, p), nx = split(name, x);
    return np >= 0 && nx >= 0 && match(p, np, x, nx, &f) && f.rest == nx;
}

int tn__renamed(const char *from, const char *to, char name[TN_PATH_BYTES])
{
    part   p[MOST_PARTS], q[MOST_PARTS], x[MOST_PARTS];
    found  f = {0};
    char   old[TN_PATH_BYTES];
    size_t at = 0;
    int    star = 0;
    memcpy(old, name, strlen(name) + 1);
    const int np = split(from, p), nx = split(old, x), nq = to ? split(to, q) : 0;
    if (np < 0 || nx < 0 || nq < 0 || !match(p, np, x, nx, &f)) return 0;
    if (!to) return 1;
    name[0] = 0;
    for (int i = 0; i < nq; i++) {
        const bool is_star = part_is(&q[i], "*") || part_is(&q[i], "**");
        if (!is_star && !append(name, &at, &q[i])) return -1;
        for (int k = 0; is_star && k < f.n[star]; k++)
            if (!append(name, &at, &x[f.from[star] + k])) return -1;
        star += is_star;
    }
    for (int i = f.rest; i < nx; i++)
        if (!append(name, &at, &x[i])) return -1;
    return 1;
}

/* The number of stars in a pattern; -1 if it has two **, or too many parts or stars. */
static int stars(const char *pattern)
{
    part      p[MOST_PARTS];
    const int n = split(pattern, p);
    int       count = 0, many = 0;
    for (int i = 0; i < n; i++) count += part_is(&p[i], "*") || part_is(&p[i], "**"), many += part_is(&p[i], "**");
    return n < 0 || count > TN__MOST_STARS || many > 1 ? -1 : count;
}

static bool pieces_fit(const tn_rename *r)
{
    if (!r->pieces) return !r->piece && !r->groups;
    return r->pieces > 0 && r->pieces <= TN__PIECES && r->groups >= 0 && r->piece >= 0 && r->piece < r->pieces &&
           !r->parts && !r->transpose;
}

bool tn__renames_check(const char *who, const tn_rename *r, int n)
{
    if (n < 0 || !n != !r)
        return tn_raise_false(TN_EINVAL, "%s: .renames is %d, but .rename is %s", who, n, r ? "set" : "NULL");
    for (int i = 0; i < n; i++) {
        if (!r[i].file) return tn_raise_false(TN_EINVAL, "%s: rename %d: .file is NULL", who, i);
        const int a = stars(r[i].file), b = r[i].module ? stars(r[i].module) : 0;
        if (a < 0 || b < 0 || (r[i].module && a != b))
            return tn_raise_false(
                TN_EINVAL,
                "%s: rename '%s' to '%s': both need the same number of stars, at most %d, and at most "
                "one **",
                who, r[i].file, r[i].module ? r[i].module : "NULL", TN__MOST_STARS);
        if (r[i].parts < 0 || r[i].parts > TN__TENSOR_PARTS || r[i].part < 0 ||
            (r[i].parts ? r[i].part >= r[i].parts : r[i].part != 0))
            return tn_raise_false(TN_EINVAL, "%s: rename '%s': part %d of %d does not exist", who, r[i].file, r[i].part,
                                  r[i].parts);
        if (!pieces_fit(&r[i]))
            return tn_raise_false(TN_EINVAL,
                                  "%s: rename '%s': piece %d of %d does not exist; at most %d tensors can be joined, "
                                  "without .parts and .transpose",
                                  who, r[i].file, r[i].piece, r[i].pieces, TN__PIECES);
    }
    return true;
}
