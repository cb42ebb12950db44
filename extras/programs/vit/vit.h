/* vit.h — the commands of the program vit, and the functions that they share. */
#ifndef TENON_EXTRAS_PROGRAMS_VIT_VIT_H
#define TENON_EXTRAS_PROGRAMS_VIT_VIT_H

#include "programs/common/train.h"

extern const command train_command, tune_command, verify_command, debug_command, eval_command, classify_command,
    info_command, export_command, demo_command;

/* ---- a model (model.c) ------------------------------------------------------------------------------------------- */

/* A ViT or a convolutional network, and the preprocessing of its images. */
typedef struct {
    void              *net;
    tn_vit            *vit;  /* same object as net; NULL: a convolutional network */
    int64_t            side; /* height and width of the images, in pixels */
    int64_t            classes, filters;
    tn_image_processor processor;
} model;
#define MODEL_HELP "folder of the model"
/* Two convolutions, each followed by max pooling, and two linear layers. */
tn_sequential *convolutions_new(int64_t side, int64_t channels, int64_t filters, int64_t classes, double dropout);
bool           model_open(const char *dir, model *m);     /* returns false if an error is set */
bool           model_open_any(const char *dir, model *m); /* also a model without classifier: classes is 0 */
bool           model_save(const model *m, const char *dir);
/* The name of class i, valid until m is closed. A convolutional network has only its number, written to `number`. */
enum { LABEL_NUMBER = 24 };
const char *model_label(const model *m, int64_t i, char number[LABEL_NUMBER]);
void        model_close(model *m);
/* tn_image_ready; raises if the result does not have the size of the model's input. image NULL: NULL. */
tn_tensor *model_ready(const model *m, const tn_image_processor *how, const tn_tensor *image);

/* ---- labelled images (labelled_images.c) ------------------------------------------------------------------------- */

typedef struct {
    tn_tensor *x, *y;                               /* owned; images u8 [N, C, H, W], labels i64 [N] */
    int64_t    n, channels, height, width, classes; /* classes: the largest label + 1 */
    tn_string  names;                               /* of the classes, each with its NUL; empty: numbers */
} image_set;
/* From two IDX files, or with labels NULL from a folder; returns false if an error is set. */
bool image_set_open(const char *images, const char *labels, image_set *p);
/* From a folder with a folder for each class (image_folder.c). */
bool image_folder_is(const char *images);
bool image_folder_open(const char *path, image_set *p);
int  image_labels_check(const char *images, const char *labels); /* 0, or program_usage */
bool image_set_name(const image_set *p, tn_vit *m);              /* gives the names to the classes of m */
/* Converts all images to the size and the channels of the model's input, if they have others, as its processor does. */
bool image_set_fit(image_set *p, const model *m);
void image_set_close(image_set *p);
/* The preprocessing for a new model: mean and standard deviation of the pixels of the first n images. */
tn_image_processor image_set_processor(const image_set *p, int64_t n);
/* A source of the images first … first + n - 1, in order; the caller frees it with tn_images_free. */
tn_images *image_set_in_order(const image_set *p, const tn_image_processor *processor, int64_t first, int64_t n,
                              int64_t batch);
#define IMAGES_HELP                                                                                                  \
    "a folder with a folder of PNG, PGM or PPM files for each class, or an IDX file of images, u8 [N, H, W] or [N, " \
    "C, H, W], optionally gzip-compressed"
#define LABELS_HELP "IDX file of the labels, integers from 0, one per image; not for a folder"

/* ---- evaluation (eval.c) ----------------------------------------------------------------------------------------- */

typedef struct {
    int64_t  n, correct, listed; /* listed: length of wrong, predicted and probability */
    double   loss;
    int64_t *wrong, *predicted; /* indices of the first misclassified images, and their predicted classes */
    double  *probability;       /* the probabilities of these predictions */
    int64_t *confusion;         /* confusion matrix [classes, classes]: counts by label and prediction */
    int64_t  classes;
} evaluation;
bool evaluate(const model *m, const image_set *p, int64_t first, int64_t n, evaluation *to);
void evaluation_free(evaluation *j);

/* ---- training (train.c) ------------------------------------------------------------------------------------------ */

typedef struct {
    training    base;
    const char *images, *labels, *shape; /* shape: "vit" or "convolutions" */
    int64_t     patch, batch, shift;
    double      held, weight_decay, smoothing;
    bool        flip;
    image_set   all;
    tn_images  *train, *valid; /* the training set and the held-out images */
    model       made;
} vit_training;
extern const train_kind vit_kind;
#define VIT_TRAINING                                                                                               \
    {                                                                                                              \
        .base = {.kind = &vit_kind,                                                                                \
                 .asked = {.dtype = "f32", .lr = 2e-3, .warmup = 0.1, .seed = 1, .size = "mini", .dropout = NAN}}, \
        .shape = "vit", .patch = 4, .batch = 64, .shift = 2, .held = 0.2, .weight_decay = 0.05, .smoothing = 0.05  \
    }
/* The number of training images out of n; the others, at the end, are the validation set. */
int64_t training_count(const vit_training *t, int64_t n);
/* The parts of vit_kind that vit tune has, too. */
bool vit_open(training *t);
void vit_print_info(training *t);
void vit_describe(const training *t, tn_json_writer *w);
void vit_close(training *t);
void vit_show(training *t);
void vit_row(training *t, const tn_batch *b, int64_t row, const tn_ids *ids, char place[64], tn_string *text);

/* ---- pages (report.c) -------------------------------------------------------------------------------------------- */

/* Adds the misclassified images and the confusion matrix; adds the attention of a ViT on one image of each class. */
void report_summary(tn_report *r, const run_page *p, const evaluation *j); /* the accuracy and the run's facts */
void report_evaluation(tn_report *r, const model *m, const image_set *p, const evaluation *j, const char *which);
void report_attention(tn_report *r, const model *m, const image_set *p, int64_t first, int64_t n);

#endif
