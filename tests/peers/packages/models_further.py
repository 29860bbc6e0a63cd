# SPDX-License-Identifier: Apache-2.0
"""Of other kinds: image quality (pytorch-msssim), optimizers without schedules (schedulefree, prodigyopt), averages of
weights (torch-ema), mixtures of experts, slots, lambda layers."""
import torch
from torch import nn

from component import component


def _images():
    return torch.linspace(0.05, 0.95, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32).sin().abs()


class _Filter(nn.Module):
    """A small image to image network with results between 0 and 1."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x):
        return torch.sigmoid(self.last(torch.relu(self.first(x))))


@component("pytorch-msssim", "SSIM")
def _msssim():
    from pytorch_msssim import SSIM
    measure, x = SSIM(data_range=1.0, size_average=True, channel=3), _images()
    return _Filter(), lambda module: 1 - measure(module(x), x)


def _regression():
    x = torch.linspace(-1, 1, 48).reshape(16, 3)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)), lambda module: (
        (module(x) - x.pow(2).sum(1, keepdim=True)) ** 2).mean()


@component("schedulefree", "AdamWScheduleFree")
def _schedule_free():
    from schedulefree import AdamWScheduleFree

    def optimizer(parameters):
        made = AdamWScheduleFree(parameters, lr=0.01, foreach=False)
        made.train()
        return made
    return (*_regression(), optimizer)


@component("prodigyopt", "Prodigy")
def _prodigy():
    from prodigyopt import Prodigy
    return (*_regression(), lambda parameters: Prodigy(parameters, lr=1.0))


@component("torch-ema", "ExponentialMovingAverage")
def _averages():
    from torch_ema import ExponentialMovingAverage
    module, plain = _regression()
    kept = []  # begins with the weights that both libraries share

    def loss(module):
        if not kept:
            kept.append(ExponentialMovingAverage(module.parameters(), decay=0.9))
        averages = kept[0]
        averages.update()
        with torch.no_grad(), averages.average_parameters():
            steady = plain(module)
        return plain(module) + steady
    return module, loss


@component("mixture-of-experts", "MoE")
def _experts():
    from mixture_of_experts import MoE
    x = torch.linspace(-1, 1, 2 * 8 * 16).reshape(2, 8, 16).sin()

    def loss(module):
        result, extra = module(x)
        return result.pow(2).mean() + extra
    return MoE(dim=16, num_experts=4, second_policy_train="all", second_policy_eval="all"), loss


@component("lambda-networks", "LambdaLayer")
def _lambda():
    from lambda_networks import LambdaLayer
    x = torch.linspace(-1, 1, 2 * 8 * 8 * 8).reshape(2, 8, 8, 8).sin()
    return LambdaLayer(dim=8, dim_out=8, r=5, dim_k=4, heads=2, dim_u=1), lambda module: module(x).pow(2).mean()


@component("slot-attention", "SlotAttention")
def _slots():
    from slot_attention import SlotAttention
    x = torch.linspace(-1, 1, 2 * 8 * 16).reshape(2, 8, 16).sin()
    made = SlotAttention(num_slots=3, dim=16, iters=2)
    with torch.no_grad():
        made.slots_logsigma.fill_(-60.0)  # the slots begin at their mean: no random numbers
    made.slots_logsigma.requires_grad_(False)
    return made, lambda module: module(x).pow(2).mean()
