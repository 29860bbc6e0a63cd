# SPDX-License-Identifier: Apache-2.0
"""An MLP, a CNN and a small GPT, written once for torch and for mindtorch_v2.

    work = build(torch, "gpt")            # or mindtorch_v2; another optimizer: optimizer="adamw"; device="npu"
    loss = work.loss(work.model, *work.batch)
    loss.backward(); work.optimizer.step()

Weights and data are made with NumPy and copied in, so both libraries begin with the same numbers.
There is no dropout. The sizes are small: a step takes milliseconds.
"""
import zlib

import numpy as np

NAMES = ("mlp", "cnn", "gpt")

# name: (class, its arguments). Rates that move the weights visibly in 20 steps and stay stable.
OPTIMIZERS = {
    "sgd": ("SGD", dict(lr=0.05, momentum=0.9)),
    "sgd_plain": ("SGD", dict(lr=0.02)),
    "sgd_nesterov": ("SGD", dict(lr=0.02, momentum=0.9, nesterov=True, weight_decay=0.01)),
    "adam": ("Adam", dict(lr=0.003)),
    "adam_amsgrad": ("Adam", dict(lr=0.003, amsgrad=True, weight_decay=0.01)),
    "adamw": ("AdamW", dict(lr=0.003)),
    "rmsprop": ("RMSprop", dict(lr=0.001)),
    "rmsprop_centered": ("RMSprop", dict(lr=0.001, centered=True, momentum=0.5)),
    "adagrad": ("Adagrad", dict(lr=0.01, lr_decay=0.01)),
}

VOCABULARY, LENGTH, WIDTH, HEADS, LAYERS = 65, 32, 64, 4, 2


class Work:
    """A model, its optimizer, a batch, and how to get from them to a loss."""

    def __init__(self, model, optimizer, batch, loss):
        self.model, self.optimizer, self.batch, self.loss = model, optimizer, batch, loss

    def step(self):
        """One training step; the loss as a number."""
        self.optimizer.zero_grad()
        loss = self.loss(self.model, *self.batch)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def _fill(torch, model):
    """Weights from the names of the parameters: the same for both libraries, whatever made them."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            shape = tuple(parameter.shape)
            if name.endswith("weight") and len(shape) == 1:  # of a norm
                values = 1.0 + 0.1 * rng.standard_normal(shape)
            elif len(shape) == 1:
                values = 0.05 * rng.standard_normal(shape)
            else:
                values = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
            parameter.copy_(torch.from_numpy(values.astype(np.float32)))
    return model


def _mlp(torch):
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 48), nn.Tanh(), nn.Linear(48, 10)
    )
    rng = np.random.default_rng(1)
    x = rng.standard_normal((16, 32)).astype(np.float32)
    y = rng.integers(0, 10, 16)
    criterion = nn.CrossEntropyLoss()
    return model, (x, y), lambda model, x, y: criterion(model(x), y)


def _cnn(torch):
    nn = torch.nn

    class Cnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2d(3, 8, 3, padding=1),
                nn.BatchNorm2d(8),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(8, 16, 3, stride=2, padding=1),
                nn.ReLU(),
                nn.AdaptiveAvgPool2d(2),
            )
            self.head = nn.Linear(64, 10)

        def forward(self, x):
            return self.head(torch.flatten(self.features(x), 1))

    rng = np.random.default_rng(2)
    x = rng.standard_normal((8, 3, 16, 16)).astype(np.float32)
    y = rng.integers(0, 10, 8)
    return Cnn(), (x, y), lambda model, x, y: nn.functional.cross_entropy(model(x), y)


def _gpt(torch):
    nn, functional = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            batch, length, width = x.shape
            q, k, v = self.qkv(x).split(width, dim=2)

            def heads(t):
                return t.view(batch, length, HEADS, width // HEADS).transpose(1, 2)

            y = functional.scaled_dot_product_attention(heads(q), heads(k), heads(v), is_causal=True)
            return self.out(y.transpose(1, 2).contiguous().view(batch, length, width))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1 = nn.LayerNorm(WIDTH)
            self.attention = Attention()
            self.norm2 = nn.LayerNorm(WIDTH)
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.places = nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, ids):
            x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    def loss(model, ids, targets):
        logits = model(ids)
        return functional.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))

    rng = np.random.default_rng(3)
    text = rng.integers(0, VOCABULARY, (4, LENGTH + 1))
    return Gpt(), (text[:, :-1].copy(), text[:, 1:].copy()), loss


def build(torch, name, optimizer="sgd", device="cpu"):
    """The model `name` of NAMES in a library, with an optimizer of OPTIMIZERS, on a device."""
    makers = {"mlp": _mlp, "cnn": _cnn, "gpt": _gpt}
    model, batch, loss = makers[name](torch)
    _fill(torch, model).to(device)
    cls, options = OPTIMIZERS[optimizer]
    made = getattr(torch.optim, cls)(model.parameters(), **options)
    return Work(model, made, tuple(torch.from_numpy(array).to(device) for array in batch), loss)
