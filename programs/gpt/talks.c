/* talks.c — reads prompts with answers and conversations, lines of JSON, as token ids, and marks those of answers.
 * With a chat template they are its text; without one, an answer follows its prompt directly, and each message of a
 * conversation is a line, as gpt write reads them. */
#include "../common/records.h"
#include "../common/texts.h"
#include "gpt.h"

#include <string.h>

enum { MESSAGES = 1024 };
static const char expected[] =
    "expected {\"prompt\": ..., \"answer\": ...} or {\"messages\": [{\"role\": ..., \"content\": "
    "...}, ...]}";

/* One example: its text, and the bytes of it that are answers. */
typedef struct {
    tn_string text;
    size_t    from[MESSAGES], to[MESSAGES];
    int       answers;
    bool      open; /* the text needs a start token and an end token */
} example;

static bool add_answer(example *x, size_t from, size_t to)
{
    x->from[x->answers] = from, x->to[x->answers++] = to;
    return true;
}

static bool add(example *x, const char *text) { return tn_string_add(&x->text, tn_text_of(text)) == TN_OK; }

/* Messages as the model's chat template writes them. The answer to messages 0 … i - 1 is what message i adds to their
 * text. */
static bool render(const model *m, int64_t n, const tn_message *said, example *x)
{
    tn_string part = {0};
    bool      fits = model_chat(m, n, said, false, &x->text);
    for (int64_t i = 0; i < n && fits; i++) {
        if (strcmp(said[i].role, "assistant") != 0) continue;
        part.bytes = 0;
        fits = (!i || model_chat(m, i, said, true, &part)) && part.bytes <= x->text.bytes &&
               !memcmp(part.at ? part.at : "", x->text.at, part.bytes);
        const size_t from = part.bytes;
        part.bytes = 0;
        fits = fits && model_chat(m, i + 1, said, false, &part) && part.bytes >= from && part.bytes <= x->text.bytes &&
               !memcmp(part.at, x->text.at, part.bytes);
        if (fits) add_answer(x, from, part.bytes);
        else if (tn_error() == TN_OK)
            tn_raise(TN_EUNSUPPORTED,
                     "the model's chat template writes the messages before answer %lld in another way once the answer "
                     "follows, so the tokens of the answer are not known; give each answer a line of its own",
                     (long long)i);
    }
    tn_string_free(&part);
    return fits && tn_error() == TN_OK;
}

static bool lines(int64_t n, const tn_message *said, example *x)
{
    for (int64_t i = 0; i < n; i++) {
        const size_t from = x->text.bytes;
        if (!add(x, said[i].content) || !add(x, "\n")) return false;
        if (!strcmp(said[i].role, "assistant")) add_answer(x, from, x->text.bytes);
    }
    return x->open = true;
}

/* Raises: what is missing, and the members that the object has. */
static bool missing(const tn_json *line, const char *name)
{
    char   found[200] = "";
    size_t at = 0;
    for (const tn_json *v = tn_json_first(line); v && at < sizeof found - 1; v = tn_json_next(v))
        at += (size_t)snprintf(found + at, sizeof found - at, "%s\"%.40s\"", at ? ", " : "", tn_json_key(v));
    return tn_raise_false(TN_EFORMAT, "the JSON object has no member \"%s\"; found %s; %s", name,
                          *found ? found : "an empty object", expected);
}

static bool read_messages(const model *m, const tn_json *list, example *x)
{
    tn_message said[MESSAGES];
    int64_t    n = 0;
    bool       answered = false;
    if (tn_json_type_of(list) != TN_JSON_ARRAY || !tn_json_count(list))
        return tn_raise_false(TN_EFORMAT, "\"messages\" is not a list of messages; %s", expected);
    if (tn_json_count(list) > MESSAGES)
        return tn_raise_false(TN_EUNSUPPORTED, "%lld messages, but at most %d are supported",
                              (long long)tn_json_count(list), MESSAGES);
    for (const tn_json *v = tn_json_first(list); v; v = tn_json_next(v), n++) {
        const tn_json *role = tn_json_get(v, "role"), *content = tn_json_get(v, "content");
        if (!role || !content) return missing(v, role ? "content" : "role");
        said[n] = (tn_message){tn_json_string(role), tn_json_string(content)};
        if (tn_error() != TN_OK) return false;
        answered = answered || !strcmp(said[n].role, "assistant");
    }
    if (!answered)
        return tn_raise_false(TN_EFORMAT, "no message has the role \"assistant\", so there is no answer to learn");
    return model_has_chat(m) ? render(m, n, said, x) : lines(n, said, x);
}

static bool read_line(const model *m, const tn_json *line, example *x)
{
    const tn_json *messages = tn_json_get(line, "messages"), *prompt = tn_json_get(line, "prompt"),
                  *answer = tn_json_get(line, "answer");
    x->text.bytes = 0, x->answers = 0, x->open = false;
    if (tn_json_type_of(line) != TN_JSON_OBJECT) return tn_raise_false(TN_EFORMAT, "not a JSON object; %s", expected);
    if (messages) return read_messages(m, messages, x);
    if (!prompt || !answer) return missing(line, answer ? "prompt" : prompt ? "answer" : "messages");
    const tn_message said[2] = {{"user", tn_json_string(prompt)}, {"assistant", tn_json_string(answer)}};
    if (tn_error() != TN_OK) return false;
    if (model_has_chat(m)) return render(m, 2, said, x);
    x->open = true;
    return add(x, said[0].content) && add_answer(x, x->text.bytes, SIZE_MAX) && add(x, said[1].content);
}

/* Adds the example's tokens, at most `length` + 1. */
static bool add_tokens(const model *m, tn_encoding *e, const example *x, int64_t length, talks *to)
{
    const int32_t first = x->open ? model_first(m) : -1, last = x->open ? tn_tokenizer_special(m->tokens).last : -1;
    const int64_t before = to->ids.n;
    int64_t       known = 0;
    if (first >= 0) tn_ids_add(&to->ids, first), tn_ids_add(&to->answer, 0);
    if (tn_tokenizer_encode(m->tokens, e, x->text.at ? x->text.at : "", x->text.bytes, .bare = true) != TN_OK)
        return false;
    for (int64_t i = 0; i < e->n && tn_error() == TN_OK; i++) {
        bool in = false;
        for (int k = 0; k < x->answers; k++)
            in = in || ((size_t)e->start[i] >= x->from[k] && (size_t)e->start[i] < x->to[k]);
        tn_ids_add(&to->ids, e->id[i]), tn_ids_add(&to->answer, in);
    }
    if (last >= 0) tn_ids_add(&to->ids, last), tn_ids_add(&to->answer, 1);
    if (to->ids.n - before > length + 1) to->ids.n = to->answer.n = before + length + 1, to->cut++;
    for (int64_t i = before + 1; i < to->ids.n; i++) known += to->answer.at[i];
    if (!known) { /* all of the answer was cut off, or it is empty: nothing to learn */
        to->ids.n = to->answer.n = before, to->empty++;
        return tn_error() == TN_OK;
    }
    to->longest = to->ids.n - before > to->longest ? to->ids.n - before : to->longest;
    to->answers += known;
    if (to->ids.n > INT32_MAX / 2) return tn_raise_false(TN_EUNSUPPORTED, "more than 2^30 tokens in all; give fewer");
    return tn_ids_add(&to->end, (int32_t)to->ids.n) == TN_OK;
}

bool talks_read(model *m, const char *path, int64_t length, talks *to)
{
    records        r = {.file = path};
    tn_encoding   *e = tn_encoding_new();
    static example x;
    char           where[300];
    if (model_has_chat(m)) model_chat_ready(m);
    while (e && records_next(&r)) {
        snprintf(where, sizeof where, "'%.200s', line %lld", r.name, (long long)r.number);
        tn_path_push(where);
        if (!*r.line) tn_raise(TN_EFORMAT, "an empty line; %s", expected);
        else if (!r.json) tn_raise(TN_EFORMAT, "not a JSON object, found '%.40s'; %s", r.line, expected);
        const bool fine = tn_error() == TN_OK && read_line(m, r.json, &x) && add_tokens(m, e, &x, length, to);
        tn_path_pop();
        if (!fine) break;
    }
    records_close(&r);
    tn_string_free(&x.text);
    tn_encoding_free(e);
    if (tn_error() == TN_OK && !to->end.n)
        tn_raise(TN_EFORMAT, "'%s' has no example with an answer within --length %lld tokens", path, (long long)length);
    return tn_error() == TN_OK;
}

tn_dataset *talks_dataset(const talks *t, int64_t from, int64_t to, int64_t batch, bool shuffle, uint64_t seed)
{
    const tn_scope s = tn_scope_begin();
    const int64_t  n = to - from, width = t->longest - 1;
    tn_tensor     *x = tn_zeros_of(TN_I64, TN_SHAPE(n, width)), *y = tn_full_of(TN_I64, TN_SHAPE(n, width), -100);
    int64_t       *in = x ? tn_data_mut(x) : NULL, *out = y ? tn_data_mut(y) : NULL;
    for (int64_t i = 0; in && out && i < n; i++) {
        const int64_t begin = from + i ? t->end.at[from + i - 1] : 0, length = t->end.at[from + i] - begin - 1;
        for (int64_t k = 0; k < length; k++) {
            in[i * width + k] = t->ids.at[begin + k];
            if (t->answer.at[begin + k + 1]) out[i * width + k] = t->ids.at[begin + k + 1];
        }
    }
    tn_dataset *d =
        tn_error() == TN_OK ? tn_dataset_new(.x = x, .y = y, .batch = batch, .shuffle = shuffle, .seed = seed) : NULL;
    tn_scope_end(s);
    return d;
}

void talks_free(talks *t) { tn_ids_free(&t->ids), tn_ids_free(&t->answer), tn_ids_free(&t->end); }
