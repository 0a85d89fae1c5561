"""The whole experiment by enumeration: every mask of every image, in loops."""

from itertools import pairwise

import numpy as np

from tests.references import amsp, enumerated_tversky, full_posterior, sdc, truths_and_weights


def sigmoid(z):
    return 1 / (1 + np.exp(-np.asarray(z, np.longdouble)))


def image(seed, mu_z=-3.698, n=10):
    """q and the marginals p of the posterior that excludes the empty mask."""
    q = sigmoid(np.random.RandomState(seed).normal(mu_z, 5, size=n))
    truths, weights = truths_and_weights(q)
    weights = np.where(truths.any(-1), weights, 0)
    return q, (weights[:, None] * truths).sum(0) / weights.sum()


def model(seed, p, rho_eta):
    if rho_eta == 0:
        return p
    noise = np.random.RandomState(seed + 33).normal(0, rho_eta, size=p.size)
    return sigmoid(np.log(p) - np.log1p(-p) + noise)


def confidences(seed, mu_z=-3.698, rho_eta=0.0):
    q, p = image(seed, mu_z)
    p_hat = model(seed, p, rho_eta)
    mask = p_hat >= 0.5
    return {
        "idc(x)": full_posterior(q, mask),
        "idc(p)": enumerated_tversky(p, mask),
        "idc(p_hat)": enumerated_tversky(p_hat, mask),
        "sdc": sdc(p_hat, mask),
        "amsp": amsp(p_hat),
    }


def curve(confidence, loss):
    order = sorted(range(len(loss)), key=lambda image: -confidence[image])
    return [np.mean([loss[image] for image in order[: count + 1]]) for count in range(len(order))]


def area(risks):
    return sum((a + b) / 2 for a, b in pairwise(risks)) / len(risks)


def experiment(seeds, mu_z=-3.698, rho_eta=0.0):
    """AURC of each estimator, risk and foreground ratio."""
    rows = [confidences(seed, mu_z, rho_eta) for seed in seeds]
    loss = [1 - row["idc(x)"] for row in rows]
    areas = {name: area(curve([row[name] for row in rows], loss)) for name in rows[0]}
    alpha = np.mean([image(seed, mu_z)[1].mean() for seed in seeds])
    return areas | {"random": np.mean(loss)}, np.mean(loss), alpha
