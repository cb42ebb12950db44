/* sentencepiece_file.c — reads and writes SentencePiece's .model: a message with the pieces, the trainer's options, and
 * the normalizer. Field numbers are those of sentencepiece_model.proto. A rule in the file that Tenon does not support
 * is rejected; the error names it. */
#include "data/tokenizer/files/protobuf.h"
#include "data/tokenizer/files/tokenizer_files.h"
#include "core/base/toolbox.h"

#include <string.h>

enum { PIECES = 1, TRAINER = 2, NORMALIZER = 3, DENORMALIZER = 5 }; /* the members of the model */
enum { PIECE = 1, SCORE = 2, TYPE = 3 };                            /* a piece's */
enum { MODEL_TYPE = 3, VOCAB_SIZE = 4, AS_SUFFIX = 24, FALLBACK = 35, UNK = 40, BOS = 41, EOS = 42 }; /* trainer's */
enum { SURFACE = 44 };
enum { NAME = 1, CHARSMAP = 2, PREFIX = 3, SQUEEZE = 4, ESCAPE = 5 }; /* the normalizer's */
enum { UNIGRAM = 1, BPE = 2 };

typedef struct {
    int64_t type, unk, bos, eos;
    bool    as_suffix, fallback, prefix, squeeze, escape;
    tn_text charsmap, surface; /* surface.at NULL: the default */
    bool    denormalizes;      /* has rules for decoding */
} spec;

static bool read_trainer(const char *caller, tn_text message, spec *s)
{
    tn__proto p = {caller, message};
    for (tn__field f; tn__proto_next(&p, &f);) {
        switch (f.number) {
        case MODEL_TYPE: s->type = tn__proto_i64(&p, &f); break;
        case AS_SUFFIX: s->as_suffix = tn__proto_i64(&p, &f); break;
        case FALLBACK: s->fallback = tn__proto_i64(&p, &f); break;
        case UNK: s->unk = tn__proto_i64(&p, &f); break;
        case BOS: s->bos = tn__proto_i64(&p, &f); break;
        case EOS: s->eos = tn__proto_i64(&p, &f); break;
        case SURFACE: s->surface = tn__proto_text(&p, &f); break;
        default: break;
        }
    }
    return tn_error() == TN_OK;
}

static bool read_normalizer(const char *caller, tn_text message, spec *s)
{
    tn__proto p = {caller, message};
    for (tn__field f; tn__proto_next(&p, &f);) {
        switch (f.number) {
        case CHARSMAP: s->charsmap = tn__proto_text(&p, &f); break;
        case PREFIX: s->prefix = tn__proto_i64(&p, &f); break;
        case SQUEEZE: s->squeeze = tn__proto_i64(&p, &f); break;
        case ESCAPE: s->escape = tn__proto_i64(&p, &f); break;
        default: break;
        }
    }
    return tn_error() == TN_OK;
}

static bool read_spec(const char *caller, tn_text file, spec *s)
{
    tn__proto p = {caller, file};
    for (tn__field f; tn__proto_next(&p, &f);) {
        if (f.number == TRAINER && !read_trainer(caller, tn__proto_text(&p, &f), s)) return false;
        if (f.number == NORMALIZER && !read_normalizer(caller, tn__proto_text(&p, &f), s)) return false;
        spec after = {0};
        if (f.number == DENORMALIZER && !read_normalizer(caller, tn__proto_text(&p, &f), &after)) return false;
        if (after.charsmap.bytes) s->denormalizes = true;
    }
    if (tn_error() != TN_OK) return false;
    const char *unsupported = s->type != UNIGRAM && s->type != BPE ? "a model of words or characters (model_type)"
                              : s->as_suffix                       ? "treat_whitespace_as_suffix"
                              : !s->escape                         ? "escape_whitespaces: false"
                              : s->denormalizes                    ? "a denormalizer_spec with rules"
                              : s->surface.bytes > TN__SURFACE     ? "an unk_surface of more than 64 bytes"
                                                                   : NULL;
    if (unsupported)
        tn_raise(TN_EUNSUPPORTED, "%s: the model requires %s, which Tenon does not support", caller, unsupported);
    return !unsupported;
}

static bool read_piece(tn_tokenizer *t, const char *caller, tn_text message, bool control)
{
    char           q[TN__QUOTED];
    const uint32_t i = t->vocab.n;
    tn__proto      p = {caller, message};
    tn_text        text = {"", 0};
    float          score = 0;
    int64_t        type = TN_TYPE_NORMAL;
    for (tn__field f; tn__proto_next(&p, &f);) {
        if (f.number == PIECE) text = tn__proto_text(&p, &f);
        if (f.number == SCORE) score = tn__proto_float(&p, &f);
        if (f.number == TYPE) type = tn__proto_i64(&p, &f);
    }
    if (tn_error() != TN_OK) return false;
    if (i >= TN__VOCAB_MAX) return tn_raise_false(TN_EUNSUPPORTED, "%s: more than %d pieces", caller, TN__VOCAB_MAX);
    if (!text.bytes || memchr(text.at, 0, text.bytes) || tn_utf8_valid(text.at, text.bytes) < text.bytes)
        return tn_raise_false(TN_EFORMAT, "%s: piece %u %s", caller, i,
                              !text.bytes                      ? "is empty"
                              : memchr(text.at, 0, text.bytes) ? "contains a NUL"
                                                               : "is not UTF-8");
    if (type < TN_TYPE_NORMAL || type > TN_TYPE_BYTE)
        return tn_raise_false(TN_EFORMAT, "%s: piece %u has the type %lld, expected 1 to 6", caller, i,
                              (long long)type);
    if (!tn__grown((void *)&t->type, &t->type_room, (int64_t)i + 1, 1) ||
        !tn__grown((void *)&t->score, &t->score_room, (int64_t)i + 1, sizeof *t->score))
        return false;
    const int64_t id = tn__strings_add(&t->vocab, text.at, text.bytes);
    if (id < 0) return false;
    if (id != i && (id >= t->listed || t->type[id] != TN_TYPE_UNUSED))
        return tn_raise_false(TN_EFORMAT, "%s: the piece %s has two ids, %lld and %u", caller,
                              tn__quote(q, text.at, text.bytes, 40), (long long)id, i);
    if (t->listed && type == TN_TYPE_UNUSED)
        return tn_raise_false(TN_EUNSUPPORTED,
                              "%s: the piece %s has the type UNUSED, which is not supported with a vocab.json", caller,
                              tn__quote(q, text.at, text.bytes, 40));
    t->type[id] = (uint8_t)type, t->score[id] = score;
    return type != TN_TYPE_CONTROL ||
           tn__tokenizer_add(t, (tn__added){.id = (int32_t)id, .special = true, .hidden = !control});
}

static bool read_model(tn_tokenizer *t, const char *caller, tn_text file, const spec *s, bool control)
{
    tn__proto p = {caller, file};
    for (tn__field f; tn__proto_next(&p, &f);)
        if (f.number == PIECES && !read_piece(t, caller, tn__proto_text(&p, &f), control)) return false;
    if (tn_error() != TN_OK) return false;
    if (t->vocab.n == t->listed)
        return tn_raise_false(TN_EFORMAT, "%s: no pieces found; not a SentencePiece model", caller);
    if (!tn__charsmap_read(&t->charsmap, caller, s->charsmap.at, s->charsmap.bytes)) return false;
    tn__sentence *r = &t->sentence;
    r->squeeze = s->squeeze, r->space = s->prefix ? TN__SPACE_EACH : TN__SPACE_NEVER;
    r->fallback = s->fallback, r->each_byte = true;
    if (s->surface.at) memcpy(r->unknown, s->surface.at, r->unknown_bytes = (uint32_t)s->surface.bytes);
    r->decode_space = s->prefix || s->squeeze, r->decode_all = s->squeeze;
    t->step[t->steps++].kind = TN__STEP_SENTENCE;
    if (!tn__tokenizer_finish(t, caller)) return false;
    if (t->unknown < 0) return tn_raise_false(TN_EFORMAT, "%s: no piece has the type UNKNOWN", caller);
    const int32_t n = (int32_t)t->vocab.n;
    if (t->listed) return true; /* roles by name; the caller sets the template */
    if (s->bos >= 0 && s->bos < n && t->type[s->bos] == TN_TYPE_CONTROL) t->role.first = (int32_t)s->bos;
    if (s->eos >= 0 && s->eos < n && t->type[s->eos] == TN_TYPE_CONTROL) t->role.last = (int32_t)s->eos;
    tn__template_ends(t, t->kind == TN_SENTENCE_BPE ? t->role.first : -1, -1); /* as in LLaMA */
    return true;
}

tn_tokenizer *tn__sentencepiece_read(const char *caller, const void *data, size_t bytes, bool control,
                                     bool (*list)(tn_tokenizer *t, void *user), void *user)
{
    const tn_text file = {data, bytes};
    spec          s = {.type = UNIGRAM, .unk = 0, .bos = 1, .eos = 2, .prefix = true, .squeeze = true, .escape = true};
    if (!read_spec(caller, file, &s)) return NULL;
    tn_tokenizer *t = tn__tokenizer_new(s.type == BPE ? TN_SENTENCE_BPE : TN_UNIGRAM);
    if (!t || ((!list || list(t, user)) && read_model(t, caller, file, &s, control))) return t;
    return tn_tokenizer_free(t), NULL;
}

tn_tokenizer *tn__sentencepiece_load(const char *caller, const char *path, bool control,
                                     bool (*list)(tn_tokenizer *t, void *user), void *user, tn_string *copy)
{
    const tn_scope scope = tn_scope_begin();
    tn_tensor     *file = tn_file_read(path, (int64_t)256 << 20);
    const size_t   n = file ? (size_t)tn_numel(file) : 0;
    const bool     ok = file && tn__sha256sums_check(path, tn_data(file), n) &&
                    (!copy || tn_string_add(copy, (tn_text){tn_data(file), n}) == TN_OK);
    tn_tokenizer *t = ok ? tn__sentencepiece_read(caller, tn_data(file), n, control, list, user) : NULL;
    tn_scope_end(scope);
    return t;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool put_trainer(const tn_tokenizer *t, tn_string *to)
{
    return tn__proto_put_i64(to, MODEL_TYPE, t->kind == TN_UNIGRAM ? UNIGRAM : BPE) &&
           tn__proto_put_i64(to, VOCAB_SIZE, t->vocab.n) && tn__proto_put_i64(to, FALLBACK, t->sentence.fallback) &&
           tn__proto_put_i64(to, UNK, t->unknown) && tn__proto_put_i64(to, BOS, t->role.first) &&
           tn__proto_put_i64(to, EOS, t->role.last) &&
           tn__proto_put_text(to, SURFACE, (tn_text){t->sentence.unknown, t->sentence.unknown_bytes});
}

static bool put_normalizer(const tn_tokenizer *t, tn_string *to)
{
    const tn__charsmap *m = &t->charsmap;
    tn_string           blob = {0};
    bool                ok = tn__charsmap_blob(m, &blob);
    const char         *name = m->units ? "user_defined" : "identity";
    ok = ok && tn__proto_put_text(to, NAME, tn_text_of(name)) &&
         (!m->units || tn__proto_put_text(to, CHARSMAP, (tn_text){blob.at, blob.bytes})) &&
         tn__proto_put_i64(to, PREFIX, t->sentence.space != TN__SPACE_NEVER) &&
         tn__proto_put_i64(to, SQUEEZE, t->sentence.squeeze) && tn__proto_put_i64(to, ESCAPE, 1);
    tn_string_free(&blob);
    return ok;
}

bool tn__sentencepiece_write(const tn_tokenizer *t, tn_string *to)
{
    tn_string part = {0};
    bool      ok = true;
    for (uint32_t i = 0; ok && i < t->vocab.n; i++) {
        size_t      n;
        const char *text = tn__strings_text(&t->vocab, i, &n);
        part.bytes = 0;
        ok = tn__proto_put_text(&part, PIECE, (tn_text){text, n}) && tn__proto_put_float(&part, SCORE, t->score[i]) &&
             (t->type[i] == TN_TYPE_NORMAL || tn__proto_put_i64(&part, TYPE, t->type[i])) &&
             tn__proto_put_text(to, PIECES, (tn_text){part.at, part.bytes});
    }
    part.bytes = 0;
    ok = ok && put_trainer(t, &part) && tn__proto_put_text(to, TRAINER, (tn_text){part.at, part.bytes});
    part.bytes = 0;
    ok = ok && put_normalizer(t, &part) && tn__proto_put_text(to, NORMALIZER, (tn_text){part.at, part.bytes});
    tn_string_free(&part);
    return ok;
}
