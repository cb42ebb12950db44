/* main.c — vit: image classifiers. Each command has its own file. */
#include "vit.h"

int main(int argc, char **argv)
{
    const command commands[] = {train_command, eval_command, classify_command, info_command, demo_command, {0}};
    const program vit = {
        .name = "vit",
        .summary = "image classifiers",
        .commands = commands,
        .world = PROGRAM_WORLD,
        .text =
            "Train one on images with labels, measure it, and let it say what is in others:\n\n"
            "  vit train --images images-idx3-ubyte.gz --labels labels-idx1-ubyte.gz --out digits\n"
            "  vit eval --model digits --images other-idx3-ubyte --labels other-idx1-ubyte\n"
            "  vit classify --model digits photo.png\n\n"
            "vit demo trains two of them, with patches and with convolutions, and compares them. The folder of a ViT "
            "is what Hugging Face's libraries open, and theirs are opened here: ViT's and DeiT's.",
    };
    return program_main(&vit, argc, argv);
}
