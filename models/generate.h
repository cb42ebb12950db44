/* generate.h — text generation with any model that predicts the next token: greedy decoding, beam search or sampling.
 * Part of models.h: include that.
 *
 *     tn_decoding *d = tn_gpt_decoding(gpt, 1, 200);
 *     tn_generated g = tn_generate(d, prompt, .most = 100, .sample = true, .top_p = 0.9);
 *     tn_decoding_free(d);
 *
 * A row's text does not depend on the other rows, on threads, or on whether the model caches keys and values.
 * Beam search ends as in transformers: when no live text, if it ended now, would rank among .beams finished ones. */
#ifndef TENON_MODELS_GENERATE_H
#define TENON_MODELS_GENERATE_H

#include "decoding.h"

TN_C_BEGIN_

/* What .adjust may change before the next token of a text is chosen. */
typedef struct {
    int64_t        row;                 /* the prompt */
    int64_t        length, made, vocab; /* tokens of the text; the new ones among them; token ids */
    const int64_t *tokens;              /* the text: .before, the prompt, the new tokens */
    float         *scores; /* [vocab]: log-probabilities, or for greedy decoding logits; -INFINITY forbids a token */
} tn_next_token;

typedef struct tn_generate_args {
    int                   zero_;
    tn_decoding          *from;        /* the decoding; it is new, or has read .read tokens */
    int64_t               read;        /* tokens of each row that it has read: the prompt continues them */
    tn_tensor            *before;      /* i64 [B, read]: those tokens; NULL: .no_repeat and the penalty ignore them */
    tn_tensor            *prompt;      /* i64 [B, n], n at least 1: the start of each text */
    tn_tensor            *lengths;     /* i64 [B]: tokens of each prompt, from the start of its row; each text has the
                                          bits that it has alone. For a new tn_lm_decoding and one beam. NULL: all n */
    int64_t end           TN_IS(-1);   /* the token that ends a text; -1: none */
    int64_t               most, least; /* maximum and minimum new tokens, without .end; most 0: the decoding's limit */
    tn_tensor            *most_each;   /* i64 [B]: .most per prompt, from 1 to .most; NULL: .most for all */
    int64_t beams         TN_IS(1);    /* beam width; 1: greedy; the decoding needs B · beams rows */
    int64_t best          TN_IS(1);    /* texts to return per prompt, at most beams */
    double length_penalty TN_IS(1);    /* beams are ranked by log-probability / tokens ^ this, .end included; 0: sum */
    bool                  gnmt;        /* ... by log-probability / ((5 + tokens) / 6) ^ .length_penalty (Wu 2016) */
    double  coverage;       /* ... + this · Σ log(min(Σ attention, 1)) over the tokens of a tn_seq2seq's source */
    bool    early_stopping; /* end a beam search as soon as .beams texts have ended */
    int64_t no_repeat;      /* forbid repeated n-grams of this length; 0: allow all */
    bool    sample;         /* sample each token */
    double temperature TN_IS(1); /* divides the logits before sampling */
    int64_t            top_k;    /* sample among the k most likely tokens; 0: all */
    double top_p       TN_IS(1); /* then among the fewest tokens whose probabilities reach this sum; 1: all */
    double             min_p;    /* then among tokens at least this times as probable as the likeliest; 0: all */
    double repetition_penalty
         TN_IS(1); /* scores of tokens in the text (beams: log-probabilities) above 0: / this; below: * this */
    bool unscored; /* greedy: scores are sums of logits, not log-probabilities, which saves the softmax */
    /* Called with each token of each row as it is chosen (greedy and sampling); false stops that row. */
    bool (*each)(int64_t row, int64_t word, void *user);
    /* Called for each text after the rules above and before its next token is chosen. A text whose tokens are all
     * forbidden ends. Any result but TN_OK ends tn_generate with that error. */
    tn_status (*adjust)(const tn_next_token *next, void *user);
    void *user;
    int   end_;
} TN_KEYWORDS_ONLY tn_generate_args;
#define TN_GENERATE_ARGS_DEFAULTS \
    .end = -1, .beams = 1, .best = 1, .length_penalty = 1, .temperature = 1, .top_p = 1, .repetition_penalty = 1

/* Best first. Positions after the end of a text are -1. */
typedef struct {
    tn_tensor *tokens;  /* i64 [B, best, N]: the new tokens, without .end */
    tn_tensor *lengths; /* i64 [B, best] */
    tn_tensor *scores;  /* f64 [B, best]: beam search: the ranking value; else the log-probability of the text, or with
                           .unscored the sum of its logits */
} tn_generated;
TN_API tn_generated tn_generate_run(tn_generate_args a); /* all NULL on error */

TN_C_END_
#define tn_generate(...) \
    TN_CALL_(            \
        tn_generate_run(TN_ARGS2_(tn_generate_args, TN_GENERATE_ARGS_DEFAULTS, from, prompt, __VA_ARGS__, TN_END_)))
#endif
