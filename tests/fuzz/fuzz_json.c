/* fuzz_json.c — any bytes as JSON. A document that is read is written, on one line and indented, and read again: the
 * result is the same text. Numbers read back as the same bits. Nothing stays allocated. */
#include "core/core.h"
#include <stdlib.h>
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : abort())

static size_t live(void) { return tn_memory_now().live; }

/* Calls every accessor on every value: whatever it returns, it must not crash. */
static void visit(const tn_json *v, int depth)
{
    for (; v; v = tn_json_next(v)) {
        tn_json_i64(v), tn_json_u64(v), tn_json_double(v), tn_json_bool(v), tn_json_string(v), tn_json_string_bytes(v);
        CHECK(tn_error() != TN_OK); /* no value has all of these types */
        tn_clear_error();
        tn_json_need(v, "a");
        tn_clear_error();
        if (tn_json_type_of(v) == TN_JSON_OBJECT)
            for (int64_t i = 0; i < tn_json_count(v) && i < 50; i++) {
                const tn_json *child = tn_json_at(v, i);
                CHECK(tn_json_get(v, tn_json_key(child)) == child);
            }
        if (depth < 64) visit(tn_json_first(v), depth + 1);
    }
}

static char *written(const tn_json *v, int indent, size_t *n)
{
    tn_json_writer *w = tn_json_writer_new(indent);
    CHECK(tn_json_put(w, NULL, v) == TN_OK);
    const char *text = tn_json_text(w, n);
    CHECK(text && strlen(text) == *n);
    char *copy = malloc(*n + 1);
    CHECK(copy);
    memcpy(copy, text, *n + 1);
    tn_json_writer_free(w);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t   before = live();
    tn_json *v = tn_json_parse(size ? (const char *)data : "", size);
    CHECK((v != NULL) == (tn_error() == TN_OK));
    CHECK(v || tn_error() == TN_EFORMAT);
    tn_clear_error();
    if (v) {
        size_t n, m, again;
        char  *text = written(v, 0, &n), *indented = written(v, 2, &m);
        visit(v, 0);
        tn_json_free(v);
        for (int i = 0; i < 2; i++) {
            CHECK((v = i ? tn_json_parse(indented, m) : tn_json_parse(text, n)));
            char *same = written(v, 0, &again);
            CHECK(again == n && !memcmp(same, text, n));
            free(same);
            tn_json_free(v);
        }
        free(text);
        free(indented);
    }
    double d, back;
    if (tn_parse_double((const char *)data, size, &d)) {
        char to[32];
        int  n = tn_format_double(d, to);
        CHECK(tn_parse_double(to, (size_t)n, &back) && !memcmp(&d, &back, sizeof d));
    }
    tn_utf8_valid((const char *)data, size);
    CHECK(tn_error() == TN_OK && live() == before);
    return 0;
}
