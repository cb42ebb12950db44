#!/usr/bin/env python3
"""Writes chat.json: conversations formatted by transformers' apply_chat_template with common templates;
tests/unit/data/test_chat.c compares Tenon's output with it.

    python3 -m venv VENV && VENV/bin/pip install transformers==5.24.0 jinja2==3.1.6
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
    "chatml-default": "{%- if not add_generation_prompt is defined %}\n    {%- set add_generation_prompt = false %}\n{"
        "%- endif %}\n{%- if messages[0]['role'] == 'system' %}\n    {{- '<|im_start|>system\\n' + messages[0]['conten"
        "t'] + '<|im_end|>\\n' }}\n{%- else %}\n    {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\"
        "n' }}\n{%- endif %}\n{%- for message in messages %}\n    {%- if (message.role == 'user') or (message.role == "
        "'system' and not loop.first) or (message.role == 'assistant' and not message.tool_calls) %}\n        {{- '<|i"
        "m_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}\n    {%- endif %}\n{%- endfor %"
        "}\n{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n{%- endif %}\n",
    "llama3.1": "{{- bos_token }}\n{%- if not date_string is defined %}\n    {%- if strftime_now is defined %}\n      "
        "  {%- set date_string = '26 Jul 2024' %}\n    {%- else %}\n        {%- set date_string = '26 Jul 2024' %}\n  "
        "  {%- endif %}\n{%- endif %}\n{%- if not tools is defined %}\n    {%- set tools = none %}\n{%- endif %}\n\n{#"
        "- The system message is taken out. #}\n{%- if messages[0]['role'] == 'system' %}\n    {%- set system_message "
        "= messages[0]['content']|trim %}\n    {%- set messages = messages[1:] %}\n{%- else %}\n    {%- set system_mes"
        "sage = \"\" %}\n{%- endif %}\n\n{{- \"<|start_header_id|>system<|end_header_id|>\\n\\n\" }}\n{%- if tools is "
        "not none %}\n    {{- \"Environment: ipython\\n\" }}\n{%- endif %}\n{{- \"Today Date: \" + date_string + \"\\n"
        "\\n\" }}\n{{- system_message }}\n{{- \"<|eot_id|>\" }}\n\n{%- for message in messages %}\n    {%- if not (mes"
        "sage.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}\n        {{- '<|start_header_"
        "id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}\n    {%- eli"
        "f 'tool_calls' in message %}\n        {{- raise_exception(\"one tool call\") }}\n    {%- endif %}\n{%- endfor"
        " %}\n{%- if add_generation_prompt %}\n    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}\n{%- e"
        "ndif %}\n",
    "gemma": "{{ bos_token }}{%- if messages[0]['role'] == 'system' -%}\n    {%- set first_user_prefix = messages[0]['"
        "content'] + '\\n\\n' -%}\n    {%- set loop_messages = messages[1:] -%}\n{%- else -%}\n    {%- set first_user_"
        "prefix = \"\" -%}\n    {%- set loop_messages = messages -%}\n{%- endif -%}\n{%- for message in loop_messages "
        "-%}\n    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}\n        {{ raise_exception(\"roles"
        " must alternate\") }}\n    {%- endif -%}\n    {%- if (message['role'] == 'assistant') -%}\n        {%- set ro"
        "le = \"model\" -%}\n    {%- else -%}\n        {%- set role = message['role'] -%}\n    {%- endif -%}\n    {{ '"
        "<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else \"\") }}\n    {%- if message['content"
        "'] is string -%}\n        {{ message['content'] | trim }}\n    {%- elif message['content'] is iterable -%}\n "
        "       {%- for item in message['content'] -%}\n            {%- if item['type'] == 'text' -%}\n               "
        " {{ item['text'] | trim }}\n            {%- endif -%}\n        {%- endfor -%}\n    {%- else -%}\n        {{ r"
        "aise_exception(\"only text\") }}\n    {%- endif -%}\n    {{ '<end_of_turn>\\n' }}\n{%- endfor -%}\n{%- if add"
        "_generation_prompt -%}\n    {{'<start_of_turn>model\\n'}}\n{%- endif -%}\n",
    "qwen3": "{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}\n{%- for message i"
        "n messages[::-1] %}\n    {%- set index = (messages|length - 1) - loop.index0 %}\n    {%- if ns.multi_step_too"
        "l and message.role == \"user\" and not(message.content.startswith('<tool_response>') and message.content.ends"
        "with('</tool_response>')) %}\n        {%- set ns.multi_step_tool = false %}\n        {%- set ns.last_query_in"
        "dex = index %}\n    {%- endif %}\n{%- endfor %}\n{%- for message in messages %}\n    {%- if (message.role == "
        "\"user\") or (message.role == \"system\" and not loop.first) %}\n        {{- '<|im_start|>' + message.role + "
        "'\\n' + message.content + '<|im_end|>' + '\\n' }}\n    {%- elif message.role == \"assistant\" %}\n        {%-"
        " set content = message.content %}\n        {%- set reasoning_content = '' %}\n        {%- if message.reasonin"
        "g_content is defined and message.reasoning_content is not none %}\n            {%- set reasoning_content = me"
        "ssage.reasoning_content %}\n        {%- else %}\n            {%- if '</think>' in content %}\n               "
        " {%- set content = content.split('</think>')[-1].lstrip('\\n') %}\n                {%- set reasoning_content "
        "= content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}\n            {%- endif %}"
        "\n        {%- endif %}\n        {%- if loop.index0 > ns.last_query_index %}\n            {%- if loop.last or "
        "(not loop.last and reasoning_content) %}\n                {{- '<|im_start|>' + message.role + '\\n<think>\\n'"
        " + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}\n            {%- else %}\n"
        "                {{- '<|im_start|>' + message.role + '\\n' + content }}\n            {%- endif %}\n        {%-"
        " else %}\n            {{- '<|im_start|>' + message.role + '\\n' + content }}\n        {%- endif %}\n        {"
        "{- '<|im_end|>\\n' }}\n    {%- endif %}\n{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|im_start|"
        ">assistant\\n' }}\n    {%- if enable_thinking is defined and enable_thinking is false %}\n        {{- '<think"
        ">\\n\\n</think>\\n\\n' }}\n    {%- endif %}\n{%- endif %}",
    "phi3": "{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>\n' + message['content'] + "
        "'<|end|>\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}{% elif m"
        "essage['role'] == 'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor "
        "%}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}",
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
    [(U, "think"), (A, "<think>\nhm\n</think>\n\nso"), (U, "why"), (A, "<think>x</think>y")],
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
                cases.append({"kind": kind, "messages": messages, "answer": answer, "begin": bos, "text": text})
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "chat.json"), "w", encoding="utf-8") as f:
        json.dump({"templates": TEMPLATES, "cases": cases}, f, ensure_ascii=False, indent=0)
        f.write("\n")


if __name__ == "__main__":
    main()
