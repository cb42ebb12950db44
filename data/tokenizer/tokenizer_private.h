/* tokenizer_private.h — the rules of a tokenizer, which encoding, files and training share. Private. */
#ifndef TENON_DATA_TOKENIZER_TOKENIZER_PRIVATE_H
#define TENON_DATA_TOKENIZER_TOKENIZER_PRIVATE_H

#include "data/tokenizer/tables.h"
#include "data/text.h"
#include "data/tokenizer.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

typedef enum { TN__SPLIT_BERT, TN__SPLIT_SPACE, TN__SPLIT_BYTES, TN__SPLIT_SENTENCE, TN__SPLIT_BLANK } tn__split;

enum { TN__TEMPLATE_PARTS = 16, TN__AFFIX = 16, TN__SURFACE = 64, TN__ADDED_MAX = 10000 };
typedef struct {
    int8_t  text; /* 0 or 1: this text; -1: the token id */
    uint8_t segment;
    int32_t id;
} tn__template_part;

typedef struct {
    int32_t id;
    bool    special, left, right; /* left, right: the token takes the white space on this side */
    bool    word;                 /* does not match inside a word */
    bool    hidden;               /* not searched for in texts */
    bool    outside;              /* not a token of the model: no word is split into it */
    bool    normalized;           /* searched for after the others, as if the text were normalized */
} tn__added;

/* The steps of normalization, in order; see normalize.c. */
typedef enum {
    TN__STEP_SENTENCE, /* all of SentencePiece's normalization: charsmap, spaces */
    TN__STEP_CHARSMAP, /* the same charsmap by Hugging Face's rules */
    TN__STEP_FORM,     /* a Unicode normalization form */
    TN__STEP_LOWER,    /* lower-cases each character */
    TN__STEP_ACCENTS,  /* removes marks */
    TN__STEP_REPLACE,  /* replaces one text by another */
    TN__STEP_SPACES,   /* replaces runs of two or more spaces, or with .left white space, by a text */
    TN__STEP_STRIP,    /* removes white space at the ends */
    TN__STEP_PREPEND   /* prepends a text if the input is not empty */
} tn__step_kind;
enum { TN__STEPS = 12 };
typedef struct {
    tn__step_kind kind;
    bool          left, right;                            /* of STRIP; left: of SPACES */
    char          pattern[TN__AFFIX], content[TN__AFFIX]; /* of REPLACE, SPACES, PREPEND; STRIP */
    uint32_t      pattern_bytes, content_bytes;
    int           form; /* utf8proc's options */
} tn__step;

/* A space is added before a text: never; before the text but not after special tokens; before each part. */
typedef enum { TN__SPACE_NEVER, TN__SPACE_FIRST, TN__SPACE_EACH } tn__space;
typedef struct {
    bool      squeeze; /* STEP_SENTENCE: collapses runs of spaces and strips both ends */
    tn__space space;
    bool      always_space;         /* also before a text that starts with a space */
    bool      escape;               /* spaces become "▁" */
    bool      words;                /* words end at white space, which is dropped */
    bool      cut;                  /* a word starts at each "▁" */
    bool      cut_at_spaces;        /* words may be cut at "▁": no token has one after another character */
    bool      fallback;             /* unknown text is encoded as byte tokens */
    bool      each_byte;            /* each byte of invalid UTF-8 becomes a U+FFFD, not each sequence */
    bool      decode_space;         /* the first space of a decoded text is dropped ... */
    bool      decode_all;           /* ... and the spaces after it */
    bool      decode_first;         /* each "▁" of the first token is dropped */
    bool      decode_bytes;         /* byte tokens become bytes */
    char      unknown[TN__SURFACE]; /* decoded text of the unknown token, unk_surface */
    uint32_t  unknown_bytes;
} tn__sentence;

/* BERT's text to words. */
typedef struct {
    bool      enabled; /* use BERT's normalizer, with these options: */
    bool      clean, chinese, strip, lower;
    tn_choice strip_option; /* strip as specified in a file; TN_FROM_FILE: not specified, strip if lower */
    bool      slow;
} tn__bert_rules;

/* Text to words of byte-level tokenizers. */
typedef struct {
    int  splitter; /* index in byte_words.c's table */
    bool prefix_space, regex;
    bool trim; /* a token's bytes start after its space */
} tn__byte_rules;

/* Special tokens, and others that are matched in the text before the vocabulary. */
typedef struct {
    tn__added *token; /* [n], in the order of their ids */
    uint32_t   n;
    int64_t    room;
    tn__trie   text[2];       /* their texts; [1]: of the normalized ones */
    bool       first[2][256]; /* first bytes of the texts */
    bool       any_normalized;
    int32_t    outside; /* the lowest id of a token that is outside; INT32_MAX: none */
} tn__added_tokens;

typedef struct {
    tn__template_part part[TN__TEMPLATE_PARTS];
    int               n;
} tn__template;

struct tn_tokenizer {
    tn_tokenizer_kind kind;
    uint64_t          serial; /* identifies the tokenizer of a cached word */
    tn__strings       vocab;  /* the index is the token id */

    /* text to words */
    tn__split      split;
    tn__bert_rules bert;  /* of TN__SPLIT_BERT, TN__SPLIT_SPACE */
    tn__byte_rules bytes; /* of TN__SPLIT_BYTES */
    tn__step       step[TN__STEPS];
    int            steps;
    tn__charsmap   charsmap;
    tn__sentence   sentence; /* of TN__SPLIT_SENTENCE */

    /* words to tokens */
    int32_t    unknown;                              /* -1: none */
    char       prefix[TN__AFFIX], suffix[TN__AFFIX]; /* of tokens inside a word, at the end of a word */
    uint32_t   prefix_bytes, suffix_bytes;
    size_t     longest_token;             /* bytes */
    int64_t    longest_word;              /* of WordPiece, in code points */
    bool       fuse_unknown, whole_words; /* whole_words: a word in the vocabulary is one token, without merges */
    tn__merges merges;
    int32_t    byte_token[256]; /* of TN_BYTE_BPE, and of sentence.fallback; -1: none */

    /* scores and types of SentencePiece's kinds */
    float   *score;   /* [vocab.n] of TN_SENTENCE_BPE and TN_UNIGRAM, or NULL */
    double  *score64; /* the scores of a tokenizer.json, or NULL */
    uint8_t *type;    /* [vocab.n] TN_TYPE_…; or NULL */
    int64_t  score_room, score64_room, type_room;
    double   lowest_score;
    tn__trie trie; /* of TN_UNIGRAM's tokens */
    tn__trie user; /* user-defined tokens, matched first */

    /* SentencePiece's pieces with ids from a vocab.json (files/listed.c): ids from `listed` on are pieces that the list
     * lacks; they are encoded as `unlisted`, the unknown token. listed 0: another kind */
    int64_t   listed, in_list; /* in_list: tokens of vocab.json; between both: languages */
    int32_t   unlisted;
    bool      codes;           /* a text may start with a language code, ">>fra<<" */
    tn_string model_file;      /* the .spm, which is written back */
    bool      target;          /* Marian: of the target language */
    bool      separate;        /* Marian: each language has its own list */
    char      language[2][32]; /* tokenizer_config.json's source and target language; "": none */

    /* around the tokens */
    tn__added_tokens   added;
    tn__template       single, pair;
    tn_tokenizer_roles role;
    bool               literal;   /* special tokens in texts are ordinary text: split_special_tokens */
    int64_t            model_max; /* tokenizer_config.json's model_max_length; 0: not specified */

    /* decoding */
    bool     joined;           /* with a space between tokens: for a file without a decoder */
    char     affix[TN__AFFIX]; /* WordPiece's prefix or BPE's suffix, as the decoder specifies it */
    uint32_t affix_bytes;
    bool     clean_up; /* the whole text, too: clean_up_tokenization_spaces; not of BPE */
    bool     cleanup;  /* of WordPiece: no space before "," in decoded text */
};

tn_tokenizer *tn__tokenizer_new(tn_tokenizer_kind kind); /* with BERT's or GPT-2's rules, without tokens */
/* Completes t after all tokens and rules are set: finds the roles, the byte tokens, the added tokens. Raises with
 * caller's name. */
bool       tn__tokenizer_finish(tn_tokenizer *t, const char *caller);
bool       tn__add_empty_token(tn_tokenizer *t); /* adds an id without a token */
bool       tn__tokenizer_add(tn_tokenizer *t, tn__added a);
bool       tn__added_index(tn_tokenizer *t);                /* call after adding some; false: raised */
tn__added *tn__added_as(const tn_tokenizer *t, int32_t id); /* NULL: not an added token */
/* True if the token was added to the model's vocabulary: no word is split into it. */
bool tn__is_outside(const tn_tokenizer *t, int64_t id);
/* Returns the id of the model's token with this text; -1: none. */
static inline int64_t tn__model_find(const tn_tokenizer *t, const char *text, size_t n)
{
    const int64_t id = tn__strings_find(&t->vocab, text, n);
    return id < t->added.outside || !tn__is_outside(t, id) ? id : -1;
}
/* Adds the merge of two tokens by their texts; both and their concatenation must be tokens. Raises with caller's
 * name. */
bool tn__merge_texts(tn_tokenizer *t, const char *caller, const char *a, size_t na, const char *b, size_t nb);
void tn__template_bert(tn_tokenizer *t);
/* A text becomes first text end; a pair becomes first text end text end, or RoBERTa's form: end twice between the
 * texts, all of segment 0. */
void tn__template_frame(tn_tokenizer *t, int32_t first, int32_t end, bool roberta);
void tn__template_ends(tn_tokenizer *t, int32_t first, int32_t last); /* around each text; -1: none */
/* XLNet's: text end first, text end text end first; the segment of first is 2. And whether a tokenizer's is this. */
void tn__template_xlnet(tn_tokenizer *t, int32_t first, int32_t end);
bool tn__first_is_last(const tn_tokenizer *t);
/* Gives a Unigram tokenizer of SentencePiece the rules of Hugging Face's XLNetTokenizer; tn__tokenizer_finish must
 * follow. Raises. (t5.c) */
bool tn__xlnet_rules(tn_tokenizer *t, const char *caller, bool lower);
/* Gives a Unigram tokenizer of SentencePiece the rules of Hugging Face's T5Tokenizer, and adds T5's sentinels, of which
 * some may exist; tn__tokenizer_finish must follow. Raises. (t5.c) */
bool tn__t5_rules(tn_tokenizer *t, const char *caller, int64_t sentinels);
/* Gives a Unigram tokenizer of SentencePiece the tokens and rules of a class of Hugging Face; tn__tokenizer_finish must
 * follow. lower: DeBERTa's do_lower_case. Raises. (spm_classes.c) */
typedef enum { TN__SPM_CAMEMBERT, TN__SPM_XLM_ROBERTA, TN__SPM_DEBERTA } tn__spm_class;
bool tn__spm_rules(tn_tokenizer *t, const char *caller, tn__spm_class kind, bool lower);
/* The byte that a text like "<0x0A>" names, here 10; -1: not of this form. */
int tn__byte_of_token(const char *text, size_t n);
/* Completes TN_SENTENCE_BPE or TN_UNIGRAM after tokens, types and scores are set. Raises. */
bool tn__sentence_setup(tn_tokenizer *t, const char *caller);
#define TN__SPACE "\xe2\x96\x81" /* "▁" */

/* GPT-2's alphabet, in which each byte is a printable character: the character of a byte; the byte of a character, or
 * -1. */
uint32_t tn__byte_to_char(int byte);
int      tn__char_to_byte(uint32_t letter);

/* The id of a piece, where ids come from a vocab.json; an unknown piece may be in the list all the same. */
static inline int32_t tn__listed_id(const tn_tokenizer *t, int32_t id, const char *text, size_t n)
{
    if (!t->listed) return id;
    const int64_t found = id == t->unknown ? tn__strings_find(&t->vocab, text, n) : id;
    return found >= 0 && found < t->listed ? (int32_t)found : t->unlisted;
}

/* Splitters of byte-level tokenizers, by index in byte_words.c's table. */
int         tn__splitter_named(const char *name); /* -1: unknown */
int         tn__splitter_of(const char *regex);   /* -1: unknown */
const char *tn__splitter_regex(int splitter);

/* Returns the score of a token of this length in bytes; a user-defined token beats all segmentations, a longer one
 * beats a shorter one. */
static inline double tn__unigram_score(const tn_tokenizer *t, int32_t id, size_t bytes)
{
    if (t->type && t->type[id] == TN_TYPE_USER) return (double)(0.1f * (float)(bytes - 1));
    return t->score ? (double)t->score[id] : t->score64[id];
}

#endif
