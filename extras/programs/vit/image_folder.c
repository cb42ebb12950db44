/* image_folder.c — labelled images from a folder with a folder for each class, as cats/ and dogs/. */
#include "core/system/system.h"

#include "programs/common/messages.h"
#include "vit.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SIDE = 224 }; /* larger images are made smaller */

static bool is_folder(const char *path)
{
    struct stat st;
    return !tn__sys_stat(path, &st) && S_ISDIR(st.st_mode);
}

bool image_folder_is(const char *images) { return is_folder(images); }

int image_labels_check(const char *images, const char *labels)
{
    if (!is_folder(images))
        return labels ? 0 : program_usage("--labels FILE is required, unless --images is a folder: " LABELS_HELP);
    return labels ? program_usage("--labels is for a file of images; the folders in '%s' are the labels", images) : 0;
}

/* The names of files of images, and their classes. */
typedef struct {
    char   **path;
    int64_t *label, n, room, skipped;
    char     other[200]; /* the first file that is skipped */
} found;

static bool is_image(const char *name)
{
    static const char *const endings[] = {".png", ".pgm", ".ppm", ".PNG", ".PGM", ".PPM"};
    const char              *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (!strcmp(dot, endings[i])) return true;
    return false;
}

static bool add_file(found *f, const char *path, int64_t label)
{
    if (f->n == f->room) {
        const size_t more = (size_t)(2 * f->room + 64);
        char       **paths = realloc(f->path, more * sizeof *paths);
        if (paths) f->path = paths;
        int64_t *labels = paths ? realloc(f->label, more * sizeof *labels) : NULL;
        if (!labels) return tn_raise_false(TN_ENOMEM, "no memory for the names of the images");
        f->label = labels, f->room = (int64_t)more;
    }
    char *copy = malloc(strlen(path) + 1);
    if (!copy) return tn_raise_false(TN_ENOMEM, "no memory for the names of the images");
    strcpy(copy, path);
    f->path[f->n] = copy, f->label[f->n++] = label;
    return true;
}

/* Adds the images of one class. */
static bool add_class(found *f, const char *folder, int64_t label)
{
    struct dirent **e;
    char            path[1024];
    const int       n = scandir(folder, &e, NULL, alphasort);
    const int64_t   before = f->n;
    for (int i = 0; i < n; i++) {
        const char *name = e[i]->d_name;
        if (*name != '.' && tn_error() == TN_OK && !is_folder(in_folder(folder, name, path))) {
            if (is_image(name)) add_file(f, path, label);
            else if (!f->skipped++) snprintf(f->other, sizeof f->other, "%s", path);
        }
        free(e[i]);
    }
    if (n >= 0) free(e);
    if (tn_error() == TN_OK && f->n == before)
        tn_raise(TN_EFORMAT, "'%s' has no image; expected files that end in .png, .pgm or .ppm%s%s%s", folder,
                 f->skipped ? ", found '" : "", f->skipped ? f->other : "", f->skipped ? "'" : "");
    return tn_error() == TN_OK;
}

/* The classes in alphabetical order. */
static bool find_all(found *f, const char *path, image_set *p)
{
    struct dirent **e;
    char            folder[1024];
    const int       n = scandir(path, &e, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = e[i]->d_name;
        if (*name != '.' && tn_error() == TN_OK && is_folder(in_folder(path, name, folder)) &&
            add_class(f, folder, p->classes)) {
            tn_string_add(&p->names, (tn_text){name, strlen(name) + 1});
            p->classes++;
        }
        free(e[i]);
    }
    if (n >= 0) free(e);
    if (tn_error() == TN_OK && p->classes < 2)
        tn_raise(TN_EFORMAT,
                 "'%s' has %lld folders of images; expected one for each class, at least two, as cats/ and dogs/", path,
                 (long long)p->classes);
    return tn_error() == TN_OK;
}

static void swap(found *f, int64_t i, int64_t k)
{
    char *const   path = f->path[i];
    const int64_t label = f->label[i];
    f->path[i] = f->path[k], f->label[i] = f->label[k];
    f->path[k] = path, f->label[k] = label;
}

/* In an order that has all classes everywhere, always the same: images are held out from its end. */
static void shuffle(found *f)
{
    tn_generator g = {.seed = 1};
    for (int64_t i = f->n - 1; i > 0; i--) swap(f, i, tn_random_below(&g, i + 1));
}

/* The image with its shorter side resized to `side`, and its middle cut out. */
static tn_tensor *fitted(tn_tensor *image, int64_t side)
{
    const int64_t h = image ? tn_size(image, 1) : 1, w = image ? tn_size(image, 2) : 1, least = h < w ? h : w;
    if (!image || (h == side && w == side)) return image;
    if (least != side)
        image = tn_image_resize(image, (h * side + least / 2) / least, (w * side + least / 2) / least, TN_BILINEAR);
    return tn_image_center_crop(image, side, side);
}

static void read_all(const found *f, image_set *p)
{
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *first = tn_image_load(f->path[0], 0, TN_U8);
    int64_t        side = first ? tn_size(first, 1) : 1;
    if (first && tn_size(first, 2) < side) side = tn_size(first, 2);
    if (side > MOST_SIDE) side = MOST_SIDE;
    p->n = f->n, p->channels = first ? tn_size(first, 0) : 1, p->height = p->width = side;
    tn_tensor *x = tn_empty_of(TN_U8, TN_SHAPE(p->n, p->channels, side, side));
    tn_tensor *y = tn_to(tn_from_data(TN_I64, TN_SHAPE(p->n), f->label), TN_I64);
    for (int64_t i = 0; i < f->n && tn_error() == TN_OK; i++) {
        const tn_scope one = tn_scope_begin();
        tn_path_push(f->path[i]);
        tn_tensor *image = fitted(tn_image_load(f->path[i], p->channels, TN_U8), side);
        tn_path_pop();
        if (image) tn_copy_from(tn_select(x, 0, i), image);
        tn_scope_end(one);
    }
    if (tn_error() == TN_OK) p->x = tn_keep(x), p->y = tn_keep(y);
    tn_scope_end(s);
}

bool image_folder_open(const char *path, image_set *p)
{
    found f = {.path = NULL};
    if (find_all(&f, path, p)) shuffle(&f), read_all(&f, p);
    if (tn_error() == TN_OK && f.skipped)
        warn("skipped %lld files of '%s' without the ending .png, .pgm or .ppm, such as '%s'\n", (long long)f.skipped,
             path, f.other);
    for (int64_t i = 0; i < f.n; i++) free(f.path[i]);
    free(f.path), free(f.label);
    return tn_error() == TN_OK;
}

bool image_set_name(const image_set *p, tn_vit *m)
{
    const char **names =
        p->names.bytes && m && m->config.classes == p->classes ? malloc((size_t)p->classes * sizeof *names) : NULL;
    const char *at = p->names.at;
    for (int64_t i = 0; names && i < p->classes; i++, at += strlen(at) + 1) names[i] = at;
    if (names) (void)!tn_vit_set_labels(m, names);
    free(names);
    return tn_error() == TN_OK;
}
