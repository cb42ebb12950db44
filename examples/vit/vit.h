/* vit.h — the commands of vit, and what they share. */
#ifndef TENON_EXAMPLES_VIT_VIT_H
#define TENON_EXAMPLES_VIT_VIT_H

#include "../common/train.h"

extern const command train_command, eval_command, classify_command, info_command, demo_command;

/* ---- a model (model.c) ------------------------------------------------------------------------------------------- */

/* A ViT, or the plain convolutional network beside it; and what is done to an image before. */
typedef struct {
    void              *net;
    tn_vit            *vit;  /* net, or NULL: it is the other */
    int64_t            side; /* of its images */
    int64_t            classes, filters;
    tn_image_processor processor;
} model;
#define MODEL_HELP "the model's folder"
/* Two convolutions, each with a pool behind it, and two linear layers. */
tn_sequential *convolutions_new(int64_t side, int64_t channels, int64_t filters, int64_t classes, double dropout);
bool           model_open(const char *dir, model *m); /* False: an error stands */
bool           model_save(const model *m, const char *dir);
const char    *model_label(const model *m, int64_t i);
void           model_close(model *m);

/* ---- images with labels (pictures.c) ----------------------------------------------------------------------------- */

typedef struct {
    tn_tensor *x, *y;                               /* u8 [N, C, H, W], i64 [N]: kept */
    int64_t    n, channels, height, width, classes; /* classes: the largest label and one */
} pictures;
bool pictures_open(const char *images, const char *labels, pictures *p); /* False: an error stands */
void pictures_close(pictures *p);
/* For a model of their own: mean and deviation of the pixels of the first n. */
tn_image_processor pictures_processor(const pictures *p, int64_t n);
/* Images first … first + n - 1, in order, as a source that is to be freed. */
tn_images *pictures_in_order(const pictures *p, const tn_image_processor *how, int64_t first, int64_t n, int64_t batch);
#define IMAGES_HELP "IDX: images, u8 [N, H, W] or [N, C, H, W], as MNIST's; compressed by gzip or not"
#define LABELS_HELP "IDX: their labels, from 0 on"

/* ---- measuring (eval.c) ------------------------------------------------------------------------------------------ */

typedef struct {
    int64_t  n, right, wrongs; /* wrongs: how many are listed */
    double   loss;
    int64_t *wrong, *said; /* the first of those that are wrong, and what was said of them */
    double  *sure;         /* how sure the model was */
    int64_t *table;        /* [classes, classes]: label by what was said */
    int64_t  classes;
} judged;
bool judge(const model *m, const pictures *p, int64_t first, int64_t n, judged *to);
void judged_free(judged *j);

/* ---- training (train.c) ------------------------------------------------------------------------------------------ */

typedef struct {
    training    base;
    const char *images, *labels, *shape; /* shape: "vit" or "convolutions" */
    int64_t     patch, batch, shift;
    double      held, weight_decay, smoothing;
    bool        flip;
    pictures    all;
    tn_images  *learn, *check;
    model       made;
} vit_training;
extern const train_kind vit_kind;
#define VIT_TRAINING                                                                                               \
    {                                                                                                              \
        .base = {.kind = &vit_kind,                                                                                \
                 .asked = {.dtype = "f32", .lr = 2e-3, .warmup = 0.1, .seed = 1, .size = "mini", .dropout = NAN}}, \
        .shape = "vit", .patch = 4, .batch = 64, .shift = 2, .held = 0.2, .weight_decay = 0.05, .smoothing = 0.05  \
    }
/* How many of n images are learned from; the others are measured on. */
int64_t train_part(const vit_training *t, int64_t n);

/* ---- pages (report.c) -------------------------------------------------------------------------------------------- */

/* Which are wrong, as pictures; what a ViT looks at; and the table of all. */
void report_judged(tn_report *r, const model *m, const pictures *p, const judged *j, const char *which);
void report_attention(tn_report *r, const model *m, const pictures *p, int64_t first, int64_t n);

#endif
