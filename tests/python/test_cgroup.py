"""The limits of a real cgroup, made for the test, are the limits that Headrace sees (src/base/cgroup.cpp).

Needs the right to make cgroups: root on a machine or in a container that mounts them writable. Where there is none, the
tests are skipped with that reason; the fake trees of tests/base/cgroup_test.cpp run everywhere.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import uuid

import pytest


def own_group(controller):
    """(version, directory) of this process's cgroup that has `controller`; skips if there is none."""
    memberships = [line.split(":", 2) for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()]
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        before, after = (part.split() for part in line.split(" - ", 1))
        root, point = before[3], before[4]
        for _, controllers, path in memberships:
            version = 2 if controllers == "" else 1
            if after[0] != ("cgroup2" if version == 2 else "cgroup"):
                continue
            if version == 1 and (controller not in controllers.split(",") or controller not in after[2].split(",")):
                continue
            directory = pathlib.Path(point) / os.path.relpath(path, root)
            if version == 2:
                available = directory / "cgroup.controllers"
                if not available.exists() or controller not in available.read_text().split():
                    continue
            if directory.is_dir():
                return version, directory
    pytest.skip(f"no cgroup with the {controller} controller is mounted here")


@contextlib.contextmanager
def made_group(controller):
    """(version, directory) of a new cgroup below this process's own; skips if it cannot be made."""
    version, parent = own_group(controller)
    directory = parent / f"headrace-test-{uuid.uuid4().hex[:12]}"
    try:
        directory.mkdir()
    except OSError as error:
        pytest.skip(f"a cgroup cannot be made in {parent}: {error.strerror}")
    try:
        if version == 2 and not (directory / f"{controller}.max").exists() and controller != "cpuset":
            pytest.skip(f"{parent} does not pass the {controller} controller on")
        yield version, directory
    finally:
        directory.rmdir()


def put(directory, values):
    for name, value in values.items():
        try:
            (directory / name).write_text(value)
        except OSError as error:
            pytest.skip(f"{directory / name} cannot be written: {error.strerror}")


def machine_tool(directory, threads=0):
    """What machine_tool prints when it runs in the cgroup `directory`: its JSON and its stderr."""
    tool = pathlib.Path(os.environ["HEADRACE_BIN_DIR"]) / "tools" / "machine_tool"
    # The shell enters the cgroup and then becomes the tool, so that no other process ever is in it.
    script = 'echo $$ > "$1/cgroup.procs" && exec "$2" "$3"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", str(directory), str(tool), str(threads)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("quota_cpus", [0.5, 1.0, 1.75, 2.0, 1000.0])
def test_cpu_quota(quota_cpus):
    affinity = len(os.sched_getaffinity(0))
    with made_group("cpu") as (version, directory):
        quota = str(int(quota_cpus * 10000))
        if version == 1:
            put(directory, {"cpu.cfs_period_us": "10000", "cpu.cfs_quota_us": quota})
        else:
            put(directory, {"cpu.max": f"{quota} 10000"})
        result, stderr = machine_tool(directory)
        # A quota of an outer cgroup may be tighter than the test's own.
        assert result["limits"]["cpu_quota"] <= quota_cpus
        assert result["limits"]["threads"] == max(1, min(affinity, int(result["limits"]["cpu_quota"])))
        assert result["machine"]["threads"] == result["limits"]["threads"]
        assert stderr == ""


def test_more_threads_than_the_quota_are_reduced_and_that_is_said_once():
    with made_group("cpu") as (version, directory):
        if version == 1:
            put(directory, {"cpu.cfs_period_us": "10000", "cpu.cfs_quota_us": "15000"})
        else:
            put(directory, {"cpu.max": "15000 10000"})
        result, stderr = machine_tool(directory, threads=64)
        assert result["machine"]["threads"] == 1
        assert stderr == "warning: threads: 64 were asked for, but this process may use 1 CPU: using 1\n"


def test_cpuset():
    cpu = min(os.sched_getaffinity(0))
    with made_group("cpuset") as (version, directory):
        mems = (directory.parent / ("cpuset.mems" if version == 1 else "cpuset.mems.effective")).read_text().strip()
        put(directory, {"cpuset.cpus": str(cpu), "cpuset.mems": mems})
        result, _ = machine_tool(directory)
        assert result["limits"]["cpuset"] == 1
        assert result["limits"]["affinity"] == 1
        assert result["machine"]["threads"] == 1


def test_memory_limit():
    limit = 256 << 20
    with made_group("memory") as (version, directory):
        put(directory, {"memory.limit_in_bytes" if version == 1 else "memory.max": str(limit)})
        result, _ = machine_tool(directory)
        assert result["limits"]["memory_limit_bytes"] <= limit
        if result["limits"]["memory_limit_bytes"] != limit:
            pytest.skip("an outer cgroup has a lower memory limit")
