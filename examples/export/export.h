/* export.h — writes a model as one C99 file, for the command export of the programs.
 *
 * The file holds the weights, the tokenizer, and the code of the model from program/, which computes the same bits as
 * the library (docs/adr/0058). Not all models can be exported: the error names the member that is not supported. */
#ifndef TENON_EXAMPLES_EXPORT_EXPORT_H
#define TENON_EXAMPLES_EXPORT_EXPORT_H

#include <tenon/tenon.h>

/* A language model: a tn_gpt or a tn_llama. m is the model with its tokenizer, first the token that starts every text
 * (-1: none), path the name that the file's comment has for the model. False: raised; no file is written. */
bool export_language_model(const tn_model *m, int32_t first, const char *path, const char *out);

/* A masked language model with a WordPiece tokenizer, in the same way. */
bool export_masked_model(const tn_bert *m, const tn_tokenizer *t, const char *path, const char *out);

#define EXPORT_OPTION(to) \
    OPTION_TEXT("c", 0, "FILE", to, "C file to write; an existing one is replaced", .required = true)

#endif
