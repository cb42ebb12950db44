/* export.h — writes a model as one C99 file, for the command export of the programs.
 *
 * The file holds the weights, the tokenizer, and the code of the model from program/, which computes the same bits as
 * the library (docs/adr/0058). Not all models can be exported: the error names the member that is not supported. */
#ifndef TENON_EXTRAS_PROGRAMS_EXPORT_EXPORT_H
#define TENON_EXTRAS_PROGRAMS_EXPORT_EXPORT_H

#include "programs/common/options.h"

/* PROGRAM export (command.c). A program's file of the command defines export_this and the list of its options, which
 * are in export_asked. export_this opens the model and calls one of the functions below. False: raised. */
typedef struct {
    const char *dir, *tokenizer, *out, *dtype;
    bool        embed;
} export_options;
extern export_options export_asked;
bool                  export_this(const export_options *asked);
int                   export_main(int count, char **operands);

/* A language model: a tn_gpt or a tn_llama. m is the model with its tokenizer, first the token that starts every text
 * (-1: none), path the name that the file's comment has for the model. False: raised; no file is written. */
bool export_language_model(const tn_model *m, int32_t first, const char *path, const char *out);

/* A recurrent language model, a tn_rnn_lm, in the same way. */
bool export_recurrent_model(const tn_model *m, const char *path, const char *out);

/* A masked language model with a WordPiece tokenizer, in the same way. */
bool export_masked_model(const tn_bert *m, const tn_tokenizer *t, const char *path, const char *out);

/* A model of bert tune that classifies texts or tags words; texts have at most `length` tokens. */
bool export_tuned_model(const tn_tuned *m, const tn_tokenizer *t, int64_t length, const char *path, const char *out);

/* A model of texts' vectors: the pooled hidden states, then steps. */
typedef struct {
    tn_bert_pooling pooling;
    int64_t         length, dim; /* maximum tokens of a text; elements of a vector to keep */
    int             steps;
    struct {
        const tn_linear *dense;           /* NULL: scale the vector to length 1 */
        tn_tensor *(*then)(tn_tensor *x); /* activation after dense; NULL: none */
    } step[8];
} export_vectors;
bool export_embedder(const tn_bert *m, const tn_tokenizer *t, const export_vectors *how, const char *path,
                     const char *out);

/* A classifier of images; the file's images have the size that the preprocessing p makes. */
bool export_image_model(const tn_vit *m, const tn_image_processor *p, const char *path, const char *out);

/* A Transformer of translate train, with greedy decoding. */
bool export_translator(const tn_seq2seq *m, const tn_tokenizer *t, const char *path, const char *out);

/* The options of all programs but --model; EXPORT_FILE: without --dtype. */
#define EXPORT_FILE \
    OPTION_TEXT("c", 0, "FILE", &export_asked.out, "C file to write; an existing one is replaced", .required = true)
#define EXPORT_OPTIONS                                                                                 \
    EXPORT_FILE, OPTION_TEXT("dtype", 0, "TYPE", &export_asked.dtype,                                  \
                             "dtype of the weights: int8 takes a quarter of f32, and also rounds the " \
                             "activations (default: f32)",                                             \
                             .choices = "f32|int8")
/* name and book: of the program and of a model, for the example, which ends with the line use. does: what the exported
 * program does. */
#define EXPORT_COMMAND(name_, book, options_, does, use)                                                          \
    {                                                                                                             \
        .name = "export", .summary = "write a model as one C file", .options = options_, .run = export_main,      \
        .text = "The C99 file holds the weights, the tokenizer and the code of the model: no library except "     \
                "libm, no malloc. More than 16 MiB of weights are a second file, NAME.bin for NAME.c, which gcc " \
                "or clang includes. NAME.h declares its functions. Its results have the bits of Tenon's. With "   \
                "-DMODEL_MAIN it is a program "                                                                   \
                "that " does "\n\n"                                                                               \
                "  " name_ " export --model " book " --c " book ".c\n"                                            \
                "  cc -std=c99 -O2 -march=native -DMODEL_MAIN " book ".c -lm -o " book "\n"                       \
                "  " use                                                                                          \
    }

#endif
