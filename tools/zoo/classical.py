"""Pipelines of scikit-learn and boosted trees, as skl2onnx and onnxmltools write them; batches are free."""

import math

import numpy as np
from onnx import helper, numpy_helper

from graph import FLOAT, INT64, STRING
from registry import architecture

ML = "ai.onnx.ml"
DIGITS = (0, 9)


def _numbers(net, *shape, scale=1.0):
    """A list for an attribute."""
    return [float(number) for number in net.rng.standard_normal(shape).ravel() * scale]


# Trees -------------------------------------------------------------------------------------------------------------


class _Trees:
    """The columns of an ensemble whose trees grow leaf by leaf, as LightGBM's do; feature 0 to `features`."""

    def __init__(self, net, trees, leaves, features):
        self.nodes = []
        self.leaves = []
        for tree in range(trees):
            self._grow(net.rng, tree, leaves, features)

    def _grow(self, rng, tree, leaves, features):
        children = {}
        ends = [0]
        for i in range(leaves - 1):
            parent = ends.pop(int(rng.integers(len(ends))))
            children[parent] = 2 * i + 1, 2 * i + 2
            ends += children[parent]
        for node in range(2 * leaves - 1):
            branch = node in children
            yes, no = children.get(node, (0, 0))
            self.nodes.append({
                "treeids": tree, "nodeids": node, "modes": "BRANCH_LEQ" if branch else "LEAF",
                "featureids": int(rng.integers(features)) if branch else 0,
                "values": float(rng.standard_normal()) if branch else 0.0, "truenodeids": yes, "falsenodeids": no,
                "missing_value_tracks_true": 0})
            if not branch:
                self.leaves.append((tree, node))

    def attributes(self, kind, ids, weights):
        """Leaves are of a `kind`: class or target."""
        columns = {f"nodes_{key}": [node[key] for node in self.nodes] for key in self.nodes[0]}
        return {**columns, f"{kind}_treeids": [tree for tree, _ in self.leaves],
                f"{kind}_nodeids": [node for _, node in self.leaves], f"{kind}_ids": ids, f"{kind}_weights": weights}


@architecture
def lightgbm(net):
    """LightGBM's classifier (Ke et al. 2017): 500 trees of 31 leaves, 5 classes, softmax; free batch (100)."""
    net.dims = {"batch": 100}
    trees = _Trees(net, 500, 31, 40)
    attributes = trees.attributes("class", [tree % 5 for tree, _ in trees.leaves],
                                  _numbers(net, len(trees.leaves), scale=0.1))
    label, chances = net.TreeEnsembleClassifier(
        net.input("input", ["batch", 40]), domain=ML, output_count=2, classlabels_int64s=range(5),
        post_transform="SOFTMAX", **attributes)
    net.output(label, element_type=INT64)
    net.output(chances)


@architecture
def random_forest(net):
    """RandomForestClassifier of scikit-learn (Breiman 2001): 100 trees of 200 leaves, 3 classes; free batch (100)."""
    net.dims = {"batch": 100}
    trees = _Trees(net, 100, 200, 20)
    chances = net.rng.dirichlet([1, 1, 1], len(trees.leaves)) / 100
    attributes = trees.attributes("class", [0, 1, 2] * len(trees.leaves), chances.ravel().tolist())
    for part in ("treeids", "nodeids"):
        attributes[f"class_{part}"] = np.repeat(attributes[f"class_{part}"], 3).tolist()
    label, chances = net.TreeEnsembleClassifier(
        net.input("X", ["batch", 20]), domain=ML, output_count=2, classlabels_int64s=range(3), post_transform="NONE",
        **attributes)
    net.output(label, element_type=INT64)
    net.output(chances)


@architecture
def isolation_forest(net):
    """Isolation forest (Liu et al. 2008) (scikit-learn): 100 ensembles of a tree, LabelEncoder; free batch (100)."""
    net.dims = {"batch": 100}
    net.opsets[ML] = 2
    x = net.input("X", ["batch", 10])
    depths = []
    for _ in range(100):
        trees = _Trees(net, 1, 64, 10)
        places = [float(node) for _, node in trees.leaves]
        leaf = net.TreeEnsembleRegressor(x, domain=ML, n_targets=1,
                                         **trees.attributes("target", [0] * len(places), places))
        leaf = net.reshape(net.Cast(leaf, to=INT64), -1)
        depths.append(net.LabelEncoder(leaf, domain=ML, keys_int64s=[int(place) for place in places],
                                       values_floats=[4 + abs(number) for number in _numbers(net, len(places))]))
    total = net.Div(net.Sum(*depths), net.constant(100 * 10.24))
    scores = net.Neg(net.Pow(net.constant(2.0), net.Neg(total)))
    scores = net.reshape(net.Add(scores, net.constant(0.722)), -1, 1)
    label = net.Where(net.Less(scores, net.constant(0.0)), net.ints([-1]), net.ints([1]))
    net.output(label, element_type=INT64)
    net.output(scores)


def _tree_arrays(net, trees, depth, numbers, categories):
    """Attributes of TreeEnsemble (ai.onnx.ml 5): whole trees; what a category has to be a member of ends with NaN."""
    branches = 2**depth - 1
    inner = 2 ** (depth - 1) - 1
    own = np.arange(branches)
    features = net.rng.integers(numbers + categories, size=trees * branches)
    member = features >= numbers
    children = {}
    for name, offset in (("true", 1), ("false", 2)):
        to_leaf = 2 * (own - inner) + offset - 1
        steps = [np.where(own < inner, tree * branches + 2 * own + offset, tree * (branches + 1) + to_leaf)
                 for tree in range(trees)]
        children[f"nodes_{name}nodeids"] = np.concatenate(steps).tolist()
        children[f"nodes_{name}leafs"] = np.tile(own >= inner, trees).astype(int).tolist()
    sets = [[*sorted(net.rng.choice(16, 5, replace=False)), np.nan] for _ in range(member.sum())]
    leaves = trees * (branches + 1)
    arrays = {"nodes_splits": np.where(member, 0, net.rng.standard_normal(member.size)).astype(np.float32),
              "nodes_modes": np.where(member, 6, 0).astype(np.uint8),
              "membership_values": np.array(sets, np.float32).ravel(),
              "leaf_weights": (0.1 * net.rng.standard_normal(leaves)).astype(np.float32)}
    return {**children, **{name: numpy_helper.from_array(array) for name, array in arrays.items()},
            "tree_roots": [tree * branches for tree in range(trees)], "nodes_featureids": features.tolist(),
            "leaf_targetids": [0] * leaves, "nodes_missing_value_tracks_true": [0] * member.size, "n_targets": 1,
            "aggregate_function": 1, "post_transform": 0}


@architecture
def hist_boosting(net):
    """Boosted histograms (scikit-learn) as TreeEnsemble: 200 of depth 6, members of sets; free batch (100)."""
    net.dims = {"batch": 100}
    net.opsets[ML] = 5
    numbers = net.input("numbers", ["batch", 20])
    categories = net.Cast(net.input("categories", ["batch", 8], INT64, between=(0, 15)), to=FLOAT)
    y = net.TreeEnsemble(net.Concat(numbers, categories, axis=1), domain=ML, **_tree_arrays(net, 200, 6, 20, 8))
    chance = net.Sigmoid(y)
    chances = net.Concat(net.Sub(net.constant(1.0), chance), chance, axis=1)
    net.output(net.ArgMax(chances, axis=1, keepdims=0), element_type=INT64)
    net.output(chances)


# Vectors -----------------------------------------------------------------------------------------------------------


@architecture
def svm_rbf(net):
    """SVC and SVR of scikit-learn, RBF kernels: 400 vectors of 30 each, 4 classes; free batch (50)."""
    net.dims = {"batch": 50}
    x = net.Scaler(net.input("X", ["batch", 30]), domain=ML, offset=_numbers(net, 30, scale=0.1), scale=[4.0] * 30)
    kernel = {"kernel_type": "RBF", "kernel_params": [0.01, 0.0, 3.0]}

    def coefficients(*shape):
        """Each row's sum is 0, as training sees to it."""
        rows = 3 * net.rng.standard_normal(shape)
        return (rows - rows.mean(-1, keepdims=True)).ravel().tolist()

    label, chances = net.SVMClassifier(
        x, domain=ML, output_count=2, **kernel, classlabels_ints=range(4), vectors_per_class=[100] * 4,
        support_vectors=_numbers(net, 400, 30), coefficients=coefficients(3, 4, 100), rho=_numbers(net, 6, scale=0.1),
        prob_a=[-1.0] * 6, prob_b=_numbers(net, 6, scale=0.1), post_transform="NONE")
    net.output(label, element_type=INT64)
    net.output(chances)
    net.output(net.SVMRegressor(x, domain=ML, **kernel, n_supports=400, support_vectors=_numbers(net, 400, 30),
                                coefficients=coefficients(400), rho=[0.1]))


@architecture
def nearest_neighbours(net):
    """KNeighborsClassifier of scikit-learn: Scan along 1000 rows of 20, the nearest 5 vote; free batch (50)."""
    net.dims = {"batch": 50}
    x = net.input("X", ["batch", 20])

    def distances(rows, row):
        of_row = net.Sqrt(net.ReduceSumSquare(net.Sub(rows, row), axes=[1], keepdims=0))
        return {net.Identity(rows): FLOAT, of_row: FLOAT}

    body = net.body(distances, (FLOAT, ["batch", 20]), (FLOAT, [20]))
    _, y = net.Scan(x, net.weights(1000, 20, fan=1), body=body, num_scan_inputs=1, output_count=2)
    y = net.Mul(net.transpose(y, 1, 0), net.constant(-1.0))
    places = net.TopK(y, net.ints([5]), axis=1, largest=1, sorted=1, output_count=2)[1]
    known = net.ints([net.rng.integers(4, size=1000)])
    places = net.Flatten(net.reshape(places, -1), axis=0)
    found = net.reshape(net.ArrayFeatureExtractor(known, places, domain=ML), -1, 5)
    votes = []
    for label in range(4):
        same = net.Cast(net.Equal(found, net.ints([label])), to=FLOAT)
        votes.append(net.ReduceSum(same, net.ints([1]), keepdims=1))
    votes = net.Concat(*votes, axis=1)
    net.output(net.Div(votes, net.ReduceSum(votes, net.ints([1]), keepdims=1)))
    label = net.ArgMax(votes, axis=1, keepdims=0)
    net.output(net.ArrayFeatureExtractor(net.ints(range(4)), label, domain=ML), element_type=INT64)


@architecture
def gaussian_process(net):
    """GaussianProcessRegressor of scikit-learn, RBF and white noise: CDist to 500 rows of 8; free batch (50)."""
    net.dims = {"batch": 50}
    net.opsets["com.microsoft"] = 1
    x = net.input("X", ["batch", 8])
    known = net.weights(500, 8, fan=1)
    scaled = [net.Div(rows, net.constant([2.0])) for rows in (x, known)]
    distances = net.CDist(*scaled, domain="com.microsoft", metric="sqeuclidean")
    kernel = net.Mul(net.Exp(net.Mul(distances, net.constant([-0.5]))), net.constant([1.5]))
    mean = net.Add(net.MatMul(kernel, net.weights(500, 1, fan=500)), net.constant([0.2]))
    inverse = net.MatMul(kernel, net.weights(500, 500, fan=500 * 500))
    variance = net.Sub(net.constant([2.0]), net.ReduceSum(net.Mul(inverse, kernel), net.ints([1]), keepdims=0))
    net.output(mean, net.Sqrt(net.Max(variance, net.constant([0.0]))))


@architecture
def gaussian_mixture(net):
    """GaussianMixture of scikit-learn, full covariances: 16 of 12 numbers, a Gemm each; free batch (200)."""
    net.dims = {"batch": 200}
    x = net.input("X", ["batch", 12])
    squares = []
    for _ in range(16):
        y = net.Gemm(x, net.weights(12, 12), net.bias(12), alpha=1.0, beta=1.0)
        squares.append(net.ReduceSumSquare(y, axes=[1], keepdims=1))
    y = net.Add(net.Concat(*squares, axis=1), net.constant([12 * math.log(2 * math.pi)]))
    y = net.Add(net.Add(net.Mul(y, net.constant([-0.5])), net.bias(16)), net.bias(16))
    likelihood = net.ReduceLogSumExp(y, axes=[1], keepdims=1)
    net.output(net.ArgMax(y, axis=1, keepdims=0), element_type=INT64)
    net.output(net.Exp(net.Sub(y, likelihood)), likelihood)


# Columns and words -------------------------------------------------------------------------------------------------


@architecture
def mixed_columns(net):
    """ColumnTransformer of scikit-learn: numbers scaled, strings one hot, a linear classifier; free batch (20)."""
    net.dims = {"batch": 20}
    numbers = net.Concat(*[net.input(name, ["batch", 1]) for name in ("age", "fare", "weight", "height")], axis=1)
    x = net.Imputer(numbers, domain=ML, imputed_value_floats=_numbers(net, 4), replaced_value_float=math.nan)
    x = net.Scaler(x, domain=ML, offset=_numbers(net, 4), scale=[0.5, 1.0, 1.5, 2.0])
    names = ("embarked", "sex", "class", "deck")
    words = net.Concat(*[net.input(name, ["batch", 1], STRING, between=DIGITS) for name in names], axis=1)
    parts = []
    for column in range(len(names)):
        y = net.ArrayFeatureExtractor(words, net.ints([column]), domain=ML)
        y = net.OneHotEncoder(y, domain=ML, cats_strings=[str(digit) for digit in range(1, 10)], zeros=1)
        parts.append(net.reshape(y, -1, 9))
    title = net.input("title", ["batch", 1], STRING, between=DIGITS)
    rank = net.LabelEncoder(title, domain=ML, keys_strings=[str(digit) for digit in range(8)],
                            values_floats=_numbers(net, 8), default_float=-1.0)
    x = net.Concat(x, *parts, rank, axis=1)
    label, scores = net.LinearClassifier(
        x, domain=ML, output_count=2, classlabels_strings=["first", "second", "third"], multi_class=1,
        coefficients=_numbers(net, 3, 41, scale=0.3), intercepts=_numbers(net, 3), post_transform="SOFTMAX")
    net.output(label, element_type=STRING)
    net.output(net.Normalizer(scores, domain=ML, norm="L1"))


@architecture
def tfidf(net):
    """TfidfVectorizer and LogisticRegression of scikit-learn: 1 to 3 characters, 3 classes; free batch (50)."""
    net.dims = {"batch": 50}
    net.opsets["com.microsoft"] = 1
    runs = [[]]
    pool, begins = [], []
    for _ in range(3):
        runs = [[*run, str(digit)] for run in runs for digit in range(10)]
        begins.append(len(pool))
        pool += [character for run in runs for character in run]
    count = 10 + 100 + 1000
    x = net.reshape(net.input("text", ["batch", 1], STRING, between=(10**8, 10**15)), -1)
    x = net.StringNormalizer(x, case_change_action="LOWER", is_case_sensitive=0, locale="C.UTF-8")
    x = net.Tokenizer(x, domain="com.microsoft", mark=0, mincharnum=1, pad_value="#", tokenexp=".")
    x = net.TfIdfVectorizer(x, mode="TFIDF", min_gram_length=1, max_gram_length=3, max_skip_count=0,
                            ngram_counts=begins, ngram_indexes=range(count), pool_strings=pool,
                            weights=[1 + abs(number) for number in _numbers(net, count)])
    x = net.Normalizer(net.reshape(x, -1, count), domain=ML, norm="L2")
    label, scores = net.LinearClassifier(
        x, domain=ML, output_count=2, classlabels_ints=range(3), multi_class=1,
        coefficients=_numbers(net, 3, count), intercepts=_numbers(net, 3), post_transform="SOFTMAX")
    net.output(label, element_type=INT64)
    net.output(net.Normalizer(scores, domain=ML, norm="L1"))
