/* runlog_events.c — TensorBoard's event files: records of a length, its checksum, data and their checksum. The data are
 * messages in protobuf's wire format; four message types are needed:
 *
 *     Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; SessionLog = 7 }
 *     Summary { repeated Value value = 1 }   Value { string tag = 1; float simple_value = 2 }
 *     SessionLog { Status status = 1 }       START = 1: discards earlier events of this and later steps */
#include "core/system/system.h"

#include "extras/runlog/runlog_private.h"
#include "core/base/toolbox.h"

static uint32_t masked(const void *data, size_t bytes) /* masked, so that the checksum of a checksum is not trivial */
{
    uint32_t crc = tn__crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
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
    const struct timespec now = tn__sys_clock();

    double   seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    put_bytes(to, "\x09", 1);
    put_little(to, bits, 8);
    put_bytes(to, "\x10", 1);
    put_varint(to, (uint64_t)step);
}

/* `data` is the content of a record; writes the record at once. */
static bool put_record(tn__log_file *f, tn_string *data)
{
    tn_string record = {0};
    put_little(&record, data->bytes, 8);
    if (record.at) put_little(&record, masked(record.at, 8), 4);
    put_bytes(&record, data->at, data->bytes);
    put_little(&record, masked(data->at, data->bytes), 4);
    bool done = tn__self.error == TN_OK && tn__sink_write(&f->sink, record.at, record.bytes);
    tn_string_free(&record);
    return done;
}

bool tn__events_put(tn__log_file *f, tn_string *data, int64_t step, int n, const char *const *names, const double *v)
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
    return tn__self.error == TN_OK && put_record(f, data);
}

bool tn__events_open(tn__log_file *f, const char *folder, int64_t first)
{
    static const char     version[] = "brain.Event:2";
    const struct timespec now = tn__sys_clock();
    char                  name[160], host[65] = "";
    tn_string             path = {0}, data = {0};
    if (gethostname(host, sizeof host - 1) || !*host) memcpy(host, "localhost", 10);
    for (char *p = host; *p; p++)
        if (*p == '/') *p = '_';
    snprintf(name, sizeof name, "/events.out.tfevents.%010lld.%s.%lld.%09ld", (long long)now.tv_sec, host,
             (long long)getpid(), (long)now.tv_nsec);
    tn_string_add(&path, tn_text_of(folder));
    tn_string_add(&path, tn_text_of(name));
    bool done = tn__self.error == TN_OK && tn__log_append(f, path.at);
    if (done) {
        put_head(&data, 0);
        put_bytes(&data, "\x1a\x0d", 2);
        put_bytes(&data, version, sizeof version - 1);
        done = put_record(f, &data);
    }
    if (done && first >= 0) {
        data.bytes = 0;
        put_head(&data, first);
        put_bytes(&data, "\x3a\x02\x08\x01", 4);
        done = put_record(f, &data);
    }
    tn_string_free(&path);
    tn_string_free(&data);
    return done;
}
