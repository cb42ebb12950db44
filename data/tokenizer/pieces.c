/* pieces.c — a tokenizer of its parts: pieces with scores and types, as SentencePiece, GGUF and llama2.c keep them, and
 * what follows from these. */
#include "data/tokenizer/tokenizer_private.h"
#include "core/base/toolbox.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LONGEST = 256, LONGEST_OTHER = 4096 }; /* bytes of a piece */

int tn__byte_named(const char *text, size_t n)
{
    if (n != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    int value = 0;
    for (int i = 3; i < 5; i++) {
        const char c = text[i];
        const int  digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return -1;
        value = 16 * value + digit;
    }
    return value;
}

void tn__template_ends(tn_tokenizer *t, int32_t first, int32_t last)
{
    int n = 0, k = 0;
    for (int text = 0; text < 2; text++) {
        if (first >= 0) t->pair[k++] = (tn__part){-1, (uint8_t)text, first};
        t->pair[k++] = (tn__part){(int8_t)text, (uint8_t)text, 0};
        if (last >= 0) t->pair[k++] = (tn__part){-1, (uint8_t)text, last};
        if (!text)
            for (n = 0; n < k; n++) t->single[n] = t->pair[n];
    }
    t->n_single = n, t->n_pair = k;
}

/* ---- merges that nobody listed ----------------------------------------------------------------------------------- */

static bool higher(const void *owner, uint32_t a, uint32_t b)
{
    const tn_tokenizer *t = owner;
    if (t->score[a] != t->score[b]) return t->score[a] > t->score[b];
    return a < b;
}

static bool is_normal(const tn_tokenizer *t, int64_t id) { return id >= 0 && t->type[id] == TN_TYPE_NORMAL; }

/* Every way to make this piece of two. */
static bool put_splits(tn_tokenizer *t, uint32_t id, uint32_t order)
{
    size_t n;
    for (size_t i = 1; tn__strings_text(&t->pieces, id, &n) && i < n; i++) {
        const char *text = tn__strings_text(&t->pieces, id, &n);
        if (((unsigned char)text[i] & 0xc0) == 0x80) continue;
        const int64_t left = tn__strings_find(&t->pieces, text, i);
        if (!is_normal(t, left)) continue;
        const int64_t right = tn__strings_find(&t->pieces, text + i, n - i);
        if (!is_normal(t, right)) continue;
        tn__merges *m = &t->merges;
        if (!tn__grown((void *)&m->order, &m->order_room, (int64_t)m->n + 1, sizeof *m->order)) return false;
        m->order[m->n] = order;
        tn__merges_put(m, (int32_t)left, (int32_t)right, (int32_t)id);
    }
    return true;
}

bool tn__score_merges(tn_tokenizer *t, const char *who)
{
    const size_t n = t->pieces.n;
    size_t       letters = 0;
    uint32_t    *order = tn__mem_get((n + 1) * sizeof *order), count = 0;
    if (!order) return false;
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes;
        tn__strings_text(&t->pieces, i, &bytes);
        if (t->type[i] == TN_TYPE_NORMAL) order[count++] = i, letters += bytes;
    }
    bool ok = tn__merges_room(&t->merges, letters < TN__VOCAB_MOST ? letters : TN__VOCAB_MOST);
    if (ok) tn__sort(order, count, higher, t);
    for (uint32_t i = 0, place = 0; ok && i < count; i++) {
        if (i && t->score[order[i]] != t->score[order[i - 1]]) place = i;
        ok = t->merges.n + LONGEST < TN__VOCAB_MOST
                 ? put_splits(t, order[i], place)
                 : (tn_raise(TN_EUNSUPPORTED, "%s: the pieces are made of more than %d pairs", who, TN__VOCAB_MOST),
                    false);
    }
    tn__mem_put(order, (n + 1) * sizeof *order);
    return ok;
}

/* ---- what follows from pieces ------------------------------------------------------------------------------------ */

/* Does a piece go on over a space after something else? */
static bool reaches_over(const char *text, size_t n)
{
    for (size_t i = 1; i + 3 <= n; i++)
        if (!memcmp(text + i, TN__SPACE, 3) && !(i >= 3 && !memcmp(text + i - 3, TN__SPACE, 3))) return true;
    return false;
}

static bool check_piece(const tn_tokenizer *t, const char *who, uint32_t i, size_t n)
{
    const int    type = t->type ? t->type[i] : TN_TYPE_NORMAL;
    const size_t most = t->score && type == TN_TYPE_NORMAL ? LONGEST : LONGEST_OTHER;
    if (n > most) return tn_raise(TN_EUNSUPPORTED, "%s: piece %u has %zu bytes: more than %zu", who, i, n, most), false;
    if (t->score && !isfinite(t->score[i]))
        return tn_raise(TN_EFORMAT, "%s: the score of piece %u is no number", who, i), false;
    if (type == TN_TYPE_UNUSED && t->kind == TN_SENTENCE_BPE)
        return tn_raise(TN_EUNSUPPORTED, "%s: piece %u is of the type UNUSED, which byte-pair encoding does not do",
                        who, i),
               false;
    return true;
}

/* The tries: of the pieces that a text is made of, and of those that are found before anything else. */
static bool build_tries(tn_tokenizer *t)
{
    const size_t bytes = (t->pieces.n + 1) * sizeof(uint32_t);
    uint32_t    *id = tn__mem_get(bytes), n = 0, users = 0;
    if (!id) return false;
    for (uint32_t i = 0; i < t->pieces.n && t->type; i++)
        if (t->type[i] == TN_TYPE_USER && *tn_tokenizer_piece(t, i)) id[users++] = i;
    bool ok = tn__trie_build(&t->user, &t->pieces, id, users);
    for (uint32_t i = 0; i < t->pieces.n; i++) {
        const int type = t->type ? t->type[i] : TN_TYPE_NORMAL;
        if ((type == TN_TYPE_NORMAL || type == TN_TYPE_USER) && *tn_tokenizer_piece(t, i)) id[n++] = i;
    }
    ok = ok && (t->kind != TN_UNIGRAM || tn__trie_build(&t->trie, &t->pieces, id, n));
    tn__mem_put(id, bytes);
    return ok;
}

bool tn__sentence_ready(tn_tokenizer *t, const char *who)
{
    t->least = DBL_MAX, t->most = FLT_MIN; /* the latter as SentencePiece has it */
    bool safe = !t->sentence.cut && t->kind != TN_UNIGRAM;
    for (int b = 0; b < 256; b++) t->byte_piece[b] = -1;
    for (uint32_t i = 0; i < t->pieces.n; i++) {
        size_t       n;
        const char  *text = tn__strings_text(&t->pieces, i, &n);
        const int    type = t->type ? t->type[i] : TN_TYPE_NORMAL, byte = tn__byte_named(text, n);
        const double score = t->score ? (double)t->score[i] : t->wide ? t->wide[i] : 0;
        if (!check_piece(t, who, i, n)) return false;
        if (byte >= 0 && (!t->score || type == TN_TYPE_BYTE)) t->byte_piece[byte] = (int32_t)i;
        if (type == TN_TYPE_UNKNOWN && t->unknown < 0) t->unknown = (int32_t)i;
        if (type == TN_TYPE_NORMAL && score < t->least) t->least = score;
        if (type == TN_TYPE_NORMAL && score > t->most) t->most = score;
        if (reaches_over(text, n)) safe = false;
    }
    if (t->least == DBL_MAX) t->least = 0;
    t->sentence.safe = safe;
    if (t->kind == TN_SENTENCE_BPE && t->score && !tn__score_merges(t, who)) return false;
    return build_tries(t);
}

/* ---- from outside ------------------------------------------------------------------------------------------------ */

static int guessed(const char *piece)
{
    size_t n = strlen(piece);
    if (tn__byte_named(piece, n) >= 0) return TN_TYPE_BYTE;
    if (!strcmp(piece, "<unk>")) return TN_TYPE_UNKNOWN;
    return strcmp(piece, "<s>") && strcmp(piece, "</s>") ? TN_TYPE_NORMAL : TN_TYPE_CONTROL;
}

/* llama2.c has lines around "<s>", and spaces; SentencePiece "▁". */
static bool spelled(tn_string *to, const char *piece)
{
    to->bytes = 0;
    if (!strcmp(piece, "\n<s>\n")) piece = "<s>";
    if (!strcmp(piece, "\n</s>\n")) piece = "</s>";
    bool ok = tn_string_add(to, (tn_text){"", 0}) == TN_OK;
    for (const char *end; ok && *piece; piece = end) {
        end = piece + (*piece == ' ' ? 1 : strcspn(piece, " "));
        ok = tn_string_add(to, *piece == ' ' ? (tn_text){TN__SPACE, 3} : (tn_text){piece, (size_t)(end - piece)}) ==
             TN_OK;
    }
    return ok;
}

static bool add_piece(tn_tokenizer *t, const char *who, const char *piece, int64_t i, const tn_pieces_args *how,
                      tn_string *text)
{
    char q[TN__QUOTED];
    if (!piece) return tn_raise(TN_EINVAL, "%s: piece %lld is NULL", who, (long long)i), false;
    if (t->kind != TN_BYTE_BPE && !spelled(text, piece)) return false;
    if (t->kind != TN_BYTE_BPE) piece = text->at;
    const size_t n = strlen(piece);
    if (tn_utf8_valid(piece, n) < n)
        return tn_raise(TN_EFORMAT, "%s: piece %lld, %s, is not UTF-8", who, (long long)i, tn__quote(q, piece, n, 40)),
               false;
    const int type = how->types ? how->types[i] : t->kind == TN_BYTE_BPE ? TN_TYPE_NORMAL : guessed(piece);
    if (type < TN_TYPE_NORMAL || type > TN_TYPE_BYTE)
        return tn_raise(TN_EFORMAT, "%s: piece %lld has the type %d, expected 1 to 6", who, (long long)i, type), false;
    t->type[i] = (uint8_t)type;
    if (t->score) t->score[i] = how->scores ? how->scores[i] : -(float)i;
    if (!n) return tn__skip_piece(t);
    const int64_t id = tn__strings_add(&t->pieces, piece, n);
    if (id >= 0 && id != i)
        tn_raise(TN_EFORMAT, "%s: the piece %s has two numbers, %lld and %lld", who, tn__quote(q, piece, n, 40),
                 (long long)id, (long long)i);
    if (id != i) return false;
    const bool found = type == TN_TYPE_CONTROL || (type == TN_TYPE_USER && t->kind == TN_BYTE_BPE);
    return !found || tn__tokenizer_add(t, (tn__added){.id = (int32_t)i, .special = type == TN_TYPE_CONTROL});
}

static bool add_merges(tn_tokenizer *t, const char *who, const tn_pieces_args *how)
{
    if (!tn__merges_room(&t->merges, (size_t)how->n_merges)) return false;
    for (int64_t i = 0; i < how->n_merges; i++) {
        const char *merge = how->merges ? how->merges[i] : NULL, *space = merge ? strchr(merge, ' ') : NULL;
        if (!space || strchr(space + 1, ' '))
            return tn_raise(TN_EFORMAT, "%s: merge %lld is not two pieces with a space between them", who,
                            (long long)i + 1),
                   false;
        if (!tn__merge_texts(t, who, merge, (size_t)(space - merge), space + 1, strlen(space + 1))) return false;
    }
    return true;
}

static bool of_pieces(tn_tokenizer *t, const char *who, int64_t n, const char *const *pieces, const tn_pieces_args *how)
{
    const bool sentence = t->kind != TN_BYTE_BPE;
    tn_string  text = {0};
    bool       ok = tn__grown((void *)&t->type, &t->type_room, n, 1) &&
              (!sentence || tn__grown((void *)&t->score, &t->score_room, n, sizeof *t->score));
    for (int64_t i = 0; ok && i < n; i++) ok = add_piece(t, who, pieces[i], i, how, &text);
    tn_string_free(&text);
    if (!ok) return false;
    const int32_t first = how->first >= 0 ? how->first : (int32_t)tn_tokenizer_id(t, "<s>");
    const int32_t last = how->last >= 0 ? how->last : (int32_t)tn_tokenizer_id(t, "</s>");
    if (first >= n || last >= n)
        return tn_raise(TN_EINVAL, "%s: the first piece is %d, the last %d, but the pieces are %lld", who, first, last,
                        (long long)n),
               false;
    if (sentence) {
        t->sentence.space = how->no_space ? TN__SPACE_NEVER : TN__SPACE_EACH;
        t->sentence.decode_space = !how->no_space;
        t->step[t->steps++].kind = TN__STEP_SENTENCE;
    } else if (!add_merges(t, who, how)) {
        return false;
    }
    tn__template_ends(t, how->bare ? -1 : first, how->ends ? last : -1);
    if (!tn__tokenizer_ready(t, who)) return false;
    if (first >= 0) t->role.first = first;
    if (last >= 0) t->role.last = last;
    return true;
}

tn_tokenizer *tn_tokenizer_of_pieces_run(int64_t n, const char *const *pieces, tn_pieces_args how)
{
    if (tn__blocked()) return NULL;
    const char *who = "tn_tokenizer_of_pieces";
    if (n < 1 || n > TN__VOCAB_MOST || !pieces || how.n_merges < 0 || how.n_merges > TN__VOCAB_MOST)
        return tn_raise(TN_EINVAL, "%s: %s, expected 1 to %d of them", who,
                        pieces ? "there are too many pieces or merges, or too few" : "the pieces are NULL",
                        TN__VOCAB_MOST),
               NULL;
    if (how.kind != TN_SENTENCE_BPE && how.kind != TN_UNIGRAM && how.kind != TN_BYTE_BPE)
        return tn_raise(TN_EINVAL, "%s: kind is %d, expected TN_SENTENCE_BPE, TN_UNIGRAM or TN_BYTE_BPE", who,
                        (int)how.kind),
               NULL;
    const int splitter = how.splitter ? tn__splitter_named(how.splitter) : 0;
    if (splitter < 0)
        return tn_raise(TN_EUNSUPPORTED, "%s: the splitter is '%.40s', expected \"gpt2\", \"gpt4\" or \"qwen2\"", who,
                        how.splitter),
               NULL;
    tn_tokenizer *t = tn__tokenizer_new(how.kind);
    if (t) t->splitter = splitter;
    if (!t || of_pieces(t, who, n, pieces, &how)) return t;
    return tn_tokenizer_free(t), NULL;
}
