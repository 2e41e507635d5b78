"""Teacher-forced logits of 20 texts by the Engine on the default model, against the stored ones of transformers in f32
on the same, dequantized file. What differs is the encoding of activations (docs/numerics.md) and f16 keys and values."""

import os

import numpy as np
import pytest
from engine_logits import engine_logits
from stored_logits import combine, load

V = 49152


@pytest.fixture(scope="module")
def texts():
    return load()


@pytest.fixture(scope="module", params=["prompt", "generated"])
def total(request, texts):
    logits = engine_logits(os.environ["HEADRACE_MODEL"], [text.token_ids for text in texts], V,
                           token_class=request.param)
    return combine([text.difference(rows) for text, rows in zip(texts, logits, strict=True)])


def test_divergence_is_small(total):
    """The project's own bound is 0.005 nats; 16-bit activations and f16 keys and values give 6e-7."""
    assert np.isfinite(total.kl).all()
    assert total.kl.mean() < 1e-5


def test_no_clear_top_token_flips(total):
    assert total.clear > 1000
    assert total.flipped == 0


def test_perplexity_is_within_a_thousandth(total):
    assert abs(total.perplexity_ratio - 1) < 0.001


@pytest.mark.parametrize("kv, kl, ratio", [("bf16", 2e-4, 0.002), ("q8_0", 1e-3, 0.003)])
def test_other_encodings_of_keys_and_values(texts, kv, kl, ratio):
    logits = engine_logits(os.environ["HEADRACE_MODEL"], [text.token_ids for text in texts], V, kv=kv)
    total = combine([text.difference(rows) for text, rows in zip(texts, logits, strict=True)])
    assert np.isfinite(total.kl).all()
    assert 1e-6 < total.kl.mean() < kl  # more than f16 loses, or the option does nothing
    assert abs(total.perplexity_ratio - 1) < ratio


def test_text_is_the_same_in_batches_and_chunks(texts):
    """Bits, not tolerances: the contract on a real model."""
    sequences = [text.token_ids for text in texts[:4]]
    model = os.environ["HEADRACE_MODEL"]
    whole = engine_logits(model, sequences, V, token_class="generated")
    batched = engine_logits(model, sequences, V, token_class="generated", chunk=5, batch=4)
    for a, b in zip(whole, batched, strict=True):
        assert (a.view(np.uint32) == b.view(np.uint32)).all()
