/* chat.h — conversations as text, in the form that a model was trained on: the chat template of a
 * tokenizer_config.json, a program in a subset of Jinja. Part of extras.h: include that.
 *
 *     tn_chat   *c = tn_chat_parse(chat_template.at, chat_template.bytes);
 *     tn_message said[] = {{"user", "Who wrote Faust?"}};
 *     tn_string  text = {0};
 *     tn_chat_text(c, 1, said, &text, .answer = true, .begin = "<s>", .end = "</s>");
 *     tn_chat_free(c);
 *
 * The results are those of transformers' apply_chat_template without tools. The template becomes data that runs within
 * limits: 1,000,000 steps, 16 MiB of values. Parts of Jinja outside of the subset, as macros, are errors with their
 * line. */
#ifndef TENON_EXTRAS_CHAT_H
#define TENON_EXTRAS_CHAT_H

#include "../data/text.h"

TN_C_BEGIN_

typedef struct {
    const char *role, *content; /* role: "system", "user", "assistant" */
} tn_message;

typedef struct tn_chat tn_chat; /* does not change: any number of threads may use it */
TN_API tn_chat        *tn_chat_parse(const char *text, size_t bytes);
TN_API void            tn_chat_free(tn_chat *c);

struct tm;
typedef struct tn_chat_args {
    int              zero_;
    bool             answer;      /* end where the next answer of the assistant starts (add_generation_prompt) */
    const char      *begin, *end; /* bos_token and eos_token; NULL: not defined */
    const struct tm *now;         /* local time, for templates that write the date; NULL: these are errors */
    int              end_;
} TN_KEYWORDS_ONLY tn_chat_args;
/* Appends the text of a conversation; encode it .bare. A template may refuse one, for example if the roles do not
 * alternate: TN_EINVAL with its words. After an error `to` is unchanged. */
TN_API tn_status tn_chat_text_run(const tn_chat *c, int64_t n, const tn_message *messages, tn_string *to,
                                  tn_chat_args a);

TN_C_END_
#define tn_chat_text(c, n, messages, ...) \
    TN_CALL_(tn_chat_text_run(c, n, messages, TN_CHAT_TEXT_(__VA_ARGS__, TN_END_)))
#define TN_CHAT_TEXT_(to, ...) to, TN_FILLED_(tn_chat_args, TN_NO_DEFAULTS_, __VA_ARGS__)
#endif
