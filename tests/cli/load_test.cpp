#include "cli/load.hpp"

#include <array>
#include <optional>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace headrace::cli {
namespace {

using kernels::Isa;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ChooseIsa, TakesTheFastestAndSaysOnceThatItIsNoneOfTheFast) {
  std::ostringstream out;
  Log log(LogLevel::warning, &out);
  constexpr std::array all = {Isa::portable, Isa::avx2};
  EXPECT_EQ(choose_isa(std::nullopt, all, log), Isa::avx2);
  EXPECT_EQ(out.str(), "");
  constexpr std::array slow = {Isa::portable};
  EXPECT_EQ(choose_isa(std::nullopt, slow, log), Isa::portable);
  const std::string said = out.str();
  EXPECT_THAT(said, HasSubstr("portable"));
  EXPECT_EQ(choose_isa(std::nullopt, slow, log), Isa::portable);
  EXPECT_EQ(out.str(), said);
}

TEST(ChooseIsa, AWantedOneIsGivenOrRefused) {
  std::ostringstream out;
  Log log(LogLevel::warning, &out);
  constexpr std::array all = {Isa::portable, Isa::avx2};
  EXPECT_EQ(choose_isa(Isa::portable, all, log), Isa::portable);
  EXPECT_EQ(out.str(), "");
  EXPECT_THAT([&] { choose_isa(Isa::avx512, all, log); }, ThrowsMessage<ResourceError>(HasSubstr("--isa avx512")));
}

}  // namespace
}  // namespace headrace::cli
