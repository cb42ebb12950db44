/* trees.h — sentences of a CoNLL-U file: words, their classes, and whose they are. */
#ifndef TENON_EXAMPLES_LOOK_TREES_H
#define TENON_EXAMPLES_LOOK_TREES_H

#include "look.h"

typedef struct {
    tn_text word, relation;
    int     upos; /* of UPOS below */
    int64_t head; /* the word's number in the sentence, from 0; -1: it is the root */
} node;
typedef struct {
    int64_t first, n; /* of the nodes */
} sentence;
enum { COLUMNS = 4 };
typedef struct {
    tn_labelled *of[COLUMNS]; /* the file, by the columns that count; strings are theirs */
    node        *node;
    sentence    *sentence;
    int64_t      nodes, sentences;
} trees;
/* At most so many sentences, of 2 to `longest` words each; others are passed over. False: an error stands. */
bool trees_open(const char *path, int64_t most, int64_t longest, trees *t);
void trees_close(trees *t);

enum { UPOS = 17 };
extern const char *const upos_name[UPOS];

/* A sentence through a reader: piece p belongs to word word_of[p] of it, -1: to none. Free both. */
typedef struct {
    pieces   p;
    int64_t *word_of;
} read_sentence;
bool sentence_read(const model *m, const trees *t, int64_t i, read_sentence *to);
void sentence_free(read_sentence *s);
/* [n, pieces]: 1 / its pieces where a piece is the word's, else 0. Times vectors of pieces it gives those of words. */
tn_tensor *word_means(const read_sentence *x, int64_t n);

/* ---- heads (syntax.c) -------------------------------------------------------------------------------------------- */

bool syntactic_heads(const model *m, const trees *t); /* prints a line for each head */
/* Of one head, by its attention's path: how often it goes to the word that a word belongs to; and to that or one of its
 * own. False: an error stands. */
/* Where a head, from 0, is among those that are left; -1: it was taken out. */
int64_t head_place(const tn_mha *m, int64_t head);
bool head_judged(const model *m, const trees *t, const char *path, int64_t head, double *directed, double *undirected);

#endif
