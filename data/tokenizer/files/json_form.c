/* json_form.c — writes JSON as a form shows it, with values in place of %s, %b, %i and %t. */
#include "data/tokenizer/files/tokenizer_files.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Writes the value at %; returns the number of bytes of the form that it takes. */
static size_t put_value(tn_json_writer *w, const char *key, const char *form, va_list *ap)
{
    const bool  word = *form == 'n' || *form == 't' || *form == 'f';
    const char  kind = word ? *form : form[1];
    const char *text;
    tn_text     bytes;
    switch (kind) {
    case 's':
        if ((text = va_arg(*ap, const char *))) tn_json_put_string(w, key, text);
        else tn_json_put_null(w, key);
        break;
    case 'b': tn_json_put_bool(w, key, va_arg(*ap, int)); break;
    case 'i': tn_json_put_i64(w, key, va_arg(*ap, int64_t)); break;
    case 'n': tn_json_put_null(w, key); break;
    default:
        if (word) tn_json_put_bool(w, key, kind == 't');
        else bytes = va_arg(*ap, tn_text), tn_json_put_bytes(w, key, bytes.at, bytes.bytes);
    }
    return word ? strspn(form, "nultrefas") : 2;
}

void tn__json_form(tn_json_writer *w, const char *key, const char *form, ...)
{
    char    name[64];
    va_list ap;
    va_start(ap, form);
    for (const char *c = form; *c;) {
        const size_t n = *c == '\'' ? strcspn(c + 1, "'") : 0;
        if (*c == ' ' || *c == ',') {
            c++;
            continue;
        }
        if (n && c[n + 2] == ':') {
            snprintf(name, sizeof name, "%.*s", (int)n, c + 1);
            key = name, c += n + 3;
            continue;
        }
        if (*c == '\'') tn_json_put_bytes(w, key, c + 1, n), c += n + 2;
        else if (*c == '{') tn_json_open_object(w, key), c++;
        else if (*c == '[') tn_json_open_array(w, key), c++;
        else if (*c == '}' || *c == ']') tn_json_close(w), c++;
        else c += put_value(w, key, c, &ap);
        key = NULL;
    }
    va_end(ap);
}
