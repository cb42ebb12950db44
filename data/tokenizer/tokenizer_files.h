/* tokenizer_files.h — what the readers and the writer of tokenizers' files share. Private. */
#ifndef TENON_DATA_TOKENIZER_TOKENIZER_FILES_H
#define TENON_DATA_TOKENIZER_TOKENIZER_FILES_H

#include "data/tokenizer/tokenizer_private.h"

enum { TN__WORD_MOST = 10000 };

bool tn__unsupported(const char *who, const char *where, const char *what); /* raises: false */

/* Of a tokenizer.json: the normalizer as steps; the pre_tokenizer of SentencePiece's kinds; Unigram's scores; how these
 * kinds are decoded. They raise. */
bool tn__json_steps(tn_tokenizer *t, const char *who, const tn_json *v);
bool tn__json_metaspace(tn_tokenizer *t, const char *who, const tn_json *v);
bool tn__json_unigram(tn_tokenizer *t, const char *who, const tn_json *model);
bool tn__json_decoder(tn_tokenizer *t, const char *who, const tn_json *v);
#define TN__SPACES_AT_ENDS "\\A +|[ " TN__SPACE "]+\\z" /* the regex of spaces, as SentencePiece takes them away */
#define TN__REGEX_SIGNS "\\^$.|?*+()[]{}"               /* they stand for themselves behind a "\" */
/* Of pieces that are split off before merges: the types, once the pieces are there. */
bool tn__json_users(tn_tokenizer *t, const char *who, const tn_json *v);
/* Are there such in byte-pair encoding? */
static inline bool tn__splits_users(const tn_tokenizer *t) { return t->kind == TN_SENTENCE_BPE && t->user.n; }
/* And back. A writer keeps what failed. */
void        tn__json_put_steps(const tn_tokenizer *t, tn_json_writer *w);
void        tn__json_put_metaspace(const tn_tokenizer *t, tn_json_writer *w);
const char *tn__form_name(int form);          /* of a TN__STEP_FORM */
const char *tn__step_name(const tn__step *s); /* of any but TN__STEP_SENTENCE */
/* A rule that GGUF cannot say, as a tokenizer.json calls it; NULL: there is none. Of GGUF's two kinds. */
const char *tn__untold(const tn_tokenizer *t);
bool        tn__json_put_unigram(const tn_tokenizer *t, tn_json_writer *w);
void        tn__json_put_decoder(const tn_tokenizer *t, tn_json_writer *w);

/* An added token as an object tells it, or NULL: by its text alone. It raises. */
bool tn__json_added(tn_tokenizer *t, const char *who, const tn_json *a, int64_t id, bool special);

/* Whose rules a folder without a tokenizer.json is read by, and the files that say so; NULL: one is not there. */
typedef enum {
    TN__CLASS_NONE,
    TN__CLASS_BERT,
    TN__CLASS_GPT2,
    TN__CLASS_ROBERTA,
    TN__CLASS_QWEN2,
    TN__CLASS_LLAMA,
    TN__CLASSES
} tn__class;
typedef struct {
    tn_json *config, *map, *added, *model; /* tokenizer_config, special_tokens_map, added_tokens, config */
    bool     json;                         /* beside a tokenizer.json */
} tn__says;
bool tn__needs_json(const char *who, const char *what, const char *value); /* raises: false */
/* The class, one of those that fit the lists; the first, if none is said. It raises. */
bool tn__class_said(const tn__says *s, const char *who, const tn__class fit[3], tn__class *class);
/* The rules of a class, once the pieces are there; of a .model, once it is ready. The others are then, too. */
bool tn__class_rules(tn_tokenizer *t, const char *who, const tn__says *s, tn__class class);
/* What changes the numbers of a tokenizer.json, and which of its tokens begins and ends a text. It raises. */
bool tn__class_beside(tn_tokenizer *t, const char *who, tn__says *s);

tn_tokenizer *tn__tokenizer_read(const char *who, const tn_json *v); /* of a tokenizer.json */

/* Of SentencePiece's .model; control: are "<s>" and its like looked for in texts? And back, with its scores. */
tn_tokenizer *tn__sentencepiece_read(const char *who, const void *data, size_t bytes, bool control);
bool          tn__sentencepiece_write(const tn_tokenizer *t, tn_string *to);

#endif
