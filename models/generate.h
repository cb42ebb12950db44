/* generate.h — making text word by word, with any model that scores the next word: the likeliest (greedy), several
 * beginnings side by side (beams), or by chance. Part of models.h: include that.
 *
 *     tn_decoding *d = tn_gpt_decoding(gpt, 1, 200);
 *     tn_generated g = tn_generate(d, prompt, .most = 100, .sample = true, .top_p = 0.9);
 *     tn_decoding_free(d);
 *
 * A row's text does not depend on the other rows, on threads, or on whether the model kept its keys and values. */
#ifndef TENON_MODELS_GENERATE_H
#define TENON_MODELS_GENERATE_H

#include "decoding.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_generate_args {
    int                   zero_;
    tn_decoding          *from;        /* fresh, or: */
    int64_t               read;        /* the words of each row that it has read already: the prompt comes behind */
    tn_tensor            *before;      /* i64 [B, read]: those words; without, .no_repeat and the penalty see none */
    tn_tensor            *prompt;      /* i64 [B, n], n at least 1: what each text begins with */
    int64_t end           TN_IS(-1);   /* the word that ends a text; -1: none */
    int64_t               most, least; /* new words, the end not counted; most 0: as many as there is room for */
    tn_tensor            *most_each; /* i64 [B]: new words of each prompt's texts, from 1 to most; NULL: most of all */
    int64_t beams         TN_IS(1);  /* 1: greedy; the decoding needs B times as many rows */
    int64_t best          TN_IS(1);  /* how many texts for each prompt, at most beams */
    double length_penalty TN_IS(1);  /* beams are ranked by log-probability / words ^ this; 0: the sum */
    int64_t               no_repeat; /* no sequence of so many words twice in a text; 0: any */
    bool                  sample;    /* draw each word, by its probability */
    double temperature    TN_IS(1);  /* scores are divided by it before drawing */
    int64_t               top_k;     /* only of so many words, the likeliest; 0: all */
    double top_p          TN_IS(1);  /* of those, the fewest that make up so much probability; 1: all */
    double                min_p;     /* of those, words at least so probable as this times the likeliest; 0: all */
    double repetition_penalty TN_IS(1); /* scores of words that a text has: above 0 divided by it, below multiplied */
    /* Called with each word of each row as it is chosen (greedy and sampling); false stops that row. */
    bool (*each)(int64_t row, int64_t word, void *user);
    void *user;
    int   end_;
} TN_KEYWORDS_ONLY tn_generate_args;
#define TN_GENERATE_ARGS_DEFAULTS \
    .end = -1, .beams = 1, .best = 1, .length_penalty = 1, .temperature = 1, .top_p = 1, .repetition_penalty = 1

/* Best first. What is behind the end of a text is -1. */
typedef struct {
    tn_tensor *tokens;  /* i64 [B, best, N]: the new words, without the end's */
    tn_tensor *lengths; /* i64 [B, best] */
    tn_tensor *scores;  /* f64 [B, best]: beams: as they were ranked; else the log-probability of what was chosen */
} tn_generated;
TN_API tn_generated tn_generate_run(tn_generate_args a); /* all NULL on error */

#ifdef __cplusplus
}
#else
#define tn_generate(...)      \
    TN_CALL_(tn_generate_run( \
        TN_ARGS2_(tn_generate_args, TN_GENERATE_ARGS_DEFAULTS, from, prompt, __VA_ARGS__, .zero_ = 0)))
#endif
#endif
