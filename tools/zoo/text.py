"""Text, beyond layers of attention: places computed in the graph, caches of two kinds, routes to experts."""

import math

from onnx import helper

from graph import BOOL, FLOAT, INT64
from language import HEAD_WIDTH, IDS, VOCABULARY, FreeShapes
from network import TO_END
from registry import architecture

FLOAT_LOWEST = -3.4028234663852886e38
ONES = (1, 1)


# Encoders ----------------------------------------------------------------------------------------------------------


def _free_heads(net, shapes, x, heads, head_width):
    """[batch, heads, count, head_width]."""
    shape = shapes.shape(shapes.dim(x, 0), -1, heads, head_width)
    return net.transpose(net.Reshape(x, shape), 0, 2, 1, 3)


def _free_join(net, shapes, x, width):
    y = net.transpose(x, 0, 2, 1, 3)
    return net.Reshape(y, shapes.shape(shapes.dim(y, 0), shapes.dim(y, 1), width))


@architecture
def minilm(net):
    """all-MiniLM-L6 (Reimers, Gurevych 2019), 4 layers: means of what a mask leaves; free batch and seq (64)."""
    width = 384
    heads = 12
    net.dims = {"batch": 1, "seq": 64}
    shapes = FreeShapes(net)
    ids = net.input("input_ids", ["batch", "seq"], INT64, between=IDS)
    attention_mask = net.input("attention_mask", ["batch", "seq"], INT64, between=(0, 1))
    types = net.input("token_type_ids", ["batch", "seq"], INT64, between=(0, 1))
    places = net.Slice(net.ints([range(512)]), net.ints([0]), shapes.dim(ids, 1), net.ints([1]), net.ints([1]))
    x = net.Add(net.Gather(net.weights(VOCABULARY, width, fan=1), ids), net.Gather(net.weights(2, width), types))
    x = net.layer_norm(net.Add(x, net.Gather(net.weights(512, width), places)), width)
    mask = net.Cast(net.Unsqueeze(net.Unsqueeze(attention_mask, net.ints([1])), net.ints([2])), to=FLOAT)
    mask = net.Mul(net.Sub(net.constant(1.0), mask), net.constant(FLOAT_LOWEST))
    for _ in range(4):
        queries, keys, values = [_free_heads(net, shapes, net.linear(x, width, width), heads, 32) for _ in range(3)]
        scores = net.Div(net.MatMul(queries, net.transpose(keys, 0, 1, 3, 2)), net.constant(math.sqrt(32)))
        y = _free_join(net, shapes, net.attend(net.Add(scores, mask), values), width)
        x = net.layer_norm(net.Add(net.linear(y, width, width), x), width)
        x = net.layer_norm(net.Add(net.feed_forward(x, width, 4 * width), x), width)
    kept = net.Cast(net.Expand(net.Unsqueeze(attention_mask, net.ints([-1])), net.Shape(x)), to=FLOAT)
    total = net.ReduceSum(net.Mul(x, kept), net.ints([1]), keepdims=0)
    count = net.Clip(net.ReduceSum(kept, net.ints([1]), keepdims=0), net.constant(1e-9))
    y = net.Div(total, count)
    length = net.Clip(net.ReduceL2(y, axes=[1], keepdims=1), net.constant(1e-12))
    net.output(x, net.Div(y, net.Expand(length, net.Shape(y))))


def _distance_buckets(net, count):
    """[count, count] distances; exact ones up to 16, then of logarithms, as DeBERTa v2's make_log_bucket_position()."""
    middle = 16
    ids = net.Range(net.ints(0), count, net.ints(1))
    distances = net.Sub(net.Unsqueeze(ids, net.ints([1])), net.Unsqueeze(ids, net.ints([0])))
    near = net.And(net.Less(distances, net.ints(middle)), net.Greater(distances, net.ints(-middle)))
    size = net.Where(near, net.ints(middle - 1), net.Abs(distances))
    logs = net.Log(net.Div(net.Cast(size, to=FLOAT), net.constant(float(middle))))
    logs = net.Mul(net.Div(logs, net.constant(math.log(511 / middle))), net.constant(float(middle - 1)))
    far = net.Add(net.Ceil(logs), net.constant(float(middle)))
    sign = net.Cast(net.Sign(distances), to=FLOAT)
    buckets = net.Where(net.LessOrEqual(size, net.ints(middle)), net.Cast(distances, to=FLOAT), net.Mul(far, sign))
    return net.Unsqueeze(net.Unsqueeze(net.Cast(buckets, to=INT64), net.ints([0])), net.ints([1]))


@architecture
def deberta_v2(net):
    """DeBERTa-v3 (He et al. 2021), 3 layers of 384: scores of distances by GatherElements; free batch and seq (64)."""
    width = 384
    heads = 6
    span = 32
    net.dims = {"batch": 1, "seq": 64}
    shapes = FreeShapes(net)
    ids = net.input("input_ids", ["batch", "seq"], INT64, between=IDS)
    attention_mask = net.input("attention_mask", ["batch", "seq"], INT64, between=ONES)
    kept = net.Unsqueeze(net.Cast(attention_mask, to=FLOAT), net.ints([2]))
    x = net.Mul(net.layer_norm(net.Gather(net.weights(VOCABULARY, width, fan=1), ids), width), kept)
    rows = net.Unsqueeze(net.Unsqueeze(attention_mask, net.ints([1])), net.ints([2]))
    pairs = net.Mul(rows, net.Unsqueeze(net.Squeeze(rows, net.ints([-2])), net.ints([-1])))
    hidden = net.Not(net.Cast(pairs, to=BOOL))
    count = shapes.number(ids, 1)
    buckets = _distance_buckets(net, count)
    table = net.Unsqueeze(net.layer_norm(net.weights(2 * span, width, fan=1), width), net.ints([0]))

    def scores_of_distances(product, sign):
        """The column of each pair's distance."""
        index = net.Clip(net.Add(net.Mul(buckets, net.ints(sign)), net.ints(span)), net.ints(0), net.ints(2 * span - 1))
        shape = shapes.shape(shapes.dim(product, 0), heads, shapes.dim(product, 2), shapes.dim(product, 2))
        return net.GatherElements(product, net.Expand(index, shape), axis=3)

    scale = net.constant(math.sqrt(HEAD_WIDTH * 3))
    for _ in range(3):
        weights = [(net.weights(width, width), net.bias(width)) for _ in range(3)]

        def project(y, part):
            y = net.Add(net.MatMul(y, weights[part][0]), weights[part][1])
            return _free_heads(net, shapes, y, heads, HEAD_WIDTH)

        queries, keys, values = [project(x, part) for part in range(3)]
        scores = net.MatMul(queries, net.transpose(net.Div(keys, scale), 0, 1, 3, 2))
        to_places = net.MatMul(queries, net.Div(net.transpose(project(table, 1), 0, 1, 3, 2), scale))
        from_places = net.MatMul(keys, net.Div(net.transpose(project(table, 0), 0, 1, 3, 2), scale))
        scores = net.Add(scores, scores_of_distances(to_places, 1))
        scores = net.Add(scores, net.transpose(scores_of_distances(from_places, 1), 0, 1, 3, 2))
        weights_of_rows = net.Softmax(net.Where(hidden, net.constant(FLOAT_LOWEST), scores), axis=-1)
        weights_of_rows = net.Where(hidden, net.constant(0.0), weights_of_rows)
        y = _free_join(net, shapes, net.MatMul(weights_of_rows, values), width)
        x = net.layer_norm(net.Add(net.linear(y, width, width), x), width)
        x = net.layer_norm(net.Add(net.feed_forward(x, width, 4 * width), x), width)
    net.output(x)


# Decoders ----------------------------------------------------------------------------------------------------------


def _t5_buckets(net, distances):
    """Of what stands before: 16 exact ones, 16 of logarithms up to 128."""
    back = net.Neg(net.Min(distances, net.ConstantOfShape(net.Shape(distances), value=_zero_of_int64())))
    exact = net.Less(back, net.ints(16))
    logs = net.Log(net.Div(net.Cast(back, to=FLOAT), net.constant(16.0)))
    logs = net.Mul(net.Div(logs, net.constant(math.log(8.0))), net.constant(16.0))
    far = net.Add(net.Cast(logs, to=INT64), net.ints(16))
    return net.Where(exact, back, net.Min(far, net.Expand(net.ints(31), net.Shape(far))))


def _zero_of_int64():
    return helper.make_tensor("v", INT64, [1], [0])


@architecture
def t5_decode(net):
    """T5's decoder with its past (Raffel et al. 2020), 4 layers of 384: buckets of distances; free dims."""
    width = 384
    heads = 6
    net.dims = {"batch": 1, "past": 32, "text": 64}
    shapes = FreeShapes(net)
    ids = net.input("input_ids", ["batch", 1], INT64, between=IDS)
    attention_mask = net.input("encoder_attention_mask", ["batch", "text"], INT64, between=ONES)
    x = net.Gather(net.weights(VOCABULARY, width, fan=1), ids)
    hidden = net.Unsqueeze(net.Unsqueeze(net.Cast(attention_mask, to=FLOAT), net.ints([1])), net.ints([2]))
    hidden = net.Mul(net.Sub(net.constant(1.0), hidden), net.constant(FLOAT_LOWEST))
    bias = None

    def past(layer, kind, count):
        return [net.input(f"past_key_values.{layer}.{kind}.{part}", ["batch", heads, count, HEAD_WIDTH])
                for part in ("key", "value")]

    def project(y):
        return _free_heads(net, shapes, net.linear(y, width, width, bias=False), heads, HEAD_WIDTH)

    def attend(queries, keys, values, added):
        scores = net.Add(net.MatMul(queries, net.transpose(keys, 0, 1, 3, 2)), added)
        return net.linear(_free_join(net, shapes, net.attend(scores, values), width), width, width, bias=False)

    for layer in range(4):
        y = net.rms_norm(x, width)
        queries = net.Mul(project(y), net.constant(0.125))
        old_keys, old_values = past(layer, "decoder", "past")
        keys = net.Concat(old_keys, project(y), axis=2)
        values = net.Concat(old_values, project(y), axis=2)
        net.output(keys, values)
        if not bias:
            total = shapes.number(keys, 2)
            places = net.Range(net.ints(0), total, net.ints(1))
            distances = net.Sub(net.Unsqueeze(places, net.ints([0])), net.Unsqueeze(places, net.ints([1])))
            bias = net.Gather(net.weights(32, heads, fan=1), _t5_buckets(net, distances))
            bias = net.Unsqueeze(net.transpose(bias, 2, 0, 1), net.ints([0]))
            bias = net.slice(bias, -1, TO_END, 2)
        x = net.Add(x, attend(queries, keys, values, bias))
        queries = net.Mul(project(net.rms_norm(x, width)), net.constant(0.125))
        x = net.Add(x, attend(queries, *past(layer, "encoder", "text"), hidden))
        y = net.Relu(net.linear(net.rms_norm(x, width), width, 1536, bias=False))
        x = net.Add(x, net.linear(y, 1536, width, bias=False))
    y = net.Mul(net.rms_norm(x, width), net.constant(width**-0.5))
    net.output(net.linear(y, width, VOCABULARY, bias=False))


class _Whisper:
    """The decoder, whose weights both branches read."""

    width = 384
    heads = 6

    def __init__(self, net):
        self.net = net
        self.shapes = FreeShapes(net)
        self.weights = {}
        self.layers = 2

    def draw(self, name, make):
        """The same weights for the same name."""
        if name not in self.weights:
            self.weights[name] = make()
        return self.weights[name]

    def linear(self, x, name, width, outputs, bias=True):
        net = self.net
        y = net.MatMul(x, self.draw(name, lambda: net.weights(width, outputs, fan=width)))
        return net.Add(self.draw(f"{name}.bias", lambda: net.bias(outputs)), y) if bias else y

    def norm(self, x, name):
        net = self.net
        scale, bias = self.draw(name, lambda: (net.scale(self.width), net.bias(self.width)))
        return net.LayerNormalization(x, scale, bias, axis=-1, epsilon=1e-5)

    def heads_of(self, x, name, bias=True):
        y = self.linear(x, name, self.width, self.width, bias)
        return _free_heads(self.net, self.shapes, y, self.heads, HEAD_WIDTH)

    def attend(self, x, name, keys, values, mask=None):
        net = self.net
        queries = net.Mul(self.heads_of(x, f"{name}.q"), net.constant(0.125))
        scores = net.MatMul(queries, net.transpose(keys, 0, 1, 3, 2))
        y = net.attend(net.Add(scores, mask) if mask else scores, values)
        return self.linear(_free_join(net, self.shapes, y, self.width), f"{name}.o", self.width, self.width)

    def branch(self, ids, sound, pasts, with_past):
        """Logits and caches: of the words that are new, and of the sound, which pass if there is a past."""
        net = self.net
        past = self.shapes.number(pasts[0][0], 2)
        count = self.shapes.number(ids, 1)
        end = net.Add(past, count) if with_past else count
        begin = past if with_past else net.ints(0)
        places = net.Range(begin, end, net.ints(1))
        x = net.Add(net.Gather(self.draw("words", lambda: net.weights(VOCABULARY, self.width, fan=1)), ids),
                    net.Gather(self.draw("places", lambda: net.weights(448, self.width)), places))
        mask = None
        if not with_past:
            later = net.Less(net.Unsqueeze(places, net.ints([1])), net.Unsqueeze(places, net.ints([0])))
            mask = net.Where(later, net.constant(FLOAT_LOWEST), net.constant(0.0))
        caches = []
        for layer, (old_keys, old_values, old_sound_keys, old_sound_values) in enumerate(pasts):
            y = self.norm(x, f"{layer}.1")
            keys = self.heads_of(y, f"{layer}.self.k", bias=False)
            values = self.heads_of(y, f"{layer}.self.v")
            if with_past:
                keys, values = net.Concat(old_keys, keys, axis=2), net.Concat(old_values, values, axis=2)
                sound_keys, sound_values = net.Identity(old_sound_keys), net.Identity(old_sound_values)
            else:
                sound_keys = self.heads_of(sound, f"{layer}.cross.k", bias=False)
                sound_values = self.heads_of(sound, f"{layer}.cross.v")
            x = net.Add(x, self.attend(y, f"{layer}.self", keys, values, mask))
            x = net.Add(x, self.attend(self.norm(x, f"{layer}.2"), f"{layer}.cross", sound_keys, sound_values))
            y = net.gelu(self.linear(self.norm(x, f"{layer}.3"), f"{layer}.up", self.width, 1536))
            x = net.Add(x, self.linear(y, f"{layer}.down", 1536, self.width))
            caches += [keys, values, sound_keys, sound_values]
        logits = self.linear(self.norm(x, "last"), "logits", self.width, VOCABULARY, bias=False)
        return dict.fromkeys([logits, *caches], FLOAT)


@architecture
def whisper_merged(net):
    """Whisper's decoder (Radford et al. 2023) as Optimum merges it, 2 layers: If there is a past; 1500 frames."""
    net.dims = {"batch": 1, "count": 1, "past": 32, "frames": 1500}
    whisper = _Whisper(net)
    ids = net.input("input_ids", ["batch", "count"], INT64, between=IDS)
    sound = net.input("encoder_hidden_states", ["batch", "frames", whisper.width])
    pasts = [[net.input(f"past_key_values.{layer}.{side}.{part}", ["batch", whisper.heads, count, HEAD_WIDTH])
              for side, count in (("decoder", "past"), ("encoder", "frames")) for part in ("key", "value")]
             for layer in range(whisper.layers)]
    use_past = net.input("use_cache_branch", [1], BOOL, between=ONES)
    branches = {name: net.body(lambda with_past=with_past: whisper.branch(ids, sound, pasts, with_past))
                for name, with_past in (("then_branch", True), ("else_branch", False))}
    net.output(*net.If(use_past, output_count=1 + 4 * whisper.layers, **branches))


# Experts -----------------------------------------------------------------------------------------------------------


def _experts(net, x, width, experts):
    """Of the rows of x, each to its best two of the experts; every expert finds its rows by NonZero."""
    chances = net.Softmax(net.linear(x, width, experts, bias=False), axis=1)
    best, chosen = net.TopK(chances, net.ints([2]), axis=-1, largest=1, sorted=1, output_count=2)
    best = net.Div(best, net.ReduceSum(best, net.ints([-1]), keepdims=1))
    masks = net.transpose(net.OneHot(chosen, net.ints([experts]), net.ints([0, 1]), axis=-1), 2, 1, 0)
    total = net.ConstantOfShape(net.Shape(x), value=helper.make_tensor("v", FLOAT, [1], [0.0]))
    for expert in range(experts):
        found = net.transpose(net.NonZero(net.pick(masks, expert)), 1, 0)
        place, row = [net.Squeeze(part, net.ints([1])) for part in net.split(found, [1, 1], axis=1)]
        y = net.gated_feed_forward(net.Gather(x, row, axis=0), width, 2 * width, net.silu)
        pairs = net.Concat(net.Unsqueeze(row, net.ints([-1])), net.Unsqueeze(place, net.ints([-1])), axis=-1)
        y = net.Mul(y, net.Unsqueeze(net.GatherND(best, pairs), net.ints([-1])))
        rows = net.Expand(net.Unsqueeze(row, net.ints([1])), net.Shape(y))
        total = net.ScatterElements(total, rows, y, axis=0, reduction="add")
    return total


@architecture
def mixtral(net):
    """Mixtral's experts (Jiang et al. 2024) as traced, 2 layers of 256: NonZero for each of 8; free tokens (64)."""
    width = 256
    net.dims = {"tokens": 64}
    shapes = FreeShapes(net)
    ids = net.input("input_ids", [1, "tokens"], INT64, between=IDS)
    x = net.Gather(net.weights(VOCABULARY, width, fan=1), ids)
    for _ in range(2):
        y = net.rms_norm(x, width)
        queries, keys, values = [_free_heads(net, shapes, net.linear(y, width, width, bias=False), 4, HEAD_WIDTH)
                                 for _ in range(3)]
        scores = net.Mul(net.MatMul(queries, net.transpose(keys, 0, 1, 3, 2)), net.constant(0.125))
        mask = net.Trilu(net.Expand(net.constant(FLOAT_LOWEST), net.Slice(net.Shape(scores), net.ints([2]),
                                                                        net.ints([4]))), net.ints(1), upper=1)
        y = _free_join(net, shapes, net.attend(net.Add(scores, mask), values), width)
        x = net.Add(x, net.linear(y, width, width, bias=False))
        y = net.reshape(net.rms_norm(x, width), -1, width)
        x = net.Add(x, net.Reshape(_experts(net, y, width, 8), net.Shape(x)))
    net.output(net.linear(net.rms_norm(x, width), width, VOCABULARY, bias=False))
