/* trees.h — sentences of a CoNLL-U file: words, parts of speech, and dependency trees. */
#ifndef TENON_EXTRAS_PROGRAMS_LOOK_TREES_H
#define TENON_EXTRAS_PROGRAMS_LOOK_TREES_H

#include "look.h"
#include "structure.h"

typedef struct {
    tn_text word, relation;
    int     upos;        /* index into upos_name */
    bool    punctuation; /* by UPOS, or by XPOS for tags of the Penn Treebank */
    int64_t head;        /* index of the syntactic head in the sentence, from 0; -1: this word is the root */
} node;
typedef struct {
    int64_t first, n, line; /* index of its first node; number of words; line in the file */
} sentence;
enum { COLUMNS = 5 };
typedef struct {
    tn_labelled *column[COLUMNS]; /* the file, read once for each column; owns the strings of the nodes */
    node        *node;
    sentence    *sentence;
    int64_t      nodes, sentences;
} trees;
/* Reads at most `most` sentences of 2 to MAX_WORDS words; others are skipped. Returns false if an error is set. */
bool trees_open(const char *path, int64_t most, trees *t);
/* Raises an error and returns false unless each sentence is a tree with one root. */
bool trees_check(const char *path, const trees *t);
void trees_close(trees *t);

enum { UPOS = 17 };
extern const char *const upos_name[UPOS];

/* The tokens of a sentence: token p belongs to word word_of[p]; -1: a special token. Freed with sentence_free. */
typedef struct {
    token_list p;
    int64_t   *word_of;
} encoded_sentence;
bool sentence_encode(const model *m, const trees *t, int64_t i, encoded_sentence *to);
void sentence_free(encoded_sentence *s);
/* A matrix [n, tokens]: 1 / (number of the word's tokens) where the token belongs to the word, else 0. Multiplied with
 * the vectors of the tokens, it gives the mean vector of each word. */
tn_tensor *word_means(const encoded_sentence *x, int64_t n);

/* ---- heads (syntax.c) -------------------------------------------------------------------------------------------- */

bool syntactic_heads(const model *m, const trees *t); /* prints one line per head */
/* The index of a head, numbered from 0 before pruning, among the remaining heads; -1: pruned. */
int64_t head_index(const tn_mha *m, int64_t head);
/* Evaluates the head of the attention at `path`: the fraction of words whose largest weight goes to the syntactic head
 * (directed), or to the head or a dependent (undirected). Returns false if an error is set. */
bool head_evaluate(const model *m, const trees *t, const char *path, int64_t head, double *directed,
                   double *undirected);

#endif
