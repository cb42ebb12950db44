/* tokenizer.h — text to numbers of pieces and back, as Hugging Face's fast tokenizers do it: BERT's WordPiece,
 * byte-pair encoding over characters, and GPT-2's over bytes. Part of data.h: include that.
 *
 *     tn_tokenizer *t = tn_tokenizer_load("bert-base-uncased");       // a folder, a tokenizer.json or a vocab.txt
 *     tn_encoding  *e = tn_encoding_new();
 *     const char   *text = "Time flies like an arrow.";
 *     tn_tokenizer_encode(t, e, text, strlen(text), .max_length = 128);
 *     for (int64_t i = 0; i < e->n; i++)
 *         printf("%d %s: %d to %d\n", e->id[i], tn_tokenizer_piece(t, e->id[i]), e->start[i], e->end[i]);
 *     tn_encoding_free(e);
 *     tn_tokenizer_free(t);
 *
 * A tokenizer does not change once it is made: any number of threads may use one, each with an encoding of its own.
 * Any bytes are a text: what is not UTF-8 counts as U+FFFD (which BERT leaves out), or is refused with .strict. */
#ifndef TENON_DATA_TOKENIZER_H
#define TENON_DATA_TOKENIZER_H

#include "text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_tokenizer tn_tokenizer;

typedef enum {
    TN_WORDPIECE = 0, /* BERT: words, split at punctuation; longest piece first; "##" marks what goes on */
    TN_BPE,           /* byte-pair encoding of the same words, whose last pieces end in "</w>" */
    TN_BYTE_BPE,      /* GPT-2: byte-pair encoding of bytes; nothing is unknown */
    TN_SENTENCE_BPE,  /* SentencePiece's, LLaMA's: of whole texts, with "▁" for spaces; what has no piece is bytes */
    TN_UNIGRAM        /* SentencePiece's other: the pieces whose scores have the greatest sum */
} tn_tokenizer_kind;

/* ---- where they come from ---------------------------------------------------------------------------------------- */

/* path: a folder (with tokenizer.json; tokenizer.model or spiece.model; vocab.txt; or vocab.json, also called
 * encoder.json, and merges.txt, also called vocab.bpe; tokenizer_config.json is heeded), a tokenizer.json,
 * SentencePiece's .model, or a vocab.txt. What a file asks for and Tenon does not do is refused by its name. */
typedef enum { TN_FROM_FILE = 0, TN_NO, TN_YES } tn_choice;
typedef struct tn_tokenizer_config {
    int       zero_;
    tn_choice lowercase;       /* where only a vocab.txt is there, the default is TN_YES */
    tn_choice strip_accents;   /* the default: if lower-cased */
    tn_choice control_in_text; /* of a .model: is "<s>" in a text the piece? SentencePiece says TN_NO, the default */
    bool      slow;            /* the rules of BERT's older tokenizer in Python, where the two differ */
    int       end_;
} TN_KEYWORDS_ONLY   tn_tokenizer_config;
TN_API tn_tokenizer *tn_tokenizer_load_run(const char *path, tn_tokenizer_config o);
/* The text of a tokenizer.json. */
TN_API tn_tokenizer *tn_tokenizer_parse(const char *json, size_t bytes);
/* Writes tokenizer.json, tokenizer_config.json, special_tokens_map.json and vocab.txt or vocab.json and merges.txt into
 * folder, which exists: what Hugging Face's libraries open. */
TN_API tn_status tn_tokenizer_save(const tn_tokenizer *t, const char *folder) TN_CHECKED;
TN_API void      tn_tokenizer_free(tn_tokenizer *t);

/* From the parts that other files hold: GGUF, llama2.c's tokenizer.bin. n texts of pieces, each ended by a NUL, in the
 * order of their numbers; with "▁" or a space for the space. */
enum { TN_TYPE_NORMAL = 1, TN_TYPE_UNKNOWN, TN_TYPE_CONTROL, TN_TYPE_USER, TN_TYPE_UNUSED, TN_TYPE_BYTE };
typedef struct tn_pieces_args {
    int                    zero_;
    tn_tokenizer_kind kind TN_IS(TN_SENTENCE_BPE); /* or TN_UNIGRAM, TN_BYTE_BPE */
    const float           *scores;                 /* [n]: the higher is merged first; NULL: in the order of numbers */
    const int32_t         *types;  /* [n] TN_TYPE_…; NULL: "<unk>", "<s>", "</s>" and "<0x0A>" tell themselves */
    const char *const     *merges; /* [n_merges] of TN_BYTE_BPE: "a b", the first is merged first */
    int64_t                n_merges;
    const char   *splitter; /* of TN_BYTE_BPE: "gpt2", "gpt4" (LLaMA 3 has it, too), "qwen2"; or as GGUF calls them */
    int32_t first TN_IS(-1), last TN_IS(-1); /* -1: "<s>" and "</s>", if they are there */
    bool          bare;                      /* no first piece in front of a text */
    bool          ends;                      /* the last piece behind a text */
    bool          no_space;                  /* a text does not begin with a space that nobody wrote */
    bool whole_words; /* of TN_BYTE_BPE: a word that is a piece is that piece, whatever the merges make of it */
    int  end_;
} TN_KEYWORDS_ONLY   tn_pieces_args;
TN_API tn_tokenizer *tn_tokenizer_of_pieces_run(int64_t n, const char *const *pieces, tn_pieces_args how);
/* And back: the scores and types of all tn_tokenizer_size(t) pieces, and the merges, two pieces each, of which there
 * are as many as is returned. Each may be NULL. */
TN_API int64_t tn_tokenizer_parts(const tn_tokenizer *t, float *scores, int32_t *types, int32_t *merges);
typedef struct {
    const char *splitter;           /* of TN_BYTE_BPE, as GGUF calls it; else NULL */
    bool        first, last, space; /* what is put around a text, and in front of it */
    const char *untold;             /* of the two kinds of GGUF, a rule that it cannot say, by tokenizer.json's name */
} tn_tokenizer_manner;
TN_API tn_tokenizer_manner tn_tokenizer_manner_of(const tn_tokenizer *t);

/* Training: words are counted, then the most frequent pair of neighbouring pieces becomes a piece, again and again. Any
 * amount of text: files are read in blocks, and only the different words are kept. The same result for any number of
 * threads. Words of more than 1000 letters are left out. Pairs of equal count: for BPE the one of lower numbers, as
 * Hugging Face has it; for WordPiece the one that comes first in the order of its bytes. TN_UNIGRAM is trained as
 * SentencePiece does it: from all frequent substrings down to vocab_size, each time without those that cost least. */
typedef struct tn_tokenizer_train_args {
    int                zero_;
    tn_tokenizer_kind  kind;
    int64_t vocab_size TN_IS(30000); /* 30000 */
    int64_t min_count  TN_IS(2);     /* of a pair that becomes a piece: 2 */
    int64_t alphabet   TN_IS(1000);  /* different letters at most, the most frequent: 1000; not for bytes;
                                     TN_UNIGRAM keeps those that make up 99.95 % of the text */
    bool               cased;        /* keep capitals and accents (TN_UNIGRAM does) */
    const char *const *special;      /* ended by NULL, in the order of their numbers; NULL: [PAD] [UNK] [CLS] [SEP]
                                      [MASK]; for bytes <|endoftext|>, for Unigram <unk> <s> </s> */
    void (*progress)(const char *what, double part, void *user); /* "reading", "merging", "pruning"; 0 to 1 */
    void *user;
    int   end_;
} TN_KEYWORDS_ONLY   tn_tokenizer_train_args;
TN_API tn_tokenizer *tn_tokenizer_train_run(int n, const char *const *paths, tn_tokenizer_train_args how);
TN_API tn_tokenizer *tn_tokenizer_train_text_run(const char *text, size_t bytes, tn_tokenizer_train_args how);

/* ---- what they are ----------------------------------------------------------------------------------------------- */

TN_API tn_tokenizer_kind tn_tokenizer_kind_of(const tn_tokenizer *t);
TN_API int64_t           tn_tokenizer_size(const tn_tokenizer *t); /* the highest number of a piece, and one */
/* The piece as its files spell it ("##ing", "Ġthe"), "" for a number that has none; and its number, or -1. */
TN_API const char *tn_tokenizer_piece(const tn_tokenizer *t, int64_t id);
TN_API int64_t     tn_tokenizer_id(const tn_tokenizer *t, const char *piece);
TN_API bool        tn_tokenizer_is_special(const tn_tokenizer *t, int64_t id);
TN_API bool        tn_tokenizer_goes_on(const tn_tokenizer *t, int64_t id); /* WordPiece: is it the middle of a word? */

typedef struct {
    int32_t pad, unknown, first, separator, mask, last; /* -1: there is none. As a folder says; else first: [CLS] or
                                                           <s>; last: </s> or <|endoftext|>; separator: [SEP] or </s> */
} tn_tokenizer_roles;
TN_API tn_tokenizer_roles tn_tokenizer_special(const tn_tokenizer *t);

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

/* What a text became. The arrays are the encoding's own, and hold until it is used again; used again and again, it
 * needs no more memory, and remembers frequent words. */
typedef struct {
    int64_t        n;       /* pieces */
    const int32_t *id;      /* [n] */
    const int32_t *start;   /* the bytes of its text that a piece comes from; 0 and 0 for what the template adds */
    const int32_t *end;     /* behind the last */
    const int32_t *word;    /* which word of its text it belongs to, from 0; -1 for what the template adds */
    const uint8_t *segment; /* 0: of the first text, 1: of the second */
    const uint8_t *special; /* TN_PIECE_… */
    int64_t        cut;     /* pieces that .max_length cost */
    int64_t        invalid; /* sequences of bytes that are not UTF-8 */
} tn_encoding;
enum { TN_PIECE_TEXT = 0, TN_PIECE_ADDED = 1 /* by the template */, TN_PIECE_PADDING = 2 };
TN_API tn_encoding *tn_encoding_new(void);
TN_API void         tn_encoding_free(tn_encoding *e);

typedef enum { TN_CUT_LONGEST = 0, TN_CUT_FIRST, TN_CUT_SECOND } tn_cut;
typedef struct tn_encode_args {
    int                zero_;
    const char        *pair;       /* a second text: [CLS] text [SEP] pair [SEP] */
    size_t             pair_bytes; /* of pair, which needs no NUL */
    const char *const *pairs;      /* of tn_tokenizer_batch, instead: n second texts */
    int64_t            max_length; /* of all pieces, those of the template included; 0: no limit */
    tn_cut             cut;        /* of two texts, which is cut */
    bool               cut_left;   /* at the beginning, not at the end */
    int64_t            pad_to;     /* at least so many, by padding */
    bool               pad_left;
    bool               bare;    /* without what the template adds */
    bool               literal; /* "[SEP]" in the text is no special token, but a bracket, and so on */
    bool               strict;  /* bytes that are not UTF-8 are an error that says where */
    double   sample; /* of TN_UNIGRAM: pieces by chance; each way has its probability to this power: 0.1, say */
    uint64_t seed;   /* of .sample: another one for each text and epoch */
    int      nth;    /* of TN_UNIGRAM: not the best way but the one after it (1), and so on */
    int      end_;
} TN_KEYWORDS_ONLY tn_encode_args;
/* At most 2^31 - 1 bytes of text. */
TN_API tn_status tn_tokenizer_encode_run(const tn_tokenizer *t, tn_encoding *e, const char *text, size_t bytes,
                                         tn_encode_args o);

/* For what turns lines into numbers: encodes them with t into e, .bare. Both must live as long as it is used. */
TN_API tn_encoder tn_tokenizer_encoder(const tn_tokenizer *t, tn_encoding *e);

/* n texts, each ended by a NUL, as tensors [n, T], T the length of the longest (or .pad_to). */
typedef struct {
    tn_tensor *ids, *segments; /* i64 */
    tn_tensor *blocked_keys;   /* bool: true is padding */
    int64_t    cut, invalid;   /* as in tn_encoding, of all texts */
} tn_token_batch;
TN_API tn_status tn_tokenizer_batch_run(const tn_tokenizer *t, tn_token_batch *to, int64_t n, const char *const *texts,
                                        tn_encode_args o);

/* ---- and back ---------------------------------------------------------------------------------------------------- */

typedef struct tn_decode_args {
    int  zero_;
    bool keep_special;
    bool keep_spaces; /* " ," stays, where BERT's decoder writes "," */
    int  end_;
} TN_KEYWORDS_ONLY tn_decode_args;
/* The text of n numbers, added to `to`. What is not UTF-8 (half a character of GPT-2's bytes) becomes U+FFFD. */
TN_API tn_status tn_tokenizer_decode_run(const tn_tokenizer *t, const int32_t *ids, int64_t n, tn_decode_args o,
                                         tn_string *to);

/* Number after number, as a model writes them: adds to `to` the text that is complete now. Begin with zeros. */
typedef struct {
    char held[4]; /* the first bytes of a character */
    int  bytes;
    bool begun;
} tn_text_stream;
TN_API tn_status tn_tokenizer_decode_next(const tn_tokenizer *t, tn_text_stream *d, int32_t id, tn_string *to);
TN_API tn_status tn_tokenizer_decode_end(tn_text_stream *d, tn_string *to); /* half a character is U+FFFD */

/* ---- conversations ----------------------------------------------------------------------------------------------- */

/* Messages as a model reads them, added to `to`: kind is "llama2", "llama3", "chatml", "qwen2", "mistral" or "zephyr".
 * answer: the text ends where the assistant's answer begins. Its special tokens are in the text: encode it .bare. */
typedef struct {
    const char *role, *content; /* "system", "user", "assistant" */
} tn_message;
TN_API tn_status   tn_chat_text(const char *kind, int64_t n, const tn_message *messages, bool answer, tn_string *to);
TN_API const char *tn_chat_kind(const char *chat_template); /* of a tokenizer_config.json; NULL: none of them */

#ifdef __cplusplus
} /* extern "C" */
#else
#define TN_TOKENIZER_TRAIN_ARGS_DEFAULTS .vocab_size = 30000, .min_count = 2, .alphabet = 1000
#define TN_TRAINED_(...) ((tn_tokenizer_train_args){TN_TOKENIZER_TRAIN_ARGS_DEFAULTS, TN_NAMED_, __VA_ARGS__})
#define TN_PIECES_ARGS_DEFAULTS .kind = TN_SENTENCE_BPE, .first = -1, .last = -1
#define tn_tokenizer_of_pieces(...) TN_CALL_(tn_tokenizer_of_pieces_run(TN_OF_PIECES_(__VA_ARGS__, .zero_ = 0)))
#define TN_OF_PIECES_(n, pieces, ...) n, pieces, ((tn_pieces_args){TN_PIECES_ARGS_DEFAULTS, TN_NAMED_, __VA_ARGS__})
#define TN_ENCODED_(...) ((tn_encode_args){TN_NO_DEFAULTS_, TN_NAMED_, __VA_ARGS__})
#define tn_tokenizer_load(...) TN_CALL_(tn_tokenizer_load_run(TN_TOKENIZER_LOAD_(__VA_ARGS__, .zero_ = 0)))
#define TN_TOKENIZER_LOAD_(path, ...) path, ((tn_tokenizer_config){TN_NO_DEFAULTS_, TN_NAMED_, __VA_ARGS__})
#define tn_tokenizer_train(...) TN_CALL_(tn_tokenizer_train_run(TN_TRAIN_(__VA_ARGS__, .zero_ = 0)))
#define tn_tokenizer_train_text(...) TN_CALL_(tn_tokenizer_train_text_run(TN_TRAIN_(__VA_ARGS__, .zero_ = 0)))
#define TN_TRAIN_(a, b, ...) a, b, TN_TRAINED_(__VA_ARGS__)
#define tn_tokenizer_encode(...) TN_CALL_(tn_tokenizer_encode_run(TN_ENCODE_(__VA_ARGS__, .zero_ = 0)))
#define tn_tokenizer_batch(...) TN_CALL_(tn_tokenizer_batch_run(TN_ENCODE_(__VA_ARGS__, .zero_ = 0)))
#define TN_ENCODE_(t, to, a, b, ...) t, to, a, b, TN_ENCODED_(__VA_ARGS__)
#define tn_tokenizer_decode(...) TN_CALL_(tn_tokenizer_decode_run(TN_DECODE_(__VA_ARGS__, .zero_ = 0)))
#define TN_DECODE_(t, ids, n, to, ...) t, ids, n, ((tn_decode_args){TN_NO_DEFAULTS_, TN_NAMED_, __VA_ARGS__}), to
#endif
#endif
