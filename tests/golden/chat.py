#!/usr/bin/env python3
"""Writes chat.json: conversations formatted by transformers' apply_chat_template with common templates;
tests/unit/data/test_chat.c compares Tenon's output with it.

    python3 -m venv VENV && VENV/bin/pip install transformers==5.23.0 jinja2==3.1.6
    VENV/bin/python tests/golden/chat.py
"""
import json
import os

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

TEMPLATES = {
    "llama2": "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = "
        "messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}"
        "{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) "
        "%}{{ raise_exception('roles must alternate') }}{% endif %}{% if loop.index0 == 0 and system_message != "
        "false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
        "{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token "
        "+ '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' ' + "
        "content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}",
    "llama3": "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
        "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + "
        "'<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
        "{% endif %}",
    "chatml": "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
        "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "qwen2": "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
        "'<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + "
        "message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if "
        "add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "mistral": "{{ bos_token }}{% for message in messages %}"
        "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) "
        "%}{{ raise_exception('roles must alternate') }}{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' "
        "+ message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + "
        "eos_token}}{% else %}{{ raise_exception('only user and assistant') }}{% endif %}{% endfor %}",
    "zephyr": "{% for message in messages %}\n"
        "{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] + "
        "eos_token }}\n{% elif message['role'] == 'system' %}\n{{ '<|system|>\n' + message['content'] + eos_token "
        "}}\n{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + message['content'] + eos_token "
        "}}\n{% endif %}\n{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n"
        "{% endfor %}",
}
S, U, A = "system", "user", "assistant"
TALKS = [
    [(U, "Hello")],
    [(S, "You are  terse.\n"), (U, "\u00a0 Who wrote Faust?  \u3000"), (A, " Goethe. "), (U, "And\nwhen?\n")],
    [(U, "a"), (A, "b"), (U, ""), (A, "d")],
    [(U, "no turns"), (U, "at all")],
    [(S, "rules"), (U, " x")],
    [(A, "I begin")],
    [(U, "1"), (S, "late rule"), (A, "2")],
]


def main():
    cases = []
    for kind, template in TEMPLATES.items():
        bos = "<|begin_of_text|>" if kind == "llama3" else "<s>"
        t = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), bos_token=bos, eos_token="</s>")
        for talk in TALKS:
            messages = [{"role": r, "content": c} for r, c in talk]
            for answer in (False, True):
                try:
                    text = t.apply_chat_template(messages, chat_template=template, tokenize=False,
                                                 add_generation_prompt=answer)
                except Exception as error:  # the template's own raise_exception
                    if "alternate" not in str(error) and "only" not in str(error):
                        raise
                    text = None
                if kind == "llama2" and any(r == S for r, _ in talk[1:]):
                    text = None  # the template silently omits the message
                cases.append({"kind": kind, "messages": messages, "answer": answer, "text": text})
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "chat.json"), "w", encoding="utf-8") as f:
        json.dump({"templates": TEMPLATES, "cases": cases}, f, ensure_ascii=False, indent=0)
        f.write("\n")


if __name__ == "__main__":
    main()
