/* fuzz_texts.c — any bytes as an output and its references, as two columns of a parallel corpus, as a log to resume,
 * and as the text of a report. Scores stay in their ranges, and a line compared with itself is perfect. */
#define _GNU_SOURCE
#include "extras.h"
#include <stdlib.h>

#include "tests/fuzz/memory_file.h"

#define CHECK(x) ((x) ? (void)0 : abort())

enum { SCORED = 512 }; /* bytes: the time of TER's edits grows with the square of the number of words */

static tn_status bytes_of(void *user, tn_text line, tn_ids *to)
{
    (void)user;
    for (size_t i = 0; i < line.bytes; i++)
        if (tn_ids_add(to, (unsigned char)line.at[i]) != TN_OK) return tn_error();
    return TN_OK;
}

static void score(tn_text a, tn_text b)
{
    tn_text both[2] = {b, a};
    for (int n = 1; n <= 2; n++) {
        tn_bleu bleu[3] = {
            {.tokenize = TN_BLEU_13A}, {.tokenize = TN_BLEU_INTL}, {.tokenize = TN_BLEU_NONE, .lowercase = true}};
        tn_chrf chrf[2] = {{.word_order = 2}, {.lowercase = true}};
        tn_ter  ter = {.case_sensitive = n == 2};
        char    text[TN_METRIC_TEXT];
        for (int i = 0; i < 3; i++) {
            CHECK(tn_bleu_add(&bleu[i], a, n, both) == TN_OK);
            double v = tn_bleu_score(&bleu[i]);
            CHECK(v >= 0 && v <= 100.0001 && tn_bleu_text(&bleu[i], 2, text));
        }
        for (int i = 0; i < 2; i++) {
            CHECK(tn_chrf_add(&chrf[i], a, n, both) == TN_OK);
            double v = tn_chrf_score(&chrf[i]);
            CHECK(v >= 0 && v <= 100.0001 && tn_chrf_text(&chrf[i], 2, text));
            CHECK(n == 1 || v == 0 || v > 99.9999); /* the second reference is the output */
        }
        CHECK(tn_ter_add(&ter, a, n, both) == TN_OK && tn_ter_score(&ter) >= 0);
        CHECK(n == 1 || ter.edits == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = size ? (const char *)data : "";
    memory_files(data, size);
    size_t   before = tn_memory_now().live, half = size / 2;
    tn_scope s = tn_scope_begin();
    if (size <= SCORED) score((tn_text){text, half}, (tn_text){text + half, size - half});
    memory_files(data, size);

    tn_pairs *p = tn_pairs_tsv_load("in", .source = {bytes_of, NULL}, .target = {bytes_of, NULL});
    CHECK(p || tn_error() == TN_EFORMAT);
    tn_clear_error();
    tn_pairs_batches *b = tn_pairs_count(p) ? tn_pairs_batches_new(p, .tokens = 64) : NULL;
    const tn_source   source = tn_pairs_source(b);
    int64_t           pairs = 0;
    for (bool more = b; more;) {
        tn_scope one = tn_scope_begin();
        tn_batch x;
        if ((more = tn_source_next(&source, &x))) pairs += tn_size(x.x, 0);
        tn_scope_end(one);
    }
    CHECK(pairs == tn_pairs_count(p));
    tn_pairs_batches_free(b);
    tn_pairs_free(p);

    memcpy(memory.out, data, memory.out_bytes = size < MEMORY_MOST ? size : 0);
    memory.out_is_there = true;
    bool       csv = size % 2;
    tn_runlog *l = tn_runlog_open(.jsonl = csv ? NULL : "out", .csv = csv ? "out" : NULL, .resume = true,
                                  .step = (int64_t)(size % 10));
    if (l) tn_runlog_put(l, 11, 1, (const char *[]){"loss"}, (double[]){2});
    CHECK(tn_error() == TN_OK || tn_error() == TN_EFORMAT);
    tn_clear_error();
    tn_runlog_close(l);

    char *ended = malloc(size + 1);
    CHECK(ended);
    memcpy(ended, text, size);
    ended[size] = 0;
    tn_report  *r = tn_report_new(ended);
    const char *words[] = {ended, "b"};
    tn_report_paragraph(r, ended);
    tn_report_bars(r, ended, 2, words, (double[]){1, 2});
    size_t      n;
    const char *html = tn_report_html(r, &n);
    CHECK(html && tn_utf8_valid(html, n) == n && strlen(html) == n && !strstr(html, "<script"));
    tn_report_free(r);
    free(ended);
    tn_set_io(NULL);
    tn_scope_end(s);
    CHECK(tn_error() == TN_OK && tn_memory_now().live == before);
    return 0;
}
