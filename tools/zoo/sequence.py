"""Series of steps that a body computes: state spaces, mixes that fade, the likeliest tags; an answer's ends."""

import numpy as np

from graph import BOOL, FLOAT, INT64
from network import TO_END
from registry import architecture

WORDS = (0, 3999)
CHARACTERS = (0, 255)


def _selective_scan(net, x, inner):
    """States of 16 for each channel, whose steps the input decides; Scan goes along time."""
    y = net.linear(x, inner, 16 + 32, bias=False)
    steps, into, out = net.split(y, [16, 16, 16], axis=2)
    steps = net.Softplus(net.linear(steps, 16, inner))
    rates = net.constant(-np.tile(np.arange(1, 17, dtype=np.float32), (inner, 1)))
    steps = net.Unsqueeze(steps, net.ints([-1]))
    decay = net.Exp(net.Mul(steps, rates))
    update = net.Mul(net.Mul(steps, net.Unsqueeze(into, net.ints([2]))), net.Unsqueeze(x, net.ints([-1])))

    def step(state, decay_now, update_now, out_now):
        state = net.Add(net.Mul(decay_now, state), update_now)
        y = net.Squeeze(net.MatMul(state, net.Unsqueeze(out_now, net.ints([-1]))), net.ints([2]))
        return {state: FLOAT, y: FLOAT}

    state_shape = [1, inner, 16]
    body = net.body(step, *[(FLOAT, state_shape)] * 3, (FLOAT, [1, 16]))
    start = net.constant(np.zeros(state_shape, np.float32))
    y = net.Scan(start, decay, update, out, body=body, num_scan_inputs=3, scan_input_axes=[1, 1, 1],
                 scan_output_axes=[1], output_count=2)[1]
    return net.Add(y, net.Mul(x, net.scale(inner)))


@architecture
def mamba(net):
    """Mamba (Gu, Dao 2023), 4 layers of 256, states of 16: a Scan along 64 tokens, causal convolutions of 4."""
    count = 64
    width = 256
    inner = 512
    ids = net.input("input_ids", [1, count], INT64, between=WORDS)
    x = net.Gather(net.weights(4000, width, fan=1), ids)
    for _ in range(4):
        y = net.linear(net.rms_norm(x, width), width, 2 * inner, bias=False)
        y, gate = net.split(y, [inner, inner], axis=2)
        y = net.conv(net.swap_last(y), inner, inner, 4, groups=inner, padding=3, dims=1, gain=1)
        y = net.silu(net.swap_last(net.slice(y, 0, count, 2)))
        y = net.Mul(_selective_scan(net, y, inner), net.silu(gate))
        x = net.Add(x, net.linear(y, inner, width, bias=False))
    net.output(net.linear(net.rms_norm(x, width), width, 4000, bias=False))


def _shift_mix(net, x, before, width):
    """Of each token and the one before it, in a share for each channel."""
    share = net.constant(net.rng.random((1, 1, width)))
    return net.Add(net.Mul(x, share), net.Mul(before, net.Sub(net.constant(1.0), share)))


def _weighted_values(net, keys, values, count, width):
    """RWKV's sums of what came before, fading, each step in a Loop; exponents are kept below the largest."""
    decay = net.constant(-np.exp(net.rng.standard_normal(width)))
    bonus = net.bias(width)

    def step(index, going_on, numerator, denominator, largest):
        key, value = [net.Gather(x, index, axis=1) for x in (keys, values)]
        top = net.Max(largest, net.Add(bonus, key))
        old = net.Exp(net.Sub(largest, top))
        new = net.Exp(net.Sub(net.Add(bonus, key), top))
        y = net.Div(net.Add(net.Mul(old, numerator), net.Mul(new, value)), net.Add(net.Mul(old, denominator), new))
        faded = net.Add(largest, decay)
        top = net.Max(faded, key)
        old = net.Exp(net.Sub(faded, top))
        new = net.Exp(net.Sub(key, top))
        return {net.Identity(going_on): BOOL, net.Add(net.Mul(old, numerator), net.Mul(new, value)): FLOAT,
                net.Add(net.Mul(old, denominator), new): FLOAT, net.Identity(top): FLOAT, y: FLOAT}

    state = FLOAT, [1, width]
    body = net.body(step, (INT64, []), (BOOL, []), state, state, state)
    zeros = net.constant(np.zeros((1, width), np.float32))
    lowest = net.constant(np.full((1, width), -1e38, np.float32))
    y = net.Loop(net.ints(count), net.constant(np.array(True)), zeros, zeros, lowest, body=body, output_count=4)[3]
    return net.transpose(y, 1, 0, 2)


@architecture
def rwkv(net):
    """RWKV-4 (Peng et al. 2023), 3 layers of 256: mixes with the token before, a Loop along 64 tokens."""
    count = 64
    width = 256
    ids = net.input("input_ids", [1, count], INT64, between=WORDS)
    x = net.layer_norm(net.Gather(net.weights(4000, width, fan=1), ids), width)
    for _ in range(3):
        y = net.layer_norm(x, width)
        before = net.Pad(y, net.ints([0, 1, 0, 0, -1, 0]), mode="constant")
        keys, values, gates = [net.linear(_shift_mix(net, y, before, width), width, width, bias=False)
                               for _ in range(3)]
        y = net.Mul(net.Sigmoid(gates), _weighted_values(net, keys, values, count, width))
        x = net.Add(x, net.linear(y, width, width, bias=False))
        y = net.layer_norm(x, width)
        before = net.Pad(y, net.ints([0, 1, 0, 0, -1, 0]), mode="constant")
        gates = net.Sigmoid(net.linear(_shift_mix(net, y, before, width), width, width, bias=False))
        keys = net.Relu(net.linear(_shift_mix(net, y, before, width), width, 4 * width, bias=False))
        y = net.linear(net.Mul(keys, keys), 4 * width, width, bias=False)
        x = net.Add(x, net.Mul(gates, y))
    net.output(net.linear(net.layer_norm(x, width), width, 4000, bias=False))


def _likeliest_tags(net, emissions, tags, count):
    """Viterbi's path: a Loop forward keeps where each best score came from, one backward follows that."""
    transitions = net.weights(1, tags, tags, fan=1)
    start = net.Add(net.pick(emissions, 0), net.bias(tags))
    rest = net.slice(emissions, 1, count, 0)

    def forward(index, going_on, scores):
        sums = net.Add(net.Unsqueeze(scores, net.ints([2])), transitions)
        sums = net.Add(sums, net.Unsqueeze(net.Gather(rest, index, axis=0), net.ints([1])))
        best = net.ReduceMax(sums, axes=[1], keepdims=0)
        return {net.Identity(going_on): BOOL, best: FLOAT, net.ArgMax(sums, axis=1, keepdims=0): INT64}

    body = net.body(forward, (INT64, []), (BOOL, []), (FLOAT, ["batch", tags]))
    yes = net.constant(np.array(True))
    scores, history = net.Loop(net.ints(count - 1), yes, start, body=body, output_count=2)
    last = net.ArgMax(net.Add(scores, net.bias(tags)), axis=1, keepdims=1)

    def backward(index, going_on, tag):
        came_from = net.Gather(history, net.Sub(net.ints(count - 2), index), axis=0)
        tag = net.GatherElements(came_from, tag, axis=1)
        return {net.Identity(going_on): BOOL, tag: INT64, net.Identity(tag): INT64}

    body = net.body(backward, (INT64, []), (BOOL, []), (INT64, ["batch", 1]))
    path = net.Loop(net.ints(count - 1), yes, last, body=body, output_count=2)[1]
    path = net.slice(net.Squeeze(path, net.ints([2])), -1, -2**63 + 1, 0, step=-1)
    return net.transpose(net.Concat(path, net.transpose(last, 1, 0), axis=0), 1, 0)


@architecture
def crf_tagger(net):
    """BiLSTM-CRF (Lample et al. 2016): 17 tags of 40 words, Viterbi's algorithm by two Loops; free batch (8)."""
    count = 40
    width = 128
    net.dims = {"batch": 8}
    ids = net.input("words", ["batch", count], INT64, between=WORDS)
    x = net.transpose(net.Gather(net.weights(4000, width, fan=1), ids), 1, 0, 2)
    x = net.reshape(net.transpose(net.lstm(x, width, 128, directions=2), 0, 2, 1, 3), 0, 0, -1)
    tags = net.transpose(net.linear(x, 256, 17), 1, 0, 2)
    emissions = net.transpose(tags, 1, 0, 2)
    path = _likeliest_tags(net, emissions, 17, count)
    net.output(tags)
    net.output(path, element_type=INT64)


# Attention and recurrence ------------------------------------------------------------------------------------------


@architecture
def xlnet(net):
    """XLNet (Yang et al. 2019), 3 layers of 384: every product an Einsum, distances shifted by reshaping; 64 tokens."""
    count = 64
    width = 384
    heads = 6
    head_width = width // heads
    ids = net.input("input_ids", [1, count], INT64, between=WORDS)
    kept = net.input("attention_mask", [1, count], between=(1, 1))
    x = net.Gather(net.weights(4000, width, fan=1), net.transpose(ids, 1, 0))
    hidden = net.Unsqueeze(net.Sub(net.constant(1.0), net.transpose(kept, 1, 0)), net.ints([0]))
    other = net.Sub(net.constant(1.0), net.Unsqueeze(net.constant(np.eye(count)), net.ints([-1])))
    hidden = net.Cast(net.Greater(net.Mul(hidden, other), net.constant(0.0)), to=FLOAT)
    hidden = net.Mul(net.Einsum(hidden, equation="ijb->bij"), net.constant(1e30))
    hidden = net.Unsqueeze(hidden, net.ints([1]))
    angles = np.outer(np.arange(count, -count, -1), 10000.0 ** (-np.arange(0, width, 2) / width))
    places = net.Unsqueeze(net.constant(np.concatenate([np.sin(angles), np.cos(angles)], 1)), net.ints([1]))

    def heads_of(y):
        weights = net.weights(width, heads, head_width, fan=width)
        return net.Einsum(y, weights, equation="ibh,hnd->ibnd")

    for _ in range(3):
        queries, keys, values, distances = [heads_of(y) for y in (x, x, x, places)]
        scores, shifted = [
            net.Einsum(net.Add(queries, net.constant(0.1 * net.rng.standard_normal((heads, head_width)))), y,
                       equation="ibnd,jbnd->bnij") for y in (keys, distances)]
        shifted = net.slice(net.reshape(shifted, 1, heads, 2 * count, count), 1, TO_END, 2)
        shifted = net.reshape(shifted, 1, heads, count, 2 * count - 1)
        shifted = net.Gather(shifted, net.Range(net.ints(0), net.ints(count), net.ints(1)), axis=3)
        scores = net.Mul(net.Add(scores, shifted), net.constant(head_width**-0.5))
        scores = net.Sub(scores, hidden)
        mixed = net.Einsum(net.Softmax(scores, axis=3), values, equation="bnij,jbnd->ibnd")
        y = net.Einsum(mixed, net.weights(width, heads, head_width, fan=width), equation="ibnd,hnd->ibh")
        x = net.layer_norm(net.Add(y, x), width)
        x = net.layer_norm(net.Add(net.feed_forward(x, width, 4 * width), x), width)
    net.output(net.transpose(x, 1, 0, 2))


@architecture
def bidaf(net):
    """BiDAF (Seo et al. 2017), 64 wide: LSTMs, characters by convolution; a text of 128, a question of 16."""
    width = 64
    words = net.weights(4000, 64, fan=1)
    characters = net.weights(256, 16, fan=1)
    filters = net.weights(64, 16, 1, 5), net.bias(64)
    highway = [[net.weights(128, 128), net.bias(128)] for _ in range(4)]
    lstm = net.weights(2, 256, 128, fan=128), net.weights(2, 256, 64, fan=64), net.weights(2, 512, fan=100)

    def encode(name, count):
        ids = net.input(f"{name}_words", [count, 1], INT64, between=WORDS)
        letters = net.input(f"{name}_characters", [count, 16], INT64, between=CHARACTERS)
        y = net.transpose(net.Gather(characters, letters), 2, 0, 1)
        y = net.Relu(net.Conv(net.Unsqueeze(y, net.ints([0])), *filters, kernel_shape=[1, 5]))
        y = net.transpose(net.Squeeze(net.ReduceMax(y, axes=[3], keepdims=0), net.ints([0])), 1, 0)
        x = net.Concat(net.Squeeze(net.Gather(words, ids), net.ints([1])), y, axis=1)
        for gate, turn in (highway[:2], highway[2:]):
            share = net.Sigmoid(net.Gemm(x, *gate, transB=1))
            turned = net.Relu(net.Gemm(x, *turn, transB=1))
            x = net.Add(net.Mul(share, turned), net.Mul(net.Sub(net.constant(1.0), share), x))
        y = net.LSTM(net.Unsqueeze(x, net.ints([1])), *lstm, hidden_size=64, direction="bidirectional",
                     output_count=3)[0]
        return net.reshape(y, count, 2 * width)

    def read(x, columns):
        """Of rows, by an LSTM of both directions."""
        y = net.lstm(net.Unsqueeze(x, net.ints([1])), columns, width, directions=2)
        return net.reshape(y, 128, 2 * width)

    text = encode("context", 128)
    question = encode("query", 16)
    of_text = net.MatMul(text, net.weights(2 * width, 1, fan=2 * width))
    of_question = net.MatMul(question, net.weights(2 * width, 1, fan=2 * width))
    both = net.MatMul(net.Mul(text, net.weights(1, 2 * width)), net.transpose(question, 1, 0))
    similar = net.Add(net.Add(both, of_text), net.transpose(of_question, 1, 0))
    asked = net.MatMul(net.Softmax(similar, axis=1), question)
    important = net.Softmax(net.ReduceMax(similar, axes=[1], keepdims=1), axis=0)
    told = net.Expand(net.ReduceSum(net.Mul(important, text), net.ints([0]), keepdims=1), net.ints([128, 2 * width]))
    x = net.Concat(text, asked, net.Mul(text, asked), net.Mul(text, told), axis=1)
    model = read(read(x, 8 * width), 2 * width)
    ends = net.Concat(x, model, axis=1), net.Concat(x, read(model, 2 * width), axis=1)
    chances = [net.Softmax(net.gemm(end, 10 * width, 1), axis=0) for end in ends]
    net.output(*chances)
    net.output(*[net.ArgMax(chance, axis=0, keepdims=0) for chance in chances], element_type=INT64)
