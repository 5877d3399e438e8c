"""Composed Gaussian mechanisms by dp-accounting: the independent side of tests of guarantees."""

import numpy as np
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant


def composed_delta(ratios, epsilons):
    """Delta of Gaussian mechanisms with these ratios of sensitivity to noise, by their privacy loss distributions."""
    composed = pld.identity(value_discretization_interval=1e-3)
    for ratio in ratios:
        if ratio > 0.0:
            composed = composed.compose(pld.from_gaussian_mechanism(1.0 / ratio, value_discretization_interval=1e-3))
    return np.array(composed.get_delta_for_epsilon(list(epsilons)))


def rdp_of_gaussians(ratios, orders):
    accountant = RdpAccountant(orders)
    for ratio in ratios:
        accountant.compose(GaussianDpEvent(1.0 / ratio))
    return accountant._rdp
