"""A head that is a sum: a logistic regression whose weights keep to the directions of the facts. It is fitted to the end, so
that rounding hides what processors do differently, and the same data gives the same weights."""

import numpy as np

# How strongly weights are pulled towards 0, in units of the spread of a fact.
PULL = 1e-3
DIGITS, ENOUGH, SWEEPS, STEPS = 6, 1e-12, 5000, 100


class Sum:
    """A base and a weight for each fact."""

    def __init__(self, base, weights):
        self.base, self.weights = base, weights

    def predict(self, facts, raw_score=True):
        assert raw_score
        return self.base + facts @ self.weights


def objective(z, y, w, x):
    at = z @ x[:-1] + x[-1]
    return float((w * (np.logaddexp(0.0, at) - y * at)).sum() + PULL / 2 * (x[:-1] ** 2).sum())


def step(z, y, w, x, low, high):
    """The way to the least value, within the bounds, of the parabola that touches the objective at x."""
    p = 1.0 / (1.0 + np.exp(-(z @ x[:-1] + x[-1])))
    with_base = np.hstack([z, np.ones((len(z), 1))])
    slope = with_base.T @ (w * (p - y))
    bend = with_base.T @ (with_base * (w * p * (1 - p))[:, None])
    n = len(x) - 1
    slope[:n] += PULL * x[:n]
    bend[np.arange(n), np.arange(n)] += PULL
    to = x.copy()
    for _ in range(SWEEPS):
        moved = 0.0
        for k in range(n + 1):
            new = min(max(to[k] - slope[k] / bend[k, k], low[k]), high[k])
            if new != to[k]:
                slope += bend[:, k] * (new - to[k])
                moved, to[k] = max(moved, abs(new - to[k])), new
        if moved < ENOUGH:
            break
    return to - x


def fit(facts, y, w, directions):
    """Newton's method with bounds: a fact that may only raise the risk has a weight of at least 0, and the other way round."""
    w = w / w.sum()
    mean = w @ facts
    spread = np.sqrt(w @ (facts - mean) ** 2)
    spread[spread == 0] = 1.0  # a fact that never changes weighs nothing
    z = (facts - mean) / spread
    d = np.append(np.array(directions, dtype=float), 0.0)
    low, high = np.where(d > 0, 0.0, -np.inf), np.where(d < 0, 0.0, np.inf)
    x = np.zeros(facts.shape[1] + 1)
    for _ in range(STEPS):
        way, length, now = step(z, y, w, x, low, high), 1.0, objective(z, y, w, x)
        while length > ENOUGH and objective(z, y, w, x + length * way) > now:
            length /= 2
        x = x + length * way
        if np.abs(length * way).max() < ENOUGH:
            break
    else:
        raise RuntimeError("the weights of a head have not settled")
    weights = x[:-1] / spread
    return Sum(round(float(x[-1] - mean @ weights), DIGITS), np.round(weights, DIGITS) + 0.0)
