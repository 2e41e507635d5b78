// Detection against the kernel's own view: /proc/cpuinfo lists a feature only if the system enables its registers.
#include "base/cpu_features.hpp"

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(CpuFeatures, AgreeWithLinux) {
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> flags;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;) flags.insert(word);
    break;
  }
  if (flags.empty()) GTEST_SKIP() << "/proc/cpuinfo lists no flags (not x86)";
  const auto has = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (flags.count(name) == 0) return false;
    }
    return true;
  };
  const CpuFeatures features = detect_cpu_features();
  EXPECT_EQ(features.avx2, has({"avx2", "fma", "f16c"}));
  EXPECT_EQ(features.avx512, has({"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512dq"}));
  EXPECT_EQ(features.avx512_vnni, features.avx512 && has({"avx512_vnni"}));
  EXPECT_EQ(features.avx512_vbmi, features.avx512 && has({"avx512vbmi"}));
  EXPECT_EQ(features.avx512_bf16, features.avx512 && has({"avx512_bf16"}));
  EXPECT_EQ(features.amx_int8, has({"amx_tile", "amx_int8"}));
  EXPECT_EQ(features.amx_bf16, has({"amx_tile", "amx_bf16"}));
}

TEST(CpuFeatures, Describes) {
  EXPECT_EQ(describe(CpuFeatures{}), "none");
  CpuFeatures features;
  features.avx2 = features.avx512_vnni = true;
  EXPECT_EQ(describe(features), "avx2 avx512_vnni");
}

}  // namespace
}  // namespace headrace
