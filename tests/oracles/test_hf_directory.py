"""Directories that transformers saves, sharded and in several dtypes, against transformers in f32, live: the logits of
tiny random models, and what a tokenizer saved beside them gives."""

import json
import subprocess

import pytest
import torch
from hf_directory import tokenizer
from tiny_models import expect_logits, random_weights
from transformers import (
    AutoModelForCausalLM,
    GptOssConfig,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    OlmoeConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
)

COMMON = {"vocab_size": 264, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
          "num_key_value_heads": 2, "max_position_embeddings": 512, "tie_word_embeddings": False,
          "bos_token_id": 256, "eos_token_id": 257, "pad_token_id": None}  # fmt: skip
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
        "original_max_position_embeddings": 64}  # fmt: skip
CONFIGS = {
    "llama": lambda: LlamaConfig(**COMMON),
    "llama_tied": lambda: LlamaConfig(**COMMON | {"tie_word_embeddings": True}),
    "llama_wide_heads": lambda: LlamaConfig(**COMMON, head_dim=32),
    "llama_biased": lambda: LlamaConfig(**COMMON, attention_bias=True, mlp_bias=True),
    "llama31": lambda: LlamaConfig(**COMMON, rope_parameters=LLAMA3),
    "llama_linear": lambda: LlamaConfig(**COMMON, rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}),
    "mistral": lambda: MistralConfig(**COMMON, sliding_window=None),
    "mistral_window": lambda: MistralConfig(**COMMON, sliding_window=48),
    "qwen2": lambda: Qwen2Config(**COMMON),
    "qwen3": lambda: Qwen3Config(**COMMON, head_dim=32),
    "mixtral": lambda: MixtralConfig(**COMMON, num_local_experts=6, num_experts_per_tok=2),
    "qwen3moe": lambda: Qwen3MoeConfig(**COMMON, head_dim=16, moe_intermediate_size=32, num_experts=8, num_experts_per_tok=3,
                                       norm_topk_prob=True),
    "qwen3moe_sums": lambda: Qwen3MoeConfig(**COMMON, head_dim=16, moe_intermediate_size=32, num_experts=8,
                                            num_experts_per_tok=3, norm_topk_prob=False),
    "olmoe": lambda: OlmoeConfig(**COMMON | {"intermediate_size": 32}, num_experts=8, num_experts_per_tok=2),
    "gpt_oss": lambda: GptOssConfig(**COMMON, head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=32,
                                    rope_parameters=YARN),
}


def tiny_model(config):
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    random_weights(model)
    return model


@pytest.mark.parametrize("name", CONFIGS)
def test_tiny_models(name, tmp_path):
    model = tiny_model(CONFIGS[name]())
    model.save_pretrained(tmp_path)
    expect_logits(tmp_path, model)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_weights_in_shards(dtype, tmp_path):
    model = tiny_model(CONFIGS["llama"]()).to(dtype)
    model.save_pretrained(tmp_path, max_shard_size="60KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 3
    # The same numbers, computed in f32. (model.float() would keep rope's frequencies as rounded as they were.)
    expect_logits(tmp_path, AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval())


def test_older_names_of_the_config(tmp_path):
    """rope_theta and rope_scaling, as before transformers 5."""
    model = tiny_model(CONFIGS["llama31"]())
    model.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope
    path.write_text(json.dumps(config))
    expect_logits(tmp_path, model)


def test_saved_tokenizer(tmp_path, bin_dir):
    model = tiny_model(CONFIGS["llama"]())
    model.save_pretrained(tmp_path)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer(), bos_token="<s>", eos_token="</s>")
    fast.chat_template = "{{ bos_token }}{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    fast.save_pretrained(tmp_path)

    def run(*arguments, text=""):
        done = subprocess.run([bin_dir / "headrace", *arguments], input=text.encode(), capture_output=True, timeout=300)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    text = "Hello <s> wörld 123"
    assert run("tokenize", tmp_path, "--json", text=text)["token_ids"] == fast(text).input_ids
    messages = [{"role": "user", "content": "Hello"}]
    prompt = fast.apply_chat_template(messages, tokenize=True, return_dict=False)
    answer = run("run", tmp_path, "-p", "Hello", "-n", "4", "--json")
    assert answer["prompt_tokens"] == len(prompt)
    assert len(answer["token_ids"]) <= 4
