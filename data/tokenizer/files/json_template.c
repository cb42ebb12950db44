/* json_template.c — reads the post_processor of a tokenizer.json: the tokens around a text and a pair of texts. */
#include "data/tokenizer/files/tokenizer_files.h"
#include "core/base/toolbox.h"

#include <string.h>

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

/* Reads a part of a template: a text or a token. */
static bool read_part(const tn_tokenizer *t, const char *caller, const tn_json *v, const tn_json *special,
                      tn__template_part *to)
{
    const tn_json *piece = tn_json_get(v, "SpecialToken"), *inner = piece ? piece : tn_json_get(v, "Sequence");
    const char    *id = tn_json_string(tn_json_need(inner, "id"));
    const int64_t  segment = tn_json_i64_or(tn_json_get(inner, "type_id"), 0);
    *to = (tn__template_part){.text = (int8_t)(piece ? -1 : is(id, "B")), .segment = (uint8_t)segment, .id = -1};
    if (piece) {
        const tn_json *ids = tn_json_get(tn_json_get(special, id), "ids");
        const int64_t  k = tn_json_count(ids) == 1 ? tn_json_i64(tn_json_at(ids, 0)) : tn_tokenizer_id(t, id);
        if (ids && tn_json_count(ids) != 1)
            return tn__unsupported(caller, "the post_processor's special token, whose ids are not one,", id);
        to->id = k >= 0 && k < tn_tokenizer_size(t) ? (int32_t)k : -1;
    }
    if (inner && segment >= 0 && segment <= 2 && (piece ? to->id >= 0 : is(id, "A") || is(id, "B")))
        return tn_error() == TN_OK;
    if (tn_error() == TN_OK)
        tn_raise(TN_EFORMAT,
                 "%s: the post_processor's template: SpecialToken, Sequence or type_id of '%.40s' is not "
                 "a token, A or B, 0 to 2",
                 caller, id);
    return false;
}

static bool read_parts(tn_tokenizer *t, const char *caller, const tn_json *v, const tn_json *special,
                       tn__template_part *to, int *n)
{
    const bool pair = to == t->pair.part;
    int        texts = 0; /* A, then B; more than 2: others */
    *n = 0;
    for (const tn_json *p = tn_json_first(v); p; p = tn_json_next(p)) {
        if (*n == TN__TEMPLATE_PARTS)
            return tn__unsupported(caller, "the post_processor's template", "of more than 16");
        if (!read_part(t, caller, p, special, to + *n)) return false;
        const int text = to[(*n)++].text;
        texts += text < 0 ? 0 : text == texts ? 1 : 3;
    }
    if (tn_error() == TN_OK && texts != 1 + pair)
        return tn__unsupported(caller, "the post_processor's template",
                               pair ? "pair, without A once and then B once" : "single, without A once");
    return tn_error() == TN_OK;
}

static bool is_bool(const tn_json *v, const char *key) { return tn_json_type_of(tn_json_get(v, key)) == TN_JSON_BOOL; }

/* Hugging Face's library recognises these post_processors by their members, not by their type; NULL: another one. */
static const char *read_as(const tn_json *v)
{
    const bool frame = tn_json_get(v, "sep") && tn_json_get(v, "cls");
    const bool level = is_bool(v, "add_prefix_space") && is_bool(v, "trim_offsets");
    return frame ? level ? "RobertaProcessing" : "BertProcessing" : level ? "ByteLevel" : NULL;
}

/* ["[SEP]", 102] */
static int32_t token_of_pair(const tn_tokenizer *t, const tn_json *v)
{
    const int64_t id = tn_json_i64(tn_json_at(v, 1));
    if (tn_error() == TN_OK && (!v || id < 0 || id >= tn_tokenizer_size(t)))
        tn_raise(TN_EFORMAT, "the post_processor's token id %lld is not in the vocabulary", (long long)id);
    return (int32_t)id;
}

static bool read_frame(tn_tokenizer *t, const char *caller, const tn_json *v)
{
    t->single.part[0] = t->pair.part[0] = (tn__template_part){.text = 0},
    t->pair.part[1] = (tn__template_part){.text = 1, .segment = 1};
    t->single.n = 1, t->pair.n = 2;
    if (!v || tn_json_type_of(v) == TN_JSON_NULL) return true;
    const char *type = tn_json_string(tn_json_need(v, "type")), *other = read_as(v);
    if (other && !is(type, other))
        return tn__unsupported(caller, "the post_processor with the members of another", type);
    if (is(type, "ByteLevel")) {
        t->bytes.trim = tn_json_bool_or(tn_json_get(v, "trim_offsets"), true);
        return tn_error() == TN_OK;
    }
    const bool roberta = is(type, "RobertaProcessing");
    if (roberta || is(type, "BertProcessing")) {
        tn__template_frame(t, token_of_pair(t, tn_json_get(v, "cls")), token_of_pair(t, tn_json_get(v, "sep")),
                           roberta);
        if (roberta) t->bytes.trim = tn_json_bool_or(tn_json_get(v, "trim_offsets"), true);
        return tn_error() == TN_OK;
    }
    if (tn_error() != TN_OK || !is(type, "TemplateProcessing"))
        return tn__unsupported(caller, "the post_processor", type);
    const tn_json *special = tn_json_get(v, "special_tokens");
    return read_parts(t, caller, tn_json_need(v, "single"), special, t->single.part, &t->single.n) &&
           read_parts(t, caller, tn_json_need(v, "pair"), special, t->pair.part, &t->pair.n);
}

/* Reads a Sequence of post_processors: ByteLevel sets where tokens start, another one is the template. */
bool tn__json_template(tn_tokenizer *t, const char *caller, const tn_json *v)
{
    if (!is(tn_json_string_or(tn_json_get(v, "type"), ""), "Sequence"))
        return tn_error() == TN_OK && read_frame(t, caller, v);
    bool framed = false;
    for (const tn_json *p = tn_json_first(tn_json_need(v, "processors")); p; p = tn_json_next(p)) {
        const char *type = tn_json_string(tn_json_need(p, "type"));
        if (is(type, "ByteLevel")) {
            t->bytes.trim = tn_json_bool_or(tn_json_get(p, "trim_offsets"), true);
            continue;
        }
        if (framed || is(type, "Sequence"))
            return tn__unsupported(caller, "the post_processor", "a sequence of several");
        if (tn_error() != TN_OK || !read_frame(t, caller, p)) return false;
        framed = true;
    }
    return tn_error() == TN_OK;
}
