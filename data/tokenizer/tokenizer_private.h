/* tokenizer_private.h — what the files of the tokenizers share: the rules of a tokenizer, the store of an encoding, and
 * who does which part. Private. */
#ifndef TENON_DATA_TOKENIZER_TOKENIZER_PRIVATE_H
#define TENON_DATA_TOKENIZER_TOKENIZER_PRIVATE_H

#include "data/text/data_private.h"
#include "data/text.h"
#include "data/tokenizer.h"

/* ---- the rules --------------------------------------------------------------------------------------------------- */

typedef enum { TN__SPLIT_BERT, TN__SPLIT_SPACE, TN__SPLIT_BYTES, TN__SPLIT_SENTENCE } tn__split;

enum { TN__VOCAB_MOST = 10000000 }; /* pieces, merges */
enum { TN__TEMPLATE_PARTS = 16, TN__AFFIX = 16, TN__SURFACE = 64, TN__ADDED_MOST = 10000 };
typedef struct {
    int8_t  text; /* 0 or 1: this text; -1: the piece id */
    uint8_t segment;
    int32_t id;
} tn__part;

typedef struct {
    int32_t id;
    bool    special, left, right; /* white space on this side belongs to it */
    bool    word;                 /* not within a word */
    bool    hidden;               /* not looked for in texts */
    bool    normalized;           /* looked for in what the others leave, as if the text were normalized */
} tn__added;

typedef struct {    /* pairs of pieces -> rank, and rank -> what they become */
    uint64_t *pair; /* left << 32 | right, and one; 0: free */
    uint32_t *rank;
    uint32_t  mask, n;
    uint64_t  seed;
    int32_t  *becomes;
    int64_t   room;
    uint32_t *order; /* of SentencePiece: merges of equal score have one place, so that the leftmost comes first; NULL:
                        the rank is the order */
    int64_t   order_room;
} tn__merges;

/* Texts with numbers, found as beginnings of another text. */
typedef struct {
    int32_t child; /* the first of its children, which stand together in the order of their bytes */
    int32_t value; /* -1: no text ends here */
    int16_t children;
    uint8_t byte;
} tn__trie_node;
typedef struct {
    tn__trie_node *node; /* 0: the root; NULL: empty */
    int64_t        room;
    int32_t        n;
} tn__trie;
/* Of the pieces with these numbers, of which none is empty. Reorders id. */
bool tn__trie_build(tn__trie *x, const tn__strings *pieces, uint32_t *id, size_t n);
void tn__trie_free(tn__trie *x);

/* The child of a node by a byte, or -1. */
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
/* The longest text that n bytes begin with: its length, 0: there is none; *value: its number. */
size_t tn__trie_longest(const tn__trie *x, const char *text, size_t n, int32_t *value);

/* What happens to a text before it is split, one step after the other; see normalize.c. */
typedef enum {
    TN__STEP_SENTENCE, /* all that SentencePiece does: charsmap, spaces */
    TN__STEP_CHARSMAP, /* the same charsmap as Hugging Face reads it */
    TN__STEP_FORM,     /* a Unicode normalization form */
    TN__STEP_LOWER,    /* character by character */
    TN__STEP_ACCENTS,  /* marks go */
    TN__STEP_REPLACE,  /* one text by another */
    TN__STEP_SPACES,   /* runs of two spaces or more by a text */
    TN__STEP_STRIP,    /* white space at the ends goes */
    TN__STEP_PREPEND   /* before what is not empty */
} tn__step_kind;
enum { TN__STEPS = 12 };
typedef struct {
    tn__step_kind kind;
    bool          left, right;                      /* of STRIP */
    char          what[TN__AFFIX], with[TN__AFFIX]; /* of REPLACE, SPACES, PREPEND; STRIP */
    uint32_t      what_bytes, with_bytes;
    int           form; /* utf8proc's options */
} tn__step;

typedef struct
{ /* a rule for characters, compiled: a double array in the manner of Darts, and the texts of its values */
    uint32_t *unit;
    size_t    units;
    char     *text; /* ended by a NUL */
    size_t    bytes;
    bool      plain[128]; /* before another of ASCII, this character stays what it is */
} tn__charsmap;
bool tn__charsmap_read(tn__charsmap *m, const char *who, const void *blob, size_t bytes);
bool tn__charsmap_blob(const tn__charsmap *m, tn_string *to); /* as it was read; nothing of an empty one */
void tn__charsmap_free(tn__charsmap *m);
/* What the longest (or else the shortest) rule makes of the beginning of n bytes, *length: of these; or NULL. */
const char *tn__charsmap_find(const tn__charsmap *m, const char *text, size_t n, bool longest, size_t *length);

/* A space put before a text: never; before the text only, not what follows a special token; before each part. */
typedef enum { TN__SPACE_NEVER, TN__SPACE_FIRST, TN__SPACE_EACH } tn__space;
typedef struct {
    bool      squeeze; /* STEP_SENTENCE: runs of spaces are one, at the ends none */
    tn__space space;
    bool      even_so;              /* also before a text that begins with one */
    bool      escape;               /* spaces become "▁" */
    bool      words;                /* words end at white space, which goes */
    bool      cut;                  /* a word begins at each "▁" */
    bool      safe;                 /* no piece goes on over a "▁" after something else: words may be cut before it */
    bool      fallback;             /* what has no piece is spelled with pieces of bytes */
    bool      each_byte;            /* each byte that is not UTF-8 is a U+FFFD, not each sequence of them */
    bool      decode_space;         /* the first space of a decoded text is not written ... */
    bool      decode_all;           /* ... nor those that follow it */
    char      unknown[TN__SURFACE]; /* what the unknown piece is decoded to, unk_surface */
    uint32_t  unknown_bytes;
} tn__sentence;

struct tn_tokenizer {
    tn_tokenizer_kind kind;
    uint64_t          serial; /* what an encoding remembers is of this tokenizer */
    tn__strings       pieces;

    /* text to words */
    bool      normalizes; /* with BERT's normalizer, and then: */
    bool      clean, chinese, strip, lower;
    tn_choice strip_said;
    bool      slow;
    tn__split split;
    int       splitter;                  /* of TN__SPLIT_BYTES: a row of byte_words.c's table */
    bool      prefix_space, regex, trim; /* of that splitter; trim: a piece's bytes begin behind its space */

    /* words to pieces */
    int32_t    unknown;                              /* -1: there is none */
    char       prefix[TN__AFFIX], suffix[TN__AFFIX]; /* of pieces inside, and at the end, of a word */
    uint32_t   prefix_bytes, suffix_bytes;
    size_t     longest_piece;             /* in bytes */
    int64_t    longest_word;              /* of WordPiece, in code points */
    bool       fuse_unknown, whole_words; /* whole_words: one that is a piece is not put together from others */
    tn__merges merges;
    int32_t    byte_piece[256]; /* of TN_BYTE_BPE, and of sentence.fallback; -1: it has none */

    /* of texts that are not split at spaces first */
    tn__step     step[TN__STEPS];
    int          steps;
    tn__charsmap charsmap;
    tn__sentence sentence;
    float       *score; /* [pieces.n] of TN_SENTENCE_BPE and TN_UNIGRAM, or NULL */
    double      *wide;  /* the same of a tokenizer.json */
    uint8_t     *type;  /* [pieces.n] TN_TYPE_…; or NULL */
    int64_t      score_room, wide_room, type_room;
    double       least; /* of scores */
    tn__trie     trie;  /* of TN_UNIGRAM's pieces */
    tn__trie     user;  /* pieces that are found before anything else */

    bool joined;  /* decoded as they are, with spaces between: what a file without a decoder asks for */
    bool cleanup; /* of WordPiece: "," is decoded without the space before it */

    /* around them */
    tn__added         *added; /* found in the text before anything else */
    uint32_t           n_added;
    int64_t            added_room;
    bool               added_first[2][256]; /* does one begin with this byte? [1]: of the normalized ones */
    bool               added_twice;         /* are there normalized ones? */
    tn__part           single[TN__TEMPLATE_PARTS], pair[TN__TEMPLATE_PARTS];
    int                n_single, n_pair;
    tn_tokenizer_roles role;
    int64_t            model_max; /* tokenizer_config.json's model_max_length, 0: not said */
};

tn_tokenizer *tn__tokenizer_new(tn_tokenizer_kind kind); /* with BERT's or GPT-2's rules, and no pieces */
/* Once all pieces and rules are there: finds the roles, the bytes' pieces, what is added. Raises with who's name. */
bool tn__tokenizer_ready(tn_tokenizer *t, const char *who);
bool tn__skip_piece(tn_tokenizer *t); /* a number without a piece */
bool tn__tokenizer_add(tn_tokenizer *t, tn__added a);
void tn__added_ready(tn_tokenizer *t);                                     /* once more of them are there */
bool tn__merges_room(tn__merges *m, size_t n);                             /* for n in all */
bool tn__merges_put(tn__merges *m, int32_t a, int32_t b, int32_t becomes); /* false: it was there already */
void tn__merges_free(tn__merges *m);
/* Adds the merge of two pieces by their texts, which with their union must be pieces. Raises with who's name. */
bool tn__merge_texts(tn_tokenizer *t, const char *who, const char *a, size_t na, const char *b, size_t nb);
void tn__template_bert(tn_tokenizer *t);
/* first text end; of a pair first text end text end, or RoBERTa's: all of segment 0, with end twice between. */
void tn__template_frame(tn_tokenizer *t, int32_t first, int32_t end, bool roberta);
void tn__template_ends(tn_tokenizer *t, int32_t first, int32_t last); /* these around each text; -1: none */
/* "<0x0A>": 10; -1: the text is no such piece. */
int tn__byte_named(const char *text, size_t n);
/* Once pieces, types and scores of TN_SENTENCE_BPE or TN_UNIGRAM are there: what follows from them. Raises. */
bool tn__sentence_ready(tn_tokenizer *t, const char *who);
#define TN__SPACE "\xe2\x96\x81" /* "▁" */

static inline uint64_t tn__mix(uint64_t x)
{
    x ^= x >> 32, x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32, x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

/* The rank of a pair, or -1. */
static inline int64_t tn__merge_rank(const tn__merges *m, int32_t a, int32_t b)
{
    if (!m->n) return -1;
    const uint64_t key = ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) + 1;
    for (uint32_t at = (uint32_t)tn__mix(key ^ m->seed) & m->mask;; at = (at + 1) & m->mask) {
        if (m->pair[at] == key) return m->rank[at];
        if (!m->pair[at]) return -1;
    }
}

/* GPT-2's alphabet, in which each byte is a printable character: the character of a byte; the byte of one, or -1. */
uint32_t tn__byte_letter(int byte);
int      tn__letter_byte(uint32_t letter);

/* ---- the store of an encoding ------------------------------------------------------------------------------------ */

enum { TN__CACHED_KEY = 24, TN__CACHED_PIECES = 7, TN__CACHE_SLOTS = 1 << 13 };
typedef struct { /* a word and its pieces */
    uint64_t key[TN__CACHED_KEY / 8];
    int32_t  id[TN__CACHED_PIECES];
    uint8_t  bytes[TN__CACHED_PIECES]; /* of the word, for each piece */
    uint8_t  n, used;                  /* used: bytes of the word; 0: nothing is here */
} tn__cached_word;

typedef struct {
    int32_t c, from, to; /* a piece, and the bytes of the word that it spells; from = to: merged into its left one */
    int32_t prev, next;  /* -1: none */
} tn__symbol;

typedef struct {
    int32_t id, start, end, word;
} tn__token;

typedef struct { /* the best way to a place in a word, see unigram.c */
    double  sum;
    int32_t begin, id; /* of its last piece; begin -1: there is none */
} tn__path;

typedef struct tn__encoding {
    tn_encoding         shown; /* first: the user's pointer is to this */
    const tn_tokenizer *by;    /* of a tn_encoder */

    tn__token *token; /* of both texts, one after the other */
    size_t     tokens;
    int64_t    token_room;
    int32_t   *arrays; /* that are shown */
    int64_t    array_room;

    char    *word; /* the word at hand, normalised */
    int32_t *from; /* for each of its bytes the bytes of the text that it comes from: from, to, from, to … */
    int64_t  word_room, from_room;
    char    *other; /* what word and from become in the next step */
    int32_t *other_from;
    int64_t  other_room, other_from_room;
    size_t   others;
    int32_t *point; /* code points */
    int64_t  point_room;

    char   *probe; /* a prefix, and the rest of a word */
    int64_t probe_room;

    tn_string clean; /* a text that was no UTF-8, made so */
    int32_t  *fix;   /* where in it each replacement ends, and how much shorter the text is up to there */
    size_t    fixes;
    int64_t   fix_room;

    tn__path *path; /* Viterbi's */
    int64_t   path_room;
    double    sample; /* of tn_encode_args, and the numbers that were drawn */
    uint64_t  seed, drawn;
    int       nth;

    tn__symbol *symbol;
    uint64_t   *heap; /* rank << 32 | the left symbol */
    int64_t     symbol_room, heap_room;

    tn__cached_word *cache;
    uint64_t         serial;                   /* whose words are in the cache */
    int64_t          seen;                     /* words, since the beginning */
    uint8_t          bytes[TN__CACHED_PIECES]; /* of the first pieces of the word at hand */
    size_t           split;                    /* its bytes up to the last of these */

    bool line_end; /* the word at hand is the last of its text */

    /* instead of encoding words: what training does with each */
    bool (*sink)(void *user, const char *word, size_t bytes);
    void *user;
} tn__encoding;

/* The words of text[from, to), each passed on to tn__word or the sink; *number: of the next word. False: raised. */
bool tn__bert_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                    int32_t *number);
bool tn__slow_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                    int32_t *number);
bool tn__byte_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                    int32_t *number);

int         tn__splitter_named(const char *name); /* its row; -1: there is none */
int         tn__splitter_of(const char *regex);
const char *tn__splitter_regex(int splitter);
bool        tn__sentence_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                               int32_t *number);
/* The text after all steps in s->word, s->from; its length, -1: raised. */
int64_t tn__normalize(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to);

enum { TN__MAPPED = INT32_MIN };
typedef struct {
    const char *text;
    size_t      bytes;
    int64_t     letters; /* code points; more than t->longest_word: only the first are in text */
    int32_t     start;   /* in the text, where the word's bytes are the text's own; TN__MAPPED: s->from tells */
    int32_t     end;     /* in the text */
    int32_t     number;
} tn__a_word;
bool tn__word(const tn_tokenizer *t, tn__encoding *s, const tn__a_word *w);         /* its pieces become tokens */
bool tn__word_pieces(const tn_tokenizer *t, tn__encoding *s, const tn__a_word *w);  /* the longest first */
bool tn__word_merges(const tn_tokenizer *t, tn__encoding *s, const tn__a_word *w);  /* byte-pair encoding */
bool tn__word_unigram(const tn_tokenizer *t, tn__encoding *s, const tn__a_word *w); /* the best sum of scores */
/* Adds a piece of the word at hand, its i-th, and remembers how long it is. */
bool tn__piece_add(tn__encoding *s, const tn__a_word *w, size_t i, int32_t id, size_t from, size_t to);
bool tn__token_add(tn__encoding *s, const tn__a_word *w, int32_t id, size_t from, size_t to); /* of the word's bytes */

/* For s->sink: every word of a text, whatever its bytes. */
bool tn__each_word(const tn_tokenizer *t, tn__encoding *s, const char *text, size_t bytes);
bool tn__encoding_room(tn__encoding *s, size_t word_bytes); /* in word and from */
void tn__encoding_free(tn__encoding *s);                    /* what it holds */

#endif
