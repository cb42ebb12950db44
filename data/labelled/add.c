/* add.c — labelled texts from memory: an empty set, and examples that a program adds one by one. */
#include "data/labelled/labelled_private.h"

tn_labelled *tn_labelled_create(tn_labelled_config c)
{
    if (!tn__labelled_config_valid("tn_labelled_new", &c)) return NULL;
    if (c.form || c.text || c.pair || c.label || c.pairs || c.bio)
        return tn_raise_null(
            TN_EINVAL, "tn_labelled_new: .form, .text, .pair, .label, .pairs and .bio describe files; remove them");
    tn_labelled *l = tn__mem_zeroed(sizeof *l);
    if (l) l->config = c;
    return l;
}

static bool blank(const char *s) { return !s || !s[strspn(s, " \t\r\n")]; }

/* The error of an example's texts, or NULL. */
static const char *text_error(const tn_labelled *l, const tn_example *x)
{
    static const struct {
        int64_t     least, most;
        const char *error;
    } texts[] = {{1, 2, "expected one text or two"},
                 {1, INT64_MAX, "expected at least one word"},
                 {2, 2, "expected a question and a text"},
                 {3, 65, "expected a context and 2 to 64 endings"}};
    if (x->texts < texts[l->config.kind].least || x->texts > texts[l->config.kind].most)
        return texts[l->config.kind].error;
    for (int64_t i = 0; i < x->texts; i++)
        if (blank(x->text[i])) return l->config.kind == TN_LABELLED_WORDS ? "the word is empty" : "the text is empty";
    return NULL;
}

/* The error of its labels, or NULL. */
static const char *label_error(const tn_labelled *l, const tn_example *x)
{
    const tn_labelled_kind kind = l->config.kind;
    const char            *bad = NULL;
    double                 v;
    if (kind == TN_LABELLED_WORDS && x->labels != x->texts) return "expected a tag for each word";
    if (kind == TN_LABELLED_ANSWERS && x->labels && !x->start) return "answers need .start";
    if ((kind == TN_LABELLED_CHOICES || (kind == TN_LABELLED_TEXTS && l->config.problem != TN_MULTI_LABEL)) &&
        x->labels != 1)
        return "expected one label";
    for (int64_t i = 0; i < x->labels && !bad; i++) {
        const tn_text label = tn_text_of(x->label[i]);
        if (kind != TN_LABELLED_ANSWERS) bad = tn__labelled_label_error(l, label);
        else if (!label.bytes || x->start[i] < 0 || (size_t)x->start[i] > strlen(x->text[1]) ||
                 strncmp(x->text[1] + x->start[i], x->label[i], label.bytes) != 0)
            bad = "an answer is empty or is not found at its .start";
        if (!bad && kind == TN_LABELLED_CHOICES &&
            !(tn_parse_double(label.at, label.bytes, &v) && v >= 0 && v < (double)(x->texts - 1) &&
              v == (double)(int64_t)v))
            bad = "the label is not the number of an ending";
    }
    return bad;
}

tn_status tn_labelled_add(tn_labelled *l, tn_example x)
{
    if (tn__blocked()) return tn_error();
    if (!l || (x.texts > 0 && !x.text) || (x.labels > 0 && !x.label))
        return tn_raise(TN_EINVAL, "tn_labelled_add: %s is NULL",
                        !l                       ? "l"
                        : x.texts > 0 && !x.text ? ".text"
                                                 : ".label");
    const char *bad = text_error(l, &x);
    if (!bad && !l->config.no_label) bad = label_error(l, &x);
    bool fine = tn__labelled_begin(l, x.line, x.id ? x.id : "");
    for (int64_t i = 0; fine && !bad && i < x.texts; i++) fine = tn__labelled_text(l, tn_text_of(x.text[i]));
    for (int64_t i = 0; fine && !bad && !l->config.no_label && i < x.labels; i++)
        fine = tn__labelled_label(l, tn_text_of(x.label[i]), x.start ? x.start[i] : 0);
    if (bad) tn__labelled_bad(l, x.line, "%s", bad);
    else if (fine && tn__labelled_point(l)) tn__labelled_end(l);
    if (tn_error() != TN_OK) tn__labelled_cancel(l);
    return tn_error();
}
