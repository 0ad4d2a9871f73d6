"""Neither images nor sound nor language: recommendations, points, graphs, series, trees."""

import numpy as np

from graph import INT64
from network import TO_END
from registry import architecture


def _dense_layers(net, x, widths):
    """Products and Relu, the last one's too."""
    for width, outputs in zip(widths, widths[1:]):
        x = net.Relu(net.gemm(x, width, outputs))
    return x


@architecture
def dlrm(net):
    """DLRM (Naumov et al. 2019): 13 numbers and 26 tables of 1000 x 64, products of all pairs; batch of 32."""
    dense = net.input("dense", [32, 13])
    ids = net.input("ids", [26, 32], INT64, between=(0, 999))
    x = _dense_layers(net, dense, (13, 512, 256, 64))
    features = [x]
    for i in range(26):
        table = net.weights(1000, 64, fan=64)
        features.append(net.Gather(table, net.pick(ids, i)))
    rows = net.reshape(net.Concat(*features, axis=1), 32, 27, 64)
    products = net.reshape(net.MatMul(rows, net.swap_last(rows)), 32, 27 * 27)
    row, column = np.tril_indices(27, -1)
    pairs = net.pick(products, row * 27 + column, axis=1)
    x = _dense_layers(net, net.Concat(x, pairs, axis=1), (415, 512, 256, 1))
    net.output(net.Sigmoid(x))


@architecture
def pointnet(net):
    """PointNet (Qi et al. 2017) without its transforms: 1024 points to 40 classes."""
    x = net.input("points", [1, 3, 1024])
    for channels, width in ((3, 64), (64, 128), (128, 1024)):
        x = net.Relu(net.batch_norm(net.conv(x, channels, width, 1, dims=1), width))
    x = net.ReduceMax(x, axes=[2], keepdims=0)
    net.output(_dense_layers(net, x, (1024, 512, 256, 40)))


@architecture
def gnn(net):
    """GraphConv (Morris et al. 2019), 3 layers of 64: sums over neighbours; 2000 nodes, 8000 edges."""
    nodes = 2000
    edges = 8000
    x = net.input("x", [nodes, 32])
    ends = net.input("edges", [2, edges], INT64, between=(0, nodes - 1))
    ends = net.Abs(net.Mod(ends, net.ints(nodes)))  # any number is a node, so that inputs may be made up
    source = net.pick(ends, 0)
    target = net.pick(ends, 1)
    width = 32
    for _ in range(3):
        messages = net.Gather(x, source, axis=0)
        rows = net.Expand(net.Unsqueeze(target, net.ints([1])), net.ints([edges, width]))
        zeros = net.constant(np.zeros((nodes, width), np.float32))
        sums = net.ScatterElements(zeros, rows, messages, axis=0, reduction="add")
        x = net.Relu(net.Add(net.linear(sums, width, 64), net.linear(x, width, 64, bias=False)))
        width = 64
    net.output(net.LogSoftmax(net.linear(x, width, 7), axis=1))


@architecture
def lstm2(net):
    """Two LSTM layers of 128 (Hochreiter, Schmidhuber 1997): 100 steps, batch of 4."""
    x = net.input("x", [100, 4, 128])
    for _ in range(2):
        x = net.Squeeze(net.lstm(x, 128, 128), net.ints([1]))
    net.output(net.linear(x, 128, 64))


@architecture
def tcn(net):
    """TCN (Bai et al. 2018), 6 levels of 64: causal dilated convolutions; 8 series of 16 x 256."""

    def causal(x, channels, dilation):
        """Padded on both sides, and cut on the right."""
        y = net.Conv(x, net.weights(64, channels, 3), net.bias(64), kernel_shape=[3], pads=[2 * dilation] * 2,
                     dilations=[dilation])
        return net.Relu(net.slice(y, 0, -2 * dilation, 2))

    x = net.input("x", [8, 16, 256])
    channels = 16
    for level in range(6):
        y = causal(causal(x, channels, 2**level), 64, 2**level)
        shortcut = net.conv(x, channels, 64, 1, dims=1) if channels != 64 else x
        x = net.Relu(net.Add(y, shortcut))
        channels = 64
    x = net.Squeeze(net.slice(x, -1, TO_END, 2), net.ints([2]))
    net.output(net.gemm(x, 64, 10))


@architecture
def xgboost(net):
    """Boosted trees, as XGBoost's are converted (Chen, Guestrin 2016): 300 of depth 6; 100 rows of 50 numbers."""
    trees = 300
    branches = 2**6 - 1
    nodes = []
    leaf_weights = []
    for tree in range(trees):
        for node in range(branches):
            nodes.append({"treeids": tree, "nodeids": node, "modes": "BRANCH_LT",
                          "featureids": int(net.rng.integers(50)), "values": float(net.rng.standard_normal()),
                          "truenodeids": 2 * node + 1, "falsenodeids": 2 * node + 2})
        for node in range(branches, 2 * branches + 1):
            nodes.append({"treeids": tree, "nodeids": node, "modes": "LEAF", "featureids": 0, "values": 0.0,
                          "truenodeids": 0, "falsenodeids": 0})
            leaf_weights.append(float(net.rng.standard_normal()) * 0.1)
    leaves = [node for node in nodes if node["modes"] == "LEAF"]
    columns = {f"nodes_{key}": [node[key] for node in nodes] for key in nodes[0]}
    net.output(net.TreeEnsembleRegressor(
        net.input("x", [100, 50]), domain="ai.onnx.ml", n_targets=1, **columns,
        nodes_missing_value_tracks_true=[1] * len(nodes), target_treeids=[leaf["treeids"] for leaf in leaves],
        target_nodeids=[leaf["nodeids"] for leaf in leaves], target_ids=[0] * len(leaves), target_weights=leaf_weights))
