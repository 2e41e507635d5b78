"""OpenVINO GenAI as a peer of `headrace bench --vs openvino`: the protocol of src/measure/peer.hpp over LLMPipeline.

Prompts are random and new each time, since the pipeline keeps the prefixes that it has seen. Decode times are the sum of
the pipeline's own times between tokens, so that filling to the depth, which each run does anew, is not in them; prefill
is its time to the first token. scripts/bench_peers.sh installs this file with the interpreter of its environment.
"""
import argparse
import sys

import numpy as np
import openvino as ov
import openvino_genai as genai

# The GGUF reader of 2026.4 reads some metadata out of arrays of no elements, so that a good file fails now and then.
LOAD_TRIES = 5


class Runner:
    def __init__(self, model, threads):
        for attempt in range(LOAD_TRIES):
            try:
                self.pipeline = genai.LLMPipeline(model, "CPU", INFERENCE_NUM_THREADS=threads)
                break
            except IndexError:
                if attempt + 1 == LOAD_TRIES:
                    raise
        self.vocabulary = len(self.pipeline.get_tokenizer().get_vocab())
        self.random = np.random.default_rng()

    def generate(self, prompt_tokens, new_tokens):
        """The metrics of one generation after a prompt of random tokens."""
        ids = self.random.integers(0, self.vocabulary, (1, prompt_tokens), dtype=np.int64)
        config = genai.GenerationConfig()
        config.max_new_tokens = new_tokens
        config.ignore_eos = True
        config.do_sample = False
        inputs = genai.TokenizedInputs(ov.Tensor(ids), ov.Tensor(np.ones_like(ids)))
        metrics = self.pipeline.generate(inputs, config).perf_metrics
        if metrics.get_num_generated_tokens() != new_tokens:
            raise RuntimeError(f"expected {new_tokens} tokens, got {metrics.get_num_generated_tokens()}")
        return metrics

    def prefill(self, tokens):
        return self.generate(tokens, 1).get_ttft().mean / 1e3

    def decode(self, tokens, depth):
        durations = self.generate(max(depth, 1), tokens + 1).raw_metrics.m_durations
        return sum(durations[-tokens:]) / 1e6


def main():
    parser = argparse.ArgumentParser()
    for name in ("--threads", "--context", "--sequences"):
        parser.add_argument(name, type=int, default=1)
    parser.add_argument("--model", required=True)
    options = parser.parse_args()
    runner = Runner(options.model, options.threads)
    print("ready", genai.__version__, flush=True)
    for line in sys.stdin:
        kind, *numbers = line.split()
        tokens, depth, sequences = map(int, numbers)
        if sequences > 1:
            print("unsupported several sequences in a step of equal length", flush=True)
            continue
        seconds = runner.prefill(tokens) if kind == "prefill" else runner.decode(tokens, depth)
        print("seconds", repr(float(seconds)), flush=True)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # whatever it is, one line of the protocol
        print("error", type(error).__name__, str(error).replace("\n", " "), flush=True)
        sys.exit(1)
