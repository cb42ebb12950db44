/* world.h — a small world of English: a grammar whose sentences hold what a masked language model is to learn, so that
 * what it learned can be measured. A number agrees with its subject across nouns of the other number, a pronoun with
 * its antecedent, a word with two senses takes the one its neighbours leave it, adjectives keep their order, and the
 * sentences of a document speak of the same people and things.
 *
 * One in eight combinations of the words that decide such a case is held out: it is never in a document, only in
 * probes. The same seed gives the same text on every machine. */
#ifndef TENON_EXAMPLES_COMMON_WORLD_H
#define TENON_EXAMPLES_COMMON_WORLD_H

#include <stdio.h>
#include <tenon/tenon.h>

enum { WORLD_DOCUMENT = 4096, WORLD_SENTENCE = 256, WORLD_CHOICES = 8 };

/* The document of that number: a sentence a line, no empty line. Returns its bytes. bits, if it is not NULL: what the
 * choices that its text shows amount to, -log2 of their probability. A model that knew the grammar, and all that can be
 * known from the text so far, would need so many on average, or a few less: rarely, two ways lead to one text. */
size_t world_document(uint64_t seed, uint64_t number, char text[WORLD_DOCUMENT], double *bits);
/* Documents first … first + n - 1, with an empty line between them. */
bool world_write(FILE *f, uint64_t seed, uint64_t first, int64_t n);
bool world_save(const char *path, uint64_t first, int64_t n); /* of seed 1; false: raised */

typedef enum { WORLD_AGREEMENT, WORLD_PRONOUN, WORLD_SENSE, WORLD_KINDS } world_kind;
extern const char *const world_kind_name[WORLD_KINDS];

/* A held-out sentence with one word hidden. The model is right if a word of `right` is likelier than every `wrong`. */
typedef struct {
    world_kind  kind;
    char        text[WORLD_SENTENCE]; /* "The keys to the cabinet [MASK] on the table." */
    int         nright, nwrong;
    const char *right[WORLD_CHOICES], *wrong[WORLD_CHOICES];
} world_probe;
void world_probe_make(uint64_t seed, world_kind kind, uint64_t number, world_probe *p);

#endif
