/* train.c — vit train: the parts of a training that are specific to images; common/train.c has the rest. */
#include "../repeat/repeat.h"
#include "programs/common/messages.h"
#include "programs/common/checksum.h"
#include "vit.h"

#include <math.h>
#include <string.h>

static vit_training *of(training *t) { return (vit_training *)t; }

/* Filters of the first convolution of the convolutional network. */
static int64_t filters_of(const char *size)
{
    return !strcmp(size, "tiny") ? 8 : !strcmp(size, "mini") ? 16 : !strcmp(size, "small") ? 32 : 64;
}

static bool is_vit(const vit_training *v) { return !strcmp(v->shape, "vit"); }

static int check(training *t)
{
    const tn_vit_config c = tn_vit_size(t->asked.size);
    const int           wrong = image_labels_check(of(t)->images, of(t)->labels);
    if (wrong) return wrong;
    t->load =
        is_vit(of(t)) ? "#include <tenon/extras.h>\n\ntn_vit *m = tn_vit_load(\"%s\"); /* tn_free frees it */" : "";
    if (isnan(t->asked.dropout)) t->asked.dropout = is_vit(of(t)) ? 0 : 0.2;
    if (is_vit(of(t))) return train_shape(t, c.layers, c.heads, c.dim, TRAIN_RATE);
    if (t->asked.layers || t->asked.heads) return program_usage("--layers and --heads are for --model vit");
    if (program_given("patch")) return program_stray("patch", "--model vit");
    t->asked.layers = 2, t->asked.heads = 1;
    if (!t->asked.dim) t->asked.dim = filters_of(t->asked.size);
    return 0;
}

int64_t training_count(const vit_training *t, int64_t n) { return n - (int64_t)(t->held * (double)n); }

static bool check_images(training *t)
{
    vit_training *v = of(t);
    if (!image_set_open(v->images, v->labels, &v->all)) return false;
    const image_set *p = &v->all;
    const int64_t    n = training_count(v, p->n);
    if (p->height != p->width)
        return tn_raise_false(TN_EFORMAT, "the images have %lld x %lld pixels; training needs square images",
                              (long long)p->height, (long long)p->width);
    if (is_vit(v) && p->height < v->patch)
        return tn_raise_false(TN_EINVAL,
                              "the images have %lld pixels per side, fewer than --patch %lld; choose a smaller --patch",
                              (long long)p->height, (long long)v->patch);
    if (!is_vit(v) && p->height < 4)
        return tn_raise_false(TN_EFORMAT, "the images have %lld pixels per side; convolutions need at least 4",
                              (long long)p->height);
    if (n < 1) return tn_raise_false(TN_EFORMAT, "--held leaves no training image out of %lld", (long long)p->n);
    v->made = (model){.side = p->height, .classes = p->classes, .filters = t->asked.dim};
    v->made.processor = image_set_processor(p, n);
    return true;
}

/* The training loss has label smoothing, the validation loss has none. */
static tn_tensor *loss(void *net, const tn_batch *b, void *user)
{
    const vit_training *v = user;
    return tn_cross_entropy(tn_module_call(net, b->x), b->y, .label_smoothing = v->smoothing);
}
static tn_tensor *plain_loss(void *net, const tn_batch *b, void *user)
{
    (void)user;
    return tn_cross_entropy(tn_module_call(net, b->x), b->y);
}

bool vit_open(training *t)
{
    vit_training  *v = of(t);
    const int64_t  n = training_count(v, v->all.n), batch = v->batch < n ? v->batch : n;
    const tn_scope s = tn_scope_begin();
    v->train = tn_images_new(.x = tn_narrow(v->all.x, 0, 0, n), .y = tn_narrow(v->all.y, 0, 0, n),
                             .processor = &v->made.processor, .batch = batch, .shuffle = true, .drop_last = true,
                             .padding = v->shift, .flip = v->flip, .seed = (uint64_t)t->asked.seed);
    tn_scope_end(s);
    t->fit.train = tn_images_source(v->train), t->fit.loss = loss, t->fit.user = v;
    t->fit.weight_decay = v->weight_decay, t->fit.decay = TN_DECAY_COSINE;
    if (n < v->all.n) {
        v->valid = image_set_in_order(&v->all, &v->made.processor, n, v->all.n - n, 250);
        t->fit.valid = tn_images_source(v->valid), t->fit.measure = plain_loss;
    }
    const int64_t patches = is_vit(v) ? v->made.side / v->patch : v->made.side;
    t->uniform = log((double)v->made.classes);
    t->batches = n / batch, t->width = batch * patches * patches;
    snprintf(t->each, sizeof t->each, "%lld images", (long long)batch);
    return tn_error() == TN_OK;
}

static void *new_model(training *t)
{
    vit_training      *v = of(t);
    const train_asked *a = &t->asked;
    model             *m = &v->made;
    if (!is_vit(v)) return convolutions_new(m->side, m->processor.channels, a->dim, m->classes, a->dropout);
    return tn_vit_new(.image = m->side, .patch = v->patch, .channels = m->processor.channels, .classes = m->classes,
                      .dim = a->dim, .layers = a->layers, .heads = a->heads, .ff = 2 * a->dim, .dropout = a->dropout,
                      .attention_dropout = a->dropout);
}

void vit_print_info(training *t)
{
    const vit_training *v = of(t);
    const int64_t       n = training_count(v, v->all.n);
    tell("images   %lld of %lld x %lld pixels in %lld classes; held out: %lld\n", (long long)n,
         (long long)v->all.height, (long long)v->all.width, (long long)v->all.classes, (long long)(v->all.n - n));
}

void vit_describe(const training *t, tn_json_writer *w)
{
    const vit_training *v = (const vit_training *)t;
    checksum_put(w, "images", checksum_tensor(CHECKSUM, v->all.x));
    checksum_put(w, "labels", checksum_tensor(CHECKSUM, v->all.y));
    if (t->kind == &vit_kind) { /* a new model */
        tn_json_put_string(w, "model", v->shape);
        tn_json_put_i64(w, "patch", v->patch);
    }
    tn_json_put_i64(w, "batch", v->batch);
    tn_json_put_i64(w, "shift", v->shift);
    tn_json_put_bool(w, "flip", v->flip);
    tn_json_put_double(w, "held", v->held);
    tn_json_put_double(w, "smoothing", v->smoothing);
    tn_json_put_double(w, "weight_decay", v->weight_decay);
}

static bool save(training *t, tn_fit_why why)
{
    vit_training *v = of(t);
    (void)why;
    v->made.net = t->net, v->made.vit = is_vit(v) ? t->net : NULL;
    return image_set_name(&v->all, v->made.vit) && model_save(&v->made, t->asked.out);
}

void vit_close(training *t)
{
    vit_training *v = of(t);
    tn_images_free(v->train), tn_images_free(v->valid);
    v->train = v->valid = NULL;
    image_set_close(&v->all);
}

/* Writes the report of the run: the evaluation on the held-out images and the training curves. */
void vit_show(training *t)
{
    const vit_training *v = (const vit_training *)t;
    char                path[1024];
    image_set           p;
    evaluation          j;
    if (!image_set_open(v->images, v->labels, &p)) return;
    const int64_t n = training_count(v, p.n), left = p.n - n;
    if (left && image_set_fit(&p, &v->made) && evaluate(&v->made, &p, n, left, &j)) {
        const run_page page = train_page(t, false);
        char           title[400];
        tn_report     *r = tn_report_new(run_title(&page, title));
        report_summary(r, &page, &j);
        report_evaluation(r, &v->made, &p, &j, "held-out images");
        report_attention(r, &v->made, &p, n, left);
        tn_report_heading(r, "Training");
        run_curves(r, &page);
        if (record_report(r, in_folder(t->asked.out, "report.html", path)))
            printf("accuracy %.2f %% (%lld of %lld wrong)\n", 100 * (double)j.correct / (double)j.n,
                   (long long)(j.n - j.correct), (long long)j.n);
        evaluation_free(&j);
    }
    image_set_close(&p);
}

void vit_row(training *t, const tn_batch *b, int64_t i, const tn_ids *ids, char place[64], tn_string *text)
{
    const tn_tensor *index = tn_batch_get(b, "index");
    char             label[40];
    (void)t, (void)ids;
    if (!index) return;
    snprintf(place, 64, "image %lld", (long long)tn_get_i64(index, i) + 1);
    snprintf(label, sizeof label, "label %lld", (long long)tn_get_i64(b->y, i));
    (void)!tn_string_add(text, tn_text_of(label)); /* the caller sees the error */
}

const train_kind vit_kind = {
    .title = "Training of an image classifier",
    .max_interval = 500,
    .minutes = 4,
    .check = check,
    .read = check_images,
    .open = vit_open,
    .make = new_model,
    .print_info = vit_print_info,
    .describe = vit_describe,
    .save = save,
    .close = vit_close,
    .show = vit_show,
    .next = "vit classify --model %s image.png",
    .tag = "image-classification",
    .row = vit_row,
};

/* ---- the command ------------------------------------------------------------------------------------------------- */

static vit_training asked = VIT_TRAINING;

static const option options[] = {
    OPTION_TEXT("images", 'i', "FILE", &asked.images, IMAGES_HELP, .required = true),
    OPTION_TEXT("labels", 0, "FILE", &asked.labels, LABELS_HELP),
    OPTION_REAL("held", 0, "P", &asked.held, "fraction of the images held out for evaluation, taken from the end",
                .least = 0, .most = 0.9),
    OPTION_TEXT("model", 0, "KIND", &asked.shape, "vision transformer or convolutional network",
                .choices = "vit|convolutions"),
    OPTION_INT("patch", 0, "N", &asked.patch, "width and height of a patch, in pixels", .least = 1, .most = 1024),
    OPTION_INT("batch", 'b', "N", &asked.batch, "images per step", .least = 1, .most = 65536),
    OPTION_INT("shift", 0, "N", &asked.shift, "shift each image at random by at most N pixels", .least = 0,
               .most = 1024),
    OPTION_FLAG("flip", 0, &asked.flip, "mirror each image at random, with probability 0.5"),
    OPTION_REAL("smoothing", 0, "P", &asked.smoothing, "label smoothing", .least = 0, .most = 0.9),
    OPTION_REAL("weight-decay", 0, "X", &asked.weight_decay, "weight decay of the matrices", .least = 0, .most = 10),
    TRAIN_SIZE(asked.base.asked, 's', "tiny|mini|small|base", NULL),
    TRAIN_HEADS(asked.base.asked),
    OPTION_INT("dim", 0, "N", &asked.base.asked.dim, "width; filters of convolutions (default: of --size)", .least = 1,
               .most = 65536),
    OPTION_REAL("dropout", 0, "P", &asked.base.asked.dropout, "dropout probability (default: 0; convolutions: 0.2)",
                .least = 0, .most = 0.9),
    TRAIN_RUN(asked.base.asked, "images", "4", NULL),
    TRAIN_KEEP(asked.base.asked),
    TRAIN_RANKS(asked.base.asked),
    {0},
};
const command train_command = TRAIN_COMMAND(
    "train", "train a model on labelled images", options, &asked.base,
    .text =
        "Ctrl-C saves and ends; --out DIR --resume continues, and ends with the same bits as an "
        "uninterrupted run. At the end, the model is evaluated on the held-out images, and DIR/report.html shows the "
        "misclassified images.\n\n"
        "  vit train --images animals --out pets --minutes 4\n"
        "  vit train --images images-idx3-ubyte.gz --labels labels-idx1-ubyte.gz --out digits --minutes 4\n"
        "  vit train --images images-idx3-ubyte.gz --labels labels-idx1-ubyte.gz --out plain --model convolutions");

const command verify_command = VERIFY_COMMAND("vit");
const command debug_command = DEBUG_COMMAND("vit");
