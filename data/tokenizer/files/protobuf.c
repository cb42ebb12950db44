/* protobuf.c — Protocol Buffers: a message is a list of fields, each a number with 3 bits for the wire type. See
 * https://protobuf.dev/programming-guides/encoding. Nothing is copied, and all input is checked. */
#include "data/tokenizer/files/protobuf.h"
#include "core/base/toolbox.h"

#include <string.h>

static bool varint(tn__proto *p, uint64_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < 10 && i < p->rest.bytes; i++) {
        const unsigned char b = (unsigned char)p->rest.at[i];
        if (i == 9 && b > 1) break; /* more than 64 bits */
        *value |= (uint64_t)(b & 0x7f) << 7 * i;
        if (b < 0x80) return p->rest.at += i + 1, p->rest.bytes -= i + 1, true;
    }
    return tn_raise_false(TN_EFORMAT,
                          "%s: a number is truncated or has more than 64 bits; the file is damaged or of another kind",
                          p->caller);
}

static bool fixed(tn__proto *p, size_t n, uint64_t *value)
{
    if (p->rest.bytes < n) return tn_raise_false(TN_EFORMAT, "%s: a number is truncated", p->caller);
    *value = 0;
    for (size_t i = 0; i < n; i++) *value |= (uint64_t)(unsigned char)p->rest.at[i] << 8 * i;
    p->rest.at += n, p->rest.bytes -= n;
    return true;
}

bool tn__proto_next(tn__proto *p, tn__field *f)
{
    uint64_t key;
    if (!p->rest.bytes || tn_error() != TN_OK || !varint(p, &key)) return false;
    *f = (tn__field){.number = (uint32_t)(key >> 3), .wire = (tn__proto_wire)(key & 7)};
    if (key >> 3 == 0 || key >> 3 >= 1u << 29)
        return tn_raise_false(TN_EFORMAT, "%s: invalid field number %llu", p->caller, (unsigned long long)(key >> 3));
    switch ((int)f->wire) {
    case TN__PROTO_INT: return varint(p, &f->value);
    case TN__PROTO_64: return fixed(p, 8, &f->value);
    case TN__PROTO_32: return fixed(p, 4, &f->value);
    case TN__PROTO_BYTES: break;
    default:
        return tn_raise_false(TN_EFORMAT, "%s: field %u has wire type %d, expected 0, 1, 2 or 5", p->caller, f->number,
                              (int)f->wire);
    }
    uint64_t n;
    if (!varint(p, &n)) return false;
    if (n > p->rest.bytes)
        return tn_raise_false(TN_EFORMAT, "%s: field %u has %llu bytes, but only %zu are left", p->caller, f->number,
                              (unsigned long long)n, p->rest.bytes);
    f->bytes = (tn_text){p->rest.at, (size_t)n};
    p->rest.at += n, p->rest.bytes -= (size_t)n;
    return true;
}

static bool is(const tn__proto *p, const tn__field *f, tn__proto_wire wire)
{
    if (f->wire == wire) return true;
    return tn_raise_false(TN_EFORMAT, "%s: field %u has wire type %d, expected %d", p->caller, f->number, (int)f->wire,
                          (int)wire);
}

int64_t tn__proto_i64(const tn__proto *p, const tn__field *f)
{
    return is(p, f, TN__PROTO_INT) ? (int64_t)f->value : 0;
}

tn_text tn__proto_text(const tn__proto *p, const tn__field *f)
{
    return is(p, f, TN__PROTO_BYTES) ? f->bytes : (tn_text){"", 0};
}

float tn__proto_float(const tn__proto *p, const tn__field *f)
{
    if (!is(p, f, TN__PROTO_32)) return 0;
    const uint32_t bits = (uint32_t)f->value;
    float          value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool put_varint(tn_string *to, uint64_t value)
{
    char   byte[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) byte[n++] = (char)(value | 0x80);
    byte[n++] = (char)value;
    return tn_string_add(to, (tn_text){byte, n}) == TN_OK;
}

static bool put_key(tn_string *to, uint32_t number, tn__proto_wire wire)
{
    return put_varint(to, (uint64_t)number << 3 | (uint64_t)wire);
}

bool tn__proto_put_i64(tn_string *to, uint32_t number, int64_t value)
{
    return put_key(to, number, TN__PROTO_INT) && put_varint(to, (uint64_t)value);
}

bool tn__proto_put_text(tn_string *to, uint32_t number, tn_text text)
{
    return put_key(to, number, TN__PROTO_BYTES) && put_varint(to, text.bytes) && tn_string_add(to, text) == TN_OK;
}

bool tn__proto_put_float(tn_string *to, uint32_t number, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const char byte[4] = {(char)bits, (char)(bits >> 8), (char)(bits >> 16), (char)(bits >> 24)};
    return put_key(to, number, TN__PROTO_32) && tn_string_add(to, (tn_text){byte, 4}) == TN_OK;
}
