/* core.c — examples of tensors, scopes, errors, random numbers, memory, threads and files. */
#include "show.h"

#include <stdarg.h>

EXAMPLE(errors)
{
    tn_tensor *x = tn_matmul(tn_ones(TN_SHAPE(2, 3)), tn_ones(TN_SHAPE(2, 3)));
    printf("%d %s\n%s\n", x == NULL, tn_status_name(tn_error()), tn_error_message());
    tn_clear_error(); /* calls work again */
    printf("%s\n", tn_error() == TN_OK ? "cleared" : "still set");
}

static bool half(int64_t n) { return n % 2 == 0 || tn_raise_false(TN_EINVAL, "half: %d is odd", (int)n); }

static tn_tensor *positive(int64_t n)
{
    return n > 0 ? tn_ones(TN_SHAPE(n)) : tn_raise_null(TN_EINVAL, "positive: n is %d, expected at least 1", (int)n);
}

/* The attributes of the headers, for functions of a program: exported, checked like printf, the result must be used. */
TN_API TN_PRINTF(1, 2) int say(const char *fmt, ...) TN_CHECKED;
int    say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vprintf(fmt, args);
    va_end(args);
    return n;
}

EXAMPLE(attributes)
{
    if (say("%d of %d\n", 1, 2) < 0) perror("say");
}

static void on_error(tn_status code, const char *message, void *user)
{
    (void)user;
    printf("hook: %s: %s\n", tn_status_name(code), message);
}

EXAMPLE(raising)
{
    tn_on_error(on_error, NULL);
    tn_error_break(); /* set a breakpoint there: it is called for each first error */
    half(3);
    tn_clear_error();
    positive(0);
    tn_clear_error();
    tn_on_error(NULL, NULL);
    tn_path_push("encoder");
    tn_raise(TN_EUNSUPPORTED, "no layer of this kind");
    tn_path_pop();
    puts(tn_error_message());
    tn_clear_error();
}

EXAMPLE(errors_aside)
{
    tn_error_state aside;
    tn_error_push(&aside); /* an error that is raised from here on is discarded */
    tn_tensor *x = tn_npy_load("no such file.npy");
    tn_error_pop(&aside);
    printf("%s, %s\n", x ? "loaded" : "not loaded", tn_error() ? "an error" : "no error");
}

EXAMPLE(scopes)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = tn_ones(TN_SHAPE(2));
    tn_tensor *y = tn_scope_return(s, tn_add(x, x)); /* frees x; the outer scope owns y */
    tn_print(stdout, y);
    s = tn_scope_begin();
    tn_tensor *two[] = {tn_ones(TN_SHAPE(1)), tn_zeros(TN_SHAPE(1))};
    tn_scope_return_list(s, 2, two);
    tn_print(stdout, two[0]);
}

EXAMPLE(keeping)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = tn_keep(tn_ones(TN_SHAPE(2))), *y = tn_take(tn_zeros(TN_SHAPE(2)));
    tn_scope_end(s); /* both outlive it */
    tn_print(stdout, tn_add(x, y));
    tn_drop(x);
    tn_drop(y);
}

EXAMPLE(no_grad)
{
    tn_scope s = tn_no_grad_begin();
    printf("%d\n", tn_grad_enabled());
    tn_scope_end(s);
    printf("%d\n", tn_grad_enabled());
}

EXAMPLE(making)
{
    tn_print(stdout, tn_zeros(TN_SHAPE(2, 2)));
    tn_print(stdout, tn_ones_of(TN_I64, TN_SHAPE(2)));
    tn_print(stdout, tn_full(TN_SHAPE(3), 0.5));
    tn_print(stdout, tn_full_of(TN_U8, TN_SHAPE(3), 7));
    tn_print(stdout, tn_zeros_of(TN_BOOL, TN_SHAPE(2)));
    tn_print(stdout, tn_eye(2, 3));
    tn_print(stdout, tn_eye_of(TN_I32, 2, 2));
}

EXAMPLE(making_alike)
{
    tn_tensor *x = tn_arange_of(TN_F64, 0, 3, 1);
    tn_print(stdout, tn_zeros_like(x));
    tn_print(stdout, tn_ones_like(x));
    tn_print(stdout, tn_full_like(x, 2));
    tn_tensor *y = tn_empty_like(x); /* its contents are undefined */
    tn_copy_from(y, x);
    tn_print(stdout, y);
    printf("%d %d\n", (int)tn_numel(tn_empty(TN_SHAPE(4))), (int)tn_numel(tn_empty_of(TN_I64, TN_SHAPE(2, 2))));
}

EXAMPLE(ranges)
{
    tn_print(stdout, tn_arange(4));
    tn_print(stdout, tn_arange_of(TN_F32, 1, 2, 0.25));
    tn_print(stdout, tn_linspace(0, 1, 5));
    tn_print(stdout, tn_linspace_of(TN_F64, 0, 1, 3));
}

EXAMPLE(scalars)
{
    tn_tensor *x = tn_arange_of(TN_F32, 0, 3, 1);
    tn_tensor *y = tn_pow(x, tn_scalar(3)); /* a 0-d f64 does not widen f32 */
    printf("%s\n", tn_dtype_name(tn_dtype_of(y)));
    printf("%g\n", tn_item(tn_scalar_of(TN_I64, 7)));
}

static void release(void *data, void *user)
{
    (void)data;
    printf("%s\n", (const char *)user);
}

EXAMPLE(memory_of_the_program)
{
    static float data[] = {1, 2, 3, 4};
    tn_scope     s = tn_scope_begin();
    tn_tensor   *copy = tn_from_data(TN_F32, TN_SHAPE(2, 2), data);
    tn_tensor   *view = tn_borrow(TN_F32, TN_SHAPE(4), data, release, "released");
    data[0] = 9;
    printf("%g %g\n", tn_get(copy, 0), tn_get(view, 0));
    tn_scope_end(s);
}

EXAMPLE(reading)
{
    tn_tensor *x = tn_transpose(tn_reshape(tn_arange(6), TN_SHAPE(2, 3)), 0, 1); /* [3, 2] */
    char       text[192];
    printf("%s %s, %d dims, %d elements, size %d\n", tn_dtype_name(tn_dtype_of(x)),
           tn_shape_text(tn_shape_of(x), text, sizeof text), tn_ndim(x), (int)tn_numel(x), (int)tn_size(x, -1));
    printf("strides %s, contiguous %d\n", tn_shape_text(tn_strides_of(x), text, sizeof text), tn_is_contiguous(x));
    printf("%g %g %d\n", tn_get(x, 1), tn_get_at(x, TN_SHAPE(2, -1)), (int)tn_get_i64(x, 5));
    int64_t out[6];
    if (tn_copy_out(x, TN_I64, out, sizeof out) == TN_OK) printf("%d %d\n", (int)out[0], (int)out[1]);
}

EXAMPLE(data_of_a_tensor)
{
    tn_tensor *x = tn_zeros(TN_SHAPE(3));
    float     *p = tn_data_mut(x); /* the first element; write before the next op */
    if (p) p[1] = 5;
    const float *q = tn_data(x);
    printf("%g\n", (double)q[1]);
}

EXAMPLE(writing)
{
    tn_tensor *x = tn_zeros_of(TN_I64, TN_SHAPE(2, 2));
    tn_set(x, 0, 1);
    tn_set_at(x, TN_SHAPE(1, 1), 2);
    tn_set_i64(x, 1, INT64_MAX);
    tn_print(stdout, x);
    tn_copy_in(x, TN_I64, (int64_t[]){1, 2, 3, 4}, 4 * sizeof(int64_t));
    tn_print(stdout, x);
    tn_fill(x, 7);
    tn_copy_from(tn_select(x, 0, 0), tn_scalar(5)); /* broadcasts and converts */
    tn_print(stdout, x);
}

EXAMPLE(adopt)
{
    tn_tensor *weight = tn_set_name(tn_zeros(TN_SHAPE(2)), "weight");
    tn_adopt(weight, tn_ones(TN_SHAPE(3))); /* every holder of weight sees the new elements */
    printf("%s has %d elements\n", tn_name_of(weight), (int)tn_numel(weight));
}

EXAMPLE(dtypes)
{
    for (int dt = TN_F32; dt <= TN_BOOL; dt++)
        printf("%s: %d bytes%s\n", tn_dtype_name((tn_dtype)dt), (int)tn_dtype_size((tn_dtype)dt),
               tn_dtype_is_float((tn_dtype)dt) ? ", floating" : "");
}

EXAMPLE(shapes)
{
    tn_shape a = TN_SHAPE(2, 3), b = {.n = 2, .d = {2, 3}};
    tn_dims  dims = TN_DIMS(0, -1);
    printf("%d %d %d %d\n", (int)tn_shape_numel(a), tn_shape_equal(a, b), dims.n, TN_MAX_DIMS);
    printf("%d\n", (int)tn_shape_numel(TN_SCALAR));
}

EXAMPLE(random_numbers)
{
    tn_seed(42);
    tn_print(stdout, tn_normal(TN_SHAPE(2), 0, 1));
    tn_print(stdout, tn_uniform(TN_SHAPE(2), -1, 1));
    tn_print(stdout, tn_randint(TN_SHAPE(4), 0, 10));
    tn_print(stdout, tn_bernoulli(TN_SHAPE(4), 0.5));
    tn_print(stdout, tn_permutation(4));
}

EXAMPLE(random_numbers_of)
{
    tn_print(stdout, tn_normal_of(TN_F64, TN_SHAPE(2), 0, 1));
    tn_print(stdout, tn_uniform_of(TN_F64, TN_SHAPE(2), 0, 1));
    tn_print(stdout, tn_bernoulli_of(TN_BOOL, TN_SHAPE(4), 0.5));
}

EXAMPLE(generators)
{
    tn_generator  mine = {.seed = 7};
    tn_generator *before = tn_use_generator(&mine);
    double        first = tn_get(tn_uniform(TN_SHAPE(1), 0, 1), 0);
    mine = (tn_generator){.seed = 7}; /* a value: copy it, save it, restore it */
    printf("%d\n", first == tn_get(tn_uniform(TN_SHAPE(1), 0, 1), 0));
    tn_use_generator(before);
    printf("%d\n", tn_current_generator()->seed == 1);
    uint32_t word = tn_random_u32(&mine);
    double   real = tn_random_double(&mine);
    printf("%u %.4f %d\n", word, real, (int)tn_random_below(&mine, 6));
}

EXAMPLE(versions)
{
    printf("%d.%d\n", TN_VERSION_MAJOR, TN_VERSION_MINOR);
    printf("%d\n", strlen(tn_version()) >= 5 && strlen(tn_build_info()) > 5);
    printf("%d\n", tn_has_bf16() || !tn_has_bf16()); /* whether this CPU has products of bf16 */
}

EXAMPLE(memory)
{
    tn_trim(); /* frees the cache of this thread */
    tn_reset_peak();
    tn_tensor *x = tn_zeros(TN_SHAPE(1000));
    tn_memory  m = tn_memory_now();
    printf("%d\n", m.live >= (size_t)tn_numel(x) * 4 && m.peak >= m.live);
    tn_set_cache_limit(SIZE_MAX);
    tn_set_memory_limit(m.live + 1000); /* more is an ordinary error */
    tn_tensor *y = tn_zeros(TN_SHAPE(1000, 1000));
    printf("%s\n", y ? "made" : tn_status_name(tn_error()));
    tn_clear_error();
    tn_set_memory_limit(0);
    tn_set_packing_limit(0); /* frees the packed copies of weights, and makes no others */
    printf("%d\n", tn_memory_now().packed == 0);
    tn_set_packing_limit(SIZE_MAX);
    void *p = tn_mem_get(100);
    printf("%d\n", p != NULL);
    tn_mem_put(p, 100);
}

static void fill(int64_t from, int64_t to, void *user)
{
    for (int64_t i = from; i < to; i++) ((double *)user)[i] = (double)(i * i);
}

EXAMPLE(threads)
{
    double squares[5];
    tn_set_threads(2); /* of this thread; 0 restores the default */
    tn_parallel_for(5, 2, fill, squares);
    printf("%d threads, %g\n", tn_threads(), squares[4]);
    tn_set_threads(0);
}

EXAMPLE(npy)
{
    tn_tensor *bytes = tn_npy_write(tn_arange(3));
    tn_print(stdout, tn_npy_read(tn_data(bytes), (size_t)tn_numel(bytes)));
    if (tn_npy_save("example.npy", tn_eye(2, 2)) == TN_OK) tn_print(stdout, tn_npy_load("example.npy"));
}

EXAMPLE(safetensors)
{
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_safetensors_put(w, "weight", tn_ones(TN_SHAPE(2)));
    tn_safetensors_note(w, "step", "1000");
    if (tn_safetensors_save(w, "example.safetensors") != TN_OK) puts(tn_error_message());
    tn_tensor *bytes = tn_safetensors_write(w);
    tn_safetensors_writer_free(w);

    tn_safetensors *f = tn_safetensors_open("example.safetensors");
    printf("%d tensor, step %s\n", (int)tn_safetensors_count(f), tn_safetensors_metadata(f, "step"));
    tn_print(stdout, tn_safetensors_get(f, "weight"));
    tn_safetensors_close(f);
    f = tn_safetensors_read(tn_data(bytes), (size_t)tn_numel(bytes));
    tn_safetensors_entry e = tn_safetensors_at(f, tn_safetensors_find(f, "weight"));
    printf("%s %s %d bytes\n", e.name, e.stored, (int)e.bytes);
    tn_print(stdout, tn_safetensors_get_at(f, 0));
    const char *value, *key = tn_safetensors_metadata_at(f, 1, &value);
    printf("%d %s %s\n", (int)tn_safetensors_metadata_count(f), key, value);
    tn_safetensors_close(f);
}

EXAMPLE(json)
{
    const char    *text = "{\"model\": \"bert\", \"dim\": 256, \"eps\": 1e-12, \"layers\": [1, 2], \"fast\": true}";
    tn_json       *c = tn_json_parse(text, strlen(text));
    const tn_json *layers = tn_json_get(c, "layers");
    printf("%s %d %g\n", tn_json_string(tn_json_need(c, "model")), (int)tn_json_i64(tn_json_get(c, "dim")),
           tn_json_double(tn_json_get(c, "eps")));
    printf("%d %d %d\n", (int)tn_json_count(layers), (int)tn_json_u64(tn_json_at(layers, 1)),
           tn_json_bool(tn_json_get(c, "fast")));
    printf("%d %g %d %s\n", (int)tn_json_i64_or(tn_json_get(c, "heads"), 4), tn_json_double_or(NULL, 0.5),
           tn_json_bool_or(NULL, true), tn_json_string_or(NULL, "none"));
    for (const tn_json *x = tn_json_first(c); x; x = tn_json_next(x))
        printf("%s%s", tn_json_key(x), tn_json_type_of(x) == TN_JSON_ARRAY ? " is an array, " : ", ");
    printf("%d\n", (int)tn_json_string_bytes(tn_json_get(c, "model")));
    tn_json_free(c);
}

EXAMPLE(json_writer)
{
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "model", "bert");
    tn_json_put_bytes(w, "part", "bertram", 4);
    tn_json_put_i64(w, "dim", 256);
    tn_json_put_u64(w, "seed", UINT64_MAX);
    tn_json_put_double(w, "eps", 1e-12);
    tn_json_put_float(w, "rate", 0.1F);
    tn_json_put_bool(w, "fast", true);
    tn_json_put_null(w, "parent");
    tn_json_open_array(w, "sizes");
    tn_json_put_i64(w, NULL, 1);
    tn_json_close(w);
    tn_json_close(w);
    size_t      bytes;
    const char *text = tn_json_text(w, &bytes);
    puts(text);
    if (tn_json_save(w, "example.json") != TN_OK) puts(tn_error_message());
    tn_json *read = tn_json_load_within("example.json", (tn_json_limits){.bytes = 1000});
    tn_json_writer_clear(w);
    tn_json_put(w, NULL, tn_json_get(read, "sizes"));
    puts(tn_json_text(w, NULL));
    tn_json_free(read);
    tn_json_writer_free(w);
}

EXAMPLE(text_and_files)
{
    double value;
    char   text[32];
    printf("%d\n", (int)tn_utf8_valid("caf\xc3\xa9 \xff", 7)); /* bytes before the invalid one */
    if (tn_parse_double("1e-3", 4, &value)) printf("%g\n", value);
    tn_format_double(0.1, text);
    puts(text);
    tn_format_float(0.1F, text);
    puts(text);
    if (tn_file_write("example.txt", "abc", 3) == TN_OK)
        printf("%d bytes\n", (int)tn_numel(tn_file_read("example.txt", 100)));
}

EXAMPLE(gguf)
{
    tn_gguf_writer *w = tn_gguf_writer_new();
    tn_gguf_put_string(w, "general.architecture", "llama");
    tn_gguf_put_u32(w, "llama.block_count", 5);
    tn_gguf_put_float(w, "eps", 0.5);
    tn_gguf_put_bool(w, "tied", true);
    tn_gguf_put_numbers(w, "scores", tn_ones(TN_SHAPE(2)));
    tn_gguf_open_strings(w, "tokens", 2);
    tn_gguf_add_string(w, "a", 1);
    tn_gguf_add_string(w, "bc", 2);
    tn_safetensors_put(tn_gguf_writer_tensors(w), "embd.weight", tn_ones(TN_SHAPE(2, 32)));
    tn_tensor *bytes = tn_gguf_write(w, "Q8_0");
    if (tn_gguf_save(w, "example.gguf", "F32") != TN_OK) puts(tn_error_message());
    tn_gguf_writer_free(w);

    tn_gguf *g = tn_gguf_read(tn_data(bytes), (size_t)tn_numel(bytes));
    printf("%s %d %g %d\n", tn_gguf_string_or(g, "general.architecture", ""),
           (int)tn_gguf_i64_or(g, "llama.block_count", 0), tn_gguf_double_or(g, "eps", 0),
           tn_gguf_bool_or(g, "tied", false));
    tn_print(stdout, tn_gguf_numbers(g, "scores"));
    for (tn_gguf_strings s = tn_gguf_strings_of(g, "tokens"); tn_gguf_next(&s);) printf("%.*s\n", (int)s.bytes, s.text);
    tn_gguf_value first = tn_gguf_at(g, 0), scores = tn_gguf_find(g, "scores");
    printf("%s, %d keys, scores: %s\n", first.key, (int)tn_gguf_count(g),
           scores.type == TN_GGUF_ARRAY && scores.item == TN_GGUF_F32 ? "f32" : "other");
    printf("%d packed bytes in a row\n", (int)tn_size(tn_gguf_get_packed(g, "embd.weight"), 1));
    printf("%s\n", tn_dtype_name(tn_dtype_of(tn_gguf_get_as(g, "embd.weight", TN_BF16))));
    printf("%d tensor\n", (int)tn_safetensors_count(tn_gguf_tensors(g)));
    tn_gguf_close(g);
    g = tn_gguf_open("example.gguf");
    printf("%d\n", g != NULL);
    tn_gguf_close(g);
}

EXAMPLE(packed_weights)
{
    tn_tensor *w = tn_uniform(TN_SHAPE(4, 64), -1, 1), *x = tn_ones(TN_SHAPE(1, 64)), *exact = tn_linear(x, w, NULL);
    tn_tensor *packed[] = {tn_q8_pack(w), tn_f16_pack(w), tn_q4_pack(w), tn_int8_pack(w)};
    for (int i = 0; i < 4; i++)
        printf("%d bytes, error below %s, packed %d\n", (int)tn_numel(packed[i]),
               tn_allclose(tn_linear(x, packed[i], NULL), exact, 0, 0.1) ? "0.1" : "2", tn_is_packed(packed[i]));
    char text[192];
    printf("%s %s\n", tn_dtype_name(tn_weight_dtype(packed[0])),
           tn_shape_text(tn_weight_shape(packed[0]), text, sizeof text));
    printf("%d\n", tn_allclose(tn_unpack(packed[0]), w, 0, 0.01));
}
