#!/usr/bin/env python3
"""Asks serve with the official Python client of OpenAI: chat, streams, completions, embeddings, models, errors; then
measures 8 users at once, and short requests while a long one runs.

    python3 -m venv VENV && VENV/bin/pip install openai==3.57.0
    VENV/bin/python tests/outside/openai_clients.py build/bin/serve --model DIR [--tokenizer FILE] [--embeddings DIR]

DIR's folder needs a chat template for the chat calls. Exits with 77 if the client is missing, with 1 if an answer is
wrong, 8 users get less than 1.7 times the tokens per second of one after the other, or the 99th percentile of a short
request's time is above 3 times the median of one alone.
"""
import argparse
import asyncio
import statistics
import subprocess
import sys
import time

try:
    import openai
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

parser = argparse.ArgumentParser()
parser.add_argument("serve")
parser.add_argument("--model", required=True)
parser.add_argument("--tokenizer")
parser.add_argument("--embeddings")
parser.add_argument("--tokens", type=int, default=100)
parser.add_argument("--short", type=int, default=300, help="number of short requests")
given = parser.parse_args()
wrong = 0


def expect(what, good):
    global wrong
    if not good:
        print("wrong:", what)
        wrong = 1


def raises(kind, call):
    try:
        call()
    except kind:
        return True
    return False


def check(url, lm, encoder):
    client = openai.OpenAI(base_url=url, api_key="secret", max_retries=0)
    said = [{"role": "user", "content": "Tell me a story."}]
    try:
        whole = client.chat.completions.create(model=lm, messages=said, max_tokens=20, temperature=0)
    except openai.BadRequestError as e:
        expect("a model without a chat template", e.code == "no_chat_template")
    else:
        parts = client.chat.completions.create(model=lm, messages=said, max_tokens=20, temperature=0, stream=True,
                                               stream_options={"include_usage": True})
        parts = list(parts)
        text = "".join(p.choices[0].delta.content or "" for p in parts if p.choices)
        expect("a chat's stream", text == whole.choices[0].message.content)
        expect("its usage", parts[-1].usage.completion_tokens == whole.usage.completion_tokens)
        with client.chat.completions.stream(model=lm, messages=said, max_tokens=20, temperature=0) as stream:
            expect("the helper for streams", "".join(e.delta for e in stream if e.type == "content.delta") == text)
    a = client.completions.create(model=lm, prompt="Once upon a time", max_tokens=20, temperature=0)
    b = client.completions.create(model=lm, prompt="Once upon a time", max_tokens=20, temperature=0, stream=True)
    expect("a completion's stream", "".join(x.choices[0].text for x in b) == a.choices[0].text)
    expect("the models", lm in [m.id for m in client.models.list()])
    expect("a wrong model", raises(openai.NotFoundError, lambda: client.completions.create(model="x", prompt="a")))
    expect("a wrong number", raises(openai.BadRequestError, lambda: client.completions.create(model=lm, prompt="a",
                                                                                            temperature=7)))
    thief = openai.OpenAI(base_url=url, api_key="guess", max_retries=0)
    expect("a wrong key", raises(openai.AuthenticationError, lambda: thief.models.list()))
    if encoder:
        texts = ["A dog barks.", "The dog is barking.", "Stocks fell."]
        x = [d.embedding for d in client.embeddings.create(model=encoder, input=texts).data]
        y = [d.embedding for d in client.embeddings.create(model=encoder, input=texts, encoding_format="float").data]
        expect("vectors in base64", max(abs(p - q) for u, v in zip(x, y) for p, q in zip(u, v)) < 1e-7)
        near, far = (sum(p * q for p, q in zip(x[0], x[i])) for i in (1, 2))
        expect("similar sentences", near > far)
    print("calls of the client: done")


async def users(url, lm, n):
    """Seconds for n requests, one after the other and all at once."""
    client = openai.AsyncOpenAI(base_url=url, api_key="secret", max_retries=0)

    def one(i):
        return client.completions.create(model=lm, prompt=f"Once upon a time {i}", max_tokens=given.tokens, seed=i,
                                         extra_body={"stop": []})

    async def timed(work):
        before = time.perf_counter()
        made = await work
        return sum(r.usage.completion_tokens for r in made) / (time.perf_counter() - before)

    async def in_turn():
        return [await one(i) for i in range(n)]

    await one(0)
    pairs = []
    for _ in range(5):
        alone = await timed(in_turn())
        pairs.append((await timed(asyncio.gather(*(one(i) for i in range(n)))), alone))
    together, alone = max(pairs)[0], max(p[1] for p in pairs)
    ratio = statistics.median(p[0] / p[1] for p in pairs)
    print(f"{n} users: {together:.0f} tokens/s at once, {alone:.0f} one after the other, "
          f"median of 5 ratios {ratio:.2f} (at least 1.7)")
    expect("the speed of several users", ratio >= 1.7)


async def short_ones(url, lm, count):
    """The time of short requests alone, and while a long one runs."""
    client = openai.AsyncOpenAI(base_url=url, api_key="secret", max_retries=0)

    async def one():
        before = time.perf_counter()
        await client.completions.create(model=lm, prompt="Once", max_tokens=8, temperature=0)
        return time.perf_counter() - before

    alone = [await one() for _ in range(count)]
    running = True

    async def long_one():
        while running:
            await client.completions.create(model=lm, prompt="Once upon a time " * 20, max_tokens=given.tokens)

    task = asyncio.create_task(long_one())
    beside = [await one() for _ in range(count)]
    running = False
    await task
    p99, median = sorted(beside)[count * 99 // 100], statistics.median(alone)
    p99_alone = sorted(alone)[count * 99 // 100]
    print(f"a short request alone: median {median * 1e3:.1f} ms, 99th percentile {p99_alone * 1e3:.1f}")
    print(f"beside a long one: median {statistics.median(beside) * 1e3:.1f} ms, 99th percentile {p99 * 1e3:.1f}, "
          f"{p99 / median:.2f} times the median alone (below 3), {p99 / p99_alone:.2f} times the percentile alone")
    expect("the time of short requests", p99 < 3 * median)


options = [given.serve, "--port", "0", "--api-key", "secret", "--model", given.model]
options += ["--tokenizer", given.tokenizer] if given.tokenizer else []
options += ["--embeddings", given.embeddings] if given.embeddings else []
server = subprocess.Popen(options, stdout=subprocess.PIPE, text=True)
try:
    at = server.stdout.readline().strip()
    names = [m.id for m in openai.OpenAI(base_url=at, api_key="secret").models.list()]
    check(at, names[0], names[1] if len(names) > 1 else None)
    asyncio.run(users(at, names[0], 8))
    asyncio.run(short_ones(at, names[0], given.short))
finally:
    server.terminate()
    server.wait()
sys.exit(wrong)
