/* encoding.c — the memory of an encoding: its result, the buffers of a word, and appending tokens. */
#include "data/tokenizer/encode/encoding_private.h"
#include "core/base/toolbox.h"

tn_encoding *tn_encoding_new(void)
{
    if (tn__blocked()) return NULL;
    return tn__mem_zeroed(sizeof(tn__encoding));
}

void tn_encoding_free(tn_encoding *e)
{
    if (!e) return;
    tn__encoding *s = (tn__encoding *)(void *)e;
    tn__mem_put(s->token, (size_t)s->token_room * sizeof *s->token);
    tn__mem_put(s->arrays, (size_t)s->array_room * sizeof *s->arrays);
    tn__mem_put(s->word, (size_t)s->word_room);
    tn__mem_put(s->from, (size_t)s->from_room * sizeof *s->from);
    tn__mem_put(s->output, (size_t)s->output_room);
    tn__mem_put(s->output_from, (size_t)s->output_from_room * sizeof *s->output_from);
    tn__mem_put(s->point, (size_t)s->point_room * sizeof *s->point);
    tn__mem_put(s->path, (size_t)s->path_room * sizeof *s->path);
    tn__mem_put(s->probe, (size_t)s->probe_room);
    tn__mem_put(s->fix, (size_t)s->fix_room * sizeof *s->fix);
    tn__mem_put(s->symbol, (size_t)s->symbol_room * sizeof *s->symbol);
    tn__mem_put(s->heap, (size_t)s->heap_room * sizeof *s->heap);
    if (s->cache) tn__mem_put(s->cache, TN__CACHE_SLOTS * sizeof *s->cache);
    tn_string_free(&s->clean);
    tn__mem_put(s, sizeof *s);
}

bool tn__encoding_room(tn__encoding *s, size_t bytes)
{
    return tn__grown((void *)&s->word, &s->word_room, (int64_t)bytes, 1) &&
           tn__grown((void *)&s->from, &s->from_room, 2 * (int64_t)bytes, sizeof *s->from);
}

bool tn__token_add(tn__encoding *s, const tn__word *w, int32_t id, size_t from, size_t to)
{
    if (!tn__grown((void *)&s->token, &s->token_room, (int64_t)s->tokens + 1, sizeof *s->token)) return false;
    tn__token k = {.id = id, .word = w->number};
    if (w->start != TN__MAPPED) {
        k.start = w->start + (int32_t)from, k.end = w->start + (int32_t)to;
    } else {
        from += (size_t)(w->text - s->word), to += (size_t)(w->text - s->word);
        k.start = s->from[2 * from], k.end = s->from[2 * to - 1];
    }
    if (k.start > k.end) /* marks changed places: take the whole range that the token comes from */
        for (size_t i = from; i < to; i++) {
            if (s->from[2 * i] < k.start) k.start = s->from[2 * i];
            if (s->from[2 * i + 1] > k.end) k.end = s->from[2 * i + 1];
        }
    s->token[s->tokens++] = k;
    return true;
}

/* Appends a token. Only a token that starts at the end of the last one is recorded for the cache. */
bool tn__word_token_add(tn__encoding *s, const tn__word *w, size_t i, int32_t id, size_t from, size_t to)
{
    if (i < TN__CACHED_TOKENS && from == s->split) s->bytes[i] = (uint8_t)(to - from), s->split = to;
    return tn__token_add(s, w, id, from, to);
}
