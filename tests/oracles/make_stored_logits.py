"""Writes tests/data/smollm2_logits.npz: teacher-forced logits of the default model on tests/data/texts.json.

Made by transformers in f32 on the dequantized file (reference_model.py); read by tests/python/stored_logits.py.
N is the number of tokens of all texts together, one text after the other.

  token_ids      i32 [N]
  offsets        i64 [texts + 1]   text i has the tokens offsets[i] .. offsets[i + 1]
  top_ids        u16 [N, 64]       the 64 most probable next tokens, best first
  top_log_probs  f32 [N, 64]       their natural log-probabilities
  logsumexp      f32 [N]           log-probability + logsumexp = logit
  next_log_prob  f32 [N]           of the token that follows; NaN behind a text's last token

Usage: make_stored_logits.py MODEL.gguf
"""

import json
import sys
from pathlib import Path

import numpy as np
from reference_model import ReferenceModel, log_softmax

DATA = Path(__file__).resolve().parents[1] / "data"
TOP = 64


def stored_values(model: ReferenceModel, texts: list[str]) -> dict[str, np.ndarray]:
    """The arrays of the file, from live logits."""
    parts = {"token_ids": [], "top_ids": [], "top_log_probs": [], "logsumexp": [], "next_log_prob": []}
    offsets = [0]
    for text in texts:
        ids = model.encode(text)
        logits = model.teacher_forced_logits(ids)
        log_probs = log_softmax(logits)
        top = np.argsort(-log_probs, axis=1, kind="stable")[:, :TOP]
        next_log_prob = np.full(len(ids), np.nan)
        next_log_prob[:-1] = log_probs[np.arange(len(ids) - 1), ids[1:]]
        parts["token_ids"].append(np.array(ids, np.int32))
        parts["top_ids"].append(top.astype(np.uint16))
        parts["top_log_probs"].append(np.take_along_axis(log_probs, top, axis=1).astype(np.float32))
        parts["logsumexp"].append((logits[:, 0] - log_probs[:, 0]).astype(np.float32))
        parts["next_log_prob"].append(next_log_prob.astype(np.float32))
        offsets.append(offsets[-1] + len(ids))
    arrays = {name: np.concatenate(values) for name, values in parts.items()}
    return {"offsets": np.array(offsets, np.int64), **arrays}


def texts() -> list[str]:
    return [entry["text"] for entry in json.loads((DATA / "texts.json").read_text())]


def main(path: str) -> None:
    arrays = stored_values(ReferenceModel(path), texts())
    np.savez_compressed(DATA / "smollm2_logits.npz", **arrays)
    for entry, begin, end in zip(json.loads((DATA / "texts.json").read_text()), arrays["offsets"], arrays["offsets"][1:]):
        mean = np.nanmean(arrays["next_log_prob"][begin:end])
        print(f"{entry['name']}: {end - begin} tokens, perplexity {np.exp(-mean):.2f}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
