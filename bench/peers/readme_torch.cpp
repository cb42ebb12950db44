/* readme_torch.cpp — README's program with libtorch, for bench/readme. */
#include <cstdio>
#include <torch/torch.h>

int main()
{
    torch::manual_seed(1);
    torch::nn::Sequential net(torch::nn::Linear(1, 32), torch::nn::GELU(), torch::nn::Linear(32, 1));
    torch::optim::AdamW opt(net->parameters(), torch::optim::AdamWOptions(1e-2));
    for (int step = 0; step <= 1000; step++) {
        torch::Tensor x = torch::rand({64, 1}) * 6 - 3;
        torch::Tensor loss = torch::mse_loss(net->forward(x), torch::sin(x));
        if (step % 200 == 0) std::printf("%4d  %.5f\n", step, loss.item<double>());
        opt.zero_grad();
        loss.backward();
        opt.step();
    }
}
