// A small broken GGUF file for each kind of fault, with the one line that the reader says of it; and sweeps that cut
// and change a good file everywhere.
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "formats/gguf.hpp"
#include "gguf_builder.hpp"

namespace headrace::formats::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StrEq;

constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t array_id = 9;
constexpr std::uint32_t string_id = 8;

/// What the reader says of the bytes, or "" if it takes them. Any other exception fails the test.
std::string fault(const std::string& bytes) {
  try {
    (void)Gguf::read(MemorySource("f", std::as_bytes(std::span(bytes))));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(GgufFault, Magic) {
  EXPECT_THAT(fault(""), StrEq("f: the file ends at offset 0, the header (the magic) needs 4 bytes from offset 0: "
                               "4 bytes are missing"));
  EXPECT_THAT(fault("GG"), HasSubstr("2 bytes are missing"));
  EXPECT_THAT(fault("PK\x03\x04" + std::string(100, ' ')),
              StrEq("f: the header at offset 0: expected a GGUF file, which starts with 'GGUF', found 'PK\\x03\\x04'"));
}

TEST(GgufFault, Version) {
  EXPECT_THAT(fault(GgufBuilder(1).build()), StrEq("f: the header at offset 4: expected GGUF version 2 or 3, found 1"));
  EXPECT_THAT(fault(GgufBuilder(0).build()), HasSubstr("found 0"));
  EXPECT_THAT(fault(GgufBuilder(4).build()), HasSubstr("found 4"));
  EXPECT_THAT(
      fault(GgufBuilder(0x03000000).build()),
      StrEq("f: the header at offset 4: expected a little-endian file, found a big-endian one (version 0x03000000)"));
}

TEST(GgufFault, Counts) {
  EXPECT_THAT(fault(GgufBuilder().claim_entries(1).build()),
              StrEq("f: the file ends at offset 24, the header (metadata) needs 13 bytes from offset 24: 13 bytes are "
                    "missing"));
  EXPECT_THAT(fault(GgufBuilder().claim_entries(huge).build()), HasSubstr("are missing"));
  EXPECT_THAT(fault(GgufBuilder().claim_tensors(huge / 24 + 1).build()), HasSubstr("(the tensor table)"));
  EXPECT_THAT(fault(GgufBuilder().claim_entries(2).add("k", std::string(20, 's')).build()),
              HasSubstr("metadata entry 2 of 2"));
  EXPECT_THAT(fault(GgufBuilder().claim_tensors(2).tensor_f32("t", {1}, std::vector<float>(8)).build()),
              Not(StrEq("")));
}

TEST(GgufFault, Keys) {
  GgufBuilder long_key;
  long_key.add(std::string(65536, 'k'), 1u);
  EXPECT_THAT(fault(long_key.build()),
              StrEq("f: metadata entry 1 of 1 at offset 24: the key: expected at most 65535 bytes, found 65536"));
  EXPECT_THAT(fault(GgufBuilder().claim_entries(1).build() + raw(huge) + std::string(20, ' ')),
              HasSubstr("the key: expected at most 65535 bytes, found 18446744073709551615"));
  EXPECT_THAT(fault(GgufBuilder().claim_entries(1).build() + raw(std::uint64_t{100}) + "abc" + std::string(20, ' ')),
              StrEq("f: the file ends at offset 55, metadata entry 1 of 1 (the key) needs 100 bytes from offset 32: 77 "
                    "bytes are missing"));
  EXPECT_THAT(fault(GgufBuilder().add("twice", 1u).add("other", 1u).add("twice", 2u).build()),
              StrEq("f: metadata 'twice' at offset 66: expected each key once, found it also at offset 24"));
}

TEST(GgufFault, ValueTypes) {
  EXPECT_THAT(fault(GgufBuilder().add_raw("k", 13, "12345678").build()),
              StrEq("f: metadata 'k' at offset 33: the type: expected a type id below 13, found 13"));
  EXPECT_THAT(fault(GgufBuilder().add_raw("k", 0xffffffff, "12345678").build()), HasSubstr("found 4294967295"));
  EXPECT_THAT(fault(GgufBuilder().add_raw("k", array_id, raw(13u) + raw(std::uint64_t{0})).build()),
              StrEq("f: metadata 'k' at offset 37: the array's element type: expected a type id below 13, found 13"));
}

TEST(GgufFault, Booleans) {
  EXPECT_THAT(fault(GgufBuilder().add_raw("k", 7, "\x02").build()),
              StrEq("f: metadata 'k' at offset 37: expected a boolean, which is 0 or 1, found 2"));
  const std::string items = raw(7u) + raw(std::uint64_t{3}) + std::string("\x01\x00\x07", 3);
  EXPECT_THAT(fault(GgufBuilder().add_raw("k", array_id, items).build()),
              StrEq("f: metadata 'k' at offset 51: expected a boolean, which is 0 or 1, found 7"));
}

TEST(GgufFault, Strings) {
  EXPECT_THAT(
      fault(GgufBuilder().add_raw("k", string_id, raw(std::uint64_t{10}) + "abc").build()),
      StrEq("f: the file ends at offset 48, metadata 'k' (the string) needs 10 bytes from offset 45: 7 bytes are "
            "missing"));
  EXPECT_THAT(fault(GgufBuilder().add_raw("k", string_id, raw(huge) + "abc").build()),
              HasSubstr("needs 18446744073709551615 bytes from offset 45: 18446744073709551612 bytes are missing"));
  const std::string items = raw(string_id) + raw(std::uint64_t{2}) + raw("one") + raw(std::uint64_t{9}) + "two";
  EXPECT_THAT(fault(GgufBuilder().add_raw("k", array_id, items).build()),
              HasSubstr("metadata 'k' (an item) needs 9 bytes"));
}

TEST(GgufFault, ArrayCounts) {
  const auto array_of = [](std::uint32_t element, std::uint64_t count) {
    return fault(GgufBuilder().add_raw("k", array_id, raw(element) + raw(count) + std::string(64, '\0')).build());
  };
  // 64 bytes remain: one more item than fits, and counts whose product with the item's size wraps around.
  EXPECT_THAT(array_of(0, 65),
              HasSubstr("metadata 'k' (the array) needs 65 bytes from offset 49: 1 bytes are missing"));
  EXPECT_THAT(array_of(4, 17), HasSubstr("needs 68 bytes from offset 49: 4 bytes are missing"));
  EXPECT_THAT(array_of(4, (std::uint64_t{1} << 62) + 1), HasSubstr("needs 18446744073709551615 bytes"));
  EXPECT_THAT(array_of(12, std::uint64_t{1} << 61), HasSubstr("needs 18446744073709551615 bytes"));
  EXPECT_THAT(array_of(string_id, 9), HasSubstr("needs 72 bytes"));
  EXPECT_THAT(array_of(string_id, std::uint64_t{1} << 61), HasSubstr("are missing"));
  EXPECT_THAT(array_of(array_id, 6), HasSubstr("needs 72 bytes"));
  EXPECT_THAT(array_of(array_id, huge), HasSubstr("are missing"));
}

TEST(GgufFault, ArrayDepth) {
  const auto nested = [](int depth) {
    std::string bytes;
    for (int i = 1; i < depth; ++i) bytes += raw(array_id) + raw(std::uint64_t{1});
    return fault(GgufBuilder().add_raw("k", array_id, bytes + raw(std::vector<std::uint8_t>{1})).build());
  };
  EXPECT_THAT(nested(Gguf::max_array_depth), StrEq(""));
  EXPECT_THAT(nested(Gguf::max_array_depth + 1),
              StrEq("f: metadata 'k' at offset 85: expected arrays nested at most 4 deep, found more"));
  EXPECT_THAT(nested(100000), HasSubstr("nested at most 4 deep"));
}

TEST(GgufFault, Alignment) {
  EXPECT_THAT(fault(GgufBuilder().add("general.alignment", 0u).build()),
              StrEq("f: metadata 'general.alignment' at offset 24: expected a power of two, found the u32 0"));
  EXPECT_THAT(fault(GgufBuilder().add("general.alignment", 48u).build()), HasSubstr("found the u32 48"));
  EXPECT_THAT(fault(GgufBuilder().add("general.alignment", std::uint64_t{32}).build()),
              HasSubstr("expected a u32, found the u64 32"));
  EXPECT_THAT(fault(GgufBuilder().add("general.alignment", "32").build()), HasSubstr("found the string '32'"));
}

TEST(GgufFault, TensorNames) {
  EXPECT_THAT(fault(GgufBuilder().tensor_at(std::string(65536, 't'), {1}, type_f32, 0).build()),
              HasSubstr("the name: expected at most 65535 bytes, found 65536"));
  EXPECT_THAT(fault(GgufBuilder()
                        .tensor_f32("twice", {1}, std::vector<float>(1))
                        .tensor_f32("twice", {1}, std::vector<float>(1))
                        .build()),
              StrEq("f: tensor 'twice' at offset 61: expected each name once, found it also at offset 24"));
}

TEST(GgufFault, TensorDimensions) {
  const auto dimensions = [](const std::vector<std::uint64_t>& values) {
    return fault(GgufBuilder().tensor_at("t", values, type_f32, 0).build());
  };
  EXPECT_THAT(dimensions({1, 1, 1, 1, 1, 1, 1, 1, 1}),
              StrEq("f: tensor 't' at offset 33: expected at most 8 dimensions, found 9"));
  EXPECT_THAT(dimensions({4, 0}), StrEq("f: tensor 't' at offset 45: dimension 1: expected a number above 0 and fewer "
                                        "than 2^63 elements in all, found 0"));
  EXPECT_THAT(dimensions({huge}), HasSubstr("dimension 0: expected"));
  EXPECT_THAT(dimensions({std::uint64_t{1} << 32, std::uint64_t{1} << 31}), HasSubstr("dimension 1: expected"));
  EXPECT_THAT(dimensions({std::uint64_t{1} << 32, std::uint64_t{1} << 32}), HasSubstr("dimension 1: expected"));
  EXPECT_THAT(dimensions({std::uint64_t{1} << 62}),
              StrEq("f: tensor 't' at offset 24: expected fewer than 2^63 bytes, found 4611686018427387904 elements of "
                    "f32"));
  EXPECT_THAT(fault(GgufBuilder().tensor_at("t", {}, type_f32, 0).build().substr(0, 33) + raw(0xffffffffu) +
                    std::string(40, '\xff')),
              HasSubstr("expected at most 8 dimensions, found 4294967295"));
}

TEST(GgufFault, TensorRows) {
  EXPECT_THAT(
      fault(GgufBuilder().tensor("t", {33, 32}, type_q4_0, std::string(2000, ' ')).build()),
      StrEq("f: tensor 't' at offset 24: expected rows of a multiple of 32 elements, as q4_0 has them, found 33"));
  EXPECT_THAT(fault(GgufBuilder().tensor("t", {}, type_q4_0, std::string(2000, ' ')).build()), HasSubstr("found 1"));
}

TEST(GgufFault, TensorOffsets) {
  EXPECT_THAT(fault(GgufBuilder().tensor_at("t", {1}, type_f32, 31).build()),
              StrEq("f: tensor 't' at offset 49: expected an offset that is a multiple of the alignment 32, found 31"));
  EXPECT_THAT(
      fault(GgufBuilder().tensor_at("t", {1}, type_f32, huge - 31).build()),
      StrEq("f: tensor 't' at offset 24: expected data within 2^64 bytes, found the offset 18446744073709551584 "
            "and 4 bytes"));
  EXPECT_THAT(fault(GgufBuilder().tensor_at("t", {1}, type_f32, huge - 127).build()), Not(StrEq("")));
}

TEST(GgufFault, TensorsBeyondTheFile) {
  const std::string file = GgufBuilder()
                               .tensor_f32("first", {8}, std::vector<float>(8))
                               .tensor_f32("last", {100}, std::vector<float>(100))
                               .build();
  EXPECT_THAT(fault(file), StrEq(""));
  EXPECT_THAT(fault(file.substr(0, file.size() - 1)),
              StrEq("f: the file ends at offset 559, tensor 'last' (listed at offset 61) needs 400 bytes until 560: 1 "
                    "bytes are missing"));
  EXPECT_THAT(fault(file.substr(0, 128)), HasSubstr("needs 400 bytes until 560: 432 bytes are missing"));
  EXPECT_THAT(
      fault(GgufBuilder().tensor_at("t", {1}, 16, 1 << 20).build()),
      HasSubstr("tensor 't' (listed at offset 24) needs at least 1 bytes until 1048641: 1048584 bytes are missing"));
}

TEST(GgufFault, TensorsThatOverlap) {
  const auto overlap = [](std::uint64_t second_offset, std::uint32_t second_type) {
    std::string file =
        GgufBuilder().tensor_at("a", {9}, type_f32, 0).tensor_at("b", {1}, second_type, second_offset).header();
    file.resize(96 + 128);
    return fault(file);
  };
  EXPECT_THAT(overlap(64, type_f32), StrEq(""));
  EXPECT_THAT(overlap(32, type_f32), StrEq("f: tensor 'b' at offset 57: expected its data after that of tensor 'a', "
                                           "which ends at 132, found it at 128"));
  EXPECT_THAT(overlap(0, type_f32), HasSubstr("'b'"));
  EXPECT_THAT(overlap(32, 16), HasSubstr("'b'")) << "a tensor of an unknown type overlaps too";
}

TEST(GgufFault, MessagesStayOneLine) {
  const std::string message =
      fault(GgufBuilder().add_raw("a\nb\x1b[31m\xff\u2028'" + std::string(500, 'x'), 99, "").build());
  EXPECT_THAT(message, HasSubstr("metadata 'a\\nb\\x1b[31m\\xff\\xe2\\x80\\xa8\\'xxxx"));
  EXPECT_THAT(message, HasSubstr("...' (513 bytes)"));
  EXPECT_LT(message.size(), 250u);
}

/// A source of zeros behind a few real bytes, larger than any header may be.
class VastSource final : public ByteSource {
 public:
  explicit VastSource(std::string start) : start_(std::move(start)) {}
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] std::uint64_t size() const noexcept override { return std::uint64_t{1} << 40; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    ASSERT_LE(out.size(), 1u << 20) << "much is read before it is known to be within bounds";
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = offset + i < start_.size() ? static_cast<std::byte>(start_[offset + i]) : std::byte{0};
    }
  }

 private:
  std::string name_ = "f";
  std::string start_;
};

TEST(GgufFault, HeadersAreBoundedInAVastFileToo) {
  const auto vast_fault = [](const std::string& start) -> std::string {
    try {
      (void)Gguf::read(VastSource(start));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const std::uint64_t count = std::uint64_t{1} << 31;
  for (const std::uint32_t element : {0u, 6u, string_id, array_id}) {
    EXPECT_THAT(vast_fault(GgufBuilder().add_raw("k", array_id, raw(element) + raw(count)).build()),
                HasSubstr("before the limit of 1073741824 bytes for a header"));
  }
  EXPECT_THAT(vast_fault(GgufBuilder().add_raw("k", string_id, raw(count)).build()), HasSubstr("before the limit"));
  EXPECT_THAT(vast_fault(GgufBuilder().claim_tensors(count).build()), HasSubstr("before the limit"));
  EXPECT_THAT(vast_fault(GgufBuilder().claim_entries(count).build()), HasSubstr("before the limit"));
}

std::string good_file() {
  return GgufBuilder()
      .add("general.architecture", "llama")
      .alignment(16)
      .add("strings", std::vector<std::string>{"a", "", "bcd"})
      .add("numbers", std::vector<std::int32_t>{1, 2, 3})
      .add("nested", std::vector<std::vector<bool>>{{true}, {false, true}})
      .add("f64", 0.5)
      .tensor_f32("norm", {4}, std::vector<float>{1, 2, 3, 4})
      .tensor("weight", {32, 2}, type_q8_0, std::string(68, 'q'))
      .build();
}

TEST(GgufFault, EveryCutIsSaidToBeOne) {
  const std::string file = good_file();
  ASSERT_THAT(fault(file), StrEq(""));
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_THAT(fault(file.substr(0, size)), HasSubstr("are missing")) << size;
  }
}

TEST(GgufFault, EveryChangedByteIsTakenOrRefused) {
  const std::string file = good_file();
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string changed = file;
      changed[i] = static_cast<char>(changed[i] ^ change);
      const std::string message = fault(changed);  // any exception but InputError, or a sanitizer, fails the test
      EXPECT_THAT(message, Not(HasSubstr("\n"))) << i;
      if (i < 4) {
        EXPECT_THAT(message, Not(StrEq(""))) << i;
      }
    }
  }
}

}  // namespace
}  // namespace headrace::formats::testing
