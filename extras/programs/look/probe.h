/* probe.h — the studies of look probe, and the vectors of words that they share. */
#ifndef TENON_EXTRAS_PROGRAMS_LOOK_PROBE_H
#define TENON_EXTRAS_PROGRAMS_LOOK_PROBE_H

#include "trees.h"

/* ---- vectors of words in their sentences (layers.c) -------------------------------------------------------------- */

enum { MAX_LAYERS = 130 };
typedef struct {
    int64_t    layers; /* the embeddings and each layer */
    char       path[MAX_LAYERS][TN_PATH_BYTES];
    tn_tensor *x[MAX_LAYERS];    /* [words, D], the mean of a word's tokens; or [tokens, D] */
    int64_t    sentences, words; /* sentences that fit into the model, and their words */
    int64_t   *which, *row;      /* [sentences]: index in the trees; [sentences + 1]: its first word */
    int64_t   *token;            /* [words + 1]: first token of each word */
} layer_vectors;
/* Runs the model on all sentences. tokens: keep the vectors of tokens. The open scope owns x; the caller calls
 * layer_vectors_close. Returns false if an error is set. */
bool layer_vectors_open(const model *m, const trees *t, bool tokens, layer_vectors *to);
void layer_vectors_close(layer_vectors *v);
/* A random number that depends only on the spelling of a word and the seed, for control tasks. */
uint64_t spelling_hash(tn_text word, int64_t seed);

/* ---- studies ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const model *m;
    const trees *text, *test;
    const char  *dir, *html; /* html: page to write; NULL: none */
    int64_t      seed, rank, steps;
} study;
void probe_trees(const study *s); /* prints the scores of the structural probe (probe_trees.c) */
void probe_edges(const study *s); /* prints the scores of probes for dependency relations (probe_edges.c) */
/* Prints ranks of the objects of facts, of a file of templates, subjects and objects (facts.c). */
void probe_facts(const model *m, const char *path);

#endif
