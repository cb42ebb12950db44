/* chat.c — conversations in the form that chat models were trained on: the text around each message, as data. The texts
 * are those of Hugging Face's usual chat_templates. */
#include "data/text/data_private.h"
#include "data/tokenizer.h"
#include "core/base/toolbox.h"

#include <string.h>

typedef enum { SYSTEM, USER, ASSISTANT, ROLES } role;
static const char *const role_names[ROLES] = {"system", "user", "assistant"};

#define HEADER(role) "<|start_header_id|>" role "<|end_header_id|>\n\n"
#define IM(role) "<|im_start|>" role "\n"
static const struct form {
    const char *name, *begin;                    /* begin: once */
    const char *before[ROLES], *after[ROLES];    /* before[SYSTEM] NULL: this form has no system messages */
    const char *answer;                          /* where the answer starts */
    const char *system;                          /* used if the first message is not a system message */
    bool        trim, alternate, system_in_user; /* the first user message contains the system message */
} forms[] = {
    {"llama2",
     "",
     {"<<SYS>>\n", "<s>[INST] ", " "},
     {"\n<</SYS>>\n\n", " [/INST]", " </s>"},
     "",
     NULL,
     true,
     true,
     true},
    {"llama3",
     "<|begin_of_text|>",
     {HEADER("system"), HEADER("user"), HEADER("assistant")},
     {"<|eot_id|>", "<|eot_id|>", "<|eot_id|>"},
     HEADER("assistant"),
     NULL,
     .trim = true},
    {"chatml",
     "",
     {IM("system"), IM("user"), IM("assistant")},
     {"<|im_end|>\n", "<|im_end|>\n", "<|im_end|>\n"},
     IM("assistant"),
     NULL,
     .trim = false},
    {"qwen2",
     "",
     {IM("system"), IM("user"), IM("assistant")},
     {"<|im_end|>\n", "<|im_end|>\n", "<|im_end|>\n"},
     IM("assistant"),
     "You are a helpful assistant.",
     .trim = false},
    {"mistral", "<s>", {NULL, "[INST] ", ""}, {"", " [/INST]", "</s>"}, "", NULL, .alternate = true},
    {"zephyr",
     "",
     {"<|system|>\n", "<|user|>\n", "<|assistant|>\n"},
     {"</s>\n", "</s>\n", "</s>\n"},
     "<|assistant|>\n",
     NULL,
     .trim = false},
};
enum { FORMS = sizeof forms / sizeof *forms };

static int times(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) n++;
    return n;
}

/* Returns the default system message of a ChatML template; NULL: none. */
static const char *system_text(const char *t)
{
    static const char begin[] = "<|im_start|>system";
    for (; (t = strstr(t, begin)); t++) {
        const char *text = t + strlen(begin);
        text += *text == '\n' ? 1 : !strncmp(text, "\\n", 2) ? 2 : 0;
        if (*text && !strchr("'\"\\\n", *text)) return text;
    }
    return NULL;
}

/* A template is a program; it is not run but recognised by the texts in it. A template that writes more (another system
 * message, a date, thoughts) or other blanks must not be taken for a similar form. */
const char *tn_chat_kind(const char *chat_template)
{
    const char *t = chat_template;
    if (!t) return NULL;
    if (strstr(t, "[INST]")) {
        if (strstr(t, "<<SYS>>")) return "llama2";
        return strstr(t, "[INST] ") && strstr(t, " [/INST]") ? "mistral" : NULL;
    }
    if (strstr(t, "<|start_header_id|>")) return strstr(t, "Cutting Knowledge Date") ? NULL : "llama3";
    if (strstr(t, "<|im_start|>")) {
        static const char qwen2[] = "You are a helpful assistant.<|im_end|>";
        const char       *text = system_text(t);
        if (strstr(t, "<think>")) return NULL;
        return !text ? "chatml" : !strncmp(text, qwen2, strlen(qwen2)) ? "qwen2" : NULL;
    }
    /* in zephyr, user messages also end in eos_token */
    return strstr(t, "<|user|>") && strstr(t, "<|assistant|>") && times(t, "eos_token") + times(t, "</s>") >= 3
               ? "zephyr"
               : NULL;
}

static const struct form *find(const char *caller, const char *kind)
{
    for (int i = 0; i < FORMS; i++)
        if (!strcmp(forms[i].name, kind)) return forms + i;
    return tn_raise_null(
        TN_EINVAL,
        "%s: unknown kind of conversation '%.40s', expected llama2, llama3, chatml, qwen2, mistral or zephyr", caller,
        kind);
}

static bool add(tn_string *to, const char *text) { return tn_string_add(to, tn_text_of(text)) == TN_OK; }

/* Appends text without the white space at its ends, as Python's strip() does. */
static bool add_content(tn_string *to, const char *text, bool left, bool right)
{
    size_t n = strlen(text);
    for (size_t at = 0; left && n; text += at, n -= at, at = 0)
        if (!tn__is_blank(tn_utf8_next(text, n, &at, NULL))) break;
    while (right && n) {
        size_t at = n - 1;
        while (at && ((unsigned char)text[at] & 0xc0) == 0x80) at--;
        size_t next = at;
        if (!tn__is_blank(tn_utf8_next(text, n, &next, NULL))) break;
        n = at;
    }
    return tn_string_add(to, (tn_text){text, n}) == TN_OK;
}

static int role_of(const char *caller, const struct form *f, const tn_message *m, int64_t i)
{
    int r = 0;
    while (r < ROLES && m[i].role && strcmp(role_names[r], m[i].role) != 0) r++;
    if (!m[i].role || !m[i].content || r == ROLES)
        tn_raise(TN_EINVAL, "%s: message %lld has %s, expected the role system, user or assistant, and a text", caller,
                 (long long)i, m[i].role && m[i].content ? "an unknown role" : "no role or no content");
    else if (r == SYSTEM && (!f->before[SYSTEM] || (f->system_in_user && i)))
        tn_raise(TN_EINVAL, "%s: %s allows no system message%s", caller, f->name,
                 f->before[SYSTEM] ? " but the first" : "");
    else return r;
    return -1;
}

static bool write(const char *caller, const struct form *f, int64_t n, const tn_message *m, tn_string *to)
{
    const char *system = NULL; /* included in the next message */
    int64_t     turn = 0;
    if (f->system && (!n || !m[0].role || strcmp(m[0].role, "system") != 0) &&
        !(add(to, f->before[SYSTEM]) && add(to, f->system) && add(to, f->after[SYSTEM])))
        return false;
    for (int64_t i = 0; i < n; i++) {
        const int r = role_of(caller, f, m, i);
        if (r < 0) return false;
        if (r == SYSTEM && f->system_in_user) {
            system = m[i].content;
            continue;
        }
        if (f->alternate && r != (turn++ % 2 ? ASSISTANT : USER))
            return tn_raise_false(TN_EINVAL, "%s: message %lld has the role %s, but in %s user and assistant alternate",
                                  caller, (long long)i, role_names[r], f->name);
        if (!add(to, f->before[r])) return false;
        if (system && !(add(to, f->before[SYSTEM]) && add(to, system) && add(to, f->after[SYSTEM]))) return false;
        if (!add_content(to, m[i].content, f->trim && !system, f->trim) || !add(to, f->after[r])) return false;
        system = NULL;
    }
    return true;
}

tn_status tn_chat_text(const char *kind, int64_t n, const tn_message *messages, bool answer, tn_string *to)
{
    if (tn__blocked()) return tn__self.error;
    const char *caller = "tn_chat_text";
    if (!kind || !to || n < 0 || (n && !messages))
        return tn_raise(TN_EINVAL, "%s: %s", caller, n < 0 ? "n is negative" : "a pointer is NULL");
    const struct form *f = find(caller, kind);
    const size_t       before = to->bytes;
    const bool ok = f && add(to, f->begin) && write(caller, f, n, messages, to) && (!answer || add(to, f->answer));
    if (!ok && to->at) to->at[to->bytes = before] = 0;
    return tn__self.error;
}
