/* http.c — connections, with libmicrohttpd in the server's own thread. A request that waits for the model is suspended:
 * libmicrohttpd does not watch its socket then, so that http_run asks itself whether the client has gone. */
#include "serve.h"

#include "../../../programs/common/files.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

typedef struct visitor visitor;
struct visitor { /* a connection; it has one request at a time */
    visitor               *next;
    http                  *of;
    struct MHD_Connection *connection;
    int                    socket;
    double                 since; /* seconds_now() when it connected, or last got on */
    bool                   in_request, too_long, suspended, gone;
    tn_string              body;
    job                   *job;
};

struct http {
    server            *s;
    struct MHD_Daemon *daemon;
    visitor           *visitors;
};

static visitor *visitor_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return i ? i->socket_context : NULL;
}

/* A connection begins or ends. */
static void on_connection(void *user, struct MHD_Connection *c, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    http    *h = user;
    visitor *v = *context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (!(v = calloc(1, sizeof *v))) return; /* its requests are rejected */
        *v = (visitor){.next = h->visitors, .of = h, .connection = c, .socket = i->connect_fd, .since = seconds_now()};
        h->visitors = *context = v;
    } else if (v) {
        for (visitor **at = &h->visitors; *at; at = &(*at)->next)
            if (*at == v) {
                *at = v->next;
                break;
            }
        free(v);
        *context = NULL;
    }
}

/* The request is answered, or its client has gone. */
static void on_completed(void *user, struct MHD_Connection *c, void **request, enum MHD_RequestTerminationCode why)
{
    http    *h = user;
    visitor *v = visitor_of(c);
    (void)request, (void)why;
    if (!v) return;
    if (settings.verbose && v->job)
        fprintf(stderr, "%d in %.3f s%s\n", v->job->status, seconds_now() - v->job->until + h->s->seconds,
                why == MHD_REQUEST_TERMINATED_COMPLETED_OK ? "" : ", the client has gone");
    job_free(h->s, v->job);
    tn_string_free(&v->body);
    v->job = NULL, v->in_request = v->too_long = v->suspended = v->gone = false;
    v->since = seconds_now();
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* Copies events that were not sent yet. Without any, the connection waits. */
static ssize_t next_events(void *user, uint64_t position, char *to, size_t room)
{
    visitor *v = user;
    job     *j = v->job;
    (void)position;
    if (v->gone) return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t n = j->answer.bytes - j->sent;
    if (!n && j->done) return MHD_CONTENT_READER_END_OF_STREAM;
    v->since = seconds_now();
    if (!n) {
        v->suspended = true;
        MHD_suspend_connection(v->connection);
        return 0;
    }
    if (n > room) n = room;
    memcpy(to, j->answer.at + j->sent, n);
    j->sent += n;
    if (j->sent == j->answer.bytes) j->sent = j->answer.bytes = 0;
    return (ssize_t)n;
}

static enum MHD_Result answer(visitor *v)
{
    job                 *j = v->job;
    const bool           events = j->stream && j->accepted;
    struct MHD_Response *r =
        events ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, next_events, v, NULL)
               : MHD_create_response_from_buffer(j->answer.bytes, j->answer.at, MHD_RESPMEM_PERSISTENT);
    if (!r) return MHD_NO;
    MHD_add_response_header(r, "Content-Type", events ? "text/event-stream" : "application/json");
    if (events) MHD_add_response_header(r, "Cache-Control", "no-cache");
    if (j->status == 401) MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
    v->since = seconds_now();
    const enum MHD_Result done = MHD_queue_response(v->connection, (unsigned)j->status, r);
    MHD_destroy_response(r);
    return done;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static http_request head_of(const visitor *v, const char *method, const char *path)
{
    struct MHD_Connection *c = v->connection;
    return (http_request){.method = method,
                          .path = path,
                          .type = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Type"),
                          .authorization = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization"),
                          .body = v->body.at,
                          .bytes = v->body.bytes,
                          .too_long = v->too_long};
}

/* Its Content-Length is above the limit. */
static bool is_long(visitor *v)
{
    const char *length = MHD_lookup_connection_value(v->connection, MHD_HEADER_KIND, "Content-Length");
    return length && strtoull(length, NULL, 10) > (unsigned long long)v->of->s->body;
}

/* A part of a body. What is too long is read and dropped, so that the client can read the answer. */
static void take_part(visitor *v, const char *data, size_t n)
{
    v->too_long |= n > (size_t)v->of->s->body - v->body.bytes;
    if (v->too_long) tn_string_free(&v->body);
    else if (tn_string_add(&v->body, (tn_text){data, n}) != TN_OK) tn_clear_error(), v->too_long = true;
}

/* libmicrohttpd calls it after the head of a request, after each part of the body and at its end, and when a suspended
 * request is resumed. */
static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *path, const char *method,
                                  const char *version, const char *data, size_t *bytes, void **request)
{
    http    *h = user;
    visitor *v = visitor_of(c);
    (void)version;
    if (!v || v->gone) return MHD_NO;
    if (v->job) return answer(v);
    if (!*request) {
        *request = v, v->in_request = true, v->since = seconds_now();
        v->too_long = is_long(v);
        const http_request r = head_of(v, method, path);
        if (!(v->job = request_refused(h->s, &r))) return MHD_YES;
        return answer(v); /* and the connection is closed, because the body was not read */
    }
    if (*bytes) {
        take_part(v, data, *bytes);
        *bytes = 0;
        return MHD_YES;
    }
    const http_request r = head_of(v, method, path);
    if (settings.verbose) fprintf(stderr, "%s %s, %zu bytes\n", method, path, v->body.bytes);
    if (!(v->job = request_job(h->s, &r))) return MHD_NO;
    tn_string_free(&v->body);
    if (v->job->done) return answer(v);
    jobs_add(h->s, v->job);
    if (v->job->stream) return answer(v);
    v->suspended = true;
    MHD_suspend_connection(c);
    return MHD_YES;
}

/* ---- the daemon -------------------------------------------------------------------------------------------------- */

http *http_open(server *s)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    if (inet_pton(AF_INET, s->host, &address.sin_addr) != 1)
        return tn_raise_null(TN_EINVAL,
                             "--host is '%s', expected an IPv4 address such as 127.0.0.1, or 0.0.0.0 for all "
                             "of this machine",
                             s->host);
    http *h = calloc(1, sizeof *h);
    if (!h) return tn_raise_null(TN_ENOMEM, "no memory for the server");
    h->s = s;
    h->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, h,
                                 MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address, MHD_OPTION_CONNECTION_LIMIT,
                                 (unsigned)s->connections, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
                                 MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_END);
    if (h->daemon) return h;
    free(h);
    return tn_raise_null(TN_EIO, "cannot listen on %s:%lld; is the port in use? choose another with --port", s->host,
                         (long long)s->port);
}

int64_t http_port(const http *h)
{
    const union MHD_DaemonInfo *i = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return i ? i->port : 0;
}

/* Returns true if a suspended request can continue, or its client has gone, which ends its job. */
static bool must_resume(visitor *v)
{
    char byte;
    if (recv(v->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) v->gone = true;
    return v->gone || v->job->done || v->job->answer.bytes > v->job->sent;
}

void http_run(http *h, int64_t milliseconds)
{
    enum { ROUNDS = 4 }; /* accept, read the head, read the body, answer */
    const double now = seconds_now();
    for (visitor *v = h->visitors; v; v = v->next)
        if (v->suspended && must_resume(v)) {
            v->suspended = false, v->since = now;
            MHD_resume_connection(v->connection);
        } else if (!v->suspended && now - v->since > h->s->patience) { /* it sends or reads nothing */
            v->since = now;
            shutdown(v->socket, SHUT_RDWR);
        }
    for (int i = 0; i < ROUNDS; i++) MHD_run_wait(h->daemon, i ? 0 : (int32_t)milliseconds);
}

void http_close(http *h)
{
    if (!h) return;
    for (visitor *v = h->visitors; v; v = v->next) {
        v->gone = true;
        if (v->suspended) v->suspended = false, MHD_resume_connection(v->connection);
    }
    MHD_run(h->daemon);
    MHD_stop_daemon(h->daemon);
    free(h);
}
