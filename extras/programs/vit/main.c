/* main.c — vit: image classifiers. Each command has its own file. */
#include "vit.h"

int main(int argc, char **argv)
{
    const command commands[] = {train_command,    tune_command, verify_command, debug_command, eval_command,
                                classify_command, info_command, export_command, demo_command,  {0}};
    const program vit = {
        .name = "vit",
        .summary = "train and use image classifiers",
        .commands = commands,
        .world = PROGRAM_WORLD,
        .text =
            "Train a classifier on labelled images, or a published one further, evaluate it, and classify other "
            "images:\n\n"
            "  vit train --images images-idx3-ubyte.gz --labels labels-idx1-ubyte.gz --out digits\n"
            "  vit tune --model deit --images images-idx3-ubyte.gz --labels labels-idx1-ubyte.gz --out tuned\n"
            "  vit eval --model digits --images other-idx3-ubyte --labels other-idx1-ubyte\n"
            "  vit classify --model digits photo.png\n\n"
            "'vit demo' trains a vision transformer and a convolutional network on MNIST and compares them. Hugging "
            "Face's libraries open the folder of a ViT, and vit opens their ViT and DeiT models.",
    };
    return program_main(&vit, argc, argv);
}
