/* features_encode.c — encodes labelled texts as rows of tokens. Texts use the tokenizer's template; a sentence's words
 * are encoded one by one, and the first token of each gets its tag; a long text with a question is divided into
 * overlapping windows. */
#include "data/labelled/features.h"

static bool begin_row(tn_features *f, int64_t example)
{
    if (!tn__grown((void *)&f->row, &f->row_room, f->rows + 1, sizeof *f->row)) return false;
    f->row[f->rows++] = (tn__row){.first = f->n, .example = example, .label = f->label.n};
    return true;
}

/* Appends a token to the last row; start and end: its bytes in the text. */
static bool put(tn_features *f, int32_t id, int type, int32_t word, int32_t start, int32_t end)
{
    if (!tn__grown((void *)&f->pieces, &f->pieces_room, TN__FIELDS * (f->n + 1), sizeof *f->pieces)) return false;
    int32_t *p = f->pieces + TN__FIELDS * f->n++;
    p[TN__ID] = id, p[TN__TYPE] = type, p[TN__WORD] = word, p[TN__START] = start, p[TN__END] = end;
    p[TN__TARGET] = TN__IGNORED;
    f->row[f->rows - 1].length++;
    return true;
}

static bool encode(tn_features *f, const char *text, const char *pair, int64_t most, bool bare)
{
    return tn_tokenizer_encode_run(
               f->tokens, f->encoding, text, strlen(text),
               (tn_encode_args){
                   .pair = pair, .pair_bytes = pair ? strlen(pair) : 0, .max_length = most, .bare = bare}) == TN_OK;
}

/* Adds a row of one text or of a pair. */
static bool row_of_text(tn_features *f, int64_t example, const char *text, const char *pair)
{
    const tn_encoding *e = f->encoding;
    bool               fine = encode(f, text, pair, f->config.length, false) && begin_row(f, example);
    for (int64_t i = 0; fine && i < e->n; i++) fine = put(f, e->id[i], e->segment[i], -1, 0, 0);
    f->cut += fine && e->cut > 0;
    return fine;
}

/* ---- texts and choices ------------------------------------------------------------------------------------------- */

static bool add_texts(tn_features *f, int64_t i, const tn_example *x)
{
    if (!row_of_text(f, i, x->text[0], x->texts > 1 ? x->text[1] : NULL)) return false;
    tn__row *r = &f->row[f->rows - 1];
    if (f->config.no_label) return true;
    if (f->config.problem == TN_REGRESSION) return tn_parse_double(x->label[0], strlen(x->label[0]), &r->number);
    for (int64_t k = 0; k < x->labels; k++)
        if (tn_ids_add(&f->label, (int32_t)tn_labels_find(f->labels, x->label[k])) != TN_OK) return false;
    r->labels = x->labels;
    return true;
}

static bool add_choices(tn_features *f, int64_t i, const tn_example *x)
{
    bool fine = true;
    for (int64_t k = 1; fine && k < x->texts; k++) fine = row_of_text(f, i, x->text[0], x->text[k]);
    if (fine && !f->config.no_label)
        fine = tn_parse_double(x->label[0], strlen(x->label[0]), &f->row[f->rows - 1].number);
    return fine;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static int32_t or_else(int32_t a, int32_t b) { return a >= 0 ? a : b; }

/* True if the template puts this token after a text. */
static bool ends_with(tn_features *f, int32_t id)
{
    const tn_encoding *e = f->encoding;
    return encode(f, "", NULL, 0, false) && e->n > 1 && e->id[e->n - 1] == id;
}

static bool end_row(tn_features *f, int32_t separator, int32_t first)
{
    return (separator < 0 || put(f, separator, 0, -1, 0, 0)) && (first < 0 || put(f, first, 2, -1, 0, 0));
}

/* Encodes each word separately, after a space if tokens include the space before a word. */
static bool add_words(tn_features *f, int64_t i, const tn_example *x, tn_string *spaced)
{
    const tn_tokenizer_roles role = tn_tokenizer_special(f->tokens);
    const int32_t            first = role.first, last = or_else(role.separator, role.last);
    const int64_t            around = (first >= 0) + (last >= 0), room = f->config.length - around;
    const bool               behind = first >= 0 && last >= 0 && ends_with(f, first); /* XLNet: [CLS] after [SEP] */
    const bool               space = tn_tokenizer_kind_of(f->tokens) == TN_BYTE_BPE;
    const tn_encoding       *e = f->encoding;
    int64_t                  used = -1;
    for (int64_t w = 0; w < x->texts; w++) {
        const char *word = x->text[w];
        if (space) {
            spaced->bytes = 0;
            if (tn_string_add(spaced, tn_text_of(" ")) != TN_OK || tn_string_add(spaced, tn_text_of(word)) != TN_OK)
                return false;
            word = spaced->at;
        }
        if (!encode(f, word, NULL, room, true)) return false;
        const int64_t n = e->n ? e->n : 1; /* an empty word is encoded as unknown */
        if (used < 0 || used + n > room) {
            if (used >= 0 && !end_row(f, last, behind ? first : -1)) return false;
            f->cut += used >= 0;
            if (!begin_row(f, i) || (first >= 0 && !behind && !put(f, first, 0, -1, 0, 0))) return false;
            used = 0;
        }
        used += n;
        for (int64_t k = 0; k < n; k++) {
            if (!put(f, e->n ? e->id[k] : or_else(role.unknown, 0), 0, k ? -1 : (int32_t)w, 0, 0)) return false;
            if (!k && !f->config.no_label)
                f->pieces[TN__FIELDS * f->n - TN__FIELDS + TN__TARGET] =
                    (int32_t)tn_labels_find(f->labels, x->label[w]);
        }
    }
    return end_row(f, last, behind ? first : -1);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* Positions of the text's tokens in the encoding of question and text. */
typedef struct {
    int64_t question, from, to; /* tokens of the question alone; range of the text's tokens */
    int64_t drop;               /* tokens dropped at the end of a question that is too long */
} layout;

/* Adds a row: the question and a window of the text's tokens, [at, at + n). The answer is at bytes [s, z) of the text;
 * z 0: no answer. */
static bool window(tn_features *f, int64_t example, const layout *l, int64_t at, int64_t n, int64_t s, int64_t z)
{
    const tn_encoding *e = f->encoding;
    int64_t            asked = 0, place[2] = {0, 0};
    if (!begin_row(f, example)) return false;
    for (int64_t i = 0; i < e->n; i++) {
        const bool text = i >= l->from && i < l->to, word = e->special[i] == TN_TOKEN_FROM_TEXT;
        if (text && (i < l->from + at || i >= l->from + at + n)) continue;
        if (i < l->from && word && asked++ >= l->question - l->drop) continue;
        const int64_t here = f->row[f->rows - 1].length;
        if (text && z && e->start[i] <= s && s < e->end[i]) place[0] = here;
        if (text && z && e->start[i] < z && z <= e->end[i]) place[1] = here;
        if (!put(f, e->id[i], e->segment[i], -1, text ? e->start[i] : 0, text ? e->end[i] : 0)) return false;
    }
    tn__row *r = &f->row[f->rows - 1];
    if (place[0] && place[1] >= place[0]) r->start = (int32_t)place[0], r->end = (int32_t)place[1];
    return true;
}

/* Removes the white space at both ends of bytes [*s, *z), of which WordPiece has no tokens. */
static void trim(const char *text, int64_t *s, int64_t *z)
{
    size_t        length = 1;
    bool          inside = false;
    const int64_t end = *z;
    for (int64_t at = *s; at < end; at += (int64_t)length) {
        if (tn__is_blank(tn__point(text + at, (size_t)(end - at), &length))) continue;
        if (!inside) *s = at, inside = true;
        *z = at + (int64_t)length;
    }
}

static bool add_windows(tn_features *f, int64_t i, const tn_example *x)
{
    const tn_encoding *e = f->encoding;
    layout             l = {.question = 0};
    if (!encode(f, x->text[0], NULL, 0, true)) return false;
    l.question = e->n;
    if (!encode(f, x->text[0], x->text[1], 0, false)) return false;
    int64_t words = 0;
    l.from = l.to = e->n;
    for (int64_t k = 0; k < e->n; k++) {
        if (e->special[k] != TN_TOKEN_FROM_TEXT) continue;
        if (words++ == l.question) l.from = k;
        if (words > l.question) l.to = k + 1;
    }
    const int64_t added = e->n - words, half = (f->config.length - added) / 2, all = l.to - l.from;
    if (l.question > half) l.drop = l.question - half, f->cut++;
    const int64_t room = f->config.length - added - (l.question - l.drop);
    const int64_t step = room - f->config.stride > 0 ? room - f->config.stride : (room + 1) / 2;
    const bool    known = !f->config.no_label && x->labels;
    int64_t       s = known ? x->start[0] : 0, z = known ? s + (int64_t)strlen(x->label[0]) : 0;
    trim(x->text[1], &s, &z);
    f->cut += all > room;
    for (int64_t at = 0;; at += step) {
        if (!window(f, i, &l, at, tn__min_i64(room, all - at), s, z)) return false;
        if (at + room >= all) return true;
    }
}

/* ---- all examples ------------------------------------------------------------------------------------------------ */

static bool same_number_of_endings(const tn_features *f, const tn_example *x)
{
    if (x->texts - 1 == f->group) return true;
    char place[TN__PLACE];
    return tn_raise_false(TN_EFORMAT, "%s: %lld endings, but the first example has %lld",
                          tn__labelled_place(f->from, x->line, place), (long long)x->texts - 1, (long long)f->group);
}

bool tn__features_encode(tn_features *f)
{
    tn_string spaced = {0};
    bool      fine = true;
    for (int64_t i = 0; fine && i < f->from->n; i++) {
        const tn_example x = tn_labelled_at(f->from, i);
        switch (f->from->config.kind) {
        case TN_LABELLED_TEXTS: fine = add_texts(f, i, &x); break;
        case TN_LABELLED_WORDS: fine = add_words(f, i, &x, &spaced); break;
        case TN_LABELLED_ANSWERS: fine = add_windows(f, i, &x); break;
        case TN_LABELLED_CHOICES: fine = same_number_of_endings(f, &x) && add_choices(f, i, &x); break;
        }
    }
    tn_string_free(&spaced);
    return fine && tn_error() == TN_OK;
}
