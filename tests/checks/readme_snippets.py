"""Runs the console blocks of a Markdown file and compares what they print with what the file says.

A block opens with ```console. Its lines that start with "$ " are commands (a line that ends in a backslash goes on in
the next one), run one by one by bash in the project's folder with build/release in PATH and nothing on standard input;
the lines below a command are its output, standard error included. "..." stands for any text within a line and, alone
on its line, for any number of lines. A command without output lines must only succeed. A block below a comment
`<!-- not run: reason -->` is not run, but listed.

Usage: readme_snippets.py FILE...
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300
NOT_RUN = re.compile(r"<!--\s*not run:\s*(.+?)\s*-->")


@dataclass
class Command:
    line: int
    text: str
    output: list[str] = field(default_factory=list)
    not_run: str = ""


def parse(markdown: str) -> list[Command]:
    """The commands of all console blocks, in order."""
    commands: list[Command] = []
    in_block = False
    continued = False
    reason = ""
    for number, line in enumerate(markdown.splitlines(), 1):
        if not in_block:
            if line.strip() == "```console":
                in_block = True
                first = len(commands)
            elif match := NOT_RUN.search(line):
                reason = match.group(1)
            elif line.strip():
                reason = ""
        elif line.strip() == "```":
            in_block = False
            reason = ""
            if len(commands) == first:
                raise SystemExit(f"line {number}: a console block without a command")
        elif continued or line.startswith("$ "):
            if continued:
                commands[-1].text += "\n" + line
            else:
                commands.append(Command(number, line[2:], not_run=reason))
            continued = line.endswith("\\")
        elif len(commands) == first:
            raise SystemExit(f"line {number}: output before the first command of a console block")
        else:
            commands[-1].output.append(line)
    if in_block:
        raise SystemExit("a console block does not end")
    return commands


def matches(expected: list[str], printed: str) -> bool:
    """Whether the printed text is the expected lines, "..." standing for any text or any lines."""
    pattern = ""
    for line in expected:
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*"
        else:
            pattern += r"[^\n]*".join(re.escape(part) for part in line.rstrip().split("...")) + r"\n"
    lines = [line.rstrip() for line in printed.splitlines()]
    return re.fullmatch(pattern, "".join(line + "\n" for line in lines)) is not None


def run(command: Command) -> str:
    """An empty text when the command does what the file says, else what went wrong."""
    environment = dict(os.environ, PATH=f"{ROOT / 'build' / 'release'}:{os.environ['PATH']}")
    try:
        result = subprocess.run(
            ["bash", "-c", command.text], cwd=ROOT, env=environment, timeout=SECONDS, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    except subprocess.TimeoutExpired:
        return f"did not end within {SECONDS} s"
    if result.returncode != 0:
        return f"exit status {result.returncode}, printed:\n{result.stdout}"
    if command.output and not matches(command.output, result.stdout):
        return "expected:\n" + "\n".join(command.output) + f"\nprinted:\n{result.stdout}"
    return ""


def main(files: list[str]) -> int:
    passed = failed = skipped = 0
    for name in files:
        for command in parse(Path(name).read_text()):
            if command.not_run:
                skipped += 1
                print(f"{name}:{command.line}: not run ({command.not_run}): {command.text}")
            elif problem := run(command):
                failed += 1
                print(f"{name}:{command.line}: {command.text}\n{problem}")
            else:
                passed += 1
                print(f"{name}:{command.line}: fine: {command.text}")
    print(f"snippets: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
