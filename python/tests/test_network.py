"""Networks: images and tables, what must be stated, what a fit leaves behind."""

import copy
import pickle

import numpy as np
import pytest

import privfit

RNG = np.random.default_rng(6)
IMAGES = RNG.integers(0, 256, size=(3000, 6, 6), dtype=np.uint8)
IMAGES[:1500, :, :3] //= 3
LABELS = np.repeat(["left", "right"], 1500)
LAYERS = ["convolution 4 3", "tanh", "flatten", "dense 8", "tanh"]


def classifier(**more):
    given = dict(epsilon=4, delta=1e-7, classes=["left", "right"], layers=LAYERS, steps=30, sampling_rate=0.2, simulate=1)
    return privfit.NetworkClassifier(**{**given, **more})


def test_images_are_learned_and_kept(tmp_path):
    model = classifier().fit(IMAGES, LABELS)
    assert model.method_ == "network" and model.n_features_in_ == 36 and model.score(IMAGES, LABELS) > 0.9
    assert np.allclose(model.predict_proba(IMAGES[:9]).sum(axis=1), 1) and np.array_equal(model.decision_function(IMAGES) > 0, model.predict(IMAGES) == "right")
    # A row of pixels is the same image.
    assert np.array_equal(model.predict(IMAGES[:50].reshape(50, 36)), model.predict(IMAGES[:50]))
    assert [layer["layer"] for layer in model.layers_] == ["convolution 4 3 stride 1 padding 0", *LAYERS[1:], "dense 2"]
    history = model.history_
    assert history["steps"] == 30 == len(history["points"]) and history["points"][-1]["step"] == 30 and history["noise"] > 0
    model.save(tmp_path / "m.json")
    for again in (privfit.load(tmp_path / "m.json"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(again.predict(IMAGES), model.predict(IMAGES)) and again.history_ == history
    with pytest.raises(AttributeError):
        model.coef_
    with pytest.raises(privfit.PrivfitError, match="another kind|privfit.load"):
        privfit.LogisticRegression.load(tmp_path / "m.json")
    privfit.report(model, tmp_path / "m.html")
    assert "Signal and noise of the gradient" in (tmp_path / "m.html").read_text()


def test_exported_networks_compute_the_same(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    model = classifier(layers=["convolution 4 3 padding 1", "group_norm 2", "relu", "max_pool 2", "average_pool 2 stride 1", "flatten"])
    model.fit(IMAGES, LABELS).export(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    label, probabilities = session.run(None, {"features": IMAGES[:200].reshape(200, 36).astype(np.float32)})
    np.testing.assert_allclose(probabilities, model.predict_proba(IMAGES[:200]), atol=1e-5)
    assert (label == model.predict(IMAGES[:200])).mean() > 0.99


def test_what_must_be_stated():
    table = RNG.uniform(size=(100, 36))
    for estimator, rows, what in [
        (classifier(classes=None), IMAGES, "classes are missing"),
        (classifier(), IMAGES / 255, r"max is missing.*\n  max=1.0"),
        (classifier(image_shape=(6, 5)), IMAGES, r"shape \(6, 6\), and \(6, 5\)"),
        (classifier(image_shape=(6, 5)), IMAGES.reshape(3000, 36), r"36 features, and images of the shape \(6, 5\) have 30"),
        (classifier(image_shape=(6, 6, 1, 1)), IMAGES, "give images of that shape"),
        (classifier(bounds=(0, 1)), IMAGES, "leave out bounds"),
        (classifier(), table, "bounds are missing"),
        (classifier(layers=["dense"]), IMAGES, "a layer is one of"),
        (classifier(layers=["dense 4"]), IMAGES, "put flatten before it"),
        (classifier(layers=[3]), IMAGES, "layers are words"),
        (classifier(settings={"steps": 3}), IMAGES, "given twice"),
        (classifier(method="objective"), IMAGES, "trains no network"),
        (classifier(schema=privfit.Schema.of_images((6, 6), classes=["left", "right"]), max=3), IMAGES, "leave out image_shape and max"),
        (classifier(), np.ma.masked_array(IMAGES), "masked"),
    ]:
        with pytest.raises(privfit.PrivfitError, match=what):
            estimator.fit(rows, LABELS[: len(rows)])
    model = classifier(steps=2).fit(IMAGES, LABELS)
    with pytest.raises(privfit.PrivfitError, match="shape"):
        model.predict(IMAGES[:, :5])
    with pytest.raises(privfit.PrivfitError, match="expecting 36 features"):
        model.predict(IMAGES[:, :5].reshape(3000, 30))


def test_plans_and_names_of_networks():
    plan = classifier(image_shape=(28, 28), layers="mnist_cnn", classes=range(10), simulate=None, steps=None).plan(rows=60_000)
    assert plan["method"] == "network" and plan["plan"]["weights"] == "26010" and plan["epsilon"]["zero_out"] <= 4
    assert classifier(layers="dense 4, tanh", bounds=(0, 1)).plan(rows=500, features=3)["plan"]["layers"] == "dense 4, tanh"
    # Images with channels: without layers, scores of 81 scattering features for every 4 x 4 pixels of each of three channels.
    colours = RNG.integers(0, 256, size=(50, 16, 16, 3), dtype=np.uint8)
    model = classifier(layers=None, steps=1).fit(colours, LABELS[1475:1525])
    assert [layer["shape"] for layer in model.layers_] == [[1, 1, 4 * 4 * 81 * 3], [1, 1, 2]] and model.predict(colours).shape == (50,)


def test_tuning_of_networks():
    best = privfit.tune(classifier(steps=None), IMAGES, LABELS, grid={"steps": [5, 30]})
    assert best.method_ == "network" and best.best_params_["steps"] in (5, 30)
    best = privfit.tune(classifier(steps=None), IMAGES, LABELS, grid={"steps": [5, 30]}, public=(IMAGES[::9], LABELS[::9]))
    assert best.method_ == "network" and best.best_params_["steps"] in (5, 30) and best.history_ is not None
