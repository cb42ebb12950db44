/* data_private.h — shared by the files of data/ that read text: growing arrays, code points, a line reader, indexed
 * strings, and indexed sequences. Private. */
#ifndef TENON_DATA_TEXT_DATA_PRIVATE_H
#define TENON_DATA_TEXT_DATA_PRIVATE_H

#include "core/files/io.h"
#include "data/lines.h"

/* ---- growing arrays ---------------------------------------------------------------------------------------------- */

/* Makes room for `need` elements of the given size in *p, whose capacity is *room: at least doubles it. False: raised,
 * *p is unchanged. */
bool tn__grown(void *p, int64_t *room, int64_t need, size_t size);

bool tn__string_room(tn_string *s, size_t more);
bool tn__ids_room(tn_ids *s, int64_t more);

/* ---- code points ------------------------------------------------------------------------------------------------- */

/* Returns the character at p, of which n > 0 bytes may be read, and its length in *bytes. A byte that is not part of a
 * well-formed character has length 1 and the value 0x110000 + the byte, which no character equals. */
uint32_t tn__point(const char *p, size_t n, size_t *bytes);

typedef struct {
    uint32_t *at;
    int64_t   n, room;
} tn__points;
bool tn__points_decode(tn__points *to, tn_text text); /* overwrites `to`; raises */
bool tn__points_add(tn__points *to, uint32_t c);
void tn__points_free(tn__points *p);
bool tn__is_blank(uint32_t c); /* tn_is_space, and the other white space of Python's str.split() */

/* Length in bytes of the byte order mark at the start of a file, 3 or 0: it is not part of the text. */
static inline size_t tn__mark(tn_text file) { return file.bytes >= 3 && !memcmp(file.at, "\xef\xbb\xbf", 3) ? 3 : 0; }

/* ---- line reader ------------------------------------------------------------------------------------------------- */

typedef struct {
    tn__source source;
    char       label[TN__LABEL];
    char      *buffer;
    size_t     room, have, used; /* bytes of the buffer: capacity, read, returned */
    int64_t    at;               /* bytes of the file that were read */
    int64_t    line;             /* lines returned */
    uint64_t   sum;              /* checksum of the bytes that were read, see tn__sum */
    int64_t    most;             /* maximum bytes of a line, 0: no limit; more is an error */
} tn__reader;
bool tn__reader_open(tn__reader *r, const char *caller, const char *path);
/* The next line without its "\n", the first without a byte order mark, valid until the next call; false at the end, or
 * if an error was raised. */
bool    tn__reader_line(tn__reader *r, tn_text *line);
int64_t tn__reader_at(const tn__reader *r);                      /* byte of the file after that line */
void tn__reader_seek(tn__reader *r, int64_t byte, int64_t line); /* the next line starts at this byte, after `line` */
bool tn__reader_rest(tn__reader *r); /* reads to the end for the checksum alone; false: raised */
void tn__reader_close(tn__reader *r);

/* A 64-bit checksum of bytes that arrive in blocks; their sizes do not matter. Start with 0. Detects damage and
 * mix-ups, not malice. */
uint64_t tn__sum(uint64_t sum, const void *data, size_t bytes);

/* ---- strings by index -------------------------------------------------------------------------------------------- */

/* Indices 0, 1, 2 … in the order of adding. Zeros are an empty list. */
typedef struct {
    char     *text; /* one after the other, each ended by a NUL */
    int64_t   bytes, text_room;
    int64_t  *start; /* offset of string i; start[n]: the end */
    int64_t   start_room;
    uint32_t  n;
    tn__names names;
} tn__strings;
int64_t                   tn__strings_find(const tn__strings *s, const char *text, size_t bytes); /* -1: not found */
int64_t                   tn__strings_add(tn__strings *s, const char *text, size_t bytes); /* its index; -1: raised */
tn_text                   tn__strings_at(const tn__strings *s, int64_t i);
void                      tn__strings_free(tn__strings *s);
static inline const char *tn__strings_text(const tn__strings *s, uint32_t i, size_t *bytes) /* ended by a NUL */
{
    *bytes = (size_t)(s->start[i + 1] - s->start[i]) - 1;
    return s->text + s->start[i];
}

/* ---- sequences by index ------------------------------------------------------------------------------------------ */

/* A tree of sequences: each has an index, made of the index of the sequence without its last symbol and of that symbol.
 * Words and n-grams of words become integers that are compared exactly and in constant time. */
typedef struct {
    uint64_t key;
    int32_t  count[3]; /* used by the caller */
} tn__gram;
typedef struct {
    tn__gram *gram; /* 1 … n */
    int64_t   gram_room;
    uint32_t *slot;
    uint32_t  n, slots;
    uint64_t  seed;
} tn__grams;
enum { TN__GRAM_WORDS = 0, TN__GRAM_PHRASES = -1, TN__GRAM_CHARACTERS = -2 }; /* roots of separate trees */
uint32_t tn__grams_add(tn__grams *g, uint32_t parent, uint32_t symbol);       /* 0: raised */
void     tn__grams_free(tn__grams *g);

#endif
