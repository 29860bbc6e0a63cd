# SPDX-License-Identifier: Apache-2.0
"""Models of sequences, and layers of them: x-transformers, linformer, performer, perceiver and others."""
import torch

from component import component, floats, integers, squares

TOKENS = 32


def _language(package, name):
    """A component that is a model of tokens: it makes logits."""
    def keep(make):
        @component(package, name)
        def made():
            tokens = integers(TOKENS, 2, 17)

            def loss(module):
                logits = module(tokens[:, :-1])
                logits = logits[0] if isinstance(logits, tuple) else logits
                return torch.nn.functional.cross_entropy(logits.transpose(1, 2), tokens[:, 1:])
            return make(), loss
        return make
    return keep


def _decoder(name, **options):
    @_language("x-transformers", name)
    def make():
        from x_transformers import Decoder, TransformerWrapper
        return TransformerWrapper(num_tokens=TOKENS, max_seq_len=16,
                                  attn_layers=Decoder(dim=32, depth=2, heads=2, attn_dim_head=16, **options))


_decoder("Decoder")
_decoder("Decoder with rotary embeddings", rotary_pos_emb=True)
_decoder("Decoder with ALiBi", alibi_pos_bias=True)
_decoder("Decoder with RMSNorm and SwiGLU", use_rmsnorm=True, ff_glu=True, ff_swish=True)
_decoder("Decoder with T5's positions", rel_pos_bias=True)
_decoder("Decoder with sandwich norm", sandwich_norm=True)
_decoder("Decoder with QK norm", attn_qk_norm=True)
_decoder("Decoder with one head of keys", attn_one_kv_head=True)
_decoder("Decoder with flash attention", attn_flash=True)
_decoder("Decoder with macaron layers", macaron=True)


@component("x-transformers", "AutoregressiveWrapper")
def _autoregressive():
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper
    model = AutoregressiveWrapper(TransformerWrapper(num_tokens=TOKENS, max_seq_len=32,
                                                     attn_layers=Decoder(dim=32, depth=2, heads=2)))
    tokens = integers(TOKENS, 2, 17)
    return model, lambda module: module(tokens)


@component("x-transformers", "Encoder and decoder")
def _xtransformer():
    from x_transformers import XTransformer
    model = XTransformer(dim=32, enc_num_tokens=TOKENS, enc_depth=1, enc_heads=2, enc_max_seq_len=16,
                         dec_num_tokens=TOKENS, dec_depth=1, dec_heads=2, dec_max_seq_len=16)
    source, target = integers(TOKENS, 2, 16), integers(TOKENS, 2, 12)
    return model, lambda module: module(source, target)


@component("x-transformers", "ContinuousTransformerWrapper")
def _continuous():
    from x_transformers import ContinuousTransformerWrapper, Encoder
    made = ContinuousTransformerWrapper(dim_in=8, dim_out=8, max_seq_len=16,
                                        attn_layers=Encoder(dim=32, depth=1, heads=2))
    return made, squares(floats(2, 16, 8))


@component("x-transformers", "ViTransformerWrapper")
def _vision():
    from x_transformers import Encoder, ViTransformerWrapper
    made = ViTransformerWrapper(image_size=32, patch_size=8, num_classes=5,
                                attn_layers=Encoder(dim=32, depth=1, heads=2))
    return made, squares(floats(2, 3, 32, 32))


@_language("linformer", "LinformerLM")
def _linformer():
    from linformer import LinformerLM
    return LinformerLM(num_tokens=TOKENS, dim=32, seq_len=16, depth=1, heads=2, k=8)


@_language("performer-pytorch", "PerformerLM")
def _performer():
    from performer_pytorch import PerformerLM
    return PerformerLM(num_tokens=TOKENS, dim=32, max_seq_len=16, depth=1, heads=2, dim_head=16, causal=False,
                       nb_features=16, rotary_position_emb=True)


@_language("local-attention", "LocalTransformer")
def _local():
    from local_attention import LocalTransformer
    return LocalTransformer(num_tokens=TOKENS, dim=32, depth=1, max_seq_len=16, causal=True, local_attn_window_size=8,
                            heads=2, dim_head=16)


@component("local-attention", "LocalMHA")
def _local_mha():
    from local_attention import LocalMHA
    return LocalMHA(dim=32, window_size=8, heads=2, dim_head=16, causal=True), squares(floats(2, 16, 32))


@_language("g-mlp-pytorch", "gMLP")
def _gmlp():
    from g_mlp_pytorch import gMLP
    return gMLP(num_tokens=TOKENS, dim=32, depth=2, seq_len=16, causal=True, prob_survival=1.)


@component("perceiver-pytorch", "Perceiver")
def _perceiver():
    from perceiver_pytorch import Perceiver
    made = Perceiver(input_channels=3, input_axis=2, num_freq_bands=2, max_freq=4., depth=1, num_latents=8,
                     latent_dim=32, cross_heads=1, latent_heads=2, num_classes=5)
    return made, squares(floats(2, 8, 8, 3))


@component("perceiver-pytorch", "PerceiverIO")
def _perceiver_io():
    from perceiver_pytorch import PerceiverIO
    made = PerceiverIO(dim=16, queries_dim=16, logits_dim=5, depth=1, num_latents=8, latent_dim=16, latent_heads=2)
    data, queries = floats(2, 12, 16), floats(4, 16)
    return made, lambda module: (module(data, queries=queries) ** 2).mean()


@component("nystrom-attention", "NystromAttention")
def _nystrom():
    from nystrom_attention import NystromAttention
    made = NystromAttention(dim=32, dim_head=16, heads=2, num_landmarks=8, pinv_iterations=6, residual=True)
    return made, squares(floats(2, 16, 32))


@component("memory-efficient-attention-pytorch", "Attention")
def _memory_efficient():
    from memory_efficient_attention_pytorch import Attention
    made = Attention(dim=32, dim_head=16, heads=2, causal=True, memory_efficient=True, q_bucket_size=8, k_bucket_size=8)
    return made, squares(floats(2, 16, 32))


@component("conformer", "ConformerBlock")
def _conformer():
    from conformer import ConformerBlock
    made = ConformerBlock(dim=32, dim_head=16, heads=2, ff_mult=2, conv_expansion_factor=2, conv_kernel_size=7)
    return made, squares(floats(2, 16, 32))


@component("soft-moe-pytorch", "SoftMoE")
def _soft_moe():
    from soft_moe_pytorch import SoftMoE
    return SoftMoE(dim=32, seq_len=16, num_experts=4), squares(floats(2, 16, 32))


@component("rotary-embedding-torch", "RotaryEmbedding")
def _rotary():
    from rotary_embedding_torch import RotaryEmbedding
    made = RotaryEmbedding(dim=8, learned_freq=True)
    queries = floats(2, 2, 16, 16)
    return made, lambda module: (module.rotate_queries_or_keys(queries) * queries.flip(2)).mean()


@component("positional-encodings", "PositionalEncoding2D and Summer")
def _positional():
    from positional_encodings.torch_encodings import PositionalEncoding2D, Summer

    class Added(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = torch.nn.Linear(16, 16)
            self.encoding = Summer(PositionalEncoding2D(16))

        def forward(self, x):
            return self.inside(self.encoding(x))
    return Added(), squares(floats(2, 4, 4, 16))


@component("hyper-connections", "HyperConnections")
def _hyper():
    from hyper_connections import HyperConnections

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            wrap, self.expand, self.reduce = HyperConnections.get_init_and_expand_reduce_stream_functions(4)
            self.one = wrap(dim=32, branch=torch.nn.Linear(32, 32))
            self.two = wrap(dim=32, branch=torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU()))

        def forward(self, x):
            return self.reduce(self.two(self.one(self.expand(x))))
    return Model(), squares(floats(2, 8, 32))


@component("vector-quantize-pytorch", "VectorQuantize")
def _quantize():
    from vector_quantize_pytorch import VectorQuantize

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = torch.nn.Linear(16, 8)
            self.quantize = VectorQuantize(dim=8, codebook_size=16, decay=0.8, commitment_weight=1.)

        def forward(self, x):
            quantized, _, commitment = self.quantize(self.inside(x))
            return (quantized ** 2).mean() + commitment.sum()
    numbers = floats(2, 12, 16)
    return Model(), lambda module: module(numbers)


@component("vector-quantize-pytorch", "FSQ")
def _fsq():
    from vector_quantize_pytorch import FSQ

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = torch.nn.Linear(16, 8)
            self.quantize = FSQ(levels=[8, 5, 5], dim=8)

        def forward(self, x):
            return self.quantize(self.inside(x))[0]
    return Model(), squares(floats(2, 12, 16))
