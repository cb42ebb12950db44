/* writer.h — generates a text of any length and prints it token by token. */
#ifndef TENON_PROGRAMS_COMMON_WRITER_H
#define TENON_PROGRAMS_COMMON_WRITER_H

#include "model.h"
#include "texts.h"

/* Decodes and prints tokens as they are generated. Holds back text that the next token may still change: half a
 * character, or the start of a stop word. */
typedef struct {
    const tn_tokenizer *tokens;
    const option_list  *stop;
    tn_ids              ids;   /* the last tokens, decoded together */
    size_t              known; /* bytes of the text of `ids` that have been added to `text` */
    tn_string           text;  /* not printed yet */
    tn_string           room;
    bool                stopped; /* a stop word was generated */
    bool                silent;  /* print nothing */
    tn_string          *kept;    /* appends the text to this, too; NULL: to nothing */
} stream;
bool stream_add(stream *s, int32_t id, bool show); /* false: stopped, or an error is set */
void stream_end(stream *s);                        /* prints the rest */
void stream_free(stream *s);

/* How a text is generated. */
typedef struct {
    tn_generate_args how; /* temperature, top_k, ...; .sample */
    int64_t          tokens;
    option_list      stop;
    uint64_t         seed;
    const model     *draft;  /* proposes `ahead` tokens at a time; NULL: none */
    bool             lookup; /* earlier text proposes up to `ahead` tokens at a time */
    int64_t          ahead;  /* 0: 4 of a draft, 16 of earlier text */
    const char      *cache;  /* file of the read prompt: read if it exists, and written; NULL: none */
    int64_t
        sinks; /* a full context keeps its first `sinks` tokens and drops the oldest others; 0: keeps its last half */
    /* what may come next, as .adjust of tn_generate with the user `rules`; NULL: anything */
    tn_status (*rule)(const tn_next_token *next, void *rules);
    void *rules;
} writer_options;
/* The options of sampling, for the writer_options how_. The temperature is a separate variable, because 0 means no
 * sampling. */
#define WRITER_SAMPLING(how_, temperature)                                                                           \
    OPTION_REAL("temperature", 0, "T", &(temperature),                                                               \
                "0: always the most likely token; below 1 favours likely tokens, above 1 unlikely ones", .least = 0, \
                .most = 100),                                                                                        \
        OPTION_INT("top-k", 0, "N", &(how_).how.top_k, "sample among the N most likely tokens; 0: all", .least = 0,  \
                   .most = 1e7),                                                                                     \
        OPTION_REAL("top-p", 0, "P", &(how_).how.top_p,                                                              \
                    "sample among the most likely tokens that add up to probability P", .least = 1e-9, .most = 1)
int writer_set_sampling(writer_options *how,
                        double          temperature); /* sets `how` from the options; returns 0 or program_usage */

/* A text that is being generated. The decoding is kept from call to call, so that a conversation is read only once. */
typedef struct {
    const model          *m;
    tn_decoding          *decoding;
    tn_ids                text;  /* all of it */
    int32_t               first; /* model_first */
    int32_t               last;  /* the token that ends a text or an answer; -1: none */
    tn_speculation        drafted;
    double                seconds;              /* spent on generation */
    double                began, first_seconds; /* the first generation: its start; seconds until its first token */
    int64_t               made;                 /* tokens generated */
    int64_t               read, room;
    bool                  cut; /* the last text reached the maximum length, or its end token; not a stop word */
    stream                out;
    const writer_options *options;
} writer;
bool writer_open(writer *w, const model *m, const writer_options *how);
bool writer_read(writer *w, tn_text prompt); /* appends a prompt to the text */
bool writer_write(writer *w);                /* generates text and prints it to standard output */
void writer_forget(writer *w);               /* clears the text */
void writer_close(writer *w);

#endif
