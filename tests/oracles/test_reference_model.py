"""The reference itself: our loader of GGUF files agrees with transformers' own, and the stored values are not stale."""

import numpy as np
import torch
from make_stored_logits import stored_values, texts
from stored_logits import load
from transformers import AutoModelForCausalLM, AutoTokenizer


def test_weights_are_those_that_transformers_reads(reference, model_path):
    theirs = AutoModelForCausalLM.from_pretrained(model_path.parent, gguf_file=model_path.name, dtype=torch.float32)
    ours = reference.model.state_dict()
    for name, value in theirs.state_dict().items():
        assert torch.equal(value, ours[name]), name
    assert theirs.config.rms_norm_eps == reference.config.rms_norm_eps
    assert theirs.config.rope_parameters["rope_theta"] == reference.config.rope_parameters["rope_theta"]


def test_token_ids_are_those_of_transformers(reference, model_path):
    # transformers reads the vocabulary and the merges from a GGUF file, but not its pre-tokenizer (smollm): it does not
    # cut the text at digits, so "\n\n1" falls into other words there. Texts without digits must agree.
    theirs = AutoTokenizer.from_pretrained(model_path.parent, gguf_file=model_path.name)
    without_digits = [text for text in texts() if not any(character.isnumeric() for character in text)]
    assert len(without_digits) >= 8
    for text in without_digits:
        assert reference.encode(text) == theirs.encode(text, add_special_tokens=False)


def test_decoding_gives_the_text_back(reference):
    for text in texts():
        assert reference.tokenizer.decode(reference.encode(text), skip_special_tokens=False) == text


def test_stored_values_are_those_made_now(reference):
    fresh = stored_values(reference, texts())
    stored = load()
    for text, begin, end in zip(stored, fresh["offsets"][:-1], fresh["offsets"][1:], strict=True):
        rows = slice(begin, end)
        np.testing.assert_array_equal(text.token_ids, fresh["token_ids"][rows], err_msg=text.name)
        # f32 sums of 30 layers in another order (threads, vector width) move logits by some 1e-4.
        np.testing.assert_allclose(text.top_log_probs, fresh["top_log_probs"][rows], atol=2e-3, err_msg=text.name)
        np.testing.assert_allclose(text.logsumexp, fresh["logsumexp"][rows], atol=2e-3, err_msg=text.name)
        np.testing.assert_allclose(text.next_log_prob, fresh["next_log_prob"][rows], atol=2e-3, err_msg=text.name)
