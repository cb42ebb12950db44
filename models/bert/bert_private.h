/* bert_private.h — shared by the files of models/bert: the config as stored in a file, and the file formats of the
 * kinds. */
#ifndef TENON_MODELS_BERT_BERT_PRIVATE_H
#define TENON_MODELS_BERT_BERT_PRIVATE_H

#include "models/bert.h"
#include "models/files/hf_config.h"

/* True for RoBERTa under any name. */
static inline bool tn__is_roberta(tn_bert_kind k)
{
    return k == TN_ROBERTA || k == TN_XLM_ROBERTA || k == TN_CAMEMBERT;
}

/* The row of the position embedding for the first token. For RoBERTa, and for a BERT with norm_first, which Hugging
 * Face opens as RobertaPreLayerNorm, it is padding + 1: the rows up to padding are for padding tokens. */
static inline int64_t tn__bert_first_position(const tn_bert_config *c)
{
    const bool behind = tn__is_roberta(c->kind) || (c->kind == TN_BERT && c->norm_first);
    return behind && c->padding >= 0 ? c->padding + 1 : 0;
}

/* The config as stored in config.json. */
typedef struct {
    tn_bert_config c;
    const char    *type, *architecture, *pooling, *attention; /* attention: XLNet's attn_type */
    int64_t        position_rows;                             /* rows of the position embedding */
    int64_t        local, sliding; /* ModernBERT's local_attention, 2 (window - 1); sliding_window, -1: absent */
    tn_hf_layers   layers;         /* its layer_types: g, l */
    bool           norm_first;
    char           terms[TN_HF_LETTERS_MOST]; /* DeBERTa's pos_att_type: c, p; and its other members: */
    bool           relative, share, legacy;
    const char    *norm_distances; /* norm_rel_ebd */
    int64_t        pooler, head;   /* pooler_hidden_size and attention_head_size; 0: absent */
    int64_t        head_dim;       /* XLNet's d_head; 0: not specified */
    tn_token_ids   begin, end, decoder_begin, cls, sep;
} tn__bert_stored;
/* c.padding if pad_token_id is missing or null in the file. */
enum { TN__BERT_ABSENT = -10000001, TN__BERT_NONE = -10000000 };

/* The file format of one model_type. */
typedef struct {
    const char  *type;
    tn_bert_kind kind;
    tn_hf_files  own;                              /* what its files have in addition to BERT's, or instead */
    bool         own_rows, own_names;              /* without BERT's members of config.json; names of weights */
    const char  *model, *masked, *pretraining;     /* architectures; NULL: the type has none */
    const char  *following;                        /* the architecture with only the next-sentence head */
    const char  *prefix;                           /* of the encoder's weights */
    const char  *pooler, *words, *next, *replaced; /* name of one weight of each head; NULL: no such head */
    int64_t      padding;                          /* default pad_token_id */
} tn__bert_format;
extern const char *const tn__bert_types[];          /* all model_types; NULL-terminated */
extern const char *const tn__bert_poolings[];       /* ModernBERT's classifier_pooling */
extern const char *const tn__bert_distance_norms[]; /* DeBERTa's norm_rel_ebd */
const tn__bert_format   *tn__bert_format_of_type(const char *type, const char *path); /* NULL: raised */
const tn__bert_format   *tn__bert_format_of(const tn_bert_config *c);
const tn_hf_files       *tn__bert_files(const tn__bert_format *f, tn__hf_tables *room); /* in *room */

bool            tn__bert_config_read(const tn_hf_source *source, tn__bert_stored *to); /* false: raised */
void           *tn__bert_load(const tn_hf_source *s);
tn__bert_stored tn__bert_to_store(const tn_bert_config *c);

/* tn_bert_save, with the additional parts of a tuned model; more may be NULL. */
tn_status tn__bert_save_extra(tn_bert *m, const char *dir, const tn__hf_extra *more);

/* Writes the encoder alone, without heads. */
tn_status tn__bert_save_gguf(tn_bert *m, const char *path, const tn__gguf_options *gguf);

/* What a kind has that BERT has not, or has otherwise (relatives.c). */
typedef enum { TN__BERT_USUAL_DROPOUT = 0, TN__BERT_NO_DROPOUT, TN__BERT_ATTENTION_DROPOUT } tn__bert_dropout;
typedef struct {
    bool             places;             /* position embeddings are added to the input (DeBERTa: an option) */
    bool             modern;             /* no biases, norms first, gated feed-forward, rotary positions */
    bool             projects;           /* projects the embeddings even to the same width; dropout before heads */
    bool             project_first;      /* projects before the norm, and leaves 0 at padding */
    bool             streams;            /* two streams instead of an encoder */
    bool             gelu;               /* the head for masked tokens has GELU whatever the encoder has */
    tn__bert_dropout dropout1, dropout2; /* of the results of attention and feed-forward */
} tn__bert_relative;
const tn__bert_relative *tn__bert_relative_of(tn_bert_kind kind);

/* The encoder's positions: the part of its attention, NULL if the input has them; .each of its layers, whose user is a
 * tn__bert_layers. */
typedef struct {
    const tn_bert_config *c;
    tn_rotary            *local; /* NULL until a layer needs it */
} tn__bert_layers;
void *tn__bert_positions(const tn_bert_config *c);
void  tn__bert_set_layer(tn_block_config *b, int64_t i, void *user);
/* The input's: whether position embeddings are added to it, and those of the tokens' places. */
bool       tn__bert_has_places(const tn_bert_config *c);
tn_tensor *tn__bert_places(tn_bert *m, const tn_bert_args *a);

/* Rows `where` of y [B, T, dim], or NULL all, as [N, dim]. */
tn_tensor *tn__bert_rows(tn_bert *m, tn_tensor *y, tn_tensor *where);
/* True if y and the head are not NULL; else raises, naming the missing one. */
bool tn__bert_has(const tn_tensor *y, const void *head, const char *which);

/* The head for replaced tokens (electra.c). loss: the mean over all tokens except padding. */
void       tn__electra_add(tn_bert *m, const tn_bert_config *c);
tn_tensor *tn__electra_loss(tn_bert *m, tn_tensor *y, const tn_bert_loss_args *b);

/* A kind with another encoder than tn_transformer_encoder: XLNet, of the extras. add: m->streams and what belongs to
 * it; run: from the embeddings of the tokens; states: the hidden states [N, dim] of the targets, which read in segments
 * are in their order, and so are b->words then; check: of a config; read, store: from config.json and to it. */
typedef struct {
    const tn__bert_format *format;
    void (*add)(tn_bert *m, const tn_bert_config *c);
    tn_tensor *(*run)(tn_bert *m, tn_tensor *words, const tn_bert_args *a);
    tn_tensor *(*states)(tn_bert *m, tn_bert_loss_args *b);
    bool (*check)(const char *who, const tn_bert_config *c);
    void (*read)(tn__bert_stored *s, const char *name);
    void (*store)(tn__bert_stored *s);
} tn__bert_encoder;
void                    tn__bert_register(const tn__bert_encoder *e);
const tn__bert_encoder *tn__bert_other(void);
bool                    tn__bert_has_other(const char *who); /* false: raised */

/* Fills in defaults; raises for invalid values. */
bool tn__bert_complete(const char *who, tn_bert_config *c);

#endif
