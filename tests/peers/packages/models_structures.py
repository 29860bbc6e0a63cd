# SPDX-License-Identifier: Apache-2.0
"""Models of graphs, tables, segments and noise: torch-geometric, egnn-pytorch, segmentation-models-pytorch, monai,
diffusers, tab-transformer-pytorch, pytorch-tabnet, neuraloperator, snntorch and others."""
import torch
from torch import nn

from component import classify, component, floats, integers, squares


# ---- graphs ----

def _graph(name, make_layer):
    @component("torch-geometric", name)
    def make():
        import torch_geometric.nn as layers

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.two = make_layer(layers, 8, 16), make_layer(layers, 16, 5)

            def forward(self, x, edges, batch):
                x = self.two(self.one(x, edges).relu(), edges)
                return layers.global_mean_pool(x, batch)
        nodes, edges = floats(10, 8), integers(10, 2, 30)
        batch = torch.tensor([0] * 5 + [1] * 5)
        return Model(), lambda module: nn.functional.cross_entropy(module(nodes, edges, batch), torch.tensor([1, 3]))


_graph("GCNConv", lambda layers, before, after: layers.GCNConv(before, after))
_graph("GATConv", lambda layers, before, after: layers.GATConv(before, after, heads=2, concat=False))
_graph("SAGEConv", lambda layers, before, after: layers.SAGEConv(before, after))
_graph("GINConv", lambda layers, before, after: layers.GINConv(nn.Sequential(nn.Linear(before, after), nn.ReLU(),
                                                                            nn.Linear(after, after))))
_graph("TransformerConv", lambda layers, before, after: layers.TransformerConv(before, after))


@component("egnn-pytorch", "EGNN")
def _egnn():
    from egnn_pytorch import EGNN
    made = EGNN(dim=16)
    features, places = floats(2, 6, 16), floats(2, 6, 3)

    def loss(module):
        values, moved = module(features, places)
        return (values ** 2).mean() + (moved ** 2).mean()
    return made, loss


# ---- images ----



@component("segmentation-models-pytorch", "losses")
def _segment_losses():
    import segmentation_models_pytorch as smp
    found = [smp.losses.JaccardLoss("multiclass"), smp.losses.TverskyLoss("multiclass"),
             smp.losses.LovaszLoss("multiclass"), smp.losses.SoftCrossEntropyLoss(smooth_factor=0.1)]
    images, target = floats(2, 3, 8, 8), integers(3, 2, 8, 8)

    def loss(module):
        logits = module(images)
        return sum(one(logits, target) for one in found)
    return nn.Conv2d(3, 3, 3, padding=1), loss


@component("monai", "UNet with DiceCELoss")
def _monai():
    from monai.losses import DiceCELoss
    from monai.networks.nets import UNet
    made = UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1)
    images, target = floats(2, 1, 16, 16), integers(2, 2, 1, 16, 16)
    measure = DiceCELoss(to_onehot_y=True, softmax=True)
    return made, lambda module: measure(module(images), target)


@component("monai", "SwinUNETR")
def _swin():
    from monai.networks.nets import SwinUNETR
    made = SwinUNETR(in_channels=1, out_channels=2, patch_size=2, depths=(1, 1, 1, 1), num_heads=(1, 1, 2, 2),
                     feature_size=12, spatial_dims=2)
    return made, squares(floats(2, 1, 64, 64))


@component("diffusers", "UNet2DModel and DDPMScheduler")
def _diffusers():
    import diffusers
    made = diffusers.UNet2DModel(sample_size=16, in_channels=1, out_channels=1, layers_per_block=1,
                                 block_out_channels=(8, 16), norm_num_groups=4,
                                 down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                                 up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8)
    schedule = diffusers.DDPMScheduler(num_train_timesteps=100)
    images, noise, times = floats(2, 1, 16, 16), floats(2, 1, 16, 16, seed=1), integers(100, 2)

    def loss(module):
        noisy = schedule.add_noise(images, noise, times)
        return nn.functional.mse_loss(module(noisy, times).sample, noise)
    return made, loss


@component("diffusers", "AutoencoderKL")
def _autoencoder():
    import diffusers
    made = diffusers.AutoencoderKL(in_channels=1, out_channels=1, down_block_types=("DownEncoderBlock2D",) * 2,
                                   up_block_types=("UpDecoderBlock2D",) * 2, block_out_channels=(8, 8),
                                   layers_per_block=1, norm_num_groups=4, latent_channels=2)
    images = floats(2, 1, 16, 16)

    def loss(module):
        seen = module.encode(images).latent_dist
        return ((module.decode(seen.mode()).sample - images) ** 2).mean() + seen.kl().mean() * 1e-3
    return made, loss


@component("denoising-diffusion-pytorch", "Unet")
def _denoise():
    from denoising_diffusion_pytorch import Unet
    made = Unet(dim=8, dim_mults=(1, 2), channels=1, flash_attn=False, attn_heads=2, attn_dim_head=8)
    images, times = floats(2, 1, 16, 16), integers(100, 2)
    return made, lambda module: (module(images, times) ** 2).mean()


@component("siren-pytorch", "SirenNet")
def _siren():
    from siren_pytorch import SirenNet
    return SirenNet(dim_in=2, dim_hidden=16, dim_out=3, num_layers=3, w0_initial=30.), squares(floats(12, 2))


# ---- tables ----

@component("tab-transformer-pytorch", "FTTransformer")
def _ft_transformer():
    from tab_transformer_pytorch import FTTransformer
    made = FTTransformer(categories=(4, 3, 5), num_continuous=4, dim=16, dim_out=1, depth=1, heads=2, dim_head=8)
    return made, squares(integers(3, 6, 3), floats(6, 4))


@component("pytorch-tabnet", "TabNet")
def _tabnet():
    from pytorch_tabnet.tab_network import TabNet
    made = TabNet(input_dim=6, output_dim=5, n_d=4, n_a=4, n_steps=2, cat_idxs=[], cat_dims=[], cat_emb_dim=1,
                  group_attention_matrix=torch.eye(6))
    return made, lambda module: nn.functional.cross_entropy(module(floats(16, 6))[0], integers(5, 16))


# ---- others ----

@component("neuraloperator", "FNO")
def _fno():
    from neuralop.models import FNO
    made = FNO(n_modes=(4, 4), hidden_channels=8, in_channels=1, out_channels=1, n_layers=2)
    return made, squares(floats(2, 1, 8, 8))


@component("snntorch", "Leaky neurons")
def _spiking():
    import snntorch

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside, self.spikes = nn.Linear(8, 5), snntorch.Leaky(beta=0.9, learn_beta=True)

        def forward(self, x):
            held, total = self.spikes.init_leaky(), 0
            for _ in range(4):
                spikes, held = self.spikes(self.inside(x), held)
                total = total + spikes + held
            return total
    return Model(), classify(floats(4, 8))


@component("spikingjelly", "LIFNode")
def _lif():
    from spikingjelly.activation_based import functional, layer, neuron
    made = nn.Sequential(layer.Linear(8, 5), neuron.LIFNode())
    numbers = floats(4, 8) * 3

    def loss(module):
        functional.reset_net(module)
        return (sum(module(numbers) for _ in range(4)) ** 2).mean()
    return made, loss


@component("mambapy", "Mamba")
def _mamba():
    from mambapy.mamba import Mamba, MambaConfig
    return Mamba(MambaConfig(d_model=16, n_layers=1, d_state=4)), squares(floats(2, 8, 16))


@component("reformer-pytorch", "FullQKAttention")
def _reformer():
    from reformer_pytorch.reformer_pytorch import FullQKAttention
    made = FullQKAttention(causal=True)
    inside = nn.ModuleDict({"qk": nn.Linear(8, 8), "v": nn.Linear(8, 8), "attention": made})
    numbers = floats(2, 8, 8)
    return inside, lambda module: (module["attention"](module["qk"](numbers), module["v"](numbers))[0] ** 2).mean()


@component("pytorch-tcn", "TCN")
def _tcn():
    from pytorch_tcn import TCN
    return TCN(num_inputs=4, num_channels=[8, 8], kernel_size=3, dropout=0.0), squares(floats(2, 4, 16))


@component("open-clip-torch", "CLIP")
def _clip():
    from open_clip.loss import ClipLoss
    from open_clip.model import CLIP
    made = CLIP(embed_dim=16, vision_cfg={"image_size": 16, "layers": 1, "width": 64, "patch_size": 8},
                text_cfg={"context_length": 8, "vocab_size": 32, "width": 64, "heads": 1, "layers": 1})
    images, tokens, measure = floats(3, 3, 16, 16), integers(32, 3, 8), ClipLoss()
    return made, lambda module: measure(*module(images, tokens))
