/* model.h — whatever model a directory holds, with its tokenizer. Part of models.h: include that.
 *
 *     tn_model m = tn_model_open("dir");
 *     if (m.family == TN_MODEL_ENCODER) tn_bert_embed(m.bert, m.tokenizer, 1, &text, TN_POOL_MEAN);
 *     else if (m.family == TN_MODEL_DECODER) tn_lm_forward(m.lm, ids);
 *     else if (!m.family) fprintf(stderr, "%s\n", tn_error_message());
 *     tn_model_close(&m);
 *
 * What it is, config.json says in model_type and architectures; what cannot be opened is refused by that name. Or a
 * file, as of tn_decoder_open. */
#ifndef TENON_MODELS_MODEL_H
#define TENON_MODELS_MODEL_H

#include "heads.h"
#include "lm.h"
#include "seq2seq.h"
#include "vit.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    TN_MODEL_NONE = 0,
    TN_MODEL_ENCODER,
    TN_MODEL_TUNED,
    TN_MODEL_DECODER,
    TN_MODEL_SEQ2SEQ,
    TN_MODEL_IMAGES
} tn_model_family;

typedef struct {
    tn_model_family family; /* TN_MODEL_NONE: an error stands */
    const char     *type;   /* "roberta", "llama" … */
    union {                 /* in eval mode */
        void       *module;
        tn_bert    *bert;    /* of an encoder */
        tn_tuned   *tuned;   /* of one with a head for a task: heads.h */
        tn_lm      *lm;      /* of a decoder: a tn_gpt or a tn_llama */
        tn_seq2seq *seq2seq; /* of a translator */
        tn_vit     *vit;     /* of what reads images; their tn_image_processor is in the same directory */
    };
    tn_tokenizer *tokenizer; /* NULL: there is none in the directory */
} tn_model;
TN_API tn_model tn_model_open(const char *dir);
TN_API void     tn_model_close(tn_model *m); /* frees both; one that was taken out is NULL */

#ifdef __cplusplus
}
#endif
#endif
