/* decoder.h — loads a model that generates text and its tokenizer from a path: a directory in Hugging Face's format, a
 * .gguf file or llama2.c's .bin. The content decides, not the file name. Part of models.h: include that.
 *
 *     tn_decoder d = tn_decoder_open("stories260K.bin", .tokenizer = "tok512.bin");
 *     if (!d.model || tn_decoder_save(&d, "stories260K.gguf", .type = "q8_0") != TN_OK)
 *         fprintf(stderr, "%s\n", tn_error_message()); // names the format of a file that cannot be loaded
 *     tn_decoder_close(&d); */
#ifndef TENON_MODELS_DECODER_H
#define TENON_MODELS_DECODER_H

#include "../data/data.h"
#include "../nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    void         *model;         /* a tn_gpt or a tn_llama, in eval mode; NULL: an error is set */
    tn_tokenizer *tokenizer;     /* NULL: the path contains none, and .tokenizer was not set */
    tn_ids        ends;          /* token ids that end a text by the path's metadata, in addition to the tokenizer's */
    tn_string     chat_template; /* format of conversations, in Jinja, for tn_chat_kind; empty: not specified */
    const char   *form;          /* "huggingface", "gguf" or "llama2.c" */
    const char   *stored; /* dtype of all matrices in the file, as "F16"; NULL: they differ. In memory they are f32
                             until tn_module_halve (exact if F16) or tn_module_quantize (if Q8_0) */
} tn_decoder;

typedef struct tn_decoder_config {
    int         zero_;
    const char *tokenizer;    /* file or folder of a tokenizer; NULL: the path's own; llama2.c's .bin has none */
    bool        no_tokenizer; /* load the model only */
    int         end_;
} TN_KEYWORDS_ONLY tn_decoder_config;
TN_API tn_decoder  tn_decoder_open_run(const char *path, tn_decoder_config c);
TN_API void        tn_decoder_close(tn_decoder *d); /* frees all members; set a member to NULL to keep it */

typedef struct tn_decoder_save_args {
    int         zero_;
    const char *type; /* dtype of a .gguf's matrices: "f32", "bf16" or "q8_0"; NULL: bf16 if they are, else f32 */
    bool        no_tokenizer; /* do not write the tokenizer */
    int         end_;
} TN_KEYWORDS_ONLY tn_decoder_save_args;
/* Writes all members to a path that ends in .gguf, or into an existing directory in Hugging Face's format. */
TN_API tn_status tn_decoder_save_run(const tn_decoder *d, const char *path, tn_decoder_save_args a) TN_CHECKED;

#ifdef __cplusplus
}
#else
#define tn_decoder_open(...) TN_CALL_(tn_decoder_open_run(TN_DECODER_OPEN_(__VA_ARGS__, .zero_ = 0)))
#define TN_DECODER_OPEN_(path, ...) path, ((tn_decoder_config){TN_NO_DEFAULTS_, TN_NAMED_, __VA_ARGS__})
#define tn_decoder_save(d, ...) TN_CALL_(tn_decoder_save_run(d, TN_DECODER_SAVE_(__VA_ARGS__, .zero_ = 0)))
#define TN_DECODER_SAVE_(path, ...) path, ((tn_decoder_save_args){TN_NO_DEFAULTS_, TN_NAMED_, __VA_ARGS__})
#endif
#endif
