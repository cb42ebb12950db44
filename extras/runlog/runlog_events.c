/* runlog_events.c — TensorBoard's event files: records of a length, its checksum, data and their checksum. The data are
 * messages in protobuf's wire format; four message types are needed:
 *
 *     Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; SessionLog = 7 }
 *     Summary { repeated Value value = 1 }   Value { string tag = 1; float simple_value = 2 }
 *     SessionLog { Status status = 1 }       START = 1: discards earlier events of this and later steps */
#include "extras/runlog/runlog_private.h"

#include <stdio.h>
#include <time.h>

uint32_t tn__events_checksum(const void *data, size_t bytes)
{
    uint32_t crc = ~0u;
    for (const unsigned char *p = data, *end = p + bytes; p < end; p++) {
        crc ^= *p;
        for (int k = 0; k < 8; k++) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    return ~crc;
}

static uint32_t masked(const void *data, size_t bytes) /* masked, so that the checksum of a checksum is not trivial */
{
    uint32_t crc = tn__events_checksum(data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static double now(void) /* seconds since 1970 */
{
#ifdef TIME_UTC
    struct timespec t;
    if (timespec_get(&t, TIME_UTC)) return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#endif
    return (double)time(NULL);
}

static void put_bytes(tn_string *to, const void *p, size_t n) { tn_string_add(to, (tn_text){p, n}); }

static void put_little(tn_string *to, uint64_t v, int bytes)
{
    char p[8];
    for (int i = 0; i < bytes; i++) p[i] = (char)(v >> 8 * i);
    put_bytes(to, p, (size_t)bytes);
}

static void put_varint(tn_string *to, uint64_t v)
{
    char p[10];
    int  n = 0;
    for (; v >= 0x80; v >>= 7) p[n++] = (char)(v | 0x80);
    p[n++] = (char)v;
    put_bytes(to, p, (size_t)n);
}

static size_t varint_bytes(uint64_t v)
{
    size_t n = 1;
    for (; v >= 0x80; v >>= 7) n++;
    return n;
}

static void put_head(tn_string *to, int64_t step)
{
    const double seconds = now();
    uint64_t     bits;
    memcpy(&bits, &seconds, sizeof bits);
    put_bytes(to, "\x09", 1);
    put_little(to, bits, 8);
    put_bytes(to, "\x10", 1);
    put_varint(to, (uint64_t)step);
}

/* `data` is the content of a record; writes the record at once. */
static bool put_record(const char *path, tn_string *data)
{
    tn_string record = {0};
    put_little(&record, data->bytes, 8);
    if (record.at) put_little(&record, masked(record.at, 8), 4);
    put_bytes(&record, data->at, data->bytes);
    put_little(&record, masked(data->at, data->bytes), 4);
    bool done = tn_error() == TN_OK && tn_file_append(path, record.at, record.bytes) == TN_OK;
    tn_string_free(&record);
    return done;
}

bool tn__events_put(const char *path, tn_string *data, int64_t step, int n, const char *const *names, const double *v)
{
    size_t all = 0;
    for (int i = 0; i < n; i++) {
        size_t name = strlen(names[i]), value = 1 + varint_bytes(name) + name + 5;
        all += 1 + varint_bytes(value) + value;
    }
    data->bytes = 0;
    put_head(data, step);
    put_bytes(data, "\x2a", 1);
    put_varint(data, all);
    for (int i = 0; i < n; i++) {
        size_t   name = strlen(names[i]);
        float    x = (float)v[i];
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        put_bytes(data, "\x0a", 1);
        put_varint(data, 1 + varint_bytes(name) + name + 5);
        put_bytes(data, "\x0a", 1);
        put_varint(data, name);
        put_bytes(data, names[i], name);
        put_bytes(data, "\x15", 1);
        put_little(data, bits, 4);
    }
    return tn_error() == TN_OK && put_record(path, data);
}

static bool is_free(const char *path)
{
    tn_error_state aside;
    tn_error_push(&aside);
    const tn_scope s = tn_scope_begin();
    tn_file_read(path, 0);
    const bool none = tn_error() == TN_EIO; /* not TN_EINVAL, which is a file of more than 0 bytes */
    tn_scope_end(s);
    tn_error_pop(&aside);
    return none;
}

bool tn__events_open(tn_string *path, const char *folder, int64_t first)
{
    static const char version[] = "brain.Event:2";
    const long long   second = (long long)time(NULL);
    char              name[80];
    tn_string         data = {0};
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "/events.out.tfevents.%010lld.tenon.%d", second, i);
        path->bytes = 0;
        if (tn_string_add(path, tn_text_of(folder)) != TN_OK || tn_string_add(path, tn_text_of(name)) != TN_OK)
            return false;
        if (is_free(path->at)) break;
    }
    put_head(&data, 0);
    put_bytes(&data, "\x1a\x0d", 2);
    put_bytes(&data, version, sizeof version - 1);
    bool done = tn_error() == TN_OK && put_record(path->at, &data);
    if (done && first >= 0) {
        data.bytes = 0;
        put_head(&data, first);
        put_bytes(&data, "\x3a\x02\x08\x01", 4);
        done = tn_error() == TN_OK && put_record(path->at, &data);
    }
    tn_string_free(&data);
    return done;
}
