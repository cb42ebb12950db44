/* tokenizer_files.h — shared by the readers and writers of tokenizer files. Private. */
#ifndef TENON_DATA_TOKENIZER_FILES_TOKENIZER_FILES_H
#define TENON_DATA_TOKENIZER_FILES_TOKENIZER_FILES_H

#include "data/tokenizer/tokenizer_private.h"

enum { TN__WORD_CHARS_MAX = 10000 };

bool tn__unsupported(const char *caller, const char *rule, const char *value); /* raises: false */

/* Readers of parts of a tokenizer.json: the normalizer as steps; the pre_tokenizer of SentencePiece's kinds; Unigram's
 * scores; the post_processor; the decoder of SentencePiece's kinds. They raise. */
bool tn__json_steps(tn_tokenizer *t, const char *caller, const tn_json *v);
bool tn__json_metaspace(tn_tokenizer *t, const char *caller, const tn_json *v);
bool tn__json_unigram(tn_tokenizer *t, const char *caller, const tn_json *model);
bool tn__json_template(tn_tokenizer *t, const char *caller, const tn_json *v);
bool tn__json_decoder(tn_tokenizer *t, const char *caller, const tn_json *v);
#define TN__SPACES_AT_ENDS "\\A +|[ " TN__SPACE "]+\\z" /* the regex of the spaces that SentencePiece strips */
#define TN__WHITE_SPACE "\\s{2,}|[\\n\\r\\t]"           /* the regex of DeBERTa's white space */
#define TN__REGEX_SIGNS "\\^$.|?*+()[]{}"               /* characters that a "\" makes literal */
/* Reads the user-defined tokens that are split off before merges: sets their types. Call after the tokens are read. */
bool tn__json_user_tokens(tn_tokenizer *t, const char *caller, const tn_json *v);
/* True if byte-pair encoding has such tokens. */
static inline bool tn__has_user_tokens(const tn_tokenizer *t) { return t->kind == TN_SENTENCE_BPE && t->user.n; }
/* Writers of these parts. The writer w keeps the first error. */
/* Writes the value of a key, or the next values, as the form shows them: JSON with ' in place of ", without escapes;
 * objects and arrays may stay open. Values: %s a text, NULL: null; %t a tn_text; %b a bool; %i an int64_t. */
void        tn__json_form(tn_json_writer *w, const char *key, const char *form, ...);
void        tn__json_put_steps(const tn_tokenizer *t, tn_json_writer *w);
void        tn__json_put_metaspace(const tn_tokenizer *t, tn_json_writer *w);
const char *tn__form_name(int form);          /* of a TN__STEP_FORM */
const char *tn__step_name(const tn__step *s); /* of any step but TN__STEP_SENTENCE */
/* A rule that GGUF cannot express, named as in a tokenizer.json; NULL: none. For the two kinds of GGUF. */
const char *tn__gguf_missing_rule(const tn_tokenizer *t);
bool        tn__json_put_unigram(const tn_tokenizer *t, tn_json_writer *w);
void        tn__json_put_decoder(const tn_tokenizer *t, tn_json_writer *w);

/* Adds a token that the object a describes; a NULL: only the token's text is known. It raises. */
bool tn__json_added(tn_tokenizer *t, const char *caller, const tn_json *a, int64_t id, bool special);

/* The class whose rules apply to a folder without a tokenizer.json, and the files that specify it; NULL: no such
 * file. */
typedef enum {
    TN__CLASS_NONE,
    TN__CLASS_BERT,
    TN__CLASS_GPT2,
    TN__CLASS_ROBERTA,
    TN__CLASS_QWEN2,
    TN__CLASS_LLAMA,
    TN__CLASS_T5,
    TN__CLASS_XLNET,
    TN__CLASS_CAMEMBERT,
    TN__CLASS_XLM_ROBERTA,
    TN__CLASS_DEBERTA,
    TN__CLASSES
} tn__class;
typedef struct {
    tn_json       *config, *map, *added; /* tokenizer_config, special_tokens_map, added_tokens */
    const tn_json *model;                /* config */
    bool           json;                 /* next to a tokenizer.json */
} tn__side_files;
/* Finds the class among those that fit the vocabulary files; the first if no file specifies one. It raises. */
bool tn__class_find(const tn__side_files *s, const char *caller, const tn__class fit[3], tn__class *class);
/* Applies the rules of a class: call after the tokens are read, or after a .model is complete; completes the other
 * kinds. */
bool tn__class_rules(tn_tokenizer *t, const char *caller, const tn__side_files *s, tn__class class);
/* Applies the files next to a tokenizer.json that change token ids, and finds the tokens that start and end a text. It
 * raises. */
bool tn__side_files_apply(tn_tokenizer *t, const char *caller, tn__side_files *s);

/* SentencePiece's pieces with ids from a vocab.json: Marian's and M2M-100's folders (listed.c). load: NULL: another
 * kind of folder, or raised. language: gives a tokenizer of several languages its template. */
tn_tokenizer *tn__listed_load(const char *folder, const tn_tokenizer_config *o, const tn__side_files *s);
bool          tn__listed_save(const tn_tokenizer *t, const char *folder);
bool tn__language_apply(tn_tokenizer *t, const char *caller, const tn_tokenizer_config *o, const tn__side_files *s);
/* The path of the first of these names that is a file in the folder, for tn__strfree; NULL: none, or raised. b may be
 * NULL. */
char *tn__find_file(const char *folder, const char *a, const char *b);
bool  tn__tokenizer_is_file(const char *path);                /* true if path can be read as a file */
bool  tn__vocab_json_read(tn_tokenizer *t, const char *path); /* adds its tokens; false: raised */

/* Save a file of the folder, with its line in SHA256SUMS: what write writes; these bytes. False: raised. */
bool tn__tokenizer_save_json(const tn_tokenizer *t, const char *folder, const char *name,
                             void (*write)(const tn_tokenizer *, tn_json_writer *));
bool tn__tokenizer_save_bytes(const char *folder, const char *name, const char *data, size_t bytes);

tn_tokenizer *tn__tokenizer_read(const char *caller, const tn_json *v); /* from a tokenizer.json */

/* Reads SentencePiece's .model; control: find "<s>" and other control tokens in texts; list: called first, to add the
 * tokens of a vocab.json, or NULL. The writer needs scores. */
tn_tokenizer *tn__sentencepiece_read(const char *caller, const void *data, size_t bytes, bool control,
                                     bool (*list)(tn_tokenizer *t, void *user), void *user);
/* The same from a file, of which `copy`, if not NULL, gets the bytes. */
tn_tokenizer *tn__sentencepiece_load(const char *caller, const char *path, bool control,
                                     bool (*list)(tn_tokenizer *t, void *user), void *user, tn_string *copy);
bool          tn__sentencepiece_write(const tn_tokenizer *t, tn_string *to);

#endif
