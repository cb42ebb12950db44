/* tokenizer_private.h — shared by the files of data/tokenizer: the rules of a tokenizer, the memory of an encoding, and
 * their functions. Private. */
#ifndef TENON_DATA_TOKENIZER_TOKENIZER_PRIVATE_H
#define TENON_DATA_TOKENIZER_TOKENIZER_PRIVATE_H

#include "data/text/data_private.h"
#include "data/text.h"
#include "data/tokenizer.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

typedef enum { TN__SPLIT_BERT, TN__SPLIT_SPACE, TN__SPLIT_BYTES, TN__SPLIT_SENTENCE } tn__split;

enum { TN__VOCAB_MOST = 10000000 }; /* maximum number of tokens, of merges */
enum { TN__TEMPLATE_PARTS = 16, TN__AFFIX = 16, TN__SURFACE = 64, TN__ADDED_MOST = 10000 };
typedef struct {
    int8_t  text; /* 0 or 1: this text; -1: the token id */
    uint8_t segment;
    int32_t id;
} tn__part;

typedef struct {
    int32_t id;
    bool    special, left, right; /* left, right: the token takes the white space on this side */
    bool    word;                 /* does not match inside a word */
    bool    hidden;               /* not searched for in texts */
    bool    normalized;           /* searched for after the others, as if the text were normalized */
} tn__added;

typedef struct {    /* maps pairs of tokens to ranks, and ranks to merged tokens */
    uint64_t *pair; /* (left << 32 | right) + 1; 0: a free slot */
    uint32_t *rank;
    uint32_t  mask, n;
    uint64_t  seed;
    int32_t  *becomes;
    int64_t   room;
    uint32_t *order; /* of SentencePiece: merges of equal score have one order, so that the leftmost is first; NULL:
                        the order is the rank */
    int64_t   order_room;
} tn__merges;

/* Texts with ids, found as prefixes of another text. */
typedef struct {
    int32_t child; /* index of the first child; the children are adjacent, in the order of their bytes */
    int32_t value; /* -1: no text ends here */
    int16_t children;
    uint8_t byte;
} tn__trie_node;
typedef struct {
    tn__trie_node *node; /* 0: the root; NULL: empty */
    int64_t        room;
    int32_t        n;
} tn__trie;
/* Builds x of the tokens with these ids, none of which is empty. Reorders id. */
bool tn__trie_build(tn__trie *x, const tn__strings *pieces, uint32_t *id, size_t n);
void tn__trie_free(tn__trie *x);

/* Returns the child of a node by a byte, or -1. */
static inline int32_t tn__trie_step(const tn__trie *x, int32_t at, unsigned char byte)
{
    const tn__trie_node *node = x->node + at, *first = x->node + node->child;
    int32_t              low = 0, high = node->children;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (first[middle].byte < byte) low = middle + 1;
        else high = middle;
    }
    return low < node->children && first[low].byte == byte ? node->child + low : -1;
}
/* Returns the length of the longest text that is a prefix of the n bytes, and its id in *value; 0: none. */
size_t tn__trie_longest(const tn__trie *x, const char *text, size_t n, int32_t *value);

/* The steps of normalization, in order; see normalize.c. */
typedef enum {
    TN__STEP_SENTENCE, /* all of SentencePiece's normalization: charsmap, spaces */
    TN__STEP_CHARSMAP, /* the same charsmap by Hugging Face's rules */
    TN__STEP_FORM,     /* a Unicode normalization form */
    TN__STEP_LOWER,    /* lower-cases each character */
    TN__STEP_ACCENTS,  /* removes marks */
    TN__STEP_REPLACE,  /* replaces one text by another */
    TN__STEP_SPACES,   /* replaces runs of two or more spaces by a text */
    TN__STEP_STRIP,    /* removes white space at the ends */
    TN__STEP_PREPEND   /* prepends a text if the input is not empty */
} tn__step_kind;
enum { TN__STEPS = 12 };
typedef struct {
    tn__step_kind kind;
    bool          left, right;                      /* of STRIP */
    char          what[TN__AFFIX], with[TN__AFFIX]; /* of REPLACE, SPACES, PREPEND; STRIP */
    uint32_t      what_bytes, with_bytes;
    int           form; /* utf8proc's options */
} tn__step;

typedef struct { /* compiled rules for characters: a double array as in Darts, and the texts of its values */
    uint32_t *unit;
    size_t    units;
    char     *text; /* ended by a NUL */
    size_t    bytes;
    bool      plain[128]; /* true: unchanged before another ASCII character */
} tn__charsmap;
bool tn__charsmap_read(tn__charsmap *m, const char *who, const void *blob, size_t bytes);
bool tn__charsmap_blob(const tn__charsmap *m, tn_string *to); /* appends it as it was read; nothing if empty */
void tn__charsmap_free(tn__charsmap *m);
/* Returns the replacement of the longest (or else the shortest) rule that matches a prefix of the n bytes, and the
 * prefix's length in *length; NULL: none. */
const char *tn__charsmap_find(const tn__charsmap *m, const char *text, size_t n, bool longest, size_t *length);

/* A space is added before a text: never; before the text but not after special tokens; before each part. */
typedef enum { TN__SPACE_NEVER, TN__SPACE_FIRST, TN__SPACE_EACH } tn__space;
typedef struct {
    bool      squeeze; /* STEP_SENTENCE: collapses runs of spaces and strips both ends */
    tn__space space;
    bool      even_so;              /* also before a text that starts with a space */
    bool      escape;               /* spaces become "▁" */
    bool      words;                /* words end at white space, which is dropped */
    bool      cut;                  /* a word starts at each "▁" */
    bool      safe;                 /* no token has a "▁" after another character: words may be cut before a "▁" */
    bool      fallback;             /* unknown text is encoded as byte tokens */
    bool      each_byte;            /* each byte of invalid UTF-8 becomes a U+FFFD, not each sequence */
    bool      decode_space;         /* the first space of a decoded text is dropped ... */
    bool      decode_all;           /* ... and the spaces after it */
    char      unknown[TN__SURFACE]; /* decoded text of the unknown token, unk_surface */
    uint32_t  unknown_bytes;
} tn__sentence;

struct tn_tokenizer {
    tn_tokenizer_kind kind;
    uint64_t          serial; /* identifies the tokenizer of a cached word */
    tn__strings       pieces;

    /* text to words */
    bool      normalizes; /* use BERT's normalizer, with these options: */
    bool      clean, chinese, strip, lower;
    tn_choice strip_said;
    bool      slow;
    tn__split split;
    int       splitter;                  /* of TN__SPLIT_BYTES: a row of byte_words.c's table */
    bool      prefix_space, regex, trim; /* of that splitter; trim: a token's bytes start after its space */

    /* words to tokens */
    int32_t    unknown;                              /* -1: none */
    char       prefix[TN__AFFIX], suffix[TN__AFFIX]; /* of tokens inside a word, at the end of a word */
    uint32_t   prefix_bytes, suffix_bytes;
    size_t     longest_piece;             /* bytes */
    int64_t    longest_word;              /* of WordPiece, in code points */
    bool       fuse_unknown, whole_words; /* whole_words: a word in the vocabulary is one token, without merges */
    tn__merges merges;
    int32_t    byte_piece[256]; /* of TN_BYTE_BPE, and of sentence.fallback; -1: none */

    /* of SentencePiece's kinds */
    tn__step     step[TN__STEPS];
    int          steps;
    tn__charsmap charsmap;
    tn__sentence sentence;
    float       *score; /* [pieces.n] of TN_SENTENCE_BPE and TN_UNIGRAM, or NULL */
    double      *wide;  /* the scores of a tokenizer.json */
    uint8_t     *type;  /* [pieces.n] TN_TYPE_…; or NULL */
    int64_t      score_room, wide_room, type_room;
    double       least; /* lowest score */
    tn__trie     trie;  /* of TN_UNIGRAM's tokens */
    tn__trie     user;  /* user-defined tokens, matched first */

    bool joined;  /* decode with a space between tokens: for a file without a decoder */
    bool cleanup; /* of WordPiece: no space before "," in decoded text */

    /* special tokens and templates */
    tn__added         *added; /* matched in the text before all other tokens */
    uint32_t           n_added;
    int64_t            added_room;
    bool               added_first[2][256]; /* first bytes of the added tokens; [1]: of the normalized ones */
    bool               added_twice;         /* some are normalized */
    tn__part           single[TN__TEMPLATE_PARTS], pair[TN__TEMPLATE_PARTS];
    int                n_single, n_pair;
    tn_tokenizer_roles role;
    int64_t            model_max; /* tokenizer_config.json's model_max_length; 0: not specified */
};

tn_tokenizer *tn__tokenizer_new(tn_tokenizer_kind kind); /* with BERT's or GPT-2's rules, without tokens */
/* Completes t after all tokens and rules are set: finds the roles, the byte tokens, the added tokens. Raises; `who`
 * names the caller. */
bool tn__tokenizer_ready(tn_tokenizer *t, const char *who);
bool tn__skip_piece(tn_tokenizer *t); /* adds an id without a token */
bool tn__tokenizer_add(tn_tokenizer *t, tn__added a);
void tn__added_ready(tn_tokenizer *t);                                     /* call after adding some */
bool tn__merges_room(tn__merges *m, size_t n);                             /* n: in all */
bool tn__merges_put(tn__merges *m, int32_t a, int32_t b, int32_t becomes); /* false: the pair has a merge */
void tn__merges_free(tn__merges *m);
/* Adds the merge of two tokens by their texts; both and their concatenation must be tokens. Raises; `who` names the
 * caller. */
bool tn__merge_texts(tn_tokenizer *t, const char *who, const char *a, size_t na, const char *b, size_t nb);
void tn__template_bert(tn_tokenizer *t);
/* A text becomes first text end; a pair becomes first text end text end, or RoBERTa's form: end twice between the
 * texts, all of segment 0. */
void tn__template_frame(tn_tokenizer *t, int32_t first, int32_t end, bool roberta);
void tn__template_ends(tn_tokenizer *t, int32_t first, int32_t last); /* around each text; -1: none */
/* The byte that a text like "<0x0A>" names, here 10; -1: not of this form. */
int tn__byte_named(const char *text, size_t n);
/* Completes TN_SENTENCE_BPE or TN_UNIGRAM after tokens, types and scores are set. Raises. */
bool tn__sentence_ready(tn_tokenizer *t, const char *who);
#define TN__SPACE "\xe2\x96\x81" /* "▁" */

static inline uint64_t tn__mix(uint64_t x)
{
    x ^= x >> 32, x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32, x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

/* Returns the rank of a pair, or -1. */
static inline int64_t tn__merge_rank(const tn__merges *m, int32_t a, int32_t b)
{
    if (!m->n) return -1;
    const uint64_t key = ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) + 1;
    for (uint32_t at = (uint32_t)tn__mix(key ^ m->seed) & m->mask;; at = (at + 1) & m->mask) {
        if (m->pair[at] == key) return m->rank[at];
        if (!m->pair[at]) return -1;
    }
}

/* GPT-2's alphabet, in which each byte is a printable character: the character of a byte; the byte of a character, or
 * -1. */
uint32_t tn__byte_letter(int byte);
int      tn__letter_byte(uint32_t letter);

/* ---- memory of an encoding --------------------------------------------------------------------------------------- */

enum { TN__CACHED_KEY = 24, TN__CACHED_PIECES = 7, TN__CACHE_SLOTS = 1 << 13 };
typedef struct { /* a word and its tokens */
    uint64_t key[TN__CACHED_KEY / 8];
    int32_t  id[TN__CACHED_PIECES];
    uint8_t  bytes[TN__CACHED_PIECES]; /* bytes of the word per token */
    uint8_t  n, used;                  /* used: bytes of the word; 0: empty slot */
} tn__cached_word;

typedef struct {
    int32_t c, from, to; /* a token, and the bytes of the word that it covers; from = to: merged into its left
                            neighbour */
    int32_t prev, next;  /* -1: none */
} tn__symbol;

typedef struct {
    int32_t id, start, end, word;
} tn__token;

typedef struct { /* the best segmentation up to an offset of a word, see unigram.c */
    double  sum;
    int32_t begin, id; /* of its last token; begin -1: none */
} tn__path;

typedef struct tn__encoding {
    tn_encoding         shown; /* first member: the caller's pointer points here */
    const tn_tokenizer *by;    /* of a tn_encoder */

    tn__token *token; /* of both texts, one after the other */
    size_t     tokens;
    int64_t    token_room;
    int32_t   *arrays; /* the arrays of `shown` */
    int64_t    array_room;

    char    *word; /* the current word or text, normalized */
    int32_t *from; /* for each of its bytes the range of the text that it comes from: from, to, from, to … */
    int64_t  word_room, from_room;
    char    *other; /* output of the current step, which replaces word and from */
    int32_t *other_from;
    int64_t  other_room, other_from_room;
    size_t   others;
    int32_t *point; /* code points */
    int64_t  point_room;

    char   *probe; /* a prefix, and the rest of a word */
    int64_t probe_room;

    tn_string clean; /* a copy of a text with invalid UTF-8 replaced */
    int32_t  *fix;   /* for each replacement its end in `clean`, and the number of bytes to subtract from there */
    size_t    fixes;
    int64_t   fix_room;

    tn__path *path; /* of the Viterbi search */
    int64_t   path_room;
    double    sample; /* of tn_encode_args, and the count of random numbers drawn */
    uint64_t  seed, drawn;
    int       nth;

    tn__symbol *symbol;
    uint64_t   *heap; /* rank << 32 | left symbol */
    int64_t     symbol_room, heap_room;

    tn__cached_word *cache;
    uint64_t         serial;                   /* the tokenizer whose words are cached */
    int64_t          seen;                     /* number of words encoded */
    uint8_t          bytes[TN__CACHED_PIECES]; /* of the first tokens of the current word */
    size_t           split;                    /* end of the last of these */

    bool line_end; /* the current word is the last of its text */

    /* receives each word instead of encoding it; used in training */
    bool (*sink)(void *user, const char *word, size_t bytes);
    void *user;
} tn__encoding;

/* These split text[from, to) into words and pass each to tn__word or the sink; *number: index of the next word. False:
 * raised. */
bool tn__bert_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                    int32_t *number);
bool tn__slow_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                    int32_t *number);
bool tn__byte_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                    int32_t *number);

int         tn__splitter_named(const char *name); /* its row; -1: unknown */
int         tn__splitter_of(const char *regex);
const char *tn__splitter_regex(int splitter);
bool        tn__sentence_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                               int32_t *number);
/* Writes the text after all steps to s->word and s->from; returns its length, -1: raised. */
int64_t tn__normalize(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to);

enum { TN__MAPPED = INT32_MIN };
typedef struct {
    const char *text;
    size_t      bytes;
    int64_t     letters; /* code points; more than t->longest_word: text has only the first ones */
    int32_t     start;   /* offset in the text if the word is a part of it; TN__MAPPED: see s->from */
    int32_t     end;     /* offset in the text */
    int32_t     number;
} tn__a_word;
bool tn__word(const tn_tokenizer *t, tn__encoding *s, const tn__a_word *w);         /* appends its tokens */
bool tn__word_pieces(const tn_tokenizer *t, tn__encoding *s, const tn__a_word *w);  /* longest match first */
bool tn__word_merges(const tn_tokenizer *t, tn__encoding *s, const tn__a_word *w);  /* byte-pair encoding */
bool tn__word_unigram(const tn_tokenizer *t, tn__encoding *s, const tn__a_word *w); /* the greatest sum of scores */
/* Appends the i-th token of the current word, and records its length for the cache. */
bool tn__piece_add(tn__encoding *s, const tn__a_word *w, size_t i, int32_t id, size_t from, size_t to);
bool tn__token_add(tn__encoding *s, const tn__a_word *w, int32_t id, size_t from, size_t to); /* bytes of the word */

/* Passes every word of a text of any bytes to s->sink. */
bool tn__each_word(const tn_tokenizer *t, tn__encoding *s, const char *text, size_t bytes);
bool tn__encoding_room(tn__encoding *s, size_t word_bytes); /* makes room in word and from */
void tn__encoding_free(tn__encoding *s);                    /* frees its memory, not s itself */

#endif
