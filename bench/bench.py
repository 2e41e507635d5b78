#!/usr/bin/env python3
"""Measures `headrace bench` over models and Formats beside the peers, and the kernels, and writes bench/RESULTS.md.

Each case is kept in build/bench/ as it is measured, so that a run that was interrupted goes on where it stopped; a case
is measured anew when the binary has changed, or with --fresh. RESULTS.md is written after every case. The default set
takes about a quarter of an hour on 2 cores; --full takes hours and tens of gigabytes of disk, one model at a time.
"""
import argparse
import datetime
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "release"
KEPT = ROOT / "build" / "bench"
RESULTS = ROOT / "bench" / "RESULTS.md"
FORMATS = ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl",
           "iq4_xs", "mxfp4"]
ALL_PEERS = ("llama.cpp", "openvino")
DEEP_PEERS = ("llama.cpp",)  # OpenVINO would fill to the depth anew in every run


@dataclass(frozen=True)
class Case:
    """One call of `headrace bench`. `model` is a name that it knows, or a preset of random_model with a Format."""
    model: str
    file_format: str = ""
    prompt_tokens: int = 128
    tokens: int = 32
    depths: tuple = (0,)
    sequences: tuple = (1,)
    repeats: int = 5
    peers: tuple = ALL_PEERS
    is_checked: bool = False  # the driver of llama.cpp is compared with llama-bench

    @property
    def name(self):
        return f"{self.model} {self.file_format}".strip()

    def arguments(self):
        numbers = [self.prompt_tokens, self.tokens, ",".join(map(str, self.depths)), ",".join(map(str, self.sequences)),
                   self.repeats, max(self.depths) + max(self.tokens, self.prompt_tokens)]
        options = ["--prompt-tokens", "--tokens", "--depth", "--sequences", "--repeats", "--context"]
        return [str(word) for pair in zip(options, numbers) for word in pair]


def quick_cases():
    """Tiny models, to see that everything works."""
    for each in ["q8_0", "q4_0"]:
        yield Case("tiny", each, prompt_tokens=16, tokens=4, depths=(0, 40), repeats=2, is_checked=each == "q8_0")


def default_cases():
    yield Case("smollm2", prompt_tokens=256, tokens=64, sequences=(1, 4), is_checked=True)
    for each in ["q4_0", "q8_0", "f16", "q4_k", "q6_k"]:
        yield Case("1b", each, is_checked=each == "q4_0")
    yield Case("smollm2", prompt_tokens=0, depths=(8192,), repeats=3, peers=DEEP_PEERS)
    yield Case("1b", "q8_0", prompt_tokens=0, tokens=16, depths=(8192,), repeats=3, peers=DEEP_PEERS)


def full_cases():
    yield Case("smollm2", prompt_tokens=512, tokens=128, sequences=(1, 4, 16), is_checked=True)
    for each in FORMATS:
        yield Case("1b", each, prompt_tokens=256, tokens=64, sequences=(1, 4), is_checked=each in ("q4_0", "q8_0", "f16"))
    for each in ["q4_0", "q4_k", "q8_0"]:
        yield Case("3b", each)
        yield Case("8b", each)
    for each in ["q4_0", "q4_k", "q8_0"]:
        yield Case("moe64", each, sequences=(1, 4))
    yield Case("smollm2", prompt_tokens=0, depths=(8192, 32768), repeats=3, peers=DEEP_PEERS)
    yield Case("1b", "q8_0", prompt_tokens=0, tokens=16, depths=(8192, 32768), repeats=3, peers=DEEP_PEERS)


def say(text):
    print("--", text, file=sys.stderr, flush=True)


def last_line(text):
    return (text.strip().splitlines() or ["no reason given"])[-1]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()


def cache_folder():
    """The same rule as in the binary and in scripts/common.sh."""
    if os.environ.get("HEADRACE_CACHE"):
        return Path(os.environ["HEADRACE_CACHE"])
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]) / "headrace"
    return Path(os.environ["HOME"]) / ".cache" / "headrace"


class CaseError(Exception):
    """A case that cannot be measured; the others can."""


class Model:
    """The file of a case, there while the case runs: random models are written in seconds and take gigabytes."""

    def __init__(self, case):
        self.is_random = bool(case.file_format)
        self.path = case.model
        if self.is_random:
            folder = cache_folder() / "bench-models"
            folder.mkdir(parents=True, exist_ok=True)
            self.path = str(folder / f"{case.model}.{case.file_format}.gguf")
        self.case = case

    def __enter__(self):
        if self.is_random:
            say(f"writing a random {self.case.name}")
            done = subprocess.run([BUILD / "bench" / "random_model", self.path, "--preset", self.case.model, "--format",
                                   self.case.file_format], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise CaseError(last_line(done.stderr))
        return self.path

    def __exit__(self, *_):
        if self.is_random:
            Path(self.path).unlink(missing_ok=True)


def headrace_bench(case, path, peers):
    """The report, and why a peer is missing. A peer that cannot load the model is left out."""
    missing = {}
    while True:
        named = ["--vs", ",".join(peers)] if peers else []
        done = subprocess.run([BUILD / "headrace", "bench", path, *case.arguments(), *named, "--json"],
                              capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return json.loads(done.stdout), missing
        reason = last_line(done.stderr).removeprefix("headrace: ")
        failed = [peer for peer in peers if reason.startswith(f"{peer}: ") or f"/peers/{peer}/" in reason]
        if not failed:
            raise CaseError(reason)
        say(f"without {failed[0]}: {reason}")
        missing[failed[0]] = reason
        peers = [peer for peer in peers if peer != failed[0]]


def llama_bench(case, path, threads):
    """Tokens per second of llama.cpp's own bench, by (test, depth), with settings equal to the driver's."""
    program = cache_folder() / "peers" / "llama.cpp" / "llama-bench"
    if path == "smollm2":
        path = cache_folder() / "models" / "smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    lines = output(str(program), "-m", str(path), "-t", str(threads), "-p", str(case.prompt_tokens), "-n",
                   str(case.tokens), "-r", str(case.repeats), "-o", "jsonl").splitlines()
    rates = {}
    for line in lines:
        each = json.loads(line)
        samples = sorted(each["samples_ts"])
        rates["prefill" if each["n_prompt"] else "decode"] = samples[len(samples) // 2]
    return rates


def measure(case, peers):
    with Model(case) as path:
        say(f"measuring {case.name}: {' '.join(case.arguments())}")
        report, missing = headrace_bench(case, path, [peer for peer in case.peers if peer in peers])
        kept = {"case": asdict(case), "report": report, "missing": missing}
        if case.is_checked and any(each["name"] == "llama.cpp" for each in report["peers"]):
            kept["llama_bench"] = llama_bench(case, path, report["machine"]["threads"])
        return kept


def kernel_benches(isa):
    """The benchmarks of single kernels of one instruction set, as Google Benchmark reports them."""
    found = []
    for name in ["kernel_bench", "attention_bench"]:
        say(f"measuring kernels: {name}")
        text = output(str(BUILD / "bench" / name), "--benchmark_format=json", "--benchmark_min_time=0.02",
                      f"--benchmark_filter=/{isa}/")
        found += json.loads(text[text.index("{"):])["benchmarks"]
    return found


def kept_or(name, fresh, make):
    """What was kept under this name for this binary, or made and kept now."""
    path = KEPT / f"{name}.json"
    if path.exists() and not fresh:
        return json.loads(path.read_text())
    value = make()
    KEPT.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".part").write_text(json.dumps(value))
    path.with_suffix(".part").rename(path)
    return value


# ---- the page ------------------------------------------------------------------------------------------------------


def number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def percent(share):
    return f"{100 * share:.0f} %"


def table(header, rows):
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def results_of(kept, test):
    return [(each, result) for each in kept for result in each["report"]["results"] if result["test"] == test]


def case_name(each):
    return Case(**{**each["case"], "depths": (), "sequences": (), "peers": ()}).name


def speed_table(kept, test):
    rows = []
    for each, result in results_of(kept, test):
        peers = {peer["name"]: peer["tokens_per_s"] for peer in result["peers"]}
        cells = [number(peers[name]) if name in peers else "-" for name in ALL_PEERS]
        best = max(peers.values(), default=0)
        rows.append([case_name(each), result["depth"], result["sequences"], number(result["tokens_per_s"]),
                     number(result["limit"]), result["limited_by"], percent(result["share_of_limit"]),
                     percent(result["outside_kernels_share"]), *cells,
                     f"{result['tokens_per_s'] / best:.2f}" if best else "-"])
    return table(["model", "depth", "sequences", "tokens/s", "limit", "by", "share", "outside kernels", *ALL_PEERS,
                  "ratio to the best"], rows) if rows else ""


def agreement_table(kept):
    rows = []
    for each in kept:
        for test, own in each.get("llama_bench", {}).items():
            for result in each["report"]["results"]:
                if result["test"] != test or result["depth"] or result["sequences"] > 1:
                    continue
                for peer in result["peers"]:
                    if peer["name"] == "llama.cpp":
                        rows.append([case_name(each), test, number(peer["tokens_per_s"]), number(own),
                                     f"{peer['tokens_per_s'] / own:.2f}"])
    return table(["model", "test", "--vs llama.cpp", "llama-bench", "ratio"], rows) if rows else ""


def kernel_table(kernels):
    """Benchmarks with the counters that they print beside their time."""
    known = {"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions",
             "repetition_index", "threads", "iterations", "real_time", "cpu_time", "time_unit", "label",
             "bytes_per_second", "items_per_second", "error_occurred", "error_message"}
    each = [bench for bench in kernels if not bench.get("error_occurred")]
    counters = list(dict.fromkeys(key for bench in each for key in bench if key not in known))
    rows = [[bench["name"], f"{bench['real_time']:.4g} {bench['time_unit']}",
             *[f"{bench[key]:.3g}" if key in bench else "-" for key in counters], bench.get("label", "")]
            for bench in each]
    return table(["kernel", "time", *counters, ""], rows) if rows else ""


def page(kept, failed, kernels, commit):
    machine = kept[-1]["report"]["machine"]
    versions = dict((peer["name"], peer["version"]) for each in kept for peer in each["report"]["peers"])
    rates = [f"reads {machine['read_bytes_per_s'] / 1e9:.1f} GB/s"] + [
        f"{name} {machine[key] / 1e9:.0f} G/s" for name, key in
        [("int8", "int8_ops_per_s"), ("bf16", "bf16_flops_per_s"), ("f32", "f32_flops_per_s")]]
    text = "# Benchmarks\n\nWritten by `make bench`; every figure of a line is of one run, peers interleaved with Headrace.\n\n"
    text += table(["", ""], [
        ["machine", f"{machine['cpu_model']}, {machine['threads']} threads, kernels {machine['isa']}"],
        ["rates", ", ".join(rates)],
        ["date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")],
        ["commit", commit],
        *[[name, version] for name, version in versions.items()],
    ]).replace("| ---: |", "| --- |")
    text += ("\nModels named by a size are random (`bench/random_model`): 1b is a Llama of 1.17 billion parameters, moe64 "
             "has OLMoE's shape.\nTokens per second are medians, of all sequences together. The limit is what a plain "
             "loop over as many bytes, or plain\nloops of the arithmetic unit, would take in the same run. Outside "
             "kernels is the share of a step in which no kernel runs.\nik_llama.cpp is in no package registry and is left "
             "out.\n")
    for title, part in [("Decode", speed_table(kept, "decode")), ("Prefill", speed_table(kept, "prefill")),
                        ("llama.cpp's own bench", agreement_table(kept)),
                        ("Kernels", kernel_table(kernels) if kernels else "")]:
        if part:
            text += f"\n## {title}\n\n{part}"
    reasons = sorted({f"- {case_name(each)}: {reason}" for each in kept for reason in each["missing"].values()})
    reasons += [f"- {name}: {reason}" for name, reason in failed]
    if reasons:
        text += "\n## Left out\n\n" + "\n".join(reasons) + "\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--full", action="store_true", help="every Format, larger models, greater depths")
    which.add_argument("--quick", action="store_true", help="tiny models only, to see that everything works")
    parser.add_argument("--fresh", action="store_true", help="measure anew what is kept")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name contains this")
    parser.add_argument("--peers", default=",".join(ALL_PEERS), metavar="NAME,NAME", help="empty: none")
    parser.add_argument("--no-kernels", action="store_true", help="leave the kernel benchmarks out")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()

    peers = [name for name in options.peers.split(",") if name]
    for name in peers:
        if name not in ALL_PEERS:
            parser.error(f"--peers: expected names of {', '.join(ALL_PEERS)}, got {name!r}")
        if not (cache_folder() / "peers" / name / "peer").exists():
            raise SystemExit(f"{name} is not there yet; scripts/bench_peers.sh {name} builds it, --peers leaves it out")
    binary = hashlib.sha256((BUILD / "headrace").read_bytes()).hexdigest()[:16]
    commit = output("git", "rev-parse", "--short=12", "HEAD")
    if output("git", "status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/RESULTS.md"):
        commit += " and changes"
    chosen = full_cases if options.full else quick_cases if options.quick else default_cases
    cases = [case for case in chosen() if options.only in case.name]
    if not cases:
        raise SystemExit(f"no case's name contains {options.only!r}")
    isa = json.loads(output(str(BUILD / "headrace"), "doctor", "--json"))["kernels"]["chosen"]
    kernels = None if options.no_kernels else kept_or(f"{binary}-kernels", options.fresh, lambda: kernel_benches(isa))
    kept, failed = [], []
    for case in cases:
        key = hashlib.sha256(repr((case, peers)).encode()).hexdigest()[:16]
        try:
            kept.append(kept_or(f"{binary}-{key}", options.fresh, lambda case=case: measure(case, peers)))
        except CaseError as error:
            say(f"{case.name} is left out: {error}")
            failed.append((case.name, error))
        if kept:
            options.out.write_text(page(kept, failed, kernels, commit))
    say(f"{len(kept)} cases are in {options.out}, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
