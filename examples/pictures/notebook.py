"""Drawings as arrays, in cells for a notebook (Jupyter, VS Code, Spyder); `python notebook.py` runs all of them.

Needs the package privfit, and NumPy. Nothing is read: the drawings are made here.
"""
# %% Drawings as arrays: 4,000 private ones, and 1,000 that may be public
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import privfit
from generate import CLASSES, pictures


def arrays(count, seed):
    """Images of shape (count, 28, 28), bytes, and the name of each."""
    made = list(pictures(count, seed))
    images = np.array([[list(row) for row in rows] for _, _, rows in made], dtype=np.uint8)
    return images, np.array([shape for _, shape, _ in made])


images, labels = arrays(4000, seed=5)
public_images, public_labels = arrays(1000, seed=6)
print(images.shape, images.dtype, CLASSES)

# %% Look before you spend: the plan is made of public facts, and no data are opened
model = privfit.NetworkClassifier(epsilon=1.0, delta=1e-8, classes=CLASSES, image_shape=(28, 28))
plan = model.plan(rows=len(images))
print(plan["method"], plan["plan"]["steps"], "steps,", plan["plan"]["weights"], "weights, epsilon", round(plan["epsilon"]["zero_out"], 4))

# %% Train: without layers, scores of fixed scattering features
model.fit(images, labels)
print("accuracy", model.score(public_images, public_labels))

# %% A network on pixels has more to learn, and noise meets all of it
network = privfit.NetworkClassifier(epsilon=1.0, delta=1e-8, classes=CLASSES, layers="mnist_cnn").fit(images, labels)
print("accuracy of a network on pixels", network.score(public_images, public_labels))
for layer in network.layers_:
    print(f'  {layer["layer"]:40} {layer["shape"]}')

# %% Which classes are taken for one another: rows are the truth
answers = model.predict(public_images)
table = np.array([[np.sum((public_labels == truth) & (answers == answer)) for answer in CLASSES] for truth in CLASSES])
print(f'{"":10}', *(f"{name:>9}" for name in CLASSES))
for name, row in zip(CLASSES, table):
    print(f"{name:10}", *(f"{count:9}" for count in row))

# %% How training went, from released numbers alone: the length of the mean gradient, 0 where noise hides it
history = network.history_
print(f'{history["steps"]} steps; noise alone is {history["noise"]:.3f} of the clip')
for point in history["points"]:
    print(f'{point["step"]:4}  signal {point["signal"]:.3f}', "#" * round(100 * point["signal"]))

# %% What is guaranteed, and a file that says so
folder = Path(mkdtemp())
print("epsilon", round(model.epsilon_, 4), "at delta", model.certificate_.delta)
print("recomputed:", "holds" if model.certificate_.verify().holds else "does not hold")
model.save(folder / "model.json")
privfit.report(model, folder / "report.html")
network.export(folder / "network.onnx")
print("wrote", *sorted(path.name for path in folder.iterdir()))
