# SPDX-License-Identifier: Apache-2.0
"""Hugging Face transformers, from small random configurations: they train and generate."""
from component import component, integers

SMALL = {"vocab_size": 64}


def _model(name, make_model, make_config, generates=True, **inputs):
    @component("transformers", name)
    def make():
        import transformers
        transformers.logging.set_verbosity_error()
        model = make_model(transformers)(make_config(transformers))
        tokens = integers(64, 2, 12)

        def loss(module):
            result = module(input_ids=tokens, labels=tokens, **inputs)
            if not generates:
                return result.loss
            module.eval()
            made = module.generate(tokens[:, :6], max_new_tokens=5, do_sample=False, pad_token_id=0)
            module.train()
            return result.loss + made.sum() * 1e-3  # the same tokens, or another loss
        return model, loss


_model("GPT-2", lambda t: t.GPT2LMHeadModel, lambda t: t.GPT2Config(
    **SMALL, n_embd=32, n_layer=2, n_head=2, n_positions=32, bos_token_id=0, eos_token_id=63))
_model("BERT", lambda t: t.BertForMaskedLM, lambda t: t.BertConfig(
    **SMALL, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
    max_position_embeddings=32), generates=False)
_model("Llama", lambda t: t.LlamaForCausalLM, lambda t: t.LlamaConfig(
    **SMALL, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48,
    max_position_embeddings=32, bos_token_id=0, eos_token_id=63))
_model("T5", lambda t: t.T5ForConditionalGeneration, lambda t: t.T5Config(
    **SMALL, d_model=32, d_kv=16, d_ff=48, num_layers=2, num_heads=2, decoder_start_token_id=0, dropout_rate=0.0))
_model("Qwen3", lambda t: t.Qwen3ForCausalLM, lambda t: t.Qwen3Config(
    **SMALL, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
    intermediate_size=48, max_position_embeddings=32, bos_token_id=0, eos_token_id=63))
_model("DistilBERT", lambda t: t.DistilBertForMaskedLM, lambda t: t.DistilBertConfig(
    **SMALL, dim=32, n_layers=2, n_heads=2, hidden_dim=48, max_position_embeddings=32), generates=False)


@component("peft", "LoRA on GPT-2")
def _lora():
    import peft
    import transformers
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**SMALL, n_embd=32, n_layer=2, n_head=2,
                                                                 n_positions=32))
    made = peft.get_peft_model(model, peft.LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, target_modules=["c_attn"],
                                                      fan_in_fan_out=True))
    tokens = integers(64, 2, 12)
    return made, lambda module: module(input_ids=tokens, labels=tokens).loss
