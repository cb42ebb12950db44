/* words.h — the words of the small world. */
#ifndef TENON_EXAMPLES_COMMON_WORDS_H
#define TENON_EXAMPLES_COMMON_WORDS_H

#include <stddef.h>

typedef struct {
    const char *one, *many;
} noun;

/* What a document is about: its things, and where they are. */
typedef struct {
    noun        things[8];
    const char *places[3];
    const char *verbs[2]; /* what is done there with things, in the past */
} topic;
extern const topic topics[];
extern const int   ntopics;

typedef struct {
    const char *one, *many, *he, *his; /* "he", "his": what stands for one of them */
} person;
extern const person people[];
extern const int    npeople, nkin; /* the last are kin */

typedef struct {
    const char *name, *he, *his;
} named;
extern const named names[];
extern const int   nnames;

/* A word with two senses. `before` ends with the word, `after` follows at once: which of the two lists of `after` fits,
 * only the beginning tells. */
typedef struct {
    const char *word;
    const char *before[2][4];
    const char *after[2][4];
    const char *end; /* behind it */
} ambiguous;
extern const ambiguous senses[];
extern const int       nsenses;

extern const char *const verbs[6];                      /* carried ... : in the past, of things */
extern const char *const feelings[8], *const states[8]; /* of people and animals; of things */
extern const char *const prepositions[6];               /* behind, under ... */
extern const noun        acts[6];                       /* sleeps, sleep: of people and animals */
extern const noun        animals[8];
extern const char *const opinions[4], *const sizes[4], *const ages[4]; /* adjectives, in the order in which ... */
extern const char *const colours[5], *const materials[4];              /* ... English has them */

#endif
