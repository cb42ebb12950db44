/* labelled_images.c — labelled images from two IDX files, or a folder. */
#include "vit.h"

bool image_set_open(const char *images, const char *labels, image_set *p)
{
    char text[192];
    *p = (image_set){.x = NULL};
    if (!labels && image_folder_is(images)) {
        if (image_folder_open(images, p)) return true;
        image_set_close(p);
        return false;
    }
    const tn_scope s = tn_scope_begin();
    tn_tensor     *x = tn_idx_load(images), *y = x ? tn_idx_load(labels) : NULL, *last = NULL;
    if (y && (tn_dtype_of(x) != TN_U8 || (tn_ndim(x) != 3 && tn_ndim(x) != 4) || !tn_numel(x)))
        tn_raise(TN_EFORMAT, "'%s' contains %s %s; images must be u8 [N, H, W] or [N, C, H, W]", images,
                 tn_dtype_name(tn_dtype_of(x)), tn_shape_text(tn_shape_of(x), text, sizeof text));
    else if (y && (tn_ndim(y) != 1 || tn_dtype_is_float(tn_dtype_of(y)) || tn_size(y, 0) != tn_size(x, 0)))
        tn_raise(TN_EFORMAT, "'%s' contains %s %s; labels must be integers [%lld], one for each image", labels,
                 tn_dtype_name(tn_dtype_of(y)), tn_shape_text(tn_shape_of(y), text, sizeof text),
                 (long long)tn_size(x, 0));
    if (tn_error() == TN_OK) {
        if (tn_ndim(x) == 3) x = tn_unsqueeze(x, 1);
        y = tn_to(y, TN_I64), last = tn_amax(y);
        if (last && tn_item(tn_amin(y)) < 0) tn_raise(TN_EFORMAT, "'%s' contains a label below 0", labels);
        if (last && tn_item(last) > 9999) tn_raise(TN_EFORMAT, "'%s' contains a label above 9999", labels);
    }
    if (tn_error() == TN_OK) {
        const tn_shape shape = tn_shape_of(x);
        *p = (image_set){tn_keep(x), tn_keep(y), shape.d[0], shape.d[1], shape.d[2], shape.d[3], 0, {0}};
        p->classes = (int64_t)tn_item(last) + 1;
        if (p->channels > 4)
            tn_raise(TN_EFORMAT, "'%s': %lld channels, at most 4 are supported", images, (long long)p->channels);
    }
    tn_scope_end(s);
    if (tn_error() == TN_OK) return true;
    image_set_close(p);
    return false;
}

bool image_set_fit(image_set *p, const model *m)
{
    tn_image_processor how = m->processor; /* its sizes; the values stay 0 ... 255 */
    if (p->height == m->side && p->width == m->side && p->channels == how.channels) return true;
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *x = tn_empty_of(TN_U8, TN_SHAPE(p->n, how.channels, m->side, m->side));
    how.scale = 1;
    for (int c = 0; c < 4; c++) how.mean[c] = 0, how.std[c] = 1;
    for (int64_t i = 0; i < p->n && tn_error() == TN_OK; i++) {
        const tn_scope one = tn_scope_begin();
        tn_tensor     *image = model_ready(m, &how, tn_select(p->x, 0, i));
        if (image) tn_copy_from(tn_select(x, 0, i), image);
        tn_scope_end(one);
    }
    if (tn_error() == TN_OK) {
        tn_drop(p->x);
        p->x = tn_keep(x), p->channels = how.channels, p->height = p->width = m->side;
    }
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

void image_set_close(image_set *p)
{
    tn_drop(p->x), tn_drop(p->y), tn_string_free(&p->names);
    *p = (image_set){.x = NULL};
}

tn_image_processor image_set_processor(const image_set *p, int64_t n)
{
    tn_image_processor processor = {.channels = p->channels, .height = p->height, .width = p->width};
    const int64_t      plane = p->height * p->width;
    const uint8_t     *x = tn_data(p->x);
    for (int64_t c = 0; c < p->channels; c++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < plane; k++) {
                const double v = x[(i * p->channels + c) * plane + k] / 255.0;
                sum += v, squares += v * v;
            }
        const double count = (double)(n * plane), mean = sum / count, deviation = sqrt(squares / count - mean * mean);
        processor.mean[c] = round(mean * 1e4) / 1e4,
        processor.std[c] = deviation > 1e-3 ? round(deviation * 1e4) / 1e4 : 1;
    }
    return processor;
}

tn_images *image_set_in_order(const image_set *p, const tn_image_processor *processor, int64_t first, int64_t n,
                              int64_t batch)
{
    const tn_scope s = tn_scope_begin();
    tn_images     *images = tn_images_new(.x = tn_narrow(p->x, 0, first, n), .y = tn_narrow(p->y, 0, first, n),
                                          .processor = processor, .batch = batch);
    tn_scope_end(s);
    return images;
}
