/* train_texts.h — the training text and the validation text of a command: options, reading, token ids. */
#ifndef TENON_PROGRAMS_COMMON_TRAIN_TEXTS_H
#define TENON_PROGRAMS_COMMON_TRAIN_TEXTS_H

#include "options.h"

typedef struct {
    option_list text, valid;
    double      valid_part; /* fraction of the text to validate on if there is no .valid; NaN: not given */
    tn_string   all;        /* the training text, followed by the validation text */
    size_t      bytes;      /* size of the training text */
    tn_ids      ids, held;  /* tokens of the two texts */
} train_texts;

/* what: "text"; more: "", or a phrase that follows "training text"; part: the default of --valid-part. */
#define TRAIN_TEXTS_OPTIONS(t, what, more, part)                                                                   \
    OPTION_LIST("text", 't', "FILE", &(t).text, "training " what more ": files, folders, or - for standard input", \
                .required = true),                                                                                 \
        OPTION_LIST("valid", 0, "FILE", &(t).valid, "validation " what ", used to select the best model"),         \
        OPTION_REAL("valid-part", 0, "P", &(t).valid_part,                                                         \
                    "fraction of the text, from its end, to validate on instead of --valid (default: " part ")",   \
                    .least = 0, .most = 0.5)

/* Checks the options; sets .valid_part to `usual` if it was not given. Returns 0 or program_usage. */
int train_texts_check(train_texts *t, const tn_world *w, double usual);
/* Reads both texts. Without .valid, the last .valid_part of the training text, from the start of a line if it has one,
 * is the validation text. False: raised. */
bool    train_texts_read(train_texts *t);
tn_text train_texts_training(const train_texts *t);
tn_text train_texts_validation(const train_texts *t);
/* Sets .ids and .held; literal: as texts_encode. False: raised. */
bool train_texts_encode(train_texts *t, const tn_tokenizer *tokens, bool literal);
/* Raises if validation files were given but hold no item (held < 1). least: the smallest valid text, for the
 * message. */
bool train_texts_check_valid(const train_texts *t, int64_t held, const char *least);
void train_texts_print(const train_texts *t);                       /* the sizes, to standard error */
void train_texts_describe(const train_texts *t, tn_json_writer *w); /* puts checksums of .ids and .held */
void train_texts_free(train_texts *t);

#endif
