/* text.c — examples of texts, tokenizers, vocabularies, metrics, reports and models. */
#include "show.h"

EXAMPLE(strings)
{
    tn_string s = {0};
    tn_string_add(&s, tn_text_of("caf"));
    tn_string_add_valid(&s, (tn_text){"\xc3\xa9\xff", 3}); /* U+FFFD replaces the invalid byte */
    printf("%s, %d bytes\n", s.at, (int)s.bytes);
    size_t at = 3;
    bool   valid;
    printf("U+%04X\n", (unsigned)tn_utf8_next(s.at, s.bytes, &at, &valid));
    char put[4];
    printf("%d bytes, space %d\n", tn_utf8_put(0x20AC, put), tn_is_space(0x2003));
    tn_string_free(&s);
    tn_ids ids = {0};
    tn_ids_add(&ids, 7);
    printf("%d id: %d\n", (int)ids.n, (int)ids.at[0]);
    tn_ids_free(&ids);
}

EXAMPLE(thai)
{
    tn_string s = {0};
    tn_string_add_thai(&s, tn_text_of("Very   GOOD!!!!! (:)"));
    printf("%s\n", s.at);
    tn_string_free(&s);
}

EXAMPLE(lines)
{
    if (tn_file_write("example.txt", "one\ntwo\n", 8) != TN_OK) return;
    tn_lines *l = tn_lines_load("example.txt");
    tn_text   last = tn_lines_at(l, tn_lines_count(l) - 1);
    printf("%d lines, the last is %.*s\n", (int)tn_lines_count(l), (int)last.bytes, last.at);
    tn_lines_free(l);
}

EXAMPLE(vocabulary)
{
    tn_vocab *v = tn_vocab_new(); /* 0 is padding, 1 is any unknown word */
    tn_vocab_read(v, "the cat sat on the mat", 22);
    tn_print(stdout, tn_vocab_encode(v, "the dog sat", 11));
    printf("%s, %d times, %d words\n", tn_vocab_word(v, TN_VOCAB_FIRST), (int)tn_vocab_count(v, 2),
           (int)tn_vocab_size(v));
    tn_vocab_trim(v, 2, 0); /* only words that were read twice */
    printf("%d %d\n", (int)tn_vocab_id(v, "the", 3), (int)tn_vocab_id(v, "cat", 3));
    printf("%d\n", (int)tn_vocab_add(v, "new", 3));
    tn_vocab_free(v);
}

EXAMPLE(pad_sequences)
{
    const int64_t  a[] = {1, 2, 3}, b[] = {4};
    const int64_t *rows[] = {a, b}, lengths[] = {3, 1};
    tn_print(stdout, tn_pad_sequences(2, rows, lengths));
    tn_print(stdout, tn_pad_sequences(2, rows, lengths, .left = true, .length = 2));
}

EXAMPLE(tokenizer)
{
    const char   *text = "low lower lowest low lower low new newer newest new";
    tn_tokenizer *t = tn_tokenizer_train_text(text, strlen(text), .vocab_size = 40);
    tn_encoding  *e = tn_encoding_new();
    tn_tokenizer_encode(t, e, "lower news", 10, .pair = "new", .pair_bytes = 3);
    for (int64_t i = 0; i < e->n; i++)
        printf("%s%s", tn_tokenizer_token(t, e->id[i]), e->special[i] == TN_TOKEN_FROM_TEMPLATE ? "* " : " ");
    printf("\n");
    tn_string out = {0};
    tn_tokenizer_decode(t, e->id, e->n, &out);
    puts(out.at);
    tn_tokenizer_roles r = tn_tokenizer_special(t);
    printf("%d %d %d %d\n", r.pad, tn_tokenizer_is_special(t, r.mask), (int)tn_tokenizer_id(t, "[CLS]") == r.first,
           tn_tokenizer_kind_of(t) == TN_WORDPIECE);
    printf("%d, %d, \"%s\", %d\n", tn_tokenizer_size(t) <= 40, tn_tokenizer_language(t, "fr"),
           tn_tokenizer_languages(t, false), tn_tokenizer_is_inner(t, r.first));
    tn_string_free(&out);
    tn_encoding_free(e);
    tn_tokenizer_free(t);
}

EXAMPLE(batch_of_texts)
{
    const char    *text = "one two three two one", *texts[] = {"one two", "three"};
    tn_tokenizer  *t = tn_tokenizer_train_text(text, strlen(text), .vocab_size = 60);
    tn_token_batch b;
    if (tn_tokenizer_batch(t, &b, 2, texts, .max_length = 16, .cut = TN_CUT_LONGEST) == TN_OK)
        printf("%d sequences of one length: %d\n", (int)tn_size(b.ids, 0), tn_size(b.ids, 1) > 2);
    tn_encoding *e = tn_encoding_new();
    tn_ids       ids = {0};
    tn_encoder   line = tn_tokenizer_encoder(t, e);
    if (line.encode(line.user, tn_text_of("two"), &ids) == TN_OK) printf("%d token id or more\n", ids.n > 0);
    tn_string      out = {0};
    tn_text_stream stream = {{0}, 0, false};
    for (int64_t i = 0; i < ids.n; i++) tn_tokenizer_decode_next(t, &stream, ids.at[i], &out);
    tn_tokenizer_decode_end(&stream, &out);
    puts(out.at);
    tn_string_free(&out);
    tn_ids_free(&ids);
    tn_encoding_free(e);
    tn_tokenizer_free(t);
}

EXAMPLE(tokenizer_from_pieces)
{
    const char   *pieces[] = {"<unk>", "<s>", "</s>", "\xe2\x96\x81", "a", "b", "ab"};
    const int32_t types[] = {TN_TYPE_UNKNOWN, TN_TYPE_CONTROL, TN_TYPE_CONTROL, TN_TYPE_NORMAL,
                             TN_TYPE_NORMAL,  TN_TYPE_NORMAL,  TN_TYPE_NORMAL};
    tn_tokenizer *t = tn_tokenizer_from_vocab(7, pieces, .types = types);
    tn_encoding  *e = tn_encoding_new();
    tn_tokenizer_encode(t, e, "ab", 2);
    for (int64_t i = 0; i < e->n; i++) printf("%d ", e->id[i]);
    printf("\n");
    int32_t kinds[7];
    tn_tokenizer_parts(t, NULL, kinds, NULL);
    printf("%d %d\n", kinds[0] == TN_TYPE_UNKNOWN, tn_tokenizer_traits_of(t).first);
    tn_encoding_free(e);
    tn_tokenizer_free(t);
}

EXAMPLE(scores_of_translations)
{
    tn_text reference = tn_text_of("the cat sat on the mat"), output = tn_text_of("the cat sat on a mat");
    tn_bleu bleu = {.tokenize = TN_BLEU_13A};
    tn_chrf chrf = {.word_order = 2};
    tn_ter  ter = {.case_sensitive = true};
    char    line[TN_METRIC_TEXT];
    tn_bleu_add(&bleu, output, 1, &reference);
    tn_chrf_add(&chrf, output, 1, &reference);
    tn_ter_add(&ter, output, 1, &reference);
    printf("%.2f %.2f %.2f\n", tn_bleu_score(&bleu), tn_chrf_score(&chrf), tn_ter_score(&ter));
    puts(tn_bleu_text(&bleu, 1, line));
    puts(tn_chrf_text(&chrf, 1, line));
    puts(tn_ter_text(&ter, 1, line));
    tn_string words = {0};
    tn_bleu_words(TN_BLEU_INTL, tn_text_of("Hello, world"), &words);
    puts(words.at);
    tn_string_free(&words);
}

EXAMPLE(accuracy_and_perplexity)
{
    tn_accuracy a = {0};
    tn_tensor  *scores = tn_from_data(TN_F32, TN_SHAPE(2, 2), (float[]){0.9F, 0.1F, 0.8F, 0.2F});
    tn_accuracy_add(&a, scores, tn_arange(2), -100);
    tn_perplexity p = {0};
    tn_perplexity_add(&p, log(8), 10);
    printf("%.2f %.2f\n", tn_accuracy_value(&a), tn_perplexity_value(&p));
}

EXAMPLE(entities)
{
    const char  *gold[] = {"B-PER", "I-PER", "O", "B-LOC"}, *found[] = {"B-PER", "I-PER", "O", "O"};
    tn_entities *e = tn_entities_new(TN_ENTITIES_STRICT);
    for (int i = 0; i < 4; i++) tn_entities_add(e, tn_text_of(gold[i]), tn_text_of(found[i]));
    tn_entities_end_sentence(e);
    tn_entities_score s = tn_entities_of(e, NULL);
    printf("precision %.2f recall %.2f F1 %.2f, type %s\n", s.precision, s.recall, s.f1, tn_entities_type(e, 0));
    printf("%.2f\n", tn_accuracy_value(&(tn_accuracy){tn_entities_tokens(e).right, tn_entities_tokens(e).counted}));
    tn_string table = {0};
    tn_entities_text(e, &table);
    printf("%d\n", table.bytes > 50);
    tn_string_free(&table);
    tn_entities_free(e);
}

EXAMPLE(correlations)
{
    const int64_t gold[] = {1, 0, 1, 1}, said[] = {1, 0, 0, 1};
    const double  x[] = {1, 2, 3, 4}, y[] = {1, 4, 9, 16};
    printf("F1 %.3f %.3f, Matthews %.3f\n", tn_f1(TN_F1_BINARY, 4, gold, said), tn_f1(TN_F1_MACRO, 4, gold, said),
           tn_matthews(4, gold, said));
    printf("Pearson %.3f, Spearman %.3f\n", tn_pearson(4, x, y), tn_spearman(4, x, y));
}

EXAMPLE(answers)
{
    tn_squad s = {.v2 = false};
    tn_text  right[] = {tn_text_of("the Black Sea")};
    tn_squad_add(&s, tn_text_of("Black Sea!"), 1, right);
    printf("%.0f %.0f\n", tn_squad_exact(&s), tn_squad_f1(&s));
    tn_string words = {0};
    tn_squad_words(tn_text_of("The Black Sea!"), &words);
    puts(words.at);
    tn_string_free(&words);
    const double none[] = {0.1, 0.9}, value[] = {1, 0};
    const bool   empty[] = {false, false}, answerable[] = {true, false};
    double       threshold;
    printf("%.0f\n", tn_squad_threshold(2, none, value, empty, answerable, &threshold));
}

EXAMPLE(report)
{
    const double steps[] = {1, 2, 3}, losses[] = {3, 2, 1.5};
    const char  *names[] = {"a", "b"}, *cells[] = {"1", "2"};
    tn_report   *r = tn_report_new("A small run");
    tn_report_summary(r, "1.5", "loss", 1, names, cells);
    tn_report_heading(r, "Training");
    tn_report_paragraph(r, "Three steps.");
    tn_report_curves(r, "Loss", "step", "nats", 1, &(tn_series){.name = "train", .n = 3, .x = steps, .y = losses});
    tn_report_table(r, 2, names, 1, cells);
    tn_report_bars(r, "Two", 2, names, losses);
    size_t bytes;
    printf("%d\n", strstr(tn_report_html(r, &bytes), "<svg") != NULL && bytes > 1000);
    tn_report_free(r);
}

EXAMPLE(bert)
{
    tn_bert   *m = tn_bert_new(.vocab = 50, .dim = 16, .layers = 1, .heads = 2, .ff = 32);
    tn_tensor *ids = tn_reshape(tn_arange(6), TN_SHAPE(2, 3));
    tn_tensor *where = tn_from_data(TN_I64, TN_SHAPE(1), (int64_t[]){4}),
              *what = tn_from_data(TN_I64, TN_SHAPE(1), (int64_t[]){9});
    tn_eval(m);
    char text[192];
    puts(tn_shape_text(tn_shape_of(tn_bert_forward(m, ids)), text, sizeof text));
    printf("%d\n", tn_item(tn_bert_loss(m, .ids = ids, .masked = where, .words = what)) > 0);
    puts(tn_bert_kind_name(TN_ROBERTA));
    tn_free(m);
}

EXAMPLE(gpt)
{
    tn_gpt    *gpt = tn_gpt_new(.vocab = 20, .dim = 16, .layers = 1, .heads = 2, .positions = 32);
    tn_tensor *prompt = tn_reshape(tn_arange(3), TN_SHAPE(1, 3));
    char       text[192];
    tn_eval(gpt);
    printf("%d\n", tn_item(tn_gpt_loss(gpt, prompt, NULL)) > 0);
    puts(tn_shape_text(tn_shape_of(tn_gpt_forward(gpt, prompt)), text, sizeof text));
    tn_decoding *d = tn_gpt_decoding(gpt, 1, 10);
    tn_generated g = tn_generate(d, prompt, .most = 4);
    puts(tn_shape_text(tn_shape_of(g.tokens), text, sizeof text));
    tn_decoding_free(d);
    tn_free(gpt);
}
