/* read_squad.c — reads questions and answers in the JSON of SQuAD 1.1 and 2.0. An answer gives the character of its
 * text at which it starts, and must be found there; a question without an answer cannot be answered from its text. */
#include "data/labelled/labelled_private.h"

/* The byte offset of the n-th character; -1: the text is shorter. */
static int64_t byte_of(tn_text s, int64_t n)
{
    size_t at = 0;
    for (; n > 0 && at < s.bytes; n--) do
            at++;
        while (at < s.bytes && ((unsigned char)s.at[at] & 0xc0) == 0x80);
    return n == 0 ? (int64_t)at : -1;
}

static bool text_of(const tn_json *v, tn_text *to)
{
    if (tn_json_type_of(v) != TN_JSON_STRING) return false;
    *to = (tn_text){tn_json_string(v), (size_t)tn_json_string_bytes(v)};
    return !memchr(to->at, 0, to->bytes);
}

/* The byte offset of an answer in its text; -1: *bad is the error. */
static int64_t place(tn_text context, const tn_json *answer, tn_text *text, const char **bad)
{
    const tn_json *start = tn_json_get(answer, "answer_start");
    *bad = "an answer lacks \"text\" or \"answer_start\"";
    if (!text_of(tn_json_get(answer, "text"), text) || tn_json_type_of(start) != TN_JSON_INTEGER) return -1;
    *bad = "an answer is empty";
    if (!text->bytes) return -1;
    const int64_t at = byte_of(context, tn_json_i64(start));
    *bad = "is not found there";
    if (at < 0 || tn_error() != TN_OK || (int64_t)context.bytes - at < (int64_t)text->bytes ||
        memcmp(context.at + at, text->at, text->bytes) != 0)
        return -1;
    return *bad = NULL, at;
}

/* True if the text has anything but white space. */
static bool has_text(tn_text s)
{
    for (size_t i = 0; i < s.bytes; i++)
        if (!strchr(" \t\r\n", s.at[i])) return true;
    return false;
}

static bool add_question(tn_labelled *l, tn_text context, const tn_json *q, const char *path)
{
    tn_text        question, answer;
    const char    *bad = NULL, *id = "";
    const tn_json *answers = tn_json_get(q, "answers"), *wanted = tn_json_get(q, "id");
    if (tn_json_type_of(wanted) == TN_JSON_STRING) id = tn_json_string(wanted);
    if (!tn__labelled_begin(l, 0, id)) return false;
    if (!text_of(tn_json_get(q, "question"), &question) || !has_text(question))
        return tn__labelled_bad(l, 0, "%s has no question or an empty one", path);
    tn__labelled_text(l, question), tn__labelled_text(l, context);
    if (l->config.no_label) return tn__labelled_end(l);
    const tn_json *none = tn_json_get(q, "is_impossible");
    const bool     impossible = tn_json_type_of(none) == TN_JSON_BOOL && tn_json_bool(none);
    if (!impossible && !tn_json_count(answers) && !none)
        return tn__labelled_bad(l, 0, "%s has neither answers nor \"is_impossible\"", path);
    for (const tn_json *a = impossible ? NULL : tn_json_first(answers); a && !bad; a = tn_json_next(a)) {
        const int64_t at = place(context, a, &answer, &bad);
        if (bad && at < 0 && strcmp(bad, "is not found there") == 0)
            return tn__labelled_bad(l, 0, "%s: '%.*s' is not found at character %lld of its text", path,
                                    (int)(answer.bytes < 60 ? answer.bytes : 60), answer.at,
                                    (long long)tn_json_i64(tn_json_get(a, "answer_start")));
        if (!bad && !tn__labelled_label(l, answer, at)) return false;
    }
    return bad ? tn__labelled_bad(l, 0, "%s: %s", path, bad) : tn__labelled_end(l);
}

bool tn__labelled_read_squad(tn_labelled *l, tn_text all)
{
    const size_t mark = tn__mark(all);
    all.at += mark, all.bytes -= mark;
    tn_path_push(l->label);
    tn_json       *doc = tn_json_parse(all.at, all.bytes);
    const tn_json *data = tn_json_need(doc, "data");
    tn_path_pop();
    int64_t i = 0;
    bool    fine = tn_error() == TN_OK;
    for (const tn_json *a = tn_json_first(data); a && fine; a = tn_json_next(a), i++) {
        int64_t k = 0;
        for (const tn_json *p = tn_json_first(tn_json_get(a, "paragraphs")); p && fine; p = tn_json_next(p), k++) {
            tn_text context;
            int64_t n = 0;
            char    path[96];
            snprintf(path, sizeof path, "data[%lld].paragraphs[%lld]", (long long)i, (long long)k);
            if (!text_of(tn_json_get(p, "context"), &context) || !has_text(context)) {
                fine =
                    tn__labelled_begin(l, 0, "") && tn__labelled_bad(l, 0, "%s has no context or an empty one", path);
                continue;
            }
            for (const tn_json *q = tn_json_first(tn_json_get(p, "qas")); q && fine; q = tn_json_next(q), n++) {
                snprintf(path, sizeof path, "data[%lld].paragraphs[%lld].qas[%lld]", (long long)i, (long long)k,
                         (long long)n);
                fine = add_question(l, context, q, path);
            }
        }
    }
    tn_json_free(doc);
    return fine && tn_error() == TN_OK;
}
