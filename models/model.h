/* model.h — opens a model of any family from a path, with its tokenizer. Part of models.h: include that.
 *
 *     tn_model m = tn_model_open("dir");
 *     if (m.family == TN_MODEL_ENCODER) tn_bert_embed(m.bert, m.tokenizer, 1, &text, TN_POOL_MEAN);
 *     else if (m.family == TN_MODEL_DECODER) tn_lm_forward(m.lm, ids);
 *     else if (!m.family) fprintf(stderr, "%s\n", tn_error_message());
 *     tn_model_close(&m);
 *
 * In a directory, config.json's model_type and architectures determine the family; the error for an unsupported model
 * names them. A file is opened as by tn_decoder_open. */
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
    tn_model_family family; /* TN_MODEL_NONE: an error is set */
    const char     *type;   /* model_type: "roberta", "llama" … */
    union {                 /* in eval mode */
        void       *module;
        tn_bert    *bert;    /* TN_MODEL_ENCODER */
        tn_tuned   *tuned;   /* TN_MODEL_TUNED, an encoder with a task head: heads.h */
        tn_lm      *lm;      /* TN_MODEL_DECODER, any language model: lm.h */
        tn_seq2seq *seq2seq; /* TN_MODEL_SEQ2SEQ, a translation model */
        tn_vit     *vit;     /* TN_MODEL_IMAGES; its tn_image_processor is in the same directory */
    };
    tn_tokenizer *tokenizer; /* NULL: the directory has none */
} tn_model;
TN_API tn_model tn_model_open(const char *dir);
TN_API void     tn_model_close(tn_model *m); /* frees module and tokenizer; set one to NULL to keep it */

#ifdef __cplusplus
}
#endif
#endif
