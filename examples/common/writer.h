/* writer.h — numbers become text as they come, and a text that goes on and on. */
#ifndef TENON_EXAMPLES_COMMON_WRITER_H
#define TENON_EXAMPLES_COMMON_WRITER_H

#include "model.h"
#include "texts.h"

/* Numbers become text as they come: nothing is shown that the next number may still change, be it half a character or
 * the beginning of a stop word. */
typedef struct {
    const tn_tokenizer *tokens;
    const option_list  *stop;
    tn_ids              ids;   /* those whose text is not all in `shown` */
    size_t              known; /* bytes of their text that are in `text` already */
    tn_string           text;  /* not shown yet */
    tn_string           room;
    bool                stopped; /* a stop word has come */
    bool                silent;  /* only counts */
} stream;
bool stream_add(stream *s, int32_t id, bool show); /* false: stopped, or an error stands */
void stream_end(stream *s);                        /* shows the rest */
void stream_free(stream *s);

/* How a text is made; the decoding is kept from one call to the next, so that a conversation is read once. */
typedef struct {
    tn_generate_args how; /* temperature, top_k, ...; .sample */
    int64_t          tokens;
    option_list      stop;
    uint64_t         seed;
    const model     *draft; /* proposes `ahead` pieces at a time; NULL: none */
    int64_t          ahead;
    int64_t sinks; /* the first so many pieces stay, and the oldest behind them go; 0: the last half is read anew */
} manner;
/* Options of how it draws, for the manner `how`. A temperature of 0 is no draw at all, so it is a number beside it. */
#define WRITER_DRAWS(how_, temperature)                                                                        \
    OPTION_REAL("temperature", 't', "T", &(temperature),                                                       \
                "0: always the likeliest; below 1 rather the likely ones, above 1 also others", .least = 0,    \
                .most = 100),                                                                                  \
        OPTION_INT("top-k", 'k', "N", &(how_).how.top_k, "only the N likeliest", .least = 0, .most = 1e7),     \
        OPTION_REAL("top-p", 0, "P", &(how_).how.top_p, "only the likeliest that make up so much probability", \
                    .least = 1e-9, .most = 1)
int writer_draws(manner *how, double temperature); /* what they say, into `how`; not 0: the exit status of a misuse */
typedef struct {
    const model  *m;
    tn_decoding  *decoding;
    tn_ids        text;  /* all of it */
    int32_t       first; /* model_first */
    int32_t       last;  /* the piece that ends a text or an answer; -1: none */
    tn_drafted    drafted;
    double        seconds; /* that were spent on writing */
    int64_t       read, room;
    bool          cut; /* the last text came to no end: it was as long as it might be */
    stream        out;
    const manner *manner;
} writer;
bool writer_open(writer *w, const model *m, const manner *how);
bool writer_read(writer *w, tn_text prompt); /* comes behind the text so far */
bool writer_write(writer *w);                /* goes on, on standard output */
void writer_forget(writer *w);               /* the text so far */
void writer_close(writer *w);

#endif
