/* emit.h — writing the C file of a model: templates, numbers, tables. */
#ifndef TENON_EXTRAS_PROGRAMS_EXPORT_EMIT_H
#define TENON_EXTRAS_PROGRAMS_EXPORT_EMIT_H

#include <stdio.h>
#include <tenon/extras.h>

/* A tensor of the model, and where its numbers are among all weights. */
typedef struct {
    char             name[48];
    const tn_tensor *x, *packed; /* packed: the matrix in int8, whose values x has; NULL: f32 */
    int64_t          from, out;  /* a matrix: the rows of x that are its columns; out 0: numbers as they are */
    int64_t          at, n;      /* n: with padding */
} emit_weight;

typedef struct {
    FILE        *f;
    char         path[1024], part[1032];                 /* the file, and its name while it is written */
    char         weights_path[1032], weights_part[1040]; /* the file of the weights; empty: there is none */
    const char  *feature[40];                            /* names that are true in the templates' lines "#if NAME" */
    int          features;
    emit_weight *weight;                         /* [tensors] */
    int64_t      tensors, room, weights;         /* weights: numbers of all tensors */
    int64_t      widest, length;                 /* input of a matrix in int8; maximum tokens of a text */
    char         header[2048], prototypes[4096]; /* constants and functions of the header file */
} emitter;

bool emit_open(emitter *e, const char *path); /* false: raised */
bool emit_close(emitter *e);                  /* renames the file, or if an error is set, deletes it; false: raised */
void emit_feature(emitter *e, const char *name, bool on); /* and those that it needs */
void emit(emitter *e, const char *fmt, ...) TN_PRINTF(2, 3);

/* A function that the file exports, NULL after the last one. */
typedef struct {
    const char *prototype, *text; /* text: what it does, in terms of the constants MODEL_... */
} emit_function;
/* Those of the tokenizer. */
#define EMIT_ENCODE                                                                                               \
    {                                                                                                             \
        "int model_encode(const char *text, int bytes, int *id);",                                                \
            "The tokens of a text of at most MODEL_TEXT_MOST bytes; id has room for MODEL_TOKENS. Returns their " \
            "number."                                                                                             \
    }
#define EMIT_DECODE                                                                                                  \
    {                                                                                                                \
        "int model_decode(const int *id, int n, char *to);",                                                         \
            "Decodes n tokens, at most MODEL_RECENT; to has room for MODEL_TEXT bytes. Returns the number of bytes." \
    }
/* Their declarations, in the file and with their texts in its header file, NAME.h for NAME.c. */
void emit_interface(emitter *e, const emit_function *f);
void emit_constant(emitter *e, const char *name, int64_t value); /* MODEL_<name> of the header file */

/* The first comment of the file. */
typedef struct {
    const char *path, *program, *kind; /* the model's path; "gpt"; "gpt2" */
    const char *use;                   /* a command that uses the compiled program */
    int64_t     layers, dim;
    int64_t     state, texts, main, stack; /* bytes */
} emit_about;
void emit_title(emitter *e, const emit_about *a);

/* The text of a template, without its first comment: lines that end with NULL. "#if NAME", "#else", "#endif" with a
 * NAME in capitals are decided here; other directives stay. */
void emit_template(emitter *e, const char *const *lines);

/* Adds a tensor to the weights; a matrix in int8 as it is, others in f32. It must stay valid until emit_weights. NULL:
 * nothing is added. A matrix becomes in · wide numbers, rows [from, from + out) of w [.., in] and zeros for further
 * outputs, in panels of 16 outputs; another tensor is followed by zeros up to a multiple of 16 numbers. */
void emit_vector(emitter *e, const char *name, const tn_tensor *x);
void emit_matrix(emitter *e, const char *name, const tn_tensor *w, int64_t from, int64_t out);
/* The place of a tensor among the weights, -1: there is none of this name. */
int64_t emit_weight_at(const emitter *e, const char *name);
/* The declaration of the weights, with a name for each that is not of a layer; and their definition: bytes in the C
 * file, or of many weights, whose text compilers need gigabytes for, in a file next to it, NAME.bin for NAME.c. */
void emit_weight_names(emitter *e);
void emit_weights(emitter *e);
/* Raises if the weights, or a state of this many bytes, are too large for arrays of a C file. */
bool emit_fits(const emitter *e, int64_t state);
/* static const int32_t NAME[n][width] of numbers, width 1: NAME[n]. An array has at least one element. */
void emit_numbers(emitter *e, const char *name, int64_t n, int width, const int64_t *x);
void emit_strings(emitter *e, const char *name, int64_t n, const char *const *text);
typedef struct {
    const char *name;
    int64_t     n;
    const char *text; /* a comment; may be NULL */
} emit_size;
void emit_sizes(emitter *e, const emit_size *sizes, size_t n); /* an enum */
/* A string literal; bytes that are not printable are octal. */
void emit_string(emitter *e, const char *text, size_t bytes);

static inline int64_t emit_wide(int64_t n) { return (n + 15) / 16 * 16; }
/* Numbers in the keys and values of a head, in blocks of 128 tokens. */
static inline int64_t emit_cache(int64_t tokens, int64_t head)
{
    return (tokens + 127) / 128 * 128 * (head + emit_wide(head));
}

/* Raises if a parameter of the module is neither f32 nor int8. */
bool emit_plain(void *module, const char *path);
/* The start of the constants at the end of a file: asserts that `sizes`, an expression, is at most `state` bytes. */
void emit_constants(emitter *e, const char *sizes, int64_t state);

/* ---- Transformer blocks (blocks.c) ------------------------------------------------------------------------------- */

/* Raises: the file at path has this member or option, which cannot be exported. */
bool emit_rejected(const char *path, const char *member);
/* The function's name in the C file; NULL: it has none. And the features that the function needs. */
const char *blocks_function(tn_tensor *(*activation)(tn_tensor *));
void        blocks_feature(emitter *e, const char *function);
/* Are all weights of the module f32, and the blocks alike? Else raises. */
bool   blocks_fit(void *module, const tn_blocks *m, const char *path);
double blocks_scale(const tn_mha *a); /* the factor of the scores */
/* The weights of a stack, and their table; stack: "layer" or another word that starts the weights' names. */
void blocks_add(emitter *e, const tn_blocks *m, const char *stack);
void blocks_emit(emitter *e, const tn_blocks *m, const char *stack);
void emit_pointer(emitter *e, const char *name); /* the weights of this name as a C expression; NULL: there are none */

/* The stack of program/encoder.c for `length` rows: bytes of its state; sizes and features; weights. */
int64_t encoder_state(const tn_blocks *m, int64_t length);
void    encoder_sizes(emitter *e, const tn_blocks *m, int64_t length, const char *units);
void    encoder_features(emitter *e, const tn_blocks *m);
void    encoder_add(emitter *e, const tn_blocks *m);

/* Is a tokenizer's rule for this character found by a probe? Else it is that of the character before: planes 4 to 13
 * have no characters, 15 and 16 private ones. */
static inline bool emit_probed(uint32_t c) { return c % 0x10000 == 0 || c < 0x40000 || c / 0x10000 == 14; }

/* ---- tokenizers (tokens.c) --------------------------------------------------------------------------------------- */

enum { TOKENS_TOGETHER = 512 }; /* tokens that are decoded in one call */
typedef struct {
    int64_t (*at)[2]; /* first and last code point */
    int64_t n, room;
} token_ranges;

typedef struct {
    const tn_tokenizer *t;
    tn_encoding        *scratch;
    int64_t             n; /* tokens */
    int32_t            *types;
    tn_string           text;  /* all tokens, as they are decoded */
    int64_t            *piece; /* [n][3]: offset in text, bytes, kind */
    int64_t            *merge; /* [merges][4]: left, right, result, order; sorted */
    int64_t             merges;
    int64_t            *letter; /* [letters][2]: code point, token */
    int64_t             letters, byte_token[256];
    int64_t            *special;                     /* tokens that are matched in a text */
    int64_t             specials, longest, together; /* together: tokens that are decoded in one call */
    token_ranges        range[3];                    /* letters, numbers, spaces */
    bool                space, always, each, each_byte, drops;
} token_tables;

/* Prepares the tables of a tokenizer. False: raised; the error names a rule that is not supported. */
bool tokens_read(token_tables *k, const tn_tokenizer *t);
void tokens_free(token_tables *k);
void tokens_emit_sizes(emitter *e, const token_tables *k, int64_t text_most);
void tokens_emit_tables(emitter *e, const token_tables *k);

/* BERT's kind (wordpiece.c). */
typedef struct {
    const tn_tokenizer *t;
    int64_t            *range; /* [ranges][5]: code points from, to; kind; offset and bytes of the text; 0: itself */
    int64_t             ranges;
    tn_string           text;
    int64_t            *sorted, n; /* tokens by their texts */
    int64_t            *special, specials, frame[2][4];
    int                 around[2]; /* tokens of frame, before and after each text */
} wordpiece_tables;
bool wordpiece_read(wordpiece_tables *k, const tn_tokenizer *t); /* false: raised */
void wordpiece_free(wordpiece_tables *k);
void wordpiece_emit_sizes(emitter *e, const wordpiece_tables *k, int64_t text_most);
void wordpiece_emit_tables(emitter *e, const wordpiece_tables *k);

/* Either of the two (spelling.c). decodes: the file decodes tokens, too. most: bytes of a text. */
typedef struct {
    bool             words; /* pieces; else tokens */
    token_tables     tokens;
    wordpiece_tables pieces;
    int64_t          longest; /* bytes of a piece, and a space */
} spelling;
bool spelling_read(spelling *k, const tn_tokenizer *t, bool decodes); /* false: raised */
void spelling_free(spelling *k);
/* Texts have no special tokens, and up to n tokens are decoded together. */
void    spelling_read_plain(spelling *k, int64_t n);
int64_t spelling_most(int64_t length); /* for texts of at most `length` tokens */
int64_t spelling_longest(const spelling *k);
int64_t spelling_together(const spelling *k);
int64_t spelling_tokens(const spelling *k, int64_t most);
int64_t spelling_bytes(const spelling *k, int64_t most);
void    spelling_emit_sizes(emitter *e, const spelling *k, int64_t most, bool decodes);
void    spelling_emit_code(emitter *e, const spelling *k, bool decodes);
void    spelling_emit_tables(emitter *e, const spelling *k);

/* ---- language models (language_model.c) -------------------------------------------------------------------------- */

extern const emit_function writer_interface[]; /* the functions of a model that generates text */
/* main, with the tokens that start (first; -1: none) and end its texts; bytes of its buffers for a text of `most` bytes
 * and `length` tokens. */
void    emit_writer(emitter *e, const tn_model *m, int32_t first);
int64_t emit_writer_bytes(const spelling *k, int64_t most, int64_t length);

/* ---- templates: program/NAME.c as lines, written by the build ---------------------------------------------------- */

/* clang-format off: it aligns these in steps */
extern const char *const template_head[], *const template_arithmetic[], *const template_functions[];
extern const char *const template_embedding[], *const template_decoder[], *const template_recurrent[];
extern const char *const template_encoder[], *const template_words[], *const template_image[];
extern const char *const template_text[], *const template_pairs[], *const template_wordpiece[];
extern const char *const template_pieces[], *const template_translator[], *const template_columns[];
extern const char *const template_sample[], *const template_decoder_main[], *const template_encoder_main[],
                                                                                *const template_task_main[];
extern const char *const template_image_main[], *const template_translator_main[], *const template_lines[];
/* clang-format on */

#endif
