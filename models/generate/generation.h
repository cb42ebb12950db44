/* generation.h — the choice of tokens in a generation, apart from the decoding that gives their logits: tn_generate and
 * tn_live make the same choices. Private to models/. */
#ifndef TENON_MODELS_GENERATE_GENERATION_H
#define TENON_MODELS_GENERATE_GENERATION_H

#include "models/generate/sampling.h"

enum { TN__MOST_BEAMS = 64 };

typedef struct {
    double   score; /* sum of log-probabilities; of a finished text, its ranking value */
    int64_t  n;     /* tokens, including the prompt */
    int64_t  row;   /* row of the decoding */
    int64_t *words;
    float   *covered; /* .coverage: the sum of attention to each token of the source, [source]; else NULL */
} tn__text;

typedef struct tn__generation {
    tn_generate_args a;
    int64_t          prompts, beams, begin, most, least, end, vocab; /* begin: tokens of a prompt; end -1: none */
    int64_t          before;                                         /* tokens of begin that are from .before */
    int64_t          rows;                                           /* rows in use of the decoding */
    int64_t          source; /* tokens of a source, for .coverage; 0: not known yet */
    double           penalty;
    bool             early;               /* a prompt is done when `beams` texts are finished */
    tn__text        *alive, *next, *done; /* [prompts, beams] */
    int64_t         *nalive, *ndone;      /* [prompts] */
    tn__choice      *room;                /* candidates of a row */
    tn_generator     g;                   /* the generator's state at the start */
    void            *memory[9];
    size_t           bytes[9];
    int              blocks;
} tn__generation;

/* The maximum number of new tokens of prompt b's texts. */
static inline int64_t tn__most_of(const tn__generation *s, int64_t b)
{
    return s->a.most_each ? tn_get_i64(s->a.most_each, b) : s->most;
}

/* Checks the arguments and sets the sizes (generate_args.c). False: raised. */
bool tn__generation_fits(tn__generation *s);

/* Checks the arguments and begins. Draws are those of the current generator from here on, which the caller advances by
 * tn__generation_draws. a's tensors stay alive as long as the generation. NULL: raised. */
tn__generation        *tn__generation_begin(tn_generate_args a);
static inline uint64_t tn__generation_draws(const tn__generation *s) { return (uint64_t)(s->prompts * s->most); }
/* The logits after tokens, i64 [rows, n], from the decoding .from; with .coverage, counts its attention. */
tn_tensor *tn__generation_scores(tn__generation *g, tn_tensor *tokens);
/* Chooses the next tokens from the logits after those read last, [rows, vocab]. *tokens: i64 [rows, 1], those to read
 * next; NULL: the texts have ended. False: raised. */
bool         tn__generation_next(tn__generation *g, tn_tensor *logits, tn_tensor **tokens);
void         tn__generation_stop(tn__generation *g); /* ends texts that have not ended */
tn_generated tn__generation_result(tn__generation *g);
void         tn__generation_free(tn__generation *g);

#endif
