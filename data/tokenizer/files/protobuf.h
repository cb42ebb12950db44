/* protobuf.h — the part of Protocol Buffers that SentencePiece's files need: reads and writes the fields of a message
 * in order. Private. */
#ifndef TENON_DATA_TOKENIZER_FILES_PROTOBUF_H
#define TENON_DATA_TOKENIZER_FILES_PROTOBUF_H

#include "data/text/data_private.h"

typedef struct {
    const char *caller;
    tn_text     rest; /* unread part of the message */
} tn__proto;

typedef enum { TN__PROTO_INT = 0, TN__PROTO_64 = 1, TN__PROTO_BYTES = 2, TN__PROTO_32 = 5 } tn__proto_wire;
typedef struct {
    uint32_t       number;
    tn__proto_wire wire;
    uint64_t       value; /* of all wire types but TN__PROTO_BYTES */
    tn_text        bytes;
} tn__field;
/* Reads the next field; false: no more fields, or raised. */
bool tn__proto_next(tn__proto *p, tn__field *f);
/* The field as an integer, a text, a float; raises if its wire type differs. */
int64_t tn__proto_i64(const tn__proto *p, const tn__field *f);
tn_text tn__proto_text(const tn__proto *p, const tn__field *f);
float   tn__proto_float(const tn__proto *p, const tn__field *f);

bool tn__proto_put_i64(tn_string *to, uint32_t number, int64_t value);
bool tn__proto_put_text(tn_string *to, uint32_t number, tn_text text);
bool tn__proto_put_float(tn_string *to, uint32_t number, float value);

#endif
