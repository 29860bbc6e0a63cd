# SPDX-License-Identifier: Apache-2.0
"""Models of images: vit-pytorch, timm, efficientnet-pytorch, mlp-mixer-pytorch, g-mlp-pytorch."""
import importlib

import torch

from component import classify, component, floats

IMAGES = (2, 3, 32, 32)
VIT = {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 32, "depth": 2, "heads": 2, "mlp_dim": 48}


def _vit(name, module, kind, **options):
    @component("vit-pytorch", name)
    def make():
        made = getattr(importlib.import_module(f"vit_pytorch.{module}"), kind)(**options)
        return made, classify(floats(*IMAGES))


def _but(*names, **more):
    return {**{key: value for key, value in VIT.items() if key not in names}, **more}


_vit("ViT", "vit", "ViT", **VIT)
_vit("SimpleViT", "simple_vit", "SimpleViT", **VIT)
_vit("DeepViT", "deepvit", "DeepViT", **VIT)
_vit("CaiT", "cait", "CaiT", **VIT, cls_depth=1)
_vit("ViT with patch merger", "vit_with_patch_merger", "ViT", **VIT, patch_merge_layer=1, patch_merge_num_tokens=4)
_vit("ViT for small datasets", "vit_for_small_dataset", "ViT", **VIT)
_vit("ParallelViT", "parallel_vit", "ViT", **VIT, num_parallel_branches=2)
_vit("LearnableMemoryViT", "learnable_memory_vit", "ViT", **VIT)
_vit("SimpleViT with registers", "simple_vit_with_register_tokens", "SimpleViT", **VIT)
_vit("SimpleViT with QK norm", "simple_vit_with_qk_norm", "SimpleViT", **VIT)
_vit("SimpleViT with value residual", "simple_vit_with_value_residual", "SimpleViT", **VIT)
_vit("NormalizedViT", "normalized_vit", "nViT", **VIT, dim_head=16)
_vit("PiT", "pit", "PiT", **_but("depth", "patch_size", patch_size=8, depth=(1, 1)))
_vit("CCT", "cct", "CCT", img_size=32, embedding_dim=32, n_conv_layers=1, kernel_size=3, stride=2, padding=1,
     pooling_kernel_size=3, pooling_stride=2, pooling_padding=1, num_layers=2, num_heads=2, mlp_ratio=2.,
     num_classes=5, positional_embedding="learnable", stochastic_depth_rate=0.0)
_vit("CrossViT", "cross_vit", "CrossViT", image_size=32, num_classes=5, depth=1, sm_dim=16, sm_patch_size=8,
     sm_enc_depth=1, sm_enc_heads=2, sm_enc_mlp_dim=32, lg_dim=32, lg_patch_size=16, lg_enc_depth=1, lg_enc_heads=2,
     lg_enc_mlp_dim=32, cross_attn_depth=1, cross_attn_heads=2)
_vit("XCiT", "xcit", "XCiT", **VIT, cls_depth=1, local_patch_kernel_size=3)
_vit("CvT", "cvt", "CvT", num_classes=5, s1_emb_dim=8, s1_heads=1, s1_depth=1, s2_emb_dim=16, s2_heads=1, s2_depth=1,
     s3_emb_dim=16, s3_heads=1, s3_depth=1)
_vit("TwinsSVT", "twins_svt", "TwinsSVT", num_classes=5, s1_emb_dim=8, s1_patch_size=2, s1_local_patch_size=4,
     s1_global_k=4, s1_depth=1, s2_emb_dim=8, s2_patch_size=2, s2_local_patch_size=4, s2_global_k=4, s2_depth=1,
     s3_emb_dim=8, s3_patch_size=1, s3_local_patch_size=4, s3_global_k=4, s3_depth=1, s4_emb_dim=8, s4_patch_size=1,
     s4_local_patch_size=4, s4_global_k=4, s4_depth=1)
_vit("MobileViT", "mobile_vit", "MobileViT", image_size=(32, 32), dims=[16, 16, 16], num_classes=5,
     channels=[8, 8, 16, 16, 16, 16, 16, 16, 16, 16, 32], depths=(1, 1, 1), patch_size=(1, 1))
_vit("NesT", "nest", "NesT", image_size=32, patch_size=4, num_classes=5, dim=16, heads=2, num_hierarchies=2,
     block_repeats=(1, 1))
_vit("MaxViT", "max_vit", "MaxViT", num_classes=5, dim_conv_stem=8, dim=8, dim_head=8, depth=(1, 1), window_size=4)
_vit("LeViT", "levit", "LeViT", image_size=32, num_classes=5, stages=1, dim=16, depth=1, heads=2, mlp_mult=2)
_vit("RegionViT", "regionvit", "RegionViT", dim=(8, 8, 16, 16), depth=(1, 1, 1, 1), window_size=2, num_classes=5,
     tokenize_local_3_conv=False)
_vit("T2TViT", "t2t", "T2TViT", dim=32, image_size=32, depth=1, heads=2, mlp_dim=32, num_classes=5,
     t2t_layers=((7, 4), (3, 2)))


@component("vit-pytorch", "MAE's decoder input: ViT as an encoder")
def _extractor():
    from vit_pytorch.extractor import Extractor
    from vit_pytorch.vit import ViT
    images = floats(*IMAGES)

    def loss(module):
        logits, embeddings = module(images)
        return logits.mean() + (embeddings ** 2).mean()
    return Extractor(ViT(**VIT), detach=False), loss


def _timm(name, size=64, lr=0.05, **options):
    @component("timm", name)
    def make():
        import timm
        model = timm.create_model(name, pretrained=False, num_classes=5, **options)
        return model, classify(floats(2, 3, size, size)), lambda parameters: torch.optim.SGD(parameters, lr)


_timm("resnet10t")
_timm("resnet14t")
_timm("vit_tiny_patch16_224", 32, img_size=32, depth=2)
_timm("deit_tiny_patch16_224", 32, img_size=32, depth=2)
_timm("mixer_s32_224", 64, img_size=64)
_timm("convnext_atto")
_timm("mobilenetv3_small_050")
_timm("efficientnet_lite0")
_timm("ghostnet_050", drop_rate=0.0)
_timm("regnetx_002")
_timm("poolformer_s12")
_timm("swin_tiny_patch4_window7_224", 56, img_size=56, depths=(1, 1), num_heads=(2, 4), embed_dim=16,
      drop_path_rate=0.0)
_timm("resmlp_12_224", 64, img_size=64)


@component("efficientnet-pytorch", "EfficientNet b0")
def _efficientnet():
    from efficientnet_pytorch import EfficientNet
    made = EfficientNet.from_name("efficientnet-b0", num_classes=5, drop_connect_rate=0.0, image_size=64)
    return made, classify(floats(2, 3, 64, 64))


@component("mlp-mixer-pytorch", "MLPMixer")
def _mixer():
    from mlp_mixer_pytorch import MLPMixer
    return MLPMixer(image_size=32, channels=3, patch_size=8, dim=32, depth=2, num_classes=5), classify(floats(*IMAGES))


@component("g-mlp-pytorch", "gMLPVision")
def _gmlp():
    from g_mlp_pytorch import gMLPVision
    made = gMLPVision(image_size=32, patch_size=8, num_classes=5, dim=32, depth=2, prob_survival=1.)
    return made, classify(floats(*IMAGES))
