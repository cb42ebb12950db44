/* test_errors.c — the error of a thread: kept, shown, passed to a hook, set aside, restored; and the path before it. */
#include "autograd/autograd.h"
#include "core/core.h"
#include "tests/common/check_main.h"

#include <pthread.h>

static void says(tn_status code, const char *text)
{
    ck_assert_msg(tn_error() == code, "%s: %s", tn_status_name(tn_error()), tn_error_message());
    ck_assert_str_eq(tn_error_message(), text);
    tn_clear_error();
}

TEST(the_first_stands)
{
    ck_assert_str_eq(tn_error_message(), "");
    ck_assert(!tn_blocked());
    ck_assert_int_eq(tn_raise(TN_EINDEX, "first %d", 1), TN_EINDEX);
    ck_assert_int_eq(tn_raise(TN_EIO, "second"), TN_EINDEX);
    ck_assert_str_eq(tn_error_message(), "first 1 (1 later call skipped)");
    ck_assert_ptr_null(tn_ones(TN_SHAPE(2)));
    ck_assert(tn_blocked());
    says(TN_EINDEX, "first 1 (3 later calls skipped)");
    ck_assert_int_eq(tn_error(), TN_OK);
    for (int s = TN_OK; s <= TN_ENUMERIC; s++) ck_assert(!strncmp(tn_status_name((tn_status)s), "TN_", 3));
}

/* An error may be wrapped in another text. */
TEST(a_new_error_may_quote_the_old)
{
    tn_raise(TN_EIO, "the disk is full, and so on and so forth");
    const char *old = tn_error_message();
    tn_clear_error();
    tn_raise(TN_EIO, "while saving: %s; %s", old, old + 4);
    says(TN_EIO, "while saving: the disk is full, and so on and so forth; disk is full, and so on and so forth");
}

typedef struct {
    int       calls;
    tn_status code;
    char      text[100];
} heard;
static void listen(tn_status code, const char *message, void *user)
{
    heard *h = user;
    h->calls++, h->code = code;
    snprintf(h->text, sizeof h->text, "%s", message);
    tn_raise(TN_EIO, "another");
}
static void veto(tn_status code, const char *message, void *user)
{
    (void)code, (void)message, (void)user;
    tn_clear_error();
    ck_assert_ptr_nonnull(tn_ones(TN_SHAPE(2))); /* it may use the library */
}

TEST(hooks_listen_and_cannot_veto)
{
    heard h = {0};
    tn_on_error(listen, &h);
    tn_path_push("encoder");
    tn_mul(tn_ones(TN_SHAPE(2)), tn_ones(TN_SHAPE(3)));
    tn_path_pop();
    ck_assert_int_eq(h.calls, 1); /* only for the first error */
    ck_assert_int_eq(h.code, TN_ESHAPE);
    ck_assert_str_eq(h.text,
                     "encoder: mul: shapes [2] and [3] do not broadcast: dim -1 is 2 in one and 3 in the other");
    ck_error_code(TN_ESHAPE);
    tn_on_error(veto, NULL);
    ck_assert_ptr_null(tn_zeros(TN_SHAPE(-1)));
    tn_on_error(NULL, NULL);
    says(TN_ESHAPE, "tn_zeros: [-1] has a negative size in dim 0");
    tn_raise(TN_EINVAL, "nobody listens");
    ck_assert_int_eq(h.calls, 1);
    tn_clear_error();
}

TEST(put_aside_and_brought_back)
{
    tn_error_state outer, inner;
    tn_raise(TN_EIO, "outer");
    tn_raise(TN_EIO, "skipped");
    tn_error_push(&outer);
    ck_assert_ptr_nonnull(tn_ones(TN_SHAPE(2)));
    tn_raise(TN_EINVAL, "inner");
    tn_error_push(&inner);
    tn_raise(TN_EFORMAT, "forgotten");
    tn_error_pop(&inner);
    ck_assert_str_eq(tn_error_message(), "inner");
    tn_error_pop(&outer);
    says(TN_EIO, "outer (1 later call skipped)");
    tn_error_push(&outer); /* no error is a state, too */
    tn_raise(TN_EINVAL, "a probe");
    tn_error_pop(&outer);
    ck_assert_int_eq(tn_error(), TN_OK);
}

TEST(paths)
{
    char long_name[600];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    tn_scope s = tn_scope_begin();
    tn_path_push("encoder"), tn_path_push(""), tn_path_push(NULL), tn_path_push("layers.3");
    tn_raise(TN_EINVAL, "here");
    says(TN_EINVAL, "encoder.layers.3: here");
    tn_scope_end(s); /* pops the rest */
    tn_raise(TN_EINVAL, "nowhere");
    says(TN_EINVAL, "nowhere");
    for (int i = 0; i < 200; i++) tn_path_push("x"); /* the first 64 are named */
    tn_raise(TN_EINVAL, "deep");
    ck_assert_uint_eq(strlen(tn_error_message()), 2 * 64 - 1 + strlen(": deep"));
    tn_clear_error();
    for (int i = 0; i < 200; i++) tn_path_pop();
    tn_path_pop(); /* one pop too many is harmless */
    tn_path_push(long_name);
    tn_raise(TN_EINVAL, "%s%s", long_name, long_name); /* truncated, and NUL-terminated */
    ck_assert_uint_eq(strlen(tn_error_message()), sizeof((tn_error_state *)0)->text - 1);
    tn_path_pop();
    tn_clear_error();
}

static void *alone(void *unused)
{
    (void)unused;
    ck_assert_int_eq(tn_error(), TN_OK);
    tn_raise(TN_EIO, "of the other thread");
    return NULL;
}

TEST(each_thread_has_its_own)
{
    pthread_t t;
    tn_raise(TN_EINVAL, "mine");
    ck_assert_int_eq(pthread_create(&t, NULL, alone, NULL), 0);
    pthread_join(t, NULL);
    says(TN_EINVAL, "mine");
}

static bool refuses(tn_ctx *c) { return tn_infer_fail(c, TN_EUNSUPPORTED, "not %s %d times", "seven", 7); }
static void no_forward(tn_ctx *c) { (void)c; }

TEST(ops_complain_by_name)
{
    const tn_op op = {.size = sizeof(tn_op), .name = "picky", .inputs = 1, .infer = refuses, .forward = no_forward};
    tn_path_push("head");
    ck_assert_ptr_null(tn_apply(&op, tn_ones(TN_SHAPE(2))));
    tn_path_pop();
    says(TN_EUNSUPPORTED, "head: picky: not seven 7 times");
}
