/* world.h — a small world in English: a grammar that generates text with regularities that a masked language model can
 * learn, and probes that measure them. A verb agrees with its subject across nouns of the other number, a pronoun
 * agrees with its antecedent, the neighbours of a word with two senses determine its sense, adjectives have a fixed
 * order, and all sentences of a document are about the same people and things.
 *
 * One in eight combinations of the words that decide a case is held out: it appears only in probes, never in documents.
 * A seed gives the same text on every machine. */
#ifndef TENON_PROGRAMS_COMMON_WORLD_H
#define TENON_PROGRAMS_COMMON_WORLD_H

#include <stdio.h>
#include <tenon/extras.h>

enum { WORLD_DOCUMENT = 4096, WORLD_SENTENCE = 256, WORLD_CHOICES = 8 };

/* Generates the document with this number: one sentence per line, no empty line. Returns its bytes. *bits, if not NULL,
 * receives the information of the choices that the text shows, -log2 of their probability: what a model that knows the
 * grammar and uses the text before each word needs on average. It needs a little less, because rarely two sequences of
 * choices give the same text. */
size_t world_document(uint64_t seed, uint64_t number, char text[WORLD_DOCUMENT], double *bits);
/* Writes documents first to first + n - 1, separated by empty lines. */
bool world_write(FILE *f, uint64_t seed, uint64_t first, int64_t n);
bool world_save(const char *path, uint64_t first, int64_t n); /* seed 1; false: raised */

typedef enum { WORLD_AGREEMENT, WORLD_PRONOUN, WORLD_SENSE, WORLD_KINDS } world_kind;
extern const char *const world_kind_name[WORLD_KINDS];

/* A held-out sentence with one masked word. A model is right if a word of `right` is more likely than every word of
 * `wrong`. */
typedef struct {
    world_kind  kind;
    char        text[WORLD_SENTENCE]; /* "The keys to the cabinet [MASK] on the table." */
    int         nright, nwrong;
    const char *right[WORLD_CHOICES], *wrong[WORLD_CHOICES];
} world_probe;
void world_probe_make(uint64_t seed, world_kind kind, uint64_t number, world_probe *p);

#endif
