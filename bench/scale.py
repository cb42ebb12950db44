"""bench/run scale: predicts the time of a training step for a number of machines. A model with a few measured
parameters is compared with 2, 3 and 4 ranks on this machine, and then applied to up to 1,024 nodes. bench/README.md
describes the model."""
import argparse
import json
import math
import os
import subprocess
import sys
import time

SHARDS, BUCKET = 12, 2 << 20  # as in bench ranks
SIZES = {'mini': (4, 256, 30522), 'base': (12, 768, 30522), 'large': (24, 1024, 30522)}  # layers, width, vocabulary
BATCH = 256 * 512  # tokens per batch, as for BERT; 15 in 100 are projected to the vocabulary


class Late(Exception):
    pass


def bench(a, *words, copies=0):
    """The JSON of a run of bench ranks, while `copies` more processes run the same."""
    left = a.end - time.monotonic()
    if left <= 1:
        raise Late
    env = dict(os.environ, OMP_NUM_THREADS='1', OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')
    for name in 'OMPI_MCA_btl_tcp_if_include', 'OMPI_MCA_oob_tcp_if_include', 'HYDRA_IFACE':
        env[name] = 'lo'
    command = [a.bench, 'ranks', *map(str, words)]
    others = [subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
              for _ in range(copies)]
    try:
        said = subprocess.run(command, env=env, capture_output=True, text=True, timeout=left)
    except subprocess.TimeoutExpired:
        raise Late from None
    finally:
        for p in others:
            p.kill()
            p.wait()
    if said.returncode:
        sys.exit(f'scale: bench ranks {" ".join(map(str, words))}: {said.stderr.strip()[-500:]}')
    return json.loads(said.stdout.strip().splitlines()[-1])


# ---- measurements
# --------------------------------------------------------------------------------------------------


def line_of(a):
    """Latency of a message in seconds, and bytes per second, between two ranks: a bucket is two messages, each with
    half of it in both directions."""
    small, large = 250, 11250  # thousands of floats: 1 MB, which is one bucket, and 45 MB
    t = {n: bench(a, '--ranks', 2, '--workload', 'reduce', '--steps', 15, '--vocab', n)['ordered_ms'] / 1e3
         for n in (small, large)}
    buckets = math.ceil(large * 4000 / (4 << 20))
    latency = max((t[small] - t[large] * small / large) / (2 - 2 * buckets * small / large), 1e-6)
    return latency, large * 4000 / max(t[large] - 2 * buckets * latency, 1e-6)


def step_of(a):
    """Seconds per shard, and seconds per step that do not depend on shards: 12 shards compared with 24 of the same
    size. One process runs on each core, as the ranks will: they share the bandwidth of memory."""
    rows = {'gpt': 12, 'bert': 24}[a.workload]
    one, two = (bench(a, '--ranks', 1, '--workload', a.workload, '--steps', 3, '--shards', k * SHARDS,
                      '--batch', k * rows, *a.small, copies=min(a.cores, 4) - 1)['step_ms'] / 1e3 for k in (1, 2))
    shard = max((two - one) / SHARDS, one / SHARDS / 2)
    return shard, max(one - SHARDS * shard, 0)


# ---- the model
# ---------------------------------------------------------------------------------------------------------


def exchange(size, nodes, latency, rate, bucket, message=0.0):
    """Seconds to sum `size` bytes over nodes: each bucket is a reduce-scatter and an all-gather, in which a node sends
    nodes - 1 messages at once, each with 1 / nodes of the bucket."""
    if nodes == 1:
        return 0.0
    buckets = math.ceil(size / bucket)
    return 2 * buckets * (latency + (nodes - 1) * message) + 2 * size * (nodes - 1) / nodes / rate


def predicted(ranks, shard, once, size, latency, rate, cores):
    """Seconds of a step of `ranks` ranks on this machine, which share the cores and the memory."""
    crowd = max(1.0, ranks / cores)
    transfer = exchange(size, ranks, latency, rate, BUCKET) * crowd
    exposed = max(transfer - shard * crowd * 2 / 3, 0)  # two thirds of a shard's time are its backward pass
    return once * crowd + math.ceil(SHARDS / ranks) * shard * crowd + exposed


def held_against(a):
    latency, rate = line_of(a)
    shard, once = step_of(a)
    size = {'gpt': 6.85e6, 'bert': 11.2e6}[a.workload] * 4
    here = {'latency_us': latency * 1e6, 'mb_s': rate / 1e6, 'shard_ms': shard * 1e3, 'once_ms': once * 1e3, 'rows': []}
    for ranks in (2, 3, 4):
        try:
            got = bench(a, '--ranks', ranks, '--workload', a.workload, '--steps', 7, *a.small)
        except Late:
            break
        want = predicted(ranks, shard, once, size, latency, rate, a.cores) * 1e3
        here['rows'].append({'ranks': ranks, 'predicted_ms': want, 'measured_ms': got['step_ms'],
                             'exchange_ms': got['blocked_ms'], 'hidden': got['hidden']})
    return here


def model(name):
    """Bytes of all gradients, and operations per batch."""
    layers, width, words = SIZES[name]
    inner = layers * 12 * width * width + width * width
    return 4.0 * (inner + words * width), 6.0 * BATCH * (inner + 0.15 * words * width)


def forecast(a, name, gbit, nodes, bucket, larger=1):
    """Each node has one shard of the batch. Returns the seconds of a shard, the seconds of waiting, and the fraction of
    a step that is not waiting."""
    size, work = model(name)
    shard = larger * work / nodes / (a.gflops * 1e9)
    transfer = exchange(size, nodes, a.latency * 1e-6, gbit * 1e9 / 8, bucket, a.message * 1e-6)
    last = transfer / math.ceil(size / bucket)  # the bucket of the first layer: no computation is left to hide it
    exposed = max(transfer - shard * 2 / 3, last)
    return shard, exposed, shard / (shard + exposed)


def forecasts(a):
    rows = []
    for name in SIZES:
        for gbit in (10, 25, 100):
            at = {n: forecast(a, name, gbit, n, 4 << 20) for n in (2 ** k for k in range(11))}
            bend = next((n for n in at if at[n][2] < 0.8), None)
            wide = forecast(a, name, gbit, 1024, 64 << 20)
            larger = 1
            while larger < 4096 and forecast(a, name, gbit, 1024, 64 << 20, larger)[2] < 0.8:
                larger *= 2
            rows.append({'size': name, 'gbit': gbit, 'step_s': at[1][0], 'efficiency': {n: at[n][2] for n in at},
                         'bends_at': bend, 'bucket_64_at_1024': wide[2], 'batch_times': larger})
    return rows


# ---- output
# ----------------------------------------------------------------------------------------------------------


def advice(r):
    if not r['bends_at']:
        return 'nothing'
    if r['bucket_64_at_1024'] >= 0.8:
        return 'buckets of 64 MiB'
    return f'buckets of 64 MiB, batch size times {r["batch_times"]}'


def tell(here, rows, a):
    print(f'This machine: {here["latency_us"]:.0f} us per message, {here["mb_s"]:.0f} MB/s; '
          f'{a.workload}: {here["shard_ms"]:.1f} ms per shard, {here["once_ms"]:.1f} ms once per step.\n')
    print('| ranks | predicted, ms | measured, ms | measured/predicted | exchange, ms | hidden |')
    print('|---' * 6 + '|')
    for r in here['rows']:
        print(f'| {r["ranks"]} | {r["predicted_ms"]:.0f} | {r["measured_ms"]:.0f} | '
              f'{r["measured_ms"] / r["predicted_ms"]:.2f} | {r["exchange_ms"]:.1f} | {r["hidden"]:.2f} |')
    print(f'\nForecast: a batch of {BATCH:,} tokens over nodes of {a.gflops:.0f} GFLOP/s, one shard each; '
          f'latency {a.latency:.0f} us, {a.message:g} us per message, '
          f'buckets of 4 MiB.\nThe fraction of a step that is not waiting:\n')
    shown = (2, 8, 32, 128, 1024)
    print('| size | Gbit/s | one node, s | ' + ' | '.join(f'{n} nodes' for n in shown) +
          ' | below 0.8 from | to change at 1024 |')
    print('|---' * (len(shown) + 5) + '|')
    for r in rows:
        print(f'| {r["size"]} | {r["gbit"]} | {r["step_s"]:.1f} | ' +
              ' | '.join(f'{r["efficiency"][n]:.2f}' for n in shown) + f' | {r["bends_at"] or "-"} | {advice(r)} |')


def main():
    p = argparse.ArgumentParser(prog='bench/run scale', description=__doc__)
    p.add_argument('--bench', default='build/bin/bench', help='path of the bench program')
    p.add_argument('--workload', choices=('gpt', 'bert'), default='gpt', help='workload to measure on this machine')
    p.add_argument('--seconds', type=float, default=60, help='maximum seconds of all measurements')
    p.add_argument('--cores', type=int, default=os.cpu_count(), help='cores that the ranks share on this machine')
    p.add_argument('--gflops', type=float, default=350, help='GFLOP/s of a node in training')
    p.add_argument('--latency', type=float, default=20, help='latency of the network in microseconds')
    p.add_argument('--message', type=float, default=1, help='cost of each message for a node in microseconds')
    p.add_argument('--json', action='store_true', help='print one JSON object instead of tables')
    p.add_argument('--tiny', action='store_true', help='use a small model, for tests')
    a = p.parse_args()
    a.end = time.monotonic() + a.seconds
    a.small = ['--layers', 1, '--d-model', 32, '--heads', 2, '--vocab', 100, '--seq', 8] if a.tiny else []
    try:
        here = held_against(a)
    except Late:
        sys.exit(f'scale: {a.seconds:.0f} seconds are not enough for the measurements on this machine; raise --seconds')
    rows = forecasts(a)
    if a.json:
        print(json.dumps({'here': here, 'forecast': rows}))
    else:
        tell(here, rows, a)


main()
