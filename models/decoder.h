/* decoder.h — a model that writes text and its tokenizer, from what a path holds: a directory as Hugging Face lays it
 * out, a .gguf file or llama2.c's .bin. Its bytes say which, not its name. Part of models.h: include that.
 *
 *     tn_decoder d = tn_decoder_open("stories260K.bin", .tokenizer = "tok512.bin");
 *     if (!d.model || tn_decoder_save(&d, "stories260K.gguf", .type = "q8_0") != TN_OK)
 *         fprintf(stderr, "%s\n", tn_error_message()); // what cannot be loaded is named there as what it is
 *     tn_decoder_close(&d); */
#ifndef TENON_MODELS_DECODER_H
#define TENON_MODELS_DECODER_H

#include "../data/data.h"
#include "../nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    void         *model;         /* a tn_gpt or a tn_llama, in eval mode; NULL: an error stands */
    tn_tokenizer *tokenizer;     /* NULL: the path holds none, and none was named */
    tn_ids        ends;          /* pieces that end a text by what the path says, besides the tokenizer's last one */
    tn_string     chat_template; /* how it reads conversations, in Jinja, for tn_chat_kind; empty: nothing says it */
    const char   *form;          /* "huggingface", "gguf" or "llama2.c" */
    const char   *stored; /* the type there of all matrices, as "F16"; they are f32 here until tn_module_halve (the same
                             numbers, if F16) or tn_module_quantize (if Q8_0); NULL: there are several */
} tn_decoder;

typedef struct tn_decoder_config {
    int         zero_;
    const char *tokenizer;    /* its file or folder, instead of what the path holds; llama2.c's .bin holds none */
    bool        no_tokenizer; /* the model alone */
    int         end_;
} TN_KEYWORDS_ONLY tn_decoder_config;
TN_API tn_decoder  tn_decoder_open_run(const char *path, tn_decoder_config c);
TN_API void        tn_decoder_close(tn_decoder *d); /* frees all that it holds; what was taken out is NULL */

typedef struct tn_decoder_save_args {
    int         zero_;
    const char *type;         /* of a .gguf's matrices: "f32", "bf16" or "q8_0"; NULL: bf16 as it is, else f32 */
    bool        no_tokenizer; /* a directory holds the tokenizer already */
    int         end_;
} TN_KEYWORDS_ONLY tn_decoder_save_args;
/* All of it, to a path that ends in .gguf, or into a directory that is there, as Hugging Face lays it out. */
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
