"""The family gpt-oss against transformers in f32, live."""

import pytest
from gguf import GGMLQuantizationType as Kind
from tiny_models import ATTENTION, SMALL, Writer, expect_logits, quantized, random_weights
from transformers import GptOssConfig, GptOssForCausalLM

YARN = {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "truncate": False, "original_max_position_embeddings": 64}

SHAPES = {
    "f32": ({"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "num_local_experts": 6,
             "num_experts_per_tok": 2, "sliding_window": 20}, Kind.F32),
    "window_of_a_page": ({"num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 16, "num_local_experts": 33,
                          "num_experts_per_tok": 4, "sliding_window": 64, "num_hidden_layers": 4}, Kind.F32),
    "q8_0": ({"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 64, "num_local_experts": 4,
              "num_experts_per_tok": 4, "sliding_window": 33}, Kind.Q8_0),
    "mxfp4": ({"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "num_local_experts": 8,
               "num_experts_per_tok": 3, "sliding_window": 20}, Kind.MXFP4),
}


@pytest.mark.parametrize("name", SHAPES)
def test_tiny_models(name, tmp_path):
    options, kind = SHAPES[name]
    model = GptOssForCausalLM(GptOssConfig(**(SMALL | options), rope_parameters=dict(YARN))).eval()
    random_weights(model)
    config = model.config
    path = tmp_path / "tiny.gguf"
    writer = Writer(path, "gpt-oss", config)
    writer.key("attention.sliding_window", config.sliding_window)
    writer.key("expert_count", config.num_local_experts)
    writer.key("expert_used_count", config.num_experts_per_tok)
    writer.key("expert_feed_forward_length", config.intermediate_size)
    state = model.state_dict()
    writer.ends(state, config.tie_word_embeddings)
    for layer in range(config.num_hidden_layers):
        names = ATTENTION | {"post_attention_norm": "post_attention_layernorm", "ffn_gate_inp": "mlp.router"}
        writer.layer(state, layer, names)
        writer.add(f"blk.{layer}.attn_sinks.weight", state[f"model.layers.{layer}.self_attn.sinks"])
        # transformers keeps the transposed matrices, gate and up in turn.
        experts = f"model.layers.{layer}.mlp.experts"
        gate_up = state[f"{experts}.gate_up_proj"].transpose(1, 2)
        gate_up_bias = state[f"{experts}.gate_up_proj_bias"]
        for ours, tensor, bias in (
            ("gate", gate_up[:, ::2], gate_up_bias[:, ::2]),
            ("up", gate_up[:, 1::2], gate_up_bias[:, 1::2]),
            ("down", state[f"{experts}.down_proj"].transpose(1, 2), state[f"{experts}.down_proj_bias"]),
        ):
            writer.raw(f"blk.{layer}.ffn_{ours}_exps.weight", quantized(tensor, kind), kind)
            writer.add(f"blk.{layer}.ffn_{ours}_exps.bias", bias)
    writer.close()
    expect_logits(path, model)
