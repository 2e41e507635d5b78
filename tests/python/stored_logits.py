"""The stored teacher-forced logits of the default model (tests/oracles/make_stored_logits.py says what is in them), and
how far other logits are from them. Shapes: T tokens of one text, V vocabulary."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parents[1] / "data"


@dataclass(frozen=True)
class Difference:
    """Of other logits from the stored ones, over the positions of one or several texts."""

    kl: np.ndarray  # [T] nats per position, KL(stored || other)
    flipped: int  # positions whose top token differs although the stored margin exceeds `margin`
    clear: int  # positions whose stored margin exceeds `margin`
    stored_log_probs: np.ndarray  # [T - 1] of the tokens that follow
    other_log_probs: np.ndarray  # [T - 1]

    @property
    def perplexity_ratio(self) -> float:
        """Other over stored."""
        return float(np.exp(self.stored_log_probs.mean() - self.other_log_probs.mean()))


@dataclass(frozen=True)
class StoredText:
    name: str
    text: str
    token_ids: np.ndarray  # i32 [T]
    top_ids: np.ndarray  # [T, 64]
    top_log_probs: np.ndarray  # [T, 64]
    logsumexp: np.ndarray  # [T]
    next_log_prob: np.ndarray  # [T], the last one NaN

    @property
    def perplexity(self) -> float:
        return float(np.exp(-self.next_log_prob[:-1].mean()))

    def difference(self, logits: np.ndarray, margin: float = 0.5) -> Difference:
        """Compares logits [T, V]. All tokens beyond the stored 64 count as one, so the KL is a lower bound of the full
        one, close to it since the 64 hold most of the probability. `margin` is in nats, as a difference of logits."""
        if logits.shape[0] != len(self.token_ids) or not np.isfinite(logits).all():
            raise ValueError(f"{self.name}: expected {len(self.token_ids)} rows of finite logits, got {logits.shape}")
        wide = logits.astype(np.float64)
        wide -= wide.max(axis=1, keepdims=True)
        other = wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))
        stored = self.top_log_probs.astype(np.float64)
        other_top = np.take_along_axis(other, self.top_ids.astype(np.int64), axis=1)
        kl = (np.exp(stored) * (stored - other_top)).sum(axis=1)
        tail = np.maximum(1.0 - np.exp(stored).sum(axis=1), 1e-12)
        other_tail = np.maximum(1.0 - np.exp(other_top).sum(axis=1), 1e-12)
        kl += tail * np.log(tail / other_tail)
        clear = stored[:, 0] - stored[:, 1] > margin
        flipped = clear & (logits.argmax(axis=1) != self.top_ids[:, 0])
        following = self.token_ids[1:].astype(np.int64)
        return Difference(kl, int(flipped.sum()), int(clear.sum()), self.next_log_prob[:-1].astype(np.float64),
                          other[np.arange(len(following)), following])


def combine(differences: list[Difference]) -> Difference:
    """One difference over the positions of all texts."""
    return Difference(
        np.concatenate([d.kl for d in differences]), sum(d.flipped for d in differences),
        sum(d.clear for d in differences), np.concatenate([d.stored_log_probs for d in differences]),
        np.concatenate([d.other_log_probs for d in differences]))


def load() -> list[StoredText]:
    """The stored texts, in the order of tests/data/texts.json."""
    arrays = np.load(DATA / "smollm2_logits.npz")
    names = ["token_ids", "top_ids", "top_log_probs", "logsumexp", "next_log_prob"]
    values = {name: arrays[name] for name in names}
    entries = json.loads((DATA / "texts.json").read_text())
    ends = arrays["offsets"]
    return [StoredText(entry["name"], entry["text"], *(values[name][begin:end] for name in names))
            for entry, begin, end in zip(entries, ends[:-1], ends[1:], strict=True)]
