// Limits read from fake trees: cgroup v1, v2, both, nested, in containers, none, and malformed.
#include "base/cgroup.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(testing::TempDir()) / (std::string("headrace_cgroup_") + test->name());
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_ / path.substr(1);
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  [[nodiscard]] ResourceLimits limits(int affinity = 64) const {
    return read_limits({.sysroot = root_.string(), .affinity = affinity});
  }

  // The mounts and memberships of a plain v1 system, with this process in `path` everywhere.
  void v1(const std::string& path, const std::string& mount_root = "/") {
    put("/proc/self/cgroup", "4:memory:" + path + "\n3:cpuset:" + path + "\n2:cpu,cpuacct:" + path + "\n0::/\n");
    const std::string m = " " + mount_root + " /sys/fs/cgroup/";
    put("/proc/self/mountinfo",
        "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
        "32 31 0:29" +
            m +
            "cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
            "34 31 0:31" +
            m +
            "cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
            "35 31 0:32" +
            m +
            "memory rw,relatime - cgroup cgroup rw,memory\n"
            "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  }
  void v2(const std::string& path, const std::string& mount_root = "/") {
    put("/proc/self/cgroup", "0::" + path + "\n");
    put("/proc/self/mountinfo",
        "31 23 0:28 " + mount_root + " /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n");
  }

  std::filesystem::path root_;
};

TEST_F(CgroupTest, NothingThereMeansNoLimit) {
  const ResourceLimits l = limits(6);
  EXPECT_EQ(l.threads, 6);
  EXPECT_FALSE(l.cpu_quota);
  EXPECT_FALSE(l.memory_limit_bytes);
  EXPECT_THAT(l.warnings, IsEmpty());
}

TEST_F(CgroupTest, V1QuotaIsFlooredAndAtLeastOne) {
  v1("/a");
  put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(limits().threads, 2);
  EXPECT_DOUBLE_EQ(*limits().cpu_quota, 2.5);
  put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n");
  EXPECT_EQ(limits().threads, 1);
  put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "9900000\n");
  EXPECT_EQ(limits(8).threads, 8);
  put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(limits(8).threads, 8);
  EXPECT_FALSE(limits().cpu_quota);
  EXPECT_THAT(limits().warnings, IsEmpty());
}

TEST_F(CgroupTest, V1TakesTheTightestOfAllLevels) {
  v1("/a/b/c");
  const std::string cpu = "/sys/fs/cgroup/cpu,cpuacct";
  for (const std::string level : {"", "/a", "/a/b", "/a/b/c"}) {
    put(cpu + level + "/cpu.cfs_period_us", "100000\n");
    put(cpu + level + "/cpu.cfs_quota_us", level == "/a/b" ? "300000\n" : "-1\n");
    put("/sys/fs/cgroup/memory" + level + "/memory.limit_in_bytes",
        level == "/a" ? "1073741824\n" : "9223372036854771712\n");
  }
  EXPECT_EQ(limits().threads, 3);
  EXPECT_EQ(limits().memory_limit_bytes, 1073741824u);
  put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");  // how v1 says "no limit"
  EXPECT_FALSE(limits().memory_limit_bytes);
}

TEST_F(CgroupTest, V1CpusetLimits) {
  v1("/a");
  put("/sys/fs/cgroup/cpuset/cpuset.cpus", "0-15\n");
  put("/sys/fs/cgroup/cpuset/a/cpuset.cpus", "0-2,8\n");
  EXPECT_EQ(limits().threads, 4);
  EXPECT_EQ(limits().cpuset, 4);
  EXPECT_EQ(limits(3).threads, 3);
  put("/sys/fs/cgroup/cpuset/a/cpuset.cpus", "\n");
  EXPECT_EQ(limits().threads, 16);
}

TEST_F(CgroupTest, V2LimitsOfAllLevels) {
  v2("/user.slice/app");
  put("/sys/fs/cgroup/user.slice/cpu.max", "400000 100000\n");
  put("/sys/fs/cgroup/user.slice/app/cpu.max", "max 100000\n");
  put("/sys/fs/cgroup/user.slice/app/cpuset.cpus.effective", "0-31\n");
  put("/sys/fs/cgroup/user.slice/memory.max", "8589934592\n");
  put("/sys/fs/cgroup/user.slice/app/memory.max", "max\n");
  put("/sys/fs/cgroup/user.slice/app/memory.high", "max\n");
  EXPECT_EQ(limits().threads, 4);
  EXPECT_EQ(limits().cpuset, 32);
  EXPECT_EQ(limits().memory_limit_bytes, 8589934592u);
  put("/sys/fs/cgroup/user.slice/app/memory.high", "4294967296\n");
  EXPECT_EQ(limits().memory_limit_bytes, 4294967296u);
  put("/sys/fs/cgroup/user.slice/app/cpu.max", "150000 100000\n");
  EXPECT_EQ(limits().threads, 1);
  EXPECT_THAT(limits().warnings, IsEmpty());
}

// Docker with v1 and no cgroup namespace: the paths are the host's, and only the container's directory is mounted.
TEST_F(CgroupTest, ContainerWhoseMountRootIsItsOwnDirectory) {
  v1("/docker/0123abcd", "/docker/0123abcd");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
  EXPECT_EQ(limits().threads, 2);
  EXPECT_EQ(limits().memory_limit_bytes, 536870912u);
}

TEST_F(CgroupTest, ContainerWhosePathIsNotBelowItsMount) {
  for (const std::string path : {"/kubepods/pod1/x", "/../../elsewhere", "/docker/0123abcdef"}) {
    v1(path, "/docker/0123abcd");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
    EXPECT_EQ(limits().threads, 2) << path;
  }
}

// With the host's path but the whole hierarchy mounted, the directory may not exist here: the levels above count.
TEST_F(CgroupTest, DirectoryThatDoesNotExistHere) {
  v2("/gone/deeper");
  put("/sys/fs/cgroup/gone/cpu.max", "300000 100000\n");
  EXPECT_EQ(limits().threads, 3);
}

TEST_F(CgroupTest, DotsDoNotLeaveTheMount) {
  v2("/../secret");
  put("/sys/fs/secret/cpu.max", "100000 100000\n");
  put("/sys/fs/cgroup/cpu.max", "500000 100000\n");
  EXPECT_EQ(limits().threads, 5);
}

TEST_F(CgroupTest, MountPointWithSpaces) {
  put("/proc/self/cgroup", "0::/\n");
  put("/proc/self/mountinfo", "31 23 0:28 / /mnt/c\\040g rw - cgroup2 none rw\n");
  put("/mnt/c g/cpu.max", "700000 100000\n");
  EXPECT_EQ(limits().threads, 7);
}

TEST_F(CgroupTest, MalformedFilesAreNoLimitAndAWarning) {
  v2("/");
  for (const std::string bad : {"", "x", "-5 100000", "0 100000", "100000 0", "1e5 100000", "99999999999999999999 1",
                                "100000 100000 100000", "1000\xff\n\x01"}) {
    put("/sys/fs/cgroup/cpu.max", bad);
    const ResourceLimits l = limits(4);
    EXPECT_EQ(l.threads, 4) << bad;
    ASSERT_THAT(l.warnings, ElementsAre(HasSubstr("/sys/fs/cgroup/cpu.max: expected"))) << bad;
    EXPECT_THAT(l.warnings[0], testing::Not(testing::ContainsRegex("[^ -~]"))) << "one plain line";
  }
  put("/sys/fs/cgroup/cpu.max", "max");
  for (const std::string bad : {"-1", "12k", "99999999999999999999999"}) {
    put("/sys/fs/cgroup/memory.max", bad);
    EXPECT_FALSE(limits().memory_limit_bytes) << bad;
    EXPECT_THAT(limits().warnings, ElementsAre(HasSubstr("memory.max"))) << bad;
  }
}

TEST_F(CgroupTest, MalformedV1FilesAreNoLimitAndAWarning) {
  v1("/");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000");  // no period
  put("/sys/fs/cgroup/cpuset/cpuset.cpus", "3-1");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "many");
  const ResourceLimits l = limits(4);
  EXPECT_EQ(l.threads, 4);
  EXPECT_FALSE(l.memory_limit_bytes);
  EXPECT_THAT(l.warnings, ElementsAre(HasSubstr("cpu.cfs_period_us"), HasSubstr("cpuset.cpus"),
                                      HasSubstr("memory.limit_in_bytes")));
}

TEST_F(CgroupTest, MalformedTablesAreNoLimit) {
  for (const std::string bad : {"", "\n\n", "0:", ":", "0::", "junk", "- - - - - - - - -", "1 2 3 4 5 6 - cgroup2\n"}) {
    put("/proc/self/cgroup", bad);
    put("/proc/self/mountinfo", bad);
    EXPECT_EQ(limits(5).threads, 5) << bad;
  }
  put("/proc/self/cgroup", "0::/" + std::string(1 << 20, '/') + "\n");
  put("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  put("/sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_EQ(limits(5).threads, 2);
}

TEST_F(CgroupTest, UsableMemoryIsTheLeastOfWhatIsKnown) {
  put("/proc/meminfo", "MemTotal:       8000 kB\nMemFree:  1 kB\nMemAvailable:   6000 kB\n");
  EXPECT_EQ(limits().memory_total_bytes, 8000u * 1024);
  EXPECT_EQ(limits().usable_memory_bytes(), 6000u * 1024);
  v2("/");
  put("/sys/fs/cgroup/memory.max", "1000000\n");
  EXPECT_EQ(limits().usable_memory_bytes(), 1000000u);
  put("/proc/meminfo", "MemAvailable: lots\n");
  EXPECT_EQ(limits().usable_memory_bytes(), 1000000u);
  EXPECT_THAT(limits().warnings, ElementsAre(HasSubstr("/proc/meminfo")));
}

TEST(CpuList, CountsOrRefuses) {
  EXPECT_EQ(count_cpu_list("0"), 1);
  EXPECT_EQ(count_cpu_list("0-3,8\n"), 5);
  EXPECT_EQ(count_cpu_list("0-1023"), 1024);
  for (const char* bad : {"", "\n", "a", "1-", "-1", "3-2", "0-99999999999", "0-9999999", "1;2"}) {
    EXPECT_FALSE(count_cpu_list(bad)) << bad;
  }
}

}  // namespace
}  // namespace headrace
