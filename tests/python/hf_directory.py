"""Writes tiny models as transformers saves them, without transformers: config.json, safetensors, tokenizer.json."""

import json

import numpy as np
import tokenizers
from safetensors.numpy import save_file
from tokenizers import decoders, models, pre_tokenizers, processors

LAYER = {
    "input_layernorm.weight": ("D",),
    "self_attn.q_proj.weight": ("D", "D"),
    "self_attn.k_proj.weight": ("D", "D"),
    "self_attn.v_proj.weight": ("D", "D"),
    "self_attn.o_proj.weight": ("D", "D"),
    "post_attention_layernorm.weight": ("D",),
    "mlp.gate_proj.weight": ("F", "D"),
    "mlp.up_proj.weight": ("F", "D"),
    "mlp.down_proj.weight": ("D", "F"),
}
CONFIG = {
    "model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 4, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
    "rope_theta": 10000.0, "rope_scaling": None, "hidden_act": "silu", "eos_token_id": 257, "torch_dtype": "float32",
}  # fmt: skip
TEMPLATE = "{% for m in messages %}<user>{{ m['content'] }}{% endfor %}{{ eos_token }}"


def tensors(config=CONFIG, vocabulary=264, seed=0):
    """name -> f32 array, of unit scale."""
    random = np.random.default_rng(seed)
    sizes = {"D": config["hidden_size"], "F": config["intermediate_size"], "V": vocabulary}
    shapes = {"model.embed_tokens.weight": ("V", "D"), "model.norm.weight": ("D",), "lm_head.weight": ("V", "D")}
    for layer in range(config["num_hidden_layers"]):
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in LAYER.items()}
    made = {}
    for name, shape in shapes.items():
        dimensions = [sizes[letter] for letter in shape]
        values = random.standard_normal(dimensions).astype(np.float32)
        made[name] = values / np.float32(dimensions[-1] ** 0.5) if len(shape) == 2 else 1 + values / 10
    return made


def tokenizer():
    """The bytes as tokens 0 to 255, <s> and </s>; BOS before each text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(models.BPE({token: i for i, token in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<s>", "</s>"])
    made.post_processor = processors.TemplateProcessing("<s> $A", None, [("<s>", 256)])
    return made


def write_shards(folder, arrays, shards):
    """All in model.safetensors, or dealt out to shards with an index."""
    if shards == 1:
        save_file(arrays, folder / "model.safetensors", metadata={"format": "pt"})
        return
    weight_map = {}
    for i in range(shards):
        name = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        part = dict(list(arrays.items())[i::shards])
        save_file(part, folder / name, metadata={"format": "pt"})
        weight_map |= {tensor: name for tensor in part}
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def write(folder, config=CONFIG, arrays=None, shards=1):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    write_shards(folder, tensors(config) if arrays is None else arrays, shards)
    tokenizer().save(str(folder / "tokenizer.json"))
    named = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(named))
    return folder
