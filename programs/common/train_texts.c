/* train_texts.c — see train_texts.h. */
#include "train_texts.h"

#include "checksum.h"
#include "messages.h"
#include "texts.h"

#include <math.h>
#include <string.h>

static int count_stdin(const option_list *files)
{
    int n = 0;
    for (int i = 0; i < files->count; i++) n += !strcmp(files->value[i], "-");
    return n;
}

int train_texts_check(train_texts *t, const tn_world *w, double usual)
{
    const int from_stdin = count_stdin(&t->text) + count_stdin(&t->valid);
    if (t->valid.count && !isnan(t->valid_part))
        return program_usage("--valid and --valid-part exclude each other; give only one of them");
    if (from_stdin > 1)
        return program_usage("'-' is given %d times, but standard input can be read only once", from_stdin);
    if (from_stdin && tn_world_size(w) > 1) /* the launcher passes it only to rank 0 */
        return program_usage("'-' cannot be used with several ranks, each of which reads the texts; write standard "
                             "input to a file and name that");
    if (isnan(t->valid_part)) t->valid_part = usual;
    return 0;
}

bool train_texts_read(train_texts *t)
{
    tn_string *to = &t->all;
    if (!texts_read(&t->text, to)) return false;
    t->bytes = to->bytes;
    if (t->valid.count) return texts_read(&t->valid, to);
    size_t character = t->bytes -= (size_t)(t->valid_part * (double)to->bytes);
    while (t->bytes && t->bytes < to->bytes && to->at[t->bytes - 1] != '\n') ++t->bytes;
    if (t->bytes < to->bytes) return true;
    while (character < to->bytes && (to->at[character] & 0xc0) == 0x80) character++;
    t->bytes = character;
    return true;
}

tn_text train_texts_training(const train_texts *t) { return (tn_text){t->all.at, t->bytes}; }
tn_text train_texts_validation(const train_texts *t)
{
    return (tn_text){t->all.at + t->bytes, t->all.bytes - t->bytes};
}

bool train_texts_encode(train_texts *t, const tn_tokenizer *tokens, bool literal)
{
    return texts_encode(tokens, train_texts_training(t), literal, &t->ids) &&
           texts_encode(tokens, train_texts_validation(t), literal, &t->held);
}

bool train_texts_check_valid(const train_texts *t, int64_t held, const char *least)
{
    if (t->valid.count && held < 1)
        tn_raise(TN_EFORMAT, "'%s' of --valid is too short, expected at least %s", t->valid.value[0], least);
    return tn_error() == TN_OK;
}

void train_texts_print(const train_texts *t)
{
    tell("text     %zu bytes, %lld tokens; validation: %lld tokens\n", t->bytes, (long long)t->ids.n,
         (long long)t->held.n);
}

void train_texts_describe(const train_texts *t, tn_json_writer *w)
{
    checksum_put(w, "text", checksum_ids(&t->ids)), checksum_put(w, "valid", checksum_ids(&t->held));
}

void train_texts_free(train_texts *t)
{
    tn_string_free(&t->all);
    tn_ids_free(&t->ids), tn_ids_free(&t->held);
}
