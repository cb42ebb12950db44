/* serve.h — the parts of serve, a server with the interface of OpenAI's. One thread does everything: between two steps
 * of the model it reads and writes connections, so that nothing needs a lock.
 *
 *     main.c      options; opens the models; the loop
 *     http.c      connections, with libmicrohttpd; all other files work without it
 *     request.c   a request becomes a job, or an error in OpenAI's form
 *     fields.c    the members of a request's JSON
 *     jobs.c      the jobs that wait and run: tn_live, embeddings
 *     answer.c    what a job has made, as JSON or events */
#ifndef TENON_EXTRAS_PROGRAMS_SERVE_SERVE_H
#define TENON_EXTRAS_PROGRAMS_SERVE_SERVE_H

#include "../../../programs/common/writer.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHOICES_MOST = 16,     /* texts of a request */
    STOPS_MOST = 16,       /* stop words of a request */
    EMBEDDINGS_MOST = 2048 /* texts of a request for embeddings */
};

typedef struct job    job;
typedef struct server server;

struct server {
    /* Options. */
    const char *model, *embeddings, *name, *host, *key, *pool;
    int64_t     port, rows, length, chunk, tokens, body, connections, waiting; /* body: bytes */
    double      seconds, patience; /* for an answer; for a client that sends or reads */

    model           lm;                /* .net NULL: no language model */
    int32_t         first, answer_end; /* tokens; -1: none */
    tn_model        encoder;           /* .bert NULL: no embeddings */
    tn_bert_pooling pooling;
    const char     *lm_name, *encoder_name; /* in requests and answers */
    tn_live        *live;
    job            *jobs, **last; /* in the order of their arrival; last: where the next one is put */
    int64_t         count, made;  /* jobs in the list; jobs so far */
    tn_json_writer *json;
    int64_t         began; /* seconds since 1970 */
};

/* A text of a job: one that is generated, or one that gets a vector. */
typedef struct {
    job        *of;
    tn_ids      prompt;
    int64_t     most, made; /* maximum new tokens; those made */
    int64_t     number;     /* in tn_live; -1: it waits, or has ended */
    stream      out;
    tn_string   text;     /* what has been decoded: all of it, or with .stream the part that no event has yet */
    tn_ids      distinct; /* its different new tokens, for presence_penalty */
    const char *finish;   /* "stop" or "length"; NULL: it has not ended */
    bool        started;  /* its first event was written */
} choice;

typedef enum { JOB_NOTHING = 0, JOB_CHAT, JOB_COMPLETION, JOB_EMBEDDINGS } job_kind;

struct job {
    job             *next;
    server          *server;
    job_kind         kind;
    int64_t          number, created, count;
    choice          *choice; /* [count] */
    tn_generate_args how;
    double           frequency, presence, until; /* until: seconds_now() at which it ends */
    int64_t          seed;                       /* -1: none */
    option_list      stop;                       /* of copies that the job owns */
    bool             stream, usage, base64;
    int64_t          embedded; /* texts with a vector */
    tn_string        vectors;  /* f32 */
    /* The answer: all of it when `done`, or with .stream events, of which `sent` bytes were taken. */
    tn_string answer;
    size_t    sent;
    int       status;         /* of HTTP */
    bool      accepted, done; /* accepted: it is in the list, and with .stream its first bytes may have been sent */
};

/* ---- request.c, fields.c ----------------------------------------------------------------------------------------- */

typedef struct {
    const char *method, *path, *type, *authorization; /* type: Content-Type; NULL: no such header */
    const char *body;
    size_t      bytes;
    bool        too_long; /* the body had more than the server's .body bytes, and was not kept */
} http_request;
/* The answer to a request whose body need not be read: an error. NULL: read it. */
job *request_refused(server *s, const http_request *r);
job *request_job(server *s, const http_request *r); /* never NULL but without memory; put it into the list */
/* Makes j an error in OpenAI's form; the first error stays. what: the member of the request; NULL: none. Returns
 * false. */
bool request_fail(server *s, job *j, int status, const char *code, const char *what, const char *fmt, ...)
    TN_PRINTF(6, 7);
bool request_raised(server *s, job *j); /* request_fail with the error that is set, which is cleared */

/* Members of a request; null is like a missing one. Of another type or out of range: request_fail. */
double  field_number(server *s, job *j, const tn_json *o, const char *key, double fallback, double least, double most);
int64_t field_whole(server *s, job *j, const tn_json *o, const char *key, int64_t fallback, int64_t least,
                    int64_t most);
bool    field_flag(server *s, job *j, const tn_json *o, const char *key);
const char *field_text(server *s, job *j, const tn_json *o, const char *key); /* NULL: missing, or j has failed */
/* Checks that the members of a list, ended by NULL, do not ask for anything. */
bool field_unsupported(server *s, job *j, const tn_json *o, const char *const *keys);
/* A string, or an array of strings: calls `each` with each of at most `most`. */
bool field_texts(server *s, job *j, const tn_json *o, const char *key, int64_t most,
                 bool (*each)(server *s, job *j, const char *text, size_t bytes));
/* Appends the conversation in the form of the model's chat template. */
bool field_messages(server *s, job *j, const tn_json *o, tn_string *to);

/* ---- jobs.c ------------------------------------------------------------------------------------------------------ */

void     jobs_add(server *s, job *j);
bool     jobs_step(server *s);            /* false: all jobs are done */
void     job_free(server *s, job *j);     /* also one that runs: its texts end */
tn_live *jobs_live(const server *s);      /* a tn_live with the options of s; NULL: raised */
bool     jobs_choices(job *j, int64_t n); /* gives j memory for n texts; false: raised */

/* ---- answer.c ---------------------------------------------------------------------------------------------------- */

void answer_whole(server *s, job *j);            /* all texts have ended */
void answer_event(server *s, job *j, choice *c); /* what is new in c */
void answer_end(server *s, job *j);              /* the last events */
void answer_embeddings(server *s, job *j);
void answer_state(server *s, job *j, bool models); /* models: with their names */
void answer_error(server *s, job *j, int status, const char *code, const char *what, const char *message);

/* ---- http.c ------------------------------------------------------------------------------------------------------ */

typedef struct http http;
http               *http_open(server *s); /* NULL: raised */
int64_t             http_port(const http *h);
void                http_run(http *h, int64_t milliseconds); /* waits at most this time for something to do */
void                http_close(http *h);

#endif
