/* data.c — examples of word vectors, labelled texts, images, corpora, pairs, logs and reports. */
#include "show.h"

#include <sys/stat.h>

EXAMPLE(word_vectors)
{
    const float x[] = {1, 0, 0.9F, 0.1F, 0, 1, 0.1F, 0.9F};
    tn_vectors *v = tn_vectors_from(tn_text_of("king queen apple pear"), tn_from_data(TN_F32, TN_SHAPE(4, 2), x));
    int64_t     king = tn_vectors_find(v, tn_text_of("king"));
    float       to[2];
    if (tn_vectors_of(v, tn_text_of("king"), to)) printf("%g %g\n", (double)to[0], (double)to[1]);
    tn_vectors_near near[2];
    int64_t         n = tn_vectors_nearest(v, to, &king, 1, 2, near);
    for (int64_t i = 0; i < n; i++) {
        tn_text w = tn_vectors_word(v, near[i].word);
        printf("%.*s %.4f\n", (int)w.bytes, w.at, (double)near[i].score);
    }
    n = tn_vectors_analogous(v, (int64_t[]){0, 1, 2}, false, 1, near);
    printf("%d answer, %d words of %d numbers\n", (int)n, (int)tn_vectors_size(v), (int)tn_vectors_dim(v));
    if (tn_vectors_sentence(v, tn_text_of("king queen"), 0, to)) printf("%.2f %.2f\n", (double)to[0], (double)to[1]);
    tn_print(stdout, tn_vectors_tensor(v));
    if (tn_vectors_save(v, "example.vec", TN_VECTORS_TEXT) != TN_OK) puts(tn_error_message());
    tn_vectors_free(v);
    v = tn_vectors_load("example.vec", TN_VECTORS_ANY);
    printf("%d\n", (int)tn_vectors_size(v));
    if (tn_file_write("pairs.txt", "king queen 9\nking apple 1\n", 26) != TN_OK) return;
    printf("%g\n", tn_vectors_similarity(v, "pairs.txt").value);
    if (tn_file_write("four.txt", "king queen apple queen\n", 23) != TN_OK) return;
    printf("%d asked\n", (int)tn_vectors_analogies(v, "four.txt", false).asked);
    tn_vectors_free(v);
}

EXAMPLE(train_word_vectors)
{
    const char *path = "example.txt";
    tn_string   text = {0};
    for (int i = 0; i < 50; i++) tn_string_add(&text, tn_text_of("new york is a city in new york state\n"));
    if (tn_file_write(path, text.at, text.bytes) != TN_OK) return;
    tn_string_free(&text);
    tn_vectors *v = tn_vectors_train(1, &path, .kind = TN_VECTORS_SKIPGRAM, .loss = TN_VECTORS_NEGATIVE, .dim = 8,
                                     .epochs = 1, .min_count = 1);
    printf("%d words\n", (int)tn_vectors_size(v));
    tn_vectors_free(v);
    tn_vectors_phrased p = tn_vectors_phrases(1, &path, "phrases.txt", .threshold = 1);
    printf("%d different phrases, joined %d times\n", (int)p.phrases, (int)p.joined);
}

EXAMPLE(points_in_the_plane)
{
    tn_tensor *rows = tn_normal(TN_SHAPE(6, 4), 0, 1);
    char       text[192];
    puts(tn_shape_text(tn_shape_of(tn_plane_pca(rows)), text, sizeof text));
    puts(tn_shape_text(tn_shape_of(tn_plane_tsne(rows, 2, 1)), text, sizeof text));
}

EXAMPLE(labelled_texts)
{
    const char  *tsv = "a good film\tgood\na bad film\tbad\nfine\tgood\n";
    tn_labelled *l = tn_labelled_parse(tsv, strlen(tsv), .kind = TN_LABELLED_TEXTS);
    tn_labels   *labels = tn_labels_of(l);
    tn_example   x = tn_labelled_at(l, 1);
    printf("%d examples, %d labels; line %d: %s is %s\n", (int)tn_labelled_count(l), (int)tn_labels_count(labels),
           (int)x.line, x.text[0], x.label[0]);
    printf("%s is class %d\n", tn_labels_names(labels)[1], (int)tn_labels_find(labels, "good"));
    tn_tokenizer *t = tn_tokenizer_train_text(tsv, strlen(tsv), .vocab_size = 60, .min_count = 1);
    tn_features  *f = tn_features_new(l, t, labels, .batch = 2, .length = 16, .fixed = true);
    tn_source     s = tn_features_source(f);
    tn_batch      b;
    if (tn_source_next(&s, &b)) printf("%d rows, %d targets\n", (int)tn_size(b.x, 0), (int)tn_numel(b.y));
    printf("%d features, %d cut, %d tokens or more\n", (int)tn_features_count(f), (int)tn_features_cut(f),
           tn_features_at(f, 0).pieces > 2);
    tn_features_free(f);
    tn_labels   *known = tn_labels_new(1, (const char *const[]){"good"});
    const char  *first;
    tn_labelled *all = tn_labelled_new(.kind = TN_LABELLED_TEXTS, .skip = 9);
    tn_labelled_add(all, x);
    tn_labelled_only(all, known); /* its label is unknown: it counts as skipped */
    printf("%d left, %d skipped\n", (int)tn_labelled_count(all), (int)tn_labelled_skipped(all, &first));
    tn_labelled_first(l, 1);
    if (tn_file_write("example.tsv", tsv, strlen(tsv)) == TN_OK) {
        tn_labelled *file = tn_labelled_load("example.tsv");
        printf("%d of 3\n", (int)(tn_labelled_count(l) * 3 / tn_labelled_count(file)));
        tn_labelled_free(file);
    }
    tn_labels_free(known);
    tn_labelled_free(all);
    tn_tokenizer_free(t);
    tn_labels_free(labels);
    tn_labelled_free(l);
}

EXAMPLE(images)
{
    tn_tensor *image = tn_to(tn_reshape(tn_arange(16), TN_SHAPE(1, 4, 4)), TN_U8); /* [C, H, W] */
    if (tn_image_save("example.pgm", image) != TN_OK) return;
    tn_print(stdout, tn_image_resize(tn_image_load("example.pgm", 1, TN_U8), 2, 2, TN_BILINEAR));
    tn_tensor *bytes = tn_file_read("example.pgm", 1000);
    char       text[192];
    puts(tn_shape_text(tn_shape_of(tn_image_read(tn_data(bytes), (size_t)tn_numel(bytes), 3, TN_F32)), text,
                       sizeof text));
    tn_print(stdout, tn_image_center_crop(image, 2, 2));
    tn_image_processor p = {
        .channels = 1, .height = 2, .width = 2, .resample = TN_BICUBIC, .mean = {0.5}, .std = {0.5}};
    puts(tn_shape_text(tn_shape_of(tn_image_ready(image, &p)), text, sizeof text));
    mkdir("folder", 0777);
    if (tn_image_processor_save(&p, "folder") == TN_OK && tn_image_processor_load("folder", &p) == TN_OK)
        printf("%d x %d\n", (int)p.height, (int)p.width);
    if (tn_idx_save("example.idx", image) == TN_OK) printf("%d bytes\n", (int)tn_numel(tn_idx_load("example.idx")));
}

EXAMPLE(images_as_a_source)
{
    tn_tensor *x = tn_zeros_of(TN_U8, TN_SHAPE(5, 8, 8)), *y = tn_arange(5);
    tn_images *images = tn_images_new(.x = x, .y = y, .batch = 2, .padding = 1, .flip = true);
    tn_source  s = tn_images_source(images);
    tn_batch   b;
    char       text[192];
    if (tn_source_next(&s, &b)) puts(tn_shape_text(tn_shape_of(b.x), text, sizeof text));
    tn_images_free(images);
}

static tn_status letters(void *user, tn_text line, tn_ids *to)
{
    (void)user;
    for (size_t i = 0; i < line.bytes; i++)
        if (tn_ids_add(to, (unsigned char)line.at[i]) != TN_OK) return tn_error();
    return TN_OK;
}

EXAMPLE(corpus)
{
    const char *path = "example.txt";
    if (tn_file_write(path, "one two\nthree\n\nfour\n", 20) != TN_OK) return;
    remove("example.tokens");
    tn_corpus *c = tn_corpus_open(.files = &path, .n = 1, .cache = "example.tokens", .encoder = {letters, NULL},
                                  .vocabulary = 256);
    printf("%d documents, %d sentences, %d tokens, made %d, checksum %d\n", (int)tn_corpus_documents(c),
           (int)tn_corpus_sentences(c), (int)tn_corpus_tokens(c), tn_corpus_made(c), tn_corpus_checksum(c) != 0);
    tn_ids ids = {0};
    tn_corpus_sentence(c, 2, &ids);
    printf("%c\n", ids.at[0]);
    tn_ids_free(&ids);
    tn_mlm      *m = tn_mlm_new(c, .cls = 2, .sep = 3, .mask = 4, .rate = 0.5, .seed = 1);
    tn_mlm_batch b;
    if (tn_mlm_next(m, &b)) printf("%d rows, masked %d\n", (int)tn_size(b.ids, 0), (int)tn_numel(b.masked_at));
    printf("%d batch, %d examples, at batch %d\n", (int)tn_mlm_count(m), (int)tn_mlm_examples(m),
           (int)tn_mlm_position(m).batch);
    tn_mlm_seek(m, (tn_data_position){.epoch = 1});
    tn_mlm_shard(m, (tn_shard){.rank = 0, .of = 1});
    tn_source s = tn_mlm_source(m);
    tn_batch  from_source;
    printf("%d\n", tn_source_next(&s, &from_source));
    tn_mlm_free(m);
    tn_corpus_close(c);
}

EXAMPLE(pairs_of_lines)
{
    if (tn_file_write("example.en", "one\ntwo\n\n", 9) != TN_OK ||
        tn_file_write("example.de", "eins\nzwei\n\n", 11) != TN_OK)
        return;
    tn_pairs *p = tn_pairs_load("example.en", "example.de", .source = {letters, NULL}, .target = {letters, NULL},
                                .begin = 1, .end = 2);
    printf("%d pairs, %d dropped, line %d, %d tokens, checksum %d\n", (int)tn_pairs_count(p), (int)tn_pairs_dropped(p),
           (int)tn_pairs_line(p, 1), (int)tn_pairs_tokens(p, true), tn_pairs_checksum(p) != 0);
    tn_pairs_batches *batches = tn_pairs_batches_new(p, .tokens = 64, .seed = 1);
    tn_pairs_batch    b;
    if (tn_pairs_next(batches, &b)) tn_print(stdout, b.source);
    printf("%d, %d\n", (int)tn_pairs_batches_count(batches), (int)tn_pairs_position(batches).batch);
    tn_pairs_seek(batches, (tn_data_position){.epoch = 1});
    tn_pairs_shard(batches, (tn_shard){.rank = 0, .of = 1});
    tn_source s = tn_pairs_source(batches);
    tn_batch  from_source;
    printf("%d\n", tn_source_next(&s, &from_source));
    tn_pairs_batches_free(batches);
    tn_pairs_free(p);
    if (tn_file_write("example.tsv", "one\teins\n", 9) != TN_OK) return;
    p = tn_pairs_tsv_load("example.tsv", .source = {letters, NULL}, .target = {letters, NULL}, .end = 2);
    printf("%d\n", (int)tn_pairs_count(p));
    tn_pairs_free(p);
}

EXAMPLE(log_of_a_run)
{
    tn_runlog *log = tn_runlog_open(.jsonl = "example.jsonl", .csv = "example.csv");
    tn_runlog_put(log, 1, 2, (const char *[]){"loss", "lr"}, (double[]){2.5, 0.1});
    tn_runlog_close(log);
    tn_tensor *bytes = tn_file_read("example.jsonl", 1000);
    printf("%.*s", (int)tn_numel(bytes), (const char *)tn_data(bytes));
}

EXAMPLE(chat)
{
    const char *jinja = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
                        "{% if add_generation_prompt %}<assistant>{% endif %}";
    tn_chat    *c = tn_chat_parse(jinja, strlen(jinja));
    tn_message  said[] = {{"user", "Who wrote Faust?"}};
    tn_string   text = {0};
    tn_chat_text(c, 1, said, &text, .answer = true);
    puts(text.at);
    tn_string_free(&text);
    tn_chat_free(c);
}

EXAMPLE(figures_of_a_report)
{
    const char   *words[] = {"the", "cat"}, *labels[] = {"good", "bad"};
    const double  values[] = {0.5, -0.2}, at[] = {0, 0, 1, 1}, z[] = {0, 1, 1, 2}, similarity[] = {0.5, 0.5};
    const int64_t counts[] = {3, 1, 0, 4}, neighbours[] = {1, 0};
    tn_report    *r = tn_report_new("Figures");
    tn_report_code(r, "gpt train --text book.txt");
    tn_report_refresh(r, 0);
    tn_report_scales(r, false, true);
    tn_report_confusion(r, "Confusion matrix", 2, labels, counts);
    tn_report_values(r, "Attribution", 2, words, values);
    tn_report_trees(r, "Trees", 2, words, (int64_t[]){1, -1}, (int64_t[]){-1, 0}); /* edges of words 0 and 1 */
    tn_tensor *weights = tn_full(TN_SHAPE(1, 1, 2, 2), 0.5);                       /* [layers, heads, m, n] */
    tn_report_attention(r, "Attention", 2, words, 2, words, weights, 0, 0);
    tn_report_heatmap(r, "Alignment", 2, words, 2, words, tn_full(TN_SHAPE(2, 2), 0.5));
    tn_report_paths(r, "Paths", 2, words, tn_full(TN_SHAPE(1, 2, 2), 0.5), 0);
    tn_report_filled(r, 2, (tn_report_word[]){{"the", -1, false}, {"cat", 0.9, true}}, 1,
                     (tn_report_word[]){{"dog", 0.1, false}});
    tn_tensor *image = tn_zeros_of(TN_U8, TN_SHAPE(4, 4));
    tn_report_images(r, "Images", 1, &(tn_report_image){.image = image, .caption = "a square"});
    tn_report_choice(r, "Which", "one", true);
    tn_report_paragraph(r, "The first choice.");
    tn_report_choice_end(r);
    tn_report_surface(r, "Loss", &(tn_report_plane){.nx = 2, .ny = 2, .z = z, .x1 = 1, .y1 = 1});
    tn_report_words(
        r, "Words",
        &(tn_report_map){
            .n = 2, .near = 1, .words = words, .at = at, .neighbours = neighbours, .similarity = similarity});
    tn_report_save_figure(r, "example.svg");
    printf("%s\n", tn_status_name(tn_report_save(r, "example.html")));
    tn_report_free(r);
}

EXAMPLE(files_of_tokenizers)
{
    const char   *path = "example.txt";
    tn_tokenizer *t = NULL;
    mkdir("folder", 0777);
    if (tn_file_write(path, "low lower lowest new newer newest", 33) != TN_OK) return;
    t = tn_tokenizer_train(1, &path, .kind = TN_BYTE_BPE, .vocab_size = 270);
    if (tn_tokenizer_save(t, "folder") != TN_OK) puts(tn_error_message());
    tn_tokenizer_free(t);
    t = tn_tokenizer_load("folder");
    tn_tensor    *json = tn_file_read("folder/tokenizer.json", 1 << 20);
    tn_tokenizer *same = tn_tokenizer_parse(tn_data(json), (size_t)tn_numel(json));
    printf("%d\n", tn_tokenizer_size(t) == tn_tokenizer_size(same));
    tn_tokenizer_free(same);
    tn_tokenizer_free(t);
}

EXAMPLE(files_of_other_libraries)
{
    tn_tensor      *nothing = tn_zeros_of(TN_U8, TN_SHAPE(4));
    tn_safetensors *f = tn_torch_read(tn_data(nothing), 4); /* not what torch.save writes */
    printf("%s\n", f ? "opened" : tn_status_name(tn_error()));
    tn_clear_error();
    f = tn_torch_open("pytorch_model.bin");
    printf("%s\n", f ? "opened" : tn_status_name(tn_error()));
    tn_clear_error();
    tn_json *c = tn_json_parse_within("[1]", 3, (tn_json_limits){.depth = 2});
    printf("%d\n", (int)tn_json_count(c));
    tn_json_free(c);
    tn_json_free(tn_json_load("missing.json"));
    printf("%s\n", tn_status_name(tn_error()));
    tn_clear_error();
}

static void *my_alloc(void *user, size_t bytes)
{
    ++*(int *)user;
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}
static void my_free(void *user, void *p, size_t bytes)
{
    (void)bytes;
    --*(int *)user;
    free(p);
}

EXAMPLE(allocator_and_input_output)
{
    static int   blocks;
    tn_allocator mine = {my_alloc, my_free, &blocks};
    printf("%s\n", tn_status_name(tn_set_allocator(&mine))); /* an error if objects of the library are alive */
    tn_clear_error();
    tn_set_allocator(NULL);
    tn_clear_error();
    tn_io io = *tn_system_io(); /* the system's own calls, for wrapping */
    printf("%s\n", tn_status_name(tn_set_io(&io)));
    tn_set_io(NULL);
}

/* Rows of a CSV file, by the names of its columns. */
EXAMPLE(table_rows)
{
    static const char text[] = "street,rooms,price\n\"Elm Street, north\",3,210\nHigh Street,5,450.5\n";
    if (tn_file_write("houses.csv", text, strlen(text)) != TN_OK) return;
    tn_table *t = tn_table_open("houses.csv");
    while (tn_table_next(t)) {
        const tn_text street = tn_table_text(t, "street");
        printf("line %d: %.*s, %g\n", (int)tn_table_line(t), (int)street.bytes, street.at, tn_table_number(t, "price"));
    }
    tn_table_free(t);
}

/* Batches from JSON lines: numbers, and classes by their names. */
EXAMPLE(table_batches)
{
    static const char        text[] = "{\"width\": 1.5, \"height\": 2, \"kind\": \"cat\"}\n"
                                      "{\"width\": 7, \"height\": 9, \"kind\": \"dog\"}\n";
    static const char *const kinds[] = {"cat", "dog", NULL};
    if (tn_file_write("animals.jsonl", text, strlen(text)) != TN_OK) return;
    tn_table *t = tn_table_open(
        "animals.jsonl", .batch = 32,
        .fields = {{.name = "x", .columns = "width,height"}, {.name = "y", .columns = "kind", .classes = kinds}});
    tn_source s = tn_table_source(t);
    tn_batch  b;
    while (tn_source_next(&s, &b)) tn_print(stdout, b.x), tn_print(stdout, b.y);
    tn_table_free(t);
}
