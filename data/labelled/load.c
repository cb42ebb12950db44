/* load.c — loads labelled texts from a file or a text: chooses the format by name and calls its reader. */
#include "data/labelled/labelled_private.h"

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

static const char *form_of(const char *path, tn_labelled_kind kind)
{
    static const struct {
        const char      *end, *form;
        tn_labelled_kind kind;
    } known[] = {{".csv", "csv", TN_LABELLED_TEXTS},
                 {".jsonl", "jsonl", TN_LABELLED_TEXTS},
                 {".json", "jsonl", TN_LABELLED_TEXTS},
                 {".conllu", "conllu", TN_LABELLED_WORDS},
                 {".jsonl", "jsonl", TN_LABELLED_CHOICES}};
    static const char *const others[] = {"tsv", "conll", "squad", "csv"};
    for (size_t i = 0; path && i < sizeof known / sizeof *known; i++)
        if (known[i].kind == kind && ends_with(path, known[i].end)) return known[i].form;
    return others[kind];
}

static bool read_form(tn_labelled *l, tn_text all)
{
    static const char *const tags[] = {"conll", "conllu"};
    const char              *form = l->config.form;
    switch (l->config.kind) {
    case TN_LABELLED_TEXTS:
    case TN_LABELLED_CHOICES: return tn__labelled_read_table(l, all);
    case TN_LABELLED_WORDS:
        for (int i = 0; i < 2; i++)
            if (!strcmp(form, tags[i])) return tn__labelled_read_tags(l, all);
        break;
    case TN_LABELLED_ANSWERS:
        if (!strcmp(form, "squad")) return tn__labelled_read_squad(l, all);
        break;
    }
    return tn_raise_false(TN_EINVAL, "%s: the format '%s' does not exist for this kind; %s", l->label, form,
                          l->config.kind == TN_LABELLED_WORDS ? "expected conll or conllu for words with tags"
                                                              : "expected squad for questions with answers");
}

/* True if lines end in "\r" only (old Macs, some "CSV (Macintosh)" exports): the file would be one line. */
static bool has_mac_lines(tn_text all, tn_labelled_kind kind)
{
    const char *cr = kind != TN_LABELLED_ANSWERS && all.bytes ? memchr(all.at, '\r', all.bytes - 1) : NULL;
    return cr && !memchr(all.at, '\n', all.bytes);
}

static tn_labelled *read_all(const char *path, tn_text all, tn_labelled_config c)
{
    tn_labelled *l = tn__mem_zeroed(sizeof *l);
    if (!l) return NULL;
    l->config = c;
    if (path) snprintf(l->label, sizeof l->label, "'%.*s'", (int)sizeof l->label - 3, path);
    if (!c.form) l->config.form = form_of(path, c.kind);
    const char *nul = all.bytes ? memchr(all.at, 0, all.bytes) : NULL;
    if (nul)
        tn_raise(TN_EFORMAT, "%s%sbyte %lld is NUL; expected text in UTF-8", l->label, path ? ": " : "",
                 (long long)(nul - all.at));
    else if (path && has_mac_lines(all, c.kind))
        tn_raise(TN_EFORMAT, "%s: lines end in \\r alone; convert them to \\n, for example with tr '\\r' '\\n'",
                 l->label);
    if (tn_error() == TN_OK && read_form(l, all) && !l->n && path)
        tn_raise(TN_EFORMAT, "%s contains no examples", l->label);
    if (tn_error() == TN_OK && tn__labelled_point(l)) return l;
    tn_labelled_free(l);
    return NULL;
}

bool tn__labelled_config_valid(const char *who, const tn_labelled_config *c)
{
    if (tn__blocked()) return false;
    if ((unsigned)c->kind > TN_LABELLED_CHOICES || (unsigned)c->problem > TN_REGRESSION || c->skip < 0)
        return tn_raise_false(TN_EINVAL, "%s: .kind or .problem does not exist, or .skip is negative", who);
    const bool texts = c->kind == TN_LABELLED_TEXTS, words = c->kind == TN_LABELLED_WORDS;
    const struct {
        bool        given;
        const char *names;
    } options[] = {{!texts && (c->text || c->pair || c->pairs), ".text, .pair and .pairs have"},
                   {!texts && c->problem != TN_SINGLE_LABEL, ".problem has"},
                   {!texts && !words && c->label, ".label has"},
                   {c->label && c->no_label, ".label with .no_label has"},
                   {!words && c->bio, ".bio has"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given)
            return tn_raise_false(TN_EINVAL, "%s: %s no effect for this .kind; remove it", who, options[i].names);
    return true;
}

tn_labelled *tn_labelled_load_run(const char *path, tn_labelled_config c)
{
    if (!tn__labelled_config_valid("tn_labelled_load", &c)) return NULL;
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *file = tn_file_read(path, (int64_t)1 << 32);
    tn_labelled   *l = file ? read_all(path, (tn_text){tn_data(file), (size_t)tn_numel(file)}, c) : NULL;
    tn_scope_end(s);
    return l;
}

tn_labelled *tn_labelled_parse_run(const char *text, size_t bytes, tn_labelled_config c)
{
    if (!tn__labelled_config_valid("tn_labelled_parse", &c)) return NULL;
    if (!text && bytes) return tn_raise_null(TN_EINVAL, "tn_labelled_parse: the text is NULL");
    return read_all(NULL, (tn_text){text, bytes}, c);
}
