/* world.c — the grammar of the small world: generates sentences, documents, and probes of a model. */
#include "core/system/system.h"

#include "world.h"
#include "words.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const world_kind_name[WORLD_KINDS] = {"agreement", "pronoun", "sense"};

typedef struct {
    tn_generator g;
    bool         held;       /* use only held-out combinations, or only the others */
    double       bits;       /* information of the choices that the text shows */
    double       adjectives; /* bits of the adjectives, if they appear */
    bool         named, kin; /* the document has named its person, its relative */
} maker;

static int         below(maker *m, int n) { return (int)tn_random_below(&m->g, n); }
static bool        chance(maker *m, double p) { return tn_random_double(&m->g) < p; }
static const char *one_of(maker *m, int n, const char *const *of) { return of[below(m, n)]; }
/* Add the bits of a choice that the text shows: one of n equally likely ones; one of probability p. */
static void seen_of(maker *m, double n) { m->bits += log2(n); }
static void seen(maker *m, double p) { m->bits -= log2(p); }
static void seen_whether(maker *m, double p, bool is) { seen(m, is ? p : 1 - p); }
static void seen_name(maker *m)
{
    if (!m->named) seen_of(m, nnames);
    m->named = true;
}
static void seen_kin(maker *m)
{
    if (!m->kin) seen_of(m, nkin);
    m->kin = true;
}
#define ONE(m, words) one_of(m, (int)(sizeof(words) / sizeof *(words)), words)
static const char *form(noun n, bool many) { return many ? n.many : n.one; }

/* One in eight combinations is held out, independent of the seed. */
static bool held(int kind, int a, int b)
{
    uint32_t h = (uint32_t)kind * 2654435761u ^ (uint32_t)a * 2246822519u ^ (uint32_t)b * 3266489917u;
    h ^= h >> 15, h *= 2246822519u, h ^= h >> 13;
    return h % 8 == 0;
}

/* Draws two words, of na and nb, whose combination is held out if m->held, else not. */
static void pair(maker *m, int kind, int na, int nb, int *a, int *b)
{
    do *a = below(m, na), *b = below(m, nb);
    while (held(kind, *a, *b) != m->held);
}

/* The number of such combinations. */
static double pairs(const maker *m, int kind, int na, int nb, bool different)
{
    int n = 0;
    for (int a = 0; a < na; a++)
        for (int b = 0; b < nb; b++) n += held(kind, a, b) == m->held && !(different && a == b);
    return n;
}

TN_PRINTF(2, 3) static void say(char *to, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(to, WORLD_SENTENCE, fmt, args);
    va_end(args);
    to[0] = (char)toupper((unsigned char)to[0]);
}

/* The word that decides a case. In a probe returns [MASK], and records the right word and the wrong ones. */
static const char *hide(world_probe *p, const char *word, int nwrong, const char *const *wrong)
{
    if (!p) return word;
    p->right[p->nright++] = word;
    for (int i = 0; i < nwrong; i++)
        if (strcmp(wrong[i], word)) p->wrong[p->nwrong++] = wrong[i];
    return "[MASK]";
}

/* ---- the three cases --------------------------------------------------------------------------------------------- */

/* "The keys to the cabinet are on the table": nouns of the other number come between subject and verb. */
static void agreement(maker *m, const topic *t, char *to, world_probe *p)
{
    const bool  many = chance(m, 0.5), far = p || chance(m, 0.7), past = chance(m, 0.4);
    const bool  alive = chance(m, 0.3);
    int         a, b;
    const char *subject;
    do pair(m, alive ? 1 : 0, 8, 8, &a, &b);
    while (!alive && a == b);
    subject = form(alive ? animals[a] : t->things[a], many);
    char        between[96];
    const char *other = form(t->things[b], far ? !many : many);
    seen_of(m, 2), seen_whether(m, 0.7, far), seen_whether(m, 0.3, alive);
    seen_of(m, pairs(m, alive ? 1 : 0, 8, 8, !alive));
    if (chance(m, 0.25)) {
        seen_of(m, 4 * 6 * 3);
        snprintf(between, sizeof between, "%s the %s in the %s", ONE(m, prepositions), other, ONE(m, t->places));
    } else if (chance(m, 0.25)) {
        seen(m, 0.75 * 0.25 * (alive ? 1 : 8)); /* if not alive, the second word of the pair is not used */
        snprintf(between, sizeof between, "that %s the %s", alive ? "found" : "belonged to",
                 alive         ? other
                 : far != many ? "kings"
                               : "king");
    } else {
        seen(m, 0.75 * 0.75 / 6);
        snprintf(between, sizeof between, "%s the %s", ONE(m, prepositions), other);
    }
    if (alive) seen_of(m, 2);
    if (alive && chance(m, 0.5)) {
        seen_of(m, 6 * 3);
        const noun  v = acts[below(m, 6)];
        const char *wrong = form(v, !many);
        say(to, "the %s %s %s in the %s.", subject, between, hide(p, form(v, many), 1, &wrong), ONE(m, t->places));
        return;
    }
    const char *is = past ? (many ? "were" : "was") : many ? "are" : "is";
    const char *wrong = past ? (many ? "was" : "were") : many ? "is" : "are";
    is = hide(p, is, 1, &wrong);
    seen_whether(m, 0.4, past), seen_of(m, 2);
    if (chance(m, 0.5)) seen_of(m, 3), say(to, "the %s %s %s in the %s.", subject, between, is, ONE(m, t->places));
    else seen_of(m, 8), say(to, "the %s %s %s %s.", subject, between, is, alive ? ONE(m, feelings) : ONE(m, states));
}

/* "The girl carried the box because it was heavy", or "because she was strong". */
static void pronoun(maker *m, const topic *t, char *to, world_probe *p)
{
    static const char *const pronouns[] = {"he", "she", "it"};
    const bool               animal = !p && chance(m, 0.2), thing = chance(m, 0.5), many = !p && chance(m, 0.3);
    int                      a, b;
    pair(m, 2, npeople, 8, &a, &b);
    const person *who = &people[a];
    const char   *he = many ? "they" : thing || animal ? "it" : who->he, *was = many ? "were" : "was";
    const bool    any = chance(m, 0.5);
    const char   *verb = any ? ONE(m, verbs) : ONE(m, t->verbs);
    const char   *why = thing ? ONE(m, states) : ONE(m, feelings), *thing_name = form(t->things[b], many);
    const char   *subject = animal ? form(animals[a % 8], many) : many ? who->many : who->one;
    seen_whether(m, 0.2, animal), seen_whether(m, 0.3, many), seen_of(m, 8); /* 8: the reasons */
    if (animal) seen_of(m, 8 * 2 * 3);
    else seen_of(m, 2 * pairs(m, 2, npeople, 8, false) * (any ? 2 * 6 : 2 * 2));
    if (animal) verb = chance(m, 0.5) ? "crossed" : "left", thing_name = ONE(m, t->places), why = ONE(m, feelings);
    say(to, "the %s %s the %s because %s %s %s.", subject, verb, thing_name, hide(p, he, 3, pronouns),
        animal && many ? "were" : was, why);
}

/* "The old ship sails to the island", or "The merchants ship wool to the island", with the speaker and the place, so
 * that the sentence belongs to its document. */
static void sense(maker *m, const topic *t, const named *who, char *to, world_probe *p)
{
    const ambiguous *w = &senses[below(m, nsenses)];
    const int        which = below(m, 2);
    int              a, b;
    pair(m, 3 + (int)(w - senses), 4, 4, &a, &b);
    seen_of(m, nsenses * 2 * 3 * pairs(m, 3 + (int)(w - senses), 4, 4, false)), seen_name(m);
    const char *after = w->after[which][b];
    if (p) {
        for (int i = 0; i < 4; i++) p->right[p->nright++] = w->after[which][i];
        for (int i = 0; i < 4; i++) p->wrong[p->nwrong++] = w->after[!which][i];
        after = "[MASK]";
    }
    const char *place = ONE(m, t->places);
    if (w->end) say(to, "%s %s %s, said %s in the %s.", w->before[which][a], after, w->end, who->name, place);
    else say(to, "%s, and the %s was %s, said %s in the %s.", w->before[which][a], w->word, after, who->name, place);
}

/* ---- documents --------------------------------------------------------------------------------------------------- */

/* "a beautiful small old red wooden": up to three adjectives in the order of the language. */
static void described(maker *m, char *to, size_t size)
{
    static const int subsets[] = {0, 5, 10, 10}, kinds[] = {4, 4, 4, 5, 4};
    const char      *all[5] = {ONE(m, opinions), ONE(m, sizes), ONE(m, ages), ONE(m, colours), ONE(m, materials)};
    int              left = 1 + below(m, 3);
    size_t           at = 0;
    to[0] = 0;
    m->adjectives = log2(3.0 * subsets[left]);
    for (int i = 0; i < 5; i++)
        if (left && below(m, 5 - i) < left) {
            at += (size_t)snprintf(to + at, size - at, "%s ", all[i]), left--;
            m->adjectives += log2(kinds[i]);
        }
}

static void story(maker *m, const topic *t, const named *who, const person *kin, bool first, char *to)
{
    static const char *const times[] = {"winter", "summer", "morning", "evening", "night"};
    static const char *const numbers[] = {"two", "three", "four", "seven", "ten"};
    const noun               thing = t->things[below(m, 8)];
    const bool               called = first || chance(m, 0.5);
    const char              *subject = called ? who->name : who->he;
    char                     adjectives[80];
    described(m, adjectives, sizeof adjectives);
    const int kind = below(m, 7);
    seen_of(m, 7);
    if (kind != 2 && kind != 3 && kind != 5) { /* the sentence has the subject: the name, or he or she */
        if (!first) seen_of(m, 2);
        if (called) seen_name(m);
    }
    if (kind == 1 || kind == 2 || kind == 4) m->bits += m->adjectives;
    if (kind != 0) seen_of(m, 8); /* the thing */
    if (kind == 0 || kind == 3 || kind == 6) seen_kin(m);
    switch (kind) {
    case 0:
        seen_of(m, 3);
        say(to, "%s went to the %s with %s %s.", subject, ONE(m, t->places), who->his, kin->one);
        break;
    case 1: {
        const bool an = strchr("aeiou", adjectives[0]) != NULL;
        seen_of(m, 3);
        say(to, "%s found %s %s%s near the %s.", subject, an ? "an" : "a", adjectives, thing.one, ONE(m, t->places));
        break;
    }
    case 2:
        seen_of(m, 5 * 3);
        say(to, "there were %s %s%s in the %s.", ONE(m, numbers), adjectives, thing.many, ONE(m, t->places));
        break;
    case 3: say(to, "the %s belonged to %s %s.", thing.one, who->his, kin->one); break;
    case 4:
        seen_of(m, 2 * 5);
        say(to, "%s %s the %s%s before the %s.", subject, ONE(m, t->verbs), adjectives, thing.many, ONE(m, times));
        break;
    case 5:
        seen_of(m, 5 * 3 * 8);
        say(to, "in the %s the %s in the %s were %s.", ONE(m, times), thing.many, ONE(m, t->places), ONE(m, states));
        break;
    default:
        seen_of(m, 2);
        say(to, "%s and %s %s %s the %s.", subject, who->his, kin->one, ONE(m, t->verbs), thing.many);
        break;
    }
}

size_t world_document(uint64_t seed, uint64_t number, char text[WORLD_DOCUMENT], double *bits)
{
    maker         m = {.g = {.seed = seed, .position = number << 20}, .held = false};
    const topic  *t = &topics[below(&m, ntopics)];
    const named  *who = &names[below(&m, nnames)];
    const person *kin = &people[npeople - nkin + below(&m, nkin)];
    const int     sentences = 6 + below(&m, 6);
    size_t        at = 0;
    seen_of(&m, ntopics * 6); /* 6: the number of sentences */
    for (int i = 0; i < sentences; i++) {
        char      s[WORLD_SENTENCE];
        const int kind = i ? below(&m, 12) : 11;
        if (i) seen(&m, (kind < 3 ? 3 : kind < 5 ? 2 : kind < 8 ? 3 : 4) / 12.0);
        if (kind < 3) agreement(&m, t, s, NULL);
        else if (kind < 5) pronoun(&m, t, s, NULL);
        else if (kind < 8) sense(&m, t, who, s, NULL);
        else story(&m, t, who, kin, i == 0, s);
        at += (size_t)snprintf(text + at, WORLD_DOCUMENT - at, "%s\n", s);
    }
    if (bits) *bits = m.bits;
    return at;
}

bool world_write(FILE *f, uint64_t seed, uint64_t first, int64_t n)
{
    char text[WORLD_DOCUMENT];
    bool fine = f != NULL;
    for (int64_t i = 0; fine && i < n; i++) {
        world_document(seed, first + (uint64_t)i, text, NULL);
        fine = fprintf(f, "%s%s", i ? "\n" : "", text) >= 0;
    }
    return fine;
}

bool world_save(const char *path, uint64_t first, int64_t n)
{
    FILE *f = fopen(path, "wb");
    bool  fine = world_write(f, 1, first, n);
    if (f && fclose(f)) fine = false;
    if (!fine) tn_raise(TN_EIO, "cannot write '%s'", path);
    return fine;
}

void world_probe_make(uint64_t seed, world_kind kind, uint64_t number, world_probe *p)
{
    maker m = {.g = {.seed = seed ^ 0x5eedf00d, .position = (number * WORLD_KINDS + (uint64_t)kind) << 20},
               .held = true};
    *p = (world_probe){.kind = kind};
    const topic *t = &topics[below(&m, ntopics)];
    switch (kind) {
    case WORLD_AGREEMENT: agreement(&m, t, p->text, p); break;
    case WORLD_PRONOUN: pronoun(&m, t, p->text, p); break;
    default: sense(&m, t, &names[below(&m, nnames)], p->text, p); break;
    }
}
