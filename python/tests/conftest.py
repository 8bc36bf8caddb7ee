import os
from pathlib import Path

import numpy as np
import pytest

# Nothing of a test is remembered of ledgers.
os.environ["XDG_STATE_HOME"] = "/dev/null"


@pytest.fixture(scope="session")
def command():
    """The command, for what must be the same in it."""
    path = Path(os.environ.get("PRIVFIT_BIN", Path(__file__).resolve().parents[2] / "target/release/privfit"))
    if not path.exists():
        pytest.skip("the command is not built: cargo build --release --bin privfit, or set PRIVFIT_BIN")
    return path


@pytest.fixture
def two_classes():
    """Rows in a box, two classes that a line tells apart."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-2, 3, size=(1500, 4))
    return X, (X @ [1.0, -1.0, 0.5, 0.0] > 0.3).astype(int)


@pytest.fixture
def numbers():
    """Rows in a box and a number that depends on them linearly."""
    rng = np.random.default_rng(8)
    X = rng.uniform(0, 10, size=(3000, 3))
    return X, X @ [1.0, 0.5, -0.3] + 2
