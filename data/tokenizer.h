/* tokenizer.h — converts text to token ids and back, compatible with Hugging Face's fast tokenizers: BERT's WordPiece,
 * byte-pair encoding over characters or bytes, SentencePiece's BPE and Unigram. Part of data.h: include that.
 *
 *     tn_tokenizer *t = tn_tokenizer_load("bert-base-uncased");       // a folder, a tokenizer.json or a vocab.txt
 *     tn_encoding  *e = tn_encoding_new();
 *     const char   *text = "Time flies like an arrow.";
 *     tn_tokenizer_encode(t, e, text, strlen(text), .max_length = 128);
 *     for (int64_t i = 0; i < e->n; i++)
 *         printf("%d %s: %d to %d\n", e->id[i], tn_tokenizer_token(t, e->id[i]), e->start[i], e->end[i]);
 *     tn_encoding_free(e);
 *     tn_tokenizer_free(t);
 *
 * A tokenizer does not change after it is created: any number of threads may use it, each with its own encoding. A text
 * may contain any bytes: invalid UTF-8 is read as U+FFFD (which BERT drops), or rejected with .strict. */
#ifndef TENON_DATA_TOKENIZER_H
#define TENON_DATA_TOKENIZER_H

#include "text.h"

TN_C_BEGIN_

typedef struct tn_tokenizer tn_tokenizer;

typedef enum {
    TN_WORDPIECE = 0, /* BERT: words, split at punctuation; longest match first; "##" marks a token inside a word */
    TN_BPE,           /* byte-pair encoding of the same words; the last token of a word ends in "</w>" */
    TN_BYTE_BPE,      /* GPT-2: byte-pair encoding of bytes; no text is unknown */
    TN_SENTENCE_BPE,  /* SentencePiece's, LLaMA's BPE: of whole texts, with "▁" for spaces; unknown text becomes
                         bytes */
    TN_UNIGRAM,       /* SentencePiece's Unigram: the tokens whose scores have the greatest sum */
    TN_SUBWORD        /* subword-nmt: byte-pair encoding of words between spaces; id 0 is unknown text */
} tn_tokenizer_kind;

/* ---- creating a tokenizer ---------------------------------------------------------------------------------------- */

/* path: a folder (with tokenizer.json; tokenizer.model or spiece.model, DeBERTa's spm.model, CamemBERT's and
 * XLM-RoBERTa's sentencepiece.bpe.model; vocab.txt; or vocab.json, also named
 * encoder.json, and merges.txt, also named vocab.bpe; or Marian's source.spm and target.spm, M2M-100's
 * sentencepiece.bpe.model, each with vocab.json; tokenizer_config.json is applied), a tokenizer.json, a
 * SentencePiece .model, a vocab.txt, or subword-nmt's file of merges (version 0.2). The error names a rule in a file
 * that Tenon does not support. */
typedef enum { TN_FROM_FILE = 0, TN_NO, TN_YES } tn_choice;
typedef struct tn_tokenizer_config {
    int                   zero_;
    tn_choice             lowercase;       /* default of a vocab.txt alone: TN_YES */
    tn_choice             strip_accents;   /* default: the same as lowercase */
    tn_choice             control_in_text; /* of a .model: "<s>" in a text is the control token; default TN_NO */
    bool                  slow;   /* follow BERT's slow tokenizer (Python) where it differs from the fast one */
    const struct tn_json *config; /* content of the folder's config.json; NULL: it is read from there */
    bool                  target; /* Marian's folder: the tokenizer of the target language */
    const char *language; /* of the texts, for a tokenizer of several: "en" (M2M-100), "eng_Latn" (NLLB); NULL: as
                             tokenizer_config.json says, or English */
    int         end_;
} TN_KEYWORDS_ONLY   tn_tokenizer_config;
TN_API tn_tokenizer *tn_tokenizer_load_run(const char *path, tn_tokenizer_config o);
/* json: the content of a tokenizer.json. */
TN_API tn_tokenizer *tn_tokenizer_parse(const char *json, size_t bytes);
/* Writes tokenizer.json, tokenizer_config.json, special_tokens_map.json and vocab.txt or vocab.json and merges.txt into
 * folder, which must exist. Hugging Face's libraries open these files. Of TN_SUBWORD folder is the name of a file for
 * the merges; the ids may differ after loading it. */
TN_API tn_status tn_tokenizer_save(const tn_tokenizer *t, const char *folder) TN_CHECKED;
TN_API void      tn_tokenizer_free(tn_tokenizer *t);

/* Creates a tokenizer from the parts that other files hold: GGUF, llama2.c's tokenizer.bin. pieces: the texts of n
 * tokens in the order of their ids, each ended by a NUL; a space is "▁" or a space. */
enum { TN_TYPE_NORMAL = 1, TN_TYPE_UNKNOWN, TN_TYPE_CONTROL, TN_TYPE_USER, TN_TYPE_UNUSED, TN_TYPE_BYTE };
typedef struct tn_from_vocab_args {
    int                    zero_;
    tn_tokenizer_kind kind TN_IS(TN_SENTENCE_BPE); /* or TN_UNIGRAM, TN_BYTE_BPE */
    const float           *scores;                 /* [n]: a higher score is merged first; NULL: a lower id first */
    const int32_t         *types;  /* [n] TN_TYPE_…; NULL: recognise "<unk>", "<s>", "</s>", "<0x0A>" */
    const char *const     *merges; /* [n_merges] of TN_BYTE_BPE: "a b", the first is merged first */
    int64_t                n_merges;
    const char   *splitter; /* of TN_BYTE_BPE: "gpt2", "gpt4" (also LLaMA 3's), "qwen2", "smollm"; or GGUF's names */
    int32_t first TN_IS(-1), last TN_IS(-1); /* ids; -1: "<s>" and "</s>" if the vocabulary has them */
    bool          bare;                      /* do not add the first token before a text */
    bool          ends;                      /* add the last token after a text */
    bool          no_space;                  /* do not add a space before a text */
    bool          whole_words; /* of TN_BYTE_BPE: a word in the vocabulary becomes that token, without merges */
    int           end_;
} TN_KEYWORDS_ONLY   tn_from_vocab_args;
TN_API tn_tokenizer *tn_tokenizer_from_vocab_run(int64_t n, const char *const *pieces, tn_from_vocab_args how);
/* The reverse: writes the scores and types of all tn_tokenizer_size(t) tokens, and the merges, two token ids each.
 * Returns the number of merges. Each pointer may be NULL. */
TN_API int64_t tn_tokenizer_parts(const tn_tokenizer *t, float *scores, int32_t *types, int32_t *merges);
typedef struct {
    const char *splitter;           /* of TN_BYTE_BPE: GGUF's name of it; else NULL */
    bool        first, last, space; /* is a first token, a last token, a space added to a text */
    const char *unsupported;        /* of GGUF's two kinds: the first rule that GGUF lacks, in tokenizer.json's
                                       words; or NULL */
} tn_tokenizer_traits;
TN_API tn_tokenizer_traits tn_tokenizer_traits_of(const tn_tokenizer *t);

/* Training counts words, then merges the most frequent pair of neighbouring tokens into a new token, repeatedly. The
 * amount of text is not limited: files are read in blocks, and only distinct words are kept. The result does not depend
 * on the number of threads. Words of more than 1000 characters are ignored. Ties between pairs: BPE takes the pair of
 * lower ids, like Hugging Face; WordPiece the first in byte order, TN_SUBWORD the last, like subword-nmt. TN_UNIGRAM is
 * trained as in SentencePiece: from all frequent substrings down to vocab_size, each round removing the tokens whose
 * removal costs least. A text with too few substrings or pairs gives a smaller vocabulary: tn_tokenizer_size tells. */
typedef struct tn_tokenizer_train_args {
    int                zero_;
    tn_tokenizer_kind  kind;
    int64_t vocab_size TN_IS(30000); /* 30000; of TN_SUBWORD: number of merges */
    int64_t min_count  TN_IS(2);     /* smallest count of a pair to merge: 2 */
    int64_t alphabet   TN_IS(1000);  /* maximum number of distinct characters, the most frequent: 1000; not for
                                        bytes; TN_UNIGRAM keeps those that cover 99.95 % of the text */
    bool               cased;        /* keep capitals and accents (TN_UNIGRAM always does) */
    int64_t            t5;           /* of TN_UNIGRAM: T5's rules, with this number of sentinels; 0: not. .special must
                                        have <pad>, </s> and <unk>; the sentinels follow the other tokens */
    bool               cls_last;     /* of TN_WORDPIECE: XLNet's template, text [SEP] [CLS] */
    const char *const *special;      /* in the order of their ids, ended by NULL; NULL: [PAD] [UNK] [CLS] [SEP]
                                        [MASK]; for bytes <|endoftext|>, for Unigram <unk> <s> </s> */
    void (*progress)(const char *what, double part, void *user); /* "reading", "merging", "pruning"; 0 to 1 */
    /* each merge in order: its two parts and the number of their pairs in the text; not TN_UNIGRAM */
    void (*merged)(const char *left, const char *right, int64_t count, void *user);
    void *user; /* of both */
    int   end_;
} TN_KEYWORDS_ONLY   tn_tokenizer_train_args;
TN_API tn_tokenizer *tn_tokenizer_train_run(int n, const char *const *paths, tn_tokenizer_train_args how);
TN_API tn_tokenizer *tn_tokenizer_train_text_run(const char *text, size_t bytes, tn_tokenizer_train_args how);

/* Replaces the tokens that t adds to a text: only token id follows it, as an encoder-decoder expects of its source. The
 * id is saved with t, but BertTokenizer, the class of a saved WordPiece, adds [CLS] and [SEP] again if t has them. Call
 * it before other threads use t. */
TN_API tn_status tn_tokenizer_set_end(tn_tokenizer *t, int64_t id);

/* ---- properties -------------------------------------------------------------------------------------------------- */

TN_API tn_tokenizer_kind tn_tokenizer_kind_of(const tn_tokenizer *t);
TN_API int64_t           tn_tokenizer_size(const tn_tokenizer *t); /* highest token id plus 1 */
/* The token's text as the files spell it ("##ing", "Ġthe"), "" for an id without a token; valid as long as t. And the
 * token id of such a text, -1 if t has no such token. */
TN_API const char *tn_tokenizer_token(const tn_tokenizer *t, int64_t id);
TN_API int64_t     tn_tokenizer_id(const tn_tokenizer *t, const char *piece);
TN_API bool        tn_tokenizer_is_special(const tn_tokenizer *t, int64_t id);
TN_API bool        tn_tokenizer_is_inner(const tn_tokenizer *t, int64_t id); /* WordPiece: true inside a word */
TN_API uint64_t    tn_tokenizer_checksum(const tn_tokenizer *t); /* of all tokens, in the order of their ids */

typedef struct {
    int32_t pad, unknown, first, separator, mask, last; /* token ids, -1: none. As the files specify; else first:
                                                           [CLS] or <s>; last: </s> or <|endoftext|>; separator:
                                                           [SEP] or </s> */
} tn_tokenizer_roles;
TN_API tn_tokenizer_roles tn_tokenizer_special(const tn_tokenizer *t);
/* The token of a language, "fr" (M2M-100), "fra_Latn" (NLLB); -1: t has none. */
TN_API int32_t tn_tokenizer_language(const tn_tokenizer *t, const char *language);
/* The source and the target language that tokenizer_config.json states; "": none. */
TN_API const char *tn_tokenizer_languages(const tn_tokenizer *t, bool target);

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

/* The result of encoding one text. The encoding owns the arrays; they are valid until its next use. Reuse one encoding
 * for many texts: it keeps its memory and caches frequent words. */
typedef struct {
    int64_t        n;       /* number of tokens */
    const int32_t *id;      /* [n] */
    const int32_t *start;   /* bytes of its text that the token comes from; both 0 for tokens that the template adds */
    const int32_t *end;     /* one past the last byte */
    const int32_t *word;    /* index of the token's word in its text, from 0; -1 for tokens that the template adds */
    const uint8_t *segment; /* 0: of the first text, 1: of the second; 2: XLNet's <cls> */
    const uint8_t *special; /* TN_TOKEN_… */
    int64_t        cut;     /* number of tokens that .max_length removed */
    int64_t        invalid; /* number of invalid UTF-8 sequences */
} tn_encoding;
enum { TN_TOKEN_FROM_TEXT = 0, TN_TOKEN_FROM_TEMPLATE = 1 /* by the template */, TN_TOKEN_PADDING = 2 };
TN_API tn_encoding *tn_encoding_new(void);
TN_API void         tn_encoding_free(tn_encoding *e);

typedef enum { TN_CUT_LONGEST = 0, TN_CUT_FIRST, TN_CUT_SECOND } tn_cut;
typedef struct tn_encode_args {
    int                zero_;
    const char        *pair;       /* a second text: [CLS] text [SEP] pair [SEP] */
    size_t             pair_bytes; /* of pair, which needs no NUL */
    const char *const *pairs;      /* for tn_tokenizer_batch, instead of .pair: n second texts */
    int64_t            max_length; /* maximum number of tokens, including those of the template; 0: no limit */
    tn_cut             cut;        /* which of two texts is cut */
    bool               cut_left;   /* remove tokens from the start instead of the end */
    int64_t            pad_to;     /* pad to at least this many tokens */
    bool               pad_left;
    bool               bare;    /* without the tokens that the template adds */
    bool               literal; /* special tokens in the text are ordinary text: "[SEP]" starts with a bracket;
                                   added tokens that are not special are still tokens */
    bool               strict;  /* invalid UTF-8 is an error that names the position */
    double   sample; /* of TN_UNIGRAM: sample a segmentation by its probability to this power, e.g. 0.1; 0: the best */
    uint64_t seed;   /* of .sample: use another one for each text and epoch */
    int      nth;    /* of TN_UNIGRAM: the n-th best segmentation after the best; 0: the best */
    int      end_;
} TN_KEYWORDS_ONLY tn_encode_args;
/* bytes: at most 2^29 - 1. */
TN_API tn_status tn_tokenizer_encode_run(const tn_tokenizer *t, tn_encoding *e, const char *text, size_t bytes,
                                         tn_encode_args o);

/* A line encoder for functions that take one: encodes with t into e, .bare. t and e must outlive it. */
TN_API tn_encoder tn_tokenizer_encoder(const tn_tokenizer *t, tn_encoding *e);

/* n texts, each ended by a NUL, as tensors [n, T], where T is the length of the longest (or .pad_to). */
typedef struct {
    tn_tensor *ids, *segments;   /* i64 */
    tn_tensor *key_padding_mask; /* bool: true is padding */
    int64_t    cut, invalid;     /* as in tn_encoding, summed over all texts */
} tn_token_batch;
TN_API tn_status tn_tokenizer_batch_run(const tn_tokenizer *t, tn_token_batch *to, int64_t n, const char *const *texts,
                                        tn_encode_args o);

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

typedef struct tn_decode_args {
    int  zero_;
    bool keep_special;
    bool keep_spaces; /* keep the space in " ,", which BERT's decoder and clean_up_tokenization_spaces remove */
    int  end_;
} TN_KEYWORDS_ONLY tn_decode_args;
/* Appends the text of n token ids to `to`. Invalid UTF-8 (half a character of GPT-2's bytes) becomes U+FFFD. */
TN_API tn_status tn_tokenizer_decode_run(const tn_tokenizer *t, const int32_t *ids, int64_t n, tn_decode_args o,
                                         tn_string *to);

/* Decodes one token id at a time: appends to `to` the text that is complete. Initialise with zeros. */
typedef struct {
    char held[4]; /* the first bytes of a character */
    int  bytes;
    bool begun;
} tn_text_stream;
TN_API tn_status tn_tokenizer_decode_next(const tn_tokenizer *t, tn_text_stream *d, int32_t id, tn_string *to);
TN_API tn_status tn_tokenizer_decode_end(tn_text_stream *d, tn_string *to); /* half a character becomes U+FFFD */

TN_C_END_
#define TN_TOKENIZER_TRAIN_ARGS_DEFAULTS .vocab_size = 30000, .min_count = 2, .alphabet = 1000
#define TN_TRAINED_(...) TN_FILLED_(tn_tokenizer_train_args, TN_TOKENIZER_TRAIN_ARGS_DEFAULTS, __VA_ARGS__)
#define TN_FROM_VOCAB_ARGS_DEFAULTS .kind = TN_SENTENCE_BPE, .first = -1, .last = -1
#define tn_tokenizer_from_vocab(...) TN_CALL_(tn_tokenizer_from_vocab_run(TN_FROM_VOCAB_(__VA_ARGS__, TN_END_)))
#define TN_FROM_VOCAB_(n, pieces, ...) \
    n, pieces, TN_FILLED_(tn_from_vocab_args, TN_FROM_VOCAB_ARGS_DEFAULTS, __VA_ARGS__)
#define TN_ENCODED_(...) TN_FILLED_(tn_encode_args, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_tokenizer_load(...) TN_CALL_(tn_tokenizer_load_run(TN_TOKENIZER_LOAD_(__VA_ARGS__, TN_END_)))
#define TN_TOKENIZER_LOAD_(path, ...) path, TN_FILLED_(tn_tokenizer_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_tokenizer_train(...) TN_CALL_(tn_tokenizer_train_run(TN_TRAIN_(__VA_ARGS__, TN_END_)))
#define tn_tokenizer_train_text(...) TN_CALL_(tn_tokenizer_train_text_run(TN_TRAIN_(__VA_ARGS__, TN_END_)))
#define TN_TRAIN_(a, b, ...) a, b, TN_TRAINED_(__VA_ARGS__)
#define tn_tokenizer_encode(...) TN_CALL_(tn_tokenizer_encode_run(TN_ENCODE_(__VA_ARGS__, TN_END_)))
#define tn_tokenizer_batch(...) TN_CALL_(tn_tokenizer_batch_run(TN_ENCODE_(__VA_ARGS__, TN_END_)))
#define TN_ENCODE_(t, to, a, b, ...) t, to, a, b, TN_ENCODED_(__VA_ARGS__)
#define tn_tokenizer_decode(...) TN_CALL_(tn_tokenizer_decode_run(TN_DECODE_(__VA_ARGS__, TN_END_)))
#define TN_DECODE_(t, ids, n, to, ...) t, ids, n, TN_FILLED_(tn_decode_args, TN_NO_DEFAULTS_, __VA_ARGS__), to
#endif
