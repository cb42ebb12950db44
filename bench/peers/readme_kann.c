/* readme_kann.c — README's program with KANN, for bench/readme: with tanh and RMSprop, as it has neither GELU nor
 * AdamW. */
#include <kann.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 64 };

int main(void)
{
    static float x[BATCH], y[BATCH];
    kad_srand(0, 1);
    kad_node_t *t = kad_tanh(kann_layer_dense(kann_layer_input(1), 32));
    kann_t     *net = kann_new(kann_layer_cost(t, 1, KANN_C_MSE), 0);
    const int   n = kann_size_var(net);
    float      *mean_square = calloc((size_t)n, sizeof *mean_square), *px = x, *py = y;
    if (!mean_square) return 1;
    kann_switch(net, 1);
    kann_set_batch_size(net, BATCH);
    kann_feed_bind(net, KANN_F_IN, 0, &px);
    kann_feed_bind(net, KANN_F_TRUTH, 0, &py);
    for (int step = 0; step <= 1000; step++) {
        for (int i = 0; i < BATCH; i++) x[i] = (float)(kad_drand(0) * 6 - 3), y[i] = sinf(x[i]);
        const float loss = kann_cost(net, 0, 1);
        if (step % 200 == 0) printf("%4d  %.5f\n", step, (double)loss);
        kann_RMSprop(n, 0.01f, 0, 0.9f, net->g, net->x, mean_square);
    }
    free(mean_square);
    kann_delete(net);
    return 0;
}
