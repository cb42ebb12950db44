/* surface.c — look surface: the loss surface around a model's weights, between two models, or around networks that
 * differ only in residual connections and norms. */
#include "programs/common/checksum.h"
#include "programs/common/messages.h"
#include "look.h"
#include "twins.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char  *dir, *other, *table, *html, *images, *labels;
static texts_config config = TEXTS_CONFIG;
static int64_t      size = 25, depth, seed = 1;
static double       span = 1;
static bool         resume, transformer;
static option_list  path;

/* ---- table of losses --------------------------------------------------------------------------------------------- */

typedef struct {
    tn_surface_args a;
    double         *way; /* the path of a training, [steps, 2]; NULL: none */
    int64_t         steps;
    uint64_t        of_weights, of_texts; /* checksums of the weights of all models and of the texts */
} job;

/* The first line of the table; --resume continues a table only if it is equal. */
static void table_header(const job *j, char to[256])
{
    char weights[17], asked[17];
    checksum_text(j->of_weights, weights), checksum_text(j->of_texts, asked);
    snprintf(to, 256, "# %lld x %lld, %.9g %.9g %.9g %.9g, seed %lld, weights %s, texts %s", (long long)j->a.nx,
             (long long)j->a.ny, j->a.x0, j->a.x1, j->a.y0, j->a.y1, (long long)seed, weights, asked);
}

static double coordinate(double from, double to, int64_t i, int64_t n)
{
    return n > 1 ? from + (to - from) * (double)i / (double)(n - 1) : from;
}

/* Parses a line of five numbers separated by tabs: the first two and the last. Returns false if the line is invalid. */
static bool parse_point(tn_text x, double *column, double *row, double *value)
{
    double all[5];
    int    n = 0;
    size_t at = 0;
    while (n < 5 && at <= x.bytes) {
        const char  *tab = memchr(x.at + at, '\t', x.bytes - at);
        const size_t end = tab ? (size_t)(tab - x.at) : x.bytes;
        if (!tn_parse_double(x.at + at, end - at, &all[n]))
            all[n] = end - at == 3 && !memcmp(x.at + at, "inf", 3) ? INFINITY : NAN; /* as write_table prints it */
        n++, at = end + 1;
    }
    *column = all[0], *row = n > 1 ? all[1] : NAN, *value = n == 5 ? all[4] : NAN;
    return n == 5 && !isnan(*value);
}

static bool read_table(const job *j)
{
    char      head[256];
    int64_t   known = 0;
    tn_lines *l = tn_lines_load(table);
    table_header(j, head);
    const tn_text first = tn_lines_at(l, 0);
    if (l && (first.bytes != strlen(head) || memcmp(first.at, head, first.bytes) != 0))
        tn_raise(TN_EFORMAT,
                 "'%s' was started with another --size, --span or --seed, other weights or other texts: its first line "
                 "must be '%s'; give --table another name",
                 table, head);
    for (int64_t i = 1; i < tn_lines_count(l) && tn_error() == TN_OK; i++) {
        const tn_text x = tn_lines_at(l, i);
        double        column, row, value;
        if (!parse_point(x, &column, &row, &value) || !(row >= 0 && row < (double)j->a.ny) ||
            !(column >= 0 && column < (double)j->a.nx) || row != floor(row) || column != floor(column))
            tn_raise(TN_EFORMAT, "'%s', line %lld is not a point of this surface", table, (long long)i + 1);
        else j->a.values[(int64_t)row * j->a.nx + (int64_t)column] = value, known++;
    }
    tn_lines_free(l);
    if (known && !settings.quiet) tell("%lld points read from the table\n", (long long)known);
    return tn_error() == TN_OK;
}

static bool write_table(const job *j)
{
    tn_string s = {0};
    char      text[256];
    table_header(j, text);
    tn_string_add(&s, tn_text_of(text));
    tn_string_add(&s, tn_text_of("\n"));
    for (int64_t i = 0; i < j->a.nx * j->a.ny; i++) {
        if (isnan(j->a.values[i])) continue;
        snprintf(text, sizeof text, "%lld\t%lld\t%.9g\t%.9g\t%.17g\n", (long long)(i % j->a.nx),
                 (long long)(i / j->a.nx), coordinate(j->a.x0, j->a.x1, i % j->a.nx, j->a.nx),
                 coordinate(j->a.y0, j->a.y1, i / j->a.nx, j->a.ny), j->a.values[i]);
        tn_string_add(&s, tn_text_of(text));
    }
    const bool ok = tn_error() == TN_OK && tn_file_write(table, s.at, s.bytes) == TN_OK;
    tn_string_free(&s);
    return ok;
}

/* Computes some rows at a time and saves them, so that an interrupted run can resume. */
static bool compute_surface(job *j, const char *name)
{
    const int64_t n = j->a.nx * j->a.ny;
    if (!j->a.values) return false;
    for (int64_t i = 0; i < n; i++) j->a.values[i] = NAN;
    if (table && resume && file_exists(table) && !read_table(j)) return false;
    progress bar = progress_begin(name, j->a.ny, "row");
    for (j->a.most = 2 * tn_threads(); tn_error() == TN_OK;) {
        int64_t done = 0;
        for (int64_t i = 0; i < n; i++) done += !isnan(j->a.values[i]);
        progress_at(&bar, done / j->a.nx, "");
        if (done == n || tn_surface_run(j->a) != TN_OK || (table && !write_table(j))) break;
    }
    progress_end(&bar);
    return tn_error() == TN_OK;
}

/* ---- roughness --------------------------------------------------------------------------------------------------- */

/* Prints the minimum and maximum loss; the percentage of inner points where the loss is concave in some direction of
 * the plane; the mean over inner points of -λ_min / |λ|_max of the Hessian in the plane (0 where it is convex; Li et
 * al. 2018 use all directions); and the mean absolute second difference of log(loss + 0.001). */
static void print_roughness(const job *j, const char *name)
{
    const int64_t nx = j->a.nx, ny = j->a.ny;
    double        low = INFINITY, high = -INFINITY, rough = 0, concave = 0, ratio = 0, n = 0,
           *l = calloc((size_t)(nx * ny) + 1, sizeof *l);
    for (int64_t i = 0; i < nx * ny; i++) {
        if (isfinite(j->a.values[i])) low = fmin(low, j->a.values[i]), high = fmax(high, j->a.values[i]);
        if (l) l[i] = log(fmax(j->a.values[i], 0) + 1e-3);
    }
    for (int64_t y = 1; y + 1 < ny; y++)
        for (int64_t x = 1; x + 1 < nx; x++) {
            const double *z = &j->a.values[y * nx + x];
            const double  xx = z[1] - 2 * z[0] + z[-1], yy = z[nx] - 2 * z[0] + z[-nx];
            const double  xy = (z[nx + 1] - z[nx - 1] - z[1 - nx] + z[-nx - 1]) / 4;
            const double  centre = (xx + yy) / 2, radius = sqrt((xx - yy) * (xx - yy) / 4 + xy * xy);
            const double  least = centre - radius, largest = fabs(centre) + radius; /* absolute value */
            const double *h = l ? &l[y * nx + x] : z;
            if (!isfinite(least)) continue;
            if (least < 0) ratio += -least / largest;
            concave += least < -1e-6 * fabs(xx + yy),
                rough += fabs(h[1] - 2 * h[0] + h[-1]) + fabs(h[nx] - 2 * h[0] + h[-nx]);
            n++;
        }
    free(l);
    if (!numbers_finite(low, "the minimum loss")) return;
    printf("%s\t%.6g\t%.6g\t", name, low, high);
    if (n > 0) printf("%.2f\t%.4f\t%.6f\n", 100 * concave / n, ratio / n, rough / n);
    else printf("-\t-\t-\n"); /* a line has no inner points in the plane */
    fflush(stdout);
}

/* scale: values of all the surfaces that have one scale; NULL: only this one has it. */
static void add_figures(tn_report *r, const job *j, const char *name, const double *scale, int64_t scale_n)
{
    char            title[2][128];
    tn_report_plane p = {.nx = j->a.nx,
                         .ny = j->a.ny,
                         .z = j->a.values,
                         .x0 = j->a.x0,
                         .x1 = j->a.x1,
                         .y0 = j->a.y0,
                         .y1 = j->a.y1,
                         .steps = j->steps,
                         .path = j->way,
                         .x = "direction 1",
                         .y = "direction 2",
                         .scale = scale,
                         .scale_n = scale_n};
    if (j->a.ny == 1) {
        double *x = malloc((size_t)p.nx * sizeof *x);
        for (int64_t i = 0; x && i < p.nx; i++) x[i] = coordinate(p.x0, p.x1, i, p.nx);
        if (x)
            tn_report_curves(r, name, "position", "loss", 1, &(tn_series){.name = "loss", .n = p.nx, .x = x, .y = p.z});
        free(x);
        return;
    }
    snprintf(title[0], sizeof title[0], scale ? "%.100s" : "Loss surface", name);
    snprintf(title[1], sizeof title[1], scale ? "%.100s" : "Contour lines of the loss", name);
    p.slanted = true;
    tn_report_surface(r, title[0], &p);
    p.slanted = false;
    tn_report_surface(r, title[1], &p);
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* The mean over all targets; each target has the same weight, in any batch. */
static tn_tensor *mean_loss(void *net, void *user)
{
    const texts *t = user;
    tn_tensor   *sum = NULL;
    double       targets = 0;
    for (int64_t i = 0; i < t->n; i++) {
        tn_tensor *l = tn_mul_scalar(texts_loss(net, &t->batch[i]), (double)t->batch[i].targets);
        sum = sum ? tn_add(sum, l) : l;
        targets += (double)t->batch[i].targets;
    }
    return tn_mul_scalar(sum, 1 / targets);
}

/* All weights of a model as one vector, added to the checksum of the table; NULL: an error is set. */
static tn_tensor *weights_of(job *j, const model *m)
{
    tn_tensor *v = tn_weights_vector(m->net);
    if (v) j->of_weights = checksum_tensor(j->of_weights, v);
    return v;
}

/* Returns true if two models differ only in the values of their weights: equal names, shapes and numbers of heads. */
static bool same_shape(const model *a, const model *b)
{
    tn_each x = tn_module_each(a->net, TN_EACH_PARAMETER), y = tn_module_each(b->net, TN_EACH_PARAMETER);
    bool    more = tn_next(&x), other_more = tn_next(&y), same = more == other_more;
    while (same && more) {
        same = !strcmp(x.name, y.name) && tn_shape_equal(tn_shape_of(x.tensor), tn_shape_of(y.tensor));
        more = tn_next(&x), other_more = tn_next(&y);
        same = same && more == other_more;
    }
    x = tn_modules(a->net), y = tn_modules(b->net);
    while (same && tn_next(&x) && tn_next(&y)) {
        const tn_mha *u = tn_mha_of(x.module), *v = tn_mha_of(y.module);
        same = !u == !v && (!u || (u->heads == v->heads && u->kv_heads == v->kv_heads));
    }
    return same;
}

/* The line from the model (0) to another (1), extended by 0.5 on both sides. */
static bool line_to(job *j, const model *from, tn_tensor *here, const char *to)
{
    model m;
    if (!model_open(to, &m)) return false;
    tn_tensor *there = weights_of(j, &m);
    if (there && !same_shape(from, &m))
        tn_raise(TN_EINVAL, "'%s' and '%s' differ in more than their weights; --to needs a model of the same shape",
                 dir, to);
    else if (there) j->a.x = tn_sub(there, here);
    j->a.ny = 1, j->a.x0 = -0.5, j->a.x1 = 1.5;
    model_close(&m);
    return tn_error() == TN_OK;
}

/* The plane of the main directions of a training path: the models of --path, then the model itself. */
static bool plane_of_path(job *j, tn_tensor *here)
{
    enum { MAX_MODELS = 200 };
    tn_tensor *v[MAX_MODELS + 1], *d, *at;
    int        n = 0;
    if (path.count > MAX_MODELS)
        return tn_raise_false(TN_EINVAL, "--path names %d models, at most %d are allowed; omit some", (int)path.count,
                              MAX_MODELS);
    for (; n < path.count && tn_error() == TN_OK; n++) {
        model m;
        if (!model_open(path.value[n], &m)) return false;
        v[n] = weights_of(j, &m);
        model_close(&m);
    }
    v[n++] = here;
    if (tn_error() != TN_OK || tn_weights_path(n, v, &d, &at) != TN_OK) return false;
    j->steps = n, j->way = malloc((size_t)(2 * n) * sizeof *j->way);
    double most = 0;
    for (int i = 0; j->way && i < 2 * n; i++) j->way[i] = tn_get(at, i), most = fmax(most, fabs(j->way[i]));
    j->a.x = tn_select(d, 0, 0), j->a.y = tn_select(d, 0, 1);
    j->a.x0 = j->a.y0 = -1.2 * most, j->a.x1 = j->a.y1 = 1.2 * most;
    return j->way != NULL;
}

static void model_surface(job *j, tn_report *r)
{
    model m;
    texts t = {.n = 0};
    if (!model_open(dir, &m)) return;
    j->a.model = m.net, j->a.loss = mean_loss, j->a.user = &t;
    bool       ok = texts_open(&config, &m, &t);
    tn_tensor *here = ok ? weights_of(j, &m) : NULL;
    j->of_texts = texts_checksum(&t);
    if (!here) ok = false;
    else if (other) ok = line_to(j, &m, here, other);
    else if (path.count) ok = plane_of_path(j, here);
    else {
        j->a.x = tn_weights_direction(m.net, (uint64_t)(2 * seed));
        j->a.y = tn_weights_direction(m.net, (uint64_t)(2 * seed + 1));
    }
    if (ok && compute_surface(j, "surface")) {
        print_roughness(j, dir);
        if (r) add_figures(r, j, dir, NULL, 0);
    }
    j->a.model = NULL, j->a.user = NULL;
    texts_close(&t);
    model_close(&m);
}

enum { TWINS = 4 };

static void twin_name(int kind, char to[64])
{
    snprintf(to, 64, "%lld %slayers, %s, %s", (long long)depth, transformer ? "Transformer " : "",
             kind & 1 ? "residual" : "plain", kind & 2 ? "normalised" : "not normalised");
}

static void twin_surfaces(job *j, tn_report *r)
{
    const int64_t n = j->a.nx * j->a.ny;
    double       *all = malloc((size_t)(TWINS * n) * sizeof *all), *own = j->a.values;
    char          name[64];
    if (!all) tn_raise(TN_ENOMEM, "no memory for the surfaces");
    for (int kind = 0; kind < TWINS && tn_error() == TN_OK; kind++) {
        const tn_scope  s = tn_scope_begin();
        twin_data       data;
        const twin_kind twins = {depth, transformer, images, labels, (uint64_t)seed};
        tn_module      *m = twin_trained(&twins, kind & 1, kind & 2, &data);
        twin_name(kind, name);
        if (m) {
            j->a.model = m, j->a.loss = twin_loss, j->a.user = &data, j->a.values = all + kind * n;
            j->a.x = tn_weights_direction(m, (uint64_t)(2 * seed)),
            j->a.y = tn_weights_direction(m, (uint64_t)(2 * seed + 1));
            if (compute_surface(j, name)) print_roughness(j, name);
        }
        j->a.model = NULL, j->a.user = NULL;
        tn_module_free(m);
        tn_scope_end(s);
    }
    if (r)
        tn_report_paragraph(r, "The loss around four networks that differ only in residual connections and norms. All "
                               "heights and contour lines have one scale, so that they can be compared.");
    for (int kind = 0; r && kind < TWINS && tn_error() == TN_OK; kind++) {
        twin_name(kind, name);
        j->a.values = all + kind * n;
        add_figures(r, j, name, all, TWINS * n);
    }
    j->a.values = own;
    free(all);
}

/* Checks that no option is given that the others make useless. Returns 0 or the exit code of program_usage. */
static int check_options(void)
{
    static const char *const of_texts[] = {"text", "pairs", "target", "lines", "batch", NULL};
    static const char *const random_only[] = {"seed", "span", NULL};
    if (depth) return program_strays(of_texts, "--model, which --twins does not use");
    if (other && path.count) return program_usage("--to gives a line and --path a plane; give one of them");
    if (path.count == 1)
        return program_usage("--path names 1 model; at least 2 are needed to span a plane with --model");
    return other || path.count ? program_strays(random_only, "random directions; --to and --path replace them") : 0;
}

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    if (!depth == !dir) return program_usage("give either --model and --text, or --twins");
    if (transformer && !depth) return program_usage("--transformer needs --twins");
    if (!images != !labels || (images && (!depth || transformer)))
        return program_usage("--images and --labels belong together, to --twins without --transformer");
    if (dir && !config.file) return program_usage("--model needs --text, the texts for the loss");
    if (resume && !table) return program_usage("--resume needs --table");
    if (depth && (table || other || path.count))
        return program_usage("--twins does not work with --table, --to and --path");
    if (reject_png(html)) return EXIT_USAGE;
    const int code = check_options();
    if (code) return code;
    if (table && !resume && file_exists(table)) {
        tn_raise(TN_EINVAL, "'%s' already exists; continue it with --resume, or give --table another name", table);
        return program_end();
    }
    job j = {.a = {.nx = size, .ny = size, .x0 = -span, .x1 = span, .y0 = -span, .y1 = span}, .of_weights = CHECKSUM};
    const tn_scope s = tn_scope_begin();
    j.a.values = malloc((size_t)(size * size) * sizeof *j.a.values);
    tn_report *r = html ? report_new("loss surface", dir) : NULL;
    printf("model\tmin\tmax\tconcave %%\tratio\trough\n");
    if (!j.a.values) tn_raise(TN_ENOMEM, "no memory for the surface");
    else if (depth) twin_surfaces(&j, r);
    else model_surface(&j, r);
    if (r) write_report(r, html);
    free(j.a.values), free(j.way);
    tn_scope_end(s);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "folder of the model"),
    OPTION_TEXT("text", 't', "FILE", &config.file,
                "texts for the loss, one per line; for a tuned model, labelled texts as for bert tune"),
    OPTION_FLAG("pairs", 0, &config.pairs, "each line has two texts and a label (tuned models only)"),
    OPTION_TEXT("target", 0, "FILE", &config.target, "translations of --text, line by line (translation models only)"),
    OPTION_INT("lines", 'n', "N", &config.max_lines, "read at most N lines", .least = 1, .most = 1e7),
    OPTION_INT("batch", 'b', "N", &config.batch_size, "lines per batch", .least = 1, .most = 4096),
    OPTION_TEXT("to", 0, "DIR", &other, "evaluate the line to the model in DIR instead of a plane"),
    OPTION_LIST("path", 0, "DIR", &path,
                "earlier models of a training; evaluate the plane of their two main directions"),
    OPTION_INT("twins", 0, "DEPTH", &depth,
               "train and compare networks of DEPTH layers, with and without residual connections and norms",
               .least = 0, .most = 200),
    OPTION_FLAG("transformer", 0, &transformer, "use Transformers that reverse words for --twins"),
    OPTION_TEXT("images", 0, "FILE", &images, "train --twins on 256 digits of this IDX file, not on two spirals"),
    OPTION_TEXT("labels", 0, "FILE", &labels, "IDX file with the labels of --images"),
    OPTION_INT("size", 0, "N", &size, "points along each direction", .least = 3, .most = 401),
    OPTION_REAL("span", 0, "X", &span, "extent in each direction, relative to the norm of the weights", .least = 1e-6,
                .most = 1000),
    OPTION_SEED(0, &seed, " of the directions", .least = 0, .most = 1e9),
    OPTION_TEXT("table", 0, "FILE", &table, "file for the computed losses, which --resume continues"),
    OPTION_FLAG("resume", 'r', &resume, "compute only the points that are missing in --table"),
    OPTION_TEXT("html", 'o', "FILE", &html, "HTML page to write, or .svg file for its last figure"),
    {0}};
const command surface_command = COMMAND(
    "surface", "compute the loss surface around a model", options,
    .text = "Evaluates the loss on a plane through the model's weights, along two random directions scaled filter by "
            "filter to the norm of the weights (Li et al. 2018). Prints the minimum and maximum loss, the percentage "
            "of points where the loss is concave in some direction, the mean ratio of that curvature to the largest "
            "one, and the roughness: the mean second difference of the logarithm of the loss. Give --model and --text, "
            "or --twins.");
