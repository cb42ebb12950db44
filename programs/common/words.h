/* words.h — the words of the small world's grammar. */
#ifndef TENON_PROGRAMS_COMMON_WORDS_H
#define TENON_PROGRAMS_COMMON_WORDS_H

#include <stddef.h>

typedef struct {
    const char *one, *many;
} noun;

/* The topic of a document: things and places. */
typedef struct {
    noun        things[8];
    const char *places[3];
    const char *verbs[2]; /* done there with things, in the past tense */
} topic;
extern const topic topics[];
extern const int   ntopics;

typedef struct {
    const char *one, *many, *he, *his; /* he, his: the pronouns of one of them */
} person;
extern const person people[];
extern const int    npeople, nkin; /* the last nkin are relatives */

typedef struct {
    const char *name, *he, *his;
} named;
extern const named names[];
extern const int   nnames;

/* A word with two senses. before[s] are sentence starts for sense s that end with the word; after[s] are the words that
 * can follow it in that sense. */
typedef struct {
    const char *word;
    const char *before[2][4];
    const char *after[2][4];
    const char *end; /* end of the sentence; may be NULL */
} ambiguous;
extern const ambiguous senses[];
extern const int       nsenses;

extern const char *const verbs[6];                      /* for things, in the past tense: carried ... */
extern const char *const feelings[8], *const states[8]; /* adjectives for people and animals; for things */
extern const char *const prepositions[6];               /* under, near ...  */
extern const noun        acts[6];                       /* what people and animals do: sleeps, sleep */
extern const noun        animals[8];
extern const char *const opinions[4], *const sizes[4], *const ages[4]; /* adjectives, in ... */
extern const char *const colours[5], *const materials[4];              /* ... the English order */

#endif
