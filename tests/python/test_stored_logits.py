"""The stored oracle values are sound, and their comparison notices logits that differ."""

import numpy as np
import pytest
from stored_logits import combine, load

V = 49152  # vocabulary of the default model


def rebuilt(text, rng: np.random.Generator | None = None, noise: float = 0.0) -> np.ndarray:
    """Logits [T, V] that have the stored ones in their places and the stored tail spread over the rest."""
    top = text.top_log_probs.astype(np.float64)
    tail = np.maximum(1.0 - np.exp(top).sum(axis=1, keepdims=True), 1e-12)
    logits = np.repeat(np.log(tail / (V - top.shape[1])), V, axis=1)
    following = text.token_ids[1:].astype(np.int64)
    logits[np.arange(len(following)), following] = text.next_log_prob[:-1]
    np.put_along_axis(logits, text.top_ids.astype(np.int64), top, axis=1)
    logits += text.logsumexp[:, None]
    return logits + noise * rng.standard_normal(logits.shape) if rng else logits


@pytest.fixture(scope="module")
def texts():
    return load()


def test_there_are_twenty_texts_with_consistent_values(texts):
    assert len(texts) == 20
    for text in texts:
        assert 60 <= len(text.token_ids) <= 130, text.name
        assert (np.diff(text.top_log_probs, axis=1) <= 0).all(), text.name
        assert np.exp(text.top_log_probs.astype(np.float64)).sum(axis=1).max() <= 1 + 1e-5, text.name
        # A following token that is among the 64 has the log-probability that is stored for it there.
        rows, columns = np.nonzero(text.top_ids[:-1] == text.token_ids[1:, None])
        assert len(rows) > len(text.token_ids) // 3, text.name
        np.testing.assert_array_equal(text.top_log_probs[rows, columns], text.next_log_prob[rows])


def test_equal_logits_have_no_difference(texts):
    total = combine([text.difference(rebuilt(text)) for text in texts[:3]])
    assert abs(total.kl).max() < 1e-3
    assert total.flipped == 0 and total.clear > 100
    assert abs(total.perplexity_ratio - 1) < 1e-3


def test_noise_and_a_flip_are_noticed(texts):
    text = texts[0]
    noisy = text.difference(rebuilt(text, np.random.default_rng(1), noise=0.5))
    assert noisy.kl.mean() > 0.02
    logits = rebuilt(text)
    position = int(np.argmax(text.top_log_probs[:, 0] - text.top_log_probs[:, 1]))
    logits[position, text.top_ids[position, 0]] = logits[position].min()
    assert text.difference(logits).flipped == 1


def test_wrong_shape_and_nan_are_refused(texts):
    logits = rebuilt(texts[0])
    with pytest.raises(ValueError):
        texts[0].difference(logits[:-1])
    logits[3, 7] = np.nan
    with pytest.raises(ValueError):
        texts[0].difference(logits)
