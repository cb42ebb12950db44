/* error.c — the first error of each thread, and the module path that precedes its text. */
#include "core/base/memory.h"
#include "core/base/c_locale.h"
#include "core/base/thread.h"

#include <stdarg.h>
#include <string.h>

/* Separate from tn__self, so that the fields every call reads fit in two cache lines. */
static _Thread_local struct {
    char          text[sizeof((tn_error_state *)0)->text];
    char          shown[sizeof((tn_error_state *)0)->text + 80];
    tn_error_hook hook;
    void         *user;
} message;

static const char *const names[] = {"TN_OK",      "TN_ENOMEM",       "TN_EINVAL",  "TN_ESHAPE",
                                    "TN_EDTYPE",  "TN_EINDEX",       "TN_ESTATE",  "TN_EIO",
                                    "TN_EFORMAT", "TN_EUNSUPPORTED", "TN_ENUMERIC"};

const char *tn_status_name(tn_status s)
{
    return (size_t)s < sizeof names / sizeof *names ? names[s] : "unknown status";
}

tn_status tn_error(void) { return tn__self.error; }
bool      tn_blocked(void) { return tn__blocked(); }

const char *tn_error_message(void)
{
    if (tn__self.error == TN_OK) return "";
    if (!tn__self.skipped) return message.text;
    snprintf(message.shown, sizeof message.shown, "%s (%llu later call%s skipped)", message.text,
             (unsigned long long)tn__self.skipped, tn__self.skipped == 1 ? "" : "s");
    return message.shown;
}

void tn_clear_error(void)
{
    tn__self.error = TN_OK;
    tn__self.skipped = 0;
}

void tn_on_error(tn_error_hook hook, void *user)
{
    message.hook = hook;
    message.user = user;
}

__attribute__((noinline)) void tn_error_break(void)
{
    __asm__ volatile(""); /* keeps the call from being optimised away, so that a breakpoint here is hit */
}

/* Writes the current module path, "encoder.layers.3: ", truncated to the buffer. Returns its length. */
static size_t put_path(char *to, size_t size)
{
    size_t at = 0;
    int    depth = tn__self.path_depth < TN__PATH_MAX ? tn__self.path_depth : TN__PATH_MAX;
    for (int i = 0; i < depth; i++) {
        const char *name = tn__self.path[i];
        if (!name || !*name) continue;
        size_t n = strlen(name), dot = at ? 1 : 0;
        if (at + dot + n + 3 > size) break;
        if (dot) to[at++] = '.';
        memcpy(to + at, name, n);
        at += n;
    }
    if (at) to[at++] = ':', to[at++] = ' ';
    to[at] = 0;
    return at;
}

tn_status tn_raise(tn_status code, const char *fmt, ...)
{
    if (code == TN_OK) return tn__self.error;
    if (tn__self.error != TN_OK) {
        tn__self.skipped++;
        return tn__self.error;
    }
    char    text[sizeof message.text]; /* the arguments may be part of the old message */
    size_t  at = put_path(text, sizeof text / 2);
    va_list ap;
    if (!fmt) fmt = "(no text)";
    const tn__c_locale plain = tn__c_locale_begin();
    va_start(ap, fmt);
    vsnprintf(text + at, sizeof text - at, fmt, ap);
    va_end(ap);
    tn__c_locale_end(plain);
    memcpy(message.text, text, sizeof text);
    tn__self.error = code;
    tn__self.skipped = 0;
    tn_error_break();
    if (message.hook) {
        message.hook(code, message.text, message.user);
        memcpy(message.text, text, sizeof text); /* a hook cannot veto: restore the message whatever it did */
        tn__self.error = code;
    }
    return code;
}

void tn_error_push(tn_error_state *aside)
{
    if (!aside) return;
    aside->code = tn__self.error;
    aside->skipped = tn__self.skipped;
    if (aside->code != TN_OK) memcpy(aside->text, message.text, sizeof message.text);
    tn_clear_error();
}

void tn_error_pop(const tn_error_state *aside)
{
    if (!aside) return;
    tn__self.error = aside->code;
    tn__self.skipped = aside->skipped;
    if (aside->code != TN_OK) memcpy(message.text, aside->text, sizeof message.text);
}

void tn_path_push(const char *name)
{
    if (tn__self.path_depth < TN__PATH_MAX) tn__self.path[tn__self.path_depth] = name;
    tn__self.path_depth++;
}

void tn_path_pop(void)
{
    if (tn__self.path_depth > 0) tn__self.path_depth--;
}
