"""The workload lora of bench/ with PEFT and transformers: adapters of rank 8 on all linear layers of a LLaMA, whose
weights are frozen, in f32. bench/compare.py runs it alternately with Tenon.

    bench/peers/python peft bench/peers/peft_workloads.py lora --threads 2 --seconds 5
"""
import peft
import torch

from sizes import best_of, options, report

RANK = 8
o = None  # the options of the run


def lora():
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=o.vocab, hidden_size=o.d_model, intermediate_size=o.ffn, num_hidden_layers=o.layers,
        num_attention_heads=o.heads, num_key_value_heads=o.heads, max_position_embeddings=o.seq,
        tie_word_embeddings=True, use_cache=False))
    model = get_peft_model(model, LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear",
                                             task_type="CAUSAL_LM")).train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, 1e-4, weight_decay=0.01)
    x = torch.randint(0, o.vocab, (o.batch, o.seq))

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=o.dtype == "bf16"):
            value = model(input_ids=x, labels=x).loss
        value.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()

    for _ in range(3):
        step()
    best, n = best_of(step, 3, o.seconds)
    return dict(step_ms=round(best * 1e3, 3), tok_s=round(o.batch * o.seq / best), steps=n,
                params=sum(p.numel() for p in model.parameters()))


def main():
    global o
    o = options({"lora": lora}, ("f32", "bf16", "q8_0", "int8"))  # the last two are for Tenon: the weights are f32
    torch.manual_seed(0)
    torch.set_num_threads(o.threads)
    report(o, "PEFT " + peft.__version__, lora())


main()
