// A small safetensors file for each kind of fault, with the one line that the reader says of it; sweeps that cut and
// change a good file everywhere; and directories with an index.
#include "formats/safetensors.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "formats/safetensors_folder.hpp"
#include "safetensors_builder.hpp"

namespace headrace::formats::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StrEq;

template <class Action>
std::string fault_of(Action&& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

Safetensors read(const std::string& bytes) {
  return Safetensors::read(MemorySource("f", std::as_bytes(std::span(bytes))));
}
std::string fault(const std::string& bytes) {
  return fault_of([&] { (void)read(bytes); });
}
/// What is said of a header with `entries` and so many bytes of data.
std::string fault(const std::string& entries, std::size_t data_bytes) {
  return fault(safetensors_file("{" + entries + "}", std::string(data_bytes, 'd')));
}

std::string good_file() {
  return safetensors_file("{\"__metadata__\":{\"format\":\"pt\"}," + safetensors_entry("w", "BF16", "[2,3]", 4, 16) +
                              "," + safetensors_entry("bias", "F32", "[]", 0, 4) + "," +
                              safetensors_entry("none", "F16", "[0,7]", 16, 16) + "," +
                              safetensors_entry("blocks", "U8", "[5]", 16, 21) + "}  ",
                          std::string(21, 'd'));
}

TEST(Safetensors, ReadsAHeader) {
  const std::string bytes = good_file();
  const Safetensors file = read(bytes);
  EXPECT_EQ(file.file_name(), "f");
  EXPECT_EQ(file.metadata().at("format"), "pt");
  ASSERT_EQ(file.tensors().size(), 4u);
  const SafetensorsTensor* w = file.find_tensor("w");
  ASSERT_NE(w, nullptr);
  EXPECT_THAT(w->shape, ElementsAre(2, 3));
  EXPECT_EQ(w->elements, 6);
  EXPECT_EQ(w->bytes, 12u);
  EXPECT_EQ(w->offset, bytes.size() - 21 + 4);
  EXPECT_EQ(w->format, find_format("bf16"));
  EXPECT_EQ(file.find_tensor("bias")->elements, 1);
  EXPECT_EQ(file.find_tensor("bias")->format, find_format("f32"));
  EXPECT_EQ(file.find_tensor("none")->bytes, 0u);
  EXPECT_EQ(file.find_tensor("blocks")->format, nullptr);
  EXPECT_EQ(file.find_tensor("x"), nullptr);
  EXPECT_TRUE(read(safetensors_file("{}")).tensors().empty());
}

TEST(SafetensorsFault, HeaderLength) {
  EXPECT_THAT(fault(""), StrEq("f: the file ends at offset 0, the header (its length) needs 8 bytes from offset 0: 8 "
                               "bytes are missing"));
  EXPECT_THAT(fault(std::string(7, '\0')), HasSubstr("1 bytes are missing"));
  EXPECT_THAT(fault(std::string("\x10\0\0\0\0\0\0\0{}", 10)),
              StrEq("f: the file ends at offset 10, the header (JSON) needs 16 bytes from offset 8: 14 bytes are "
                    "missing"));
  EXPECT_THAT(fault(std::string(8, '\xff') + "{}"),
              HasSubstr("expected a header of at most 100000000 bytes, found 18446744073709551615"));
  EXPECT_THAT(fault("GGUF\x03" + std::string(100, '\0')), HasSubstr("is this a safetensors file?"));
}

TEST(SafetensorsFault, HeaderJson) {
  EXPECT_THAT(fault(safetensors_file("")), HasSubstr("expected a JSON object, which starts with '{', found ''"));
  EXPECT_THAT(fault(safetensors_file(" {}")), HasSubstr("at offset 8: expected a JSON object"));
  EXPECT_THAT(fault(safetensors_file("[]")), HasSubstr("found '[]'"));
  EXPECT_THAT(fault(safetensors_file("{\"a\"}")), StrEq("f: byte 5: expected JSON, found '{\"a\"}'"));
  EXPECT_THAT(fault(safetensors_file(std::string(8, ' ') + "{")), Not(StrEq("")));
  EXPECT_THAT(fault(safetensors_file("{\"a\":" + std::string(100000, '['))), HasSubstr("nested at most 32 deep"));
  EXPECT_THAT(fault(safetensors_file("{\"__metadata__\":{\"a\":1}}")),
              StrEq("f: __metadata__.a: expected a string, found the number 1"));
}

TEST(SafetensorsFault, Names) {
  const std::string entry = safetensors_entry("t", "U8", "[1]", 0, 1);
  EXPECT_THAT(fault(entry + "," + entry, 1), StrEq("f: expected each key of an object once, found 't' twice"));
}

TEST(SafetensorsFault, Fields) {
  EXPECT_THAT(fault("\"t\":1", 0), StrEq("f: tensor 't': expected an object, found the number 1"));
  EXPECT_THAT(fault(R"("t":{"shape":[],"data_offsets":[0,1]})", 1),
              StrEq("f: tensor 't'.dtype: expected it to be there, found none"));
  EXPECT_THAT(fault(R"("t":{"dtype":"U8","data_offsets":[0,1]})", 1), HasSubstr("tensor 't'.shape: expected it to be"));
  EXPECT_THAT(fault(R"("t":{"dtype":"U8","shape":[1]})", 1), HasSubstr("tensor 't'.data_offsets: expected it to be"));
  EXPECT_THAT(fault(R"("t":{"dtype":8,"shape":[1],"data_offsets":[0,1]})", 1), HasSubstr("expected a string, found"));
  EXPECT_THAT(fault(safetensors_entry("t", "F12", "[1]", 0, 1), 1),
              StrEq("f: tensor 't'.dtype: expected a dtype of the safetensors format, found the string 'F12'"));
  EXPECT_THAT(fault(R"("t":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]})", 1),
              StrEq("f: tensor 't'.data_offsets: expected two offsets, [begin, end], found an array of 3"));
  EXPECT_THAT(fault(R"("t":{"dtype":"U8","shape":[1],"data_offsets":[0,-1]})", 1),
              StrEq("f: tensor 't'.data_offsets[1]: expected an integer >= 0, found the number -1"));
  EXPECT_THAT(fault(R"("a\nb":{"dtype":"U8","shape":[1]})", 1), HasSubstr("tensor 'a\\nb'.data_offsets"));
}

TEST(SafetensorsFault, Shapes) {
  const auto shape = [](const std::string& text, const std::string& dtype = "F32") {
    return fault(safetensors_entry("t", dtype, text, 0, 4), 4);
  };
  EXPECT_THAT(shape("[1]"), StrEq(""));
  EXPECT_THAT(shape("1"), StrEq("f: tensor 't'.shape: expected an array, found the number 1"));
  EXPECT_THAT(shape("[1.0]"), HasSubstr("tensor 't'.shape[0]: expected an integer >= 0, found the number 1.0"));
  EXPECT_THAT(shape("[1,-1]"), HasSubstr("shape[1]: expected an integer >= 0, found the number -1"));
  EXPECT_THAT(shape("[1,1,1,1,1,1,1,1,1]"), HasSubstr("expected at most 8 dimensions, found an array of 9"));
  EXPECT_THAT(shape("[4294967296,2147483648]"), HasSubstr("shape[1]: expected fewer than 2^63 elements in all"));
  EXPECT_THAT(shape("[9223372036854775808]"), HasSubstr("shape[0]: expected fewer than 2^63 elements"));
  EXPECT_THAT(shape("[288230376151711744]"), HasSubstr("expected fewer than 2^63 bits, of 32 each"));
  EXPECT_THAT(shape("[576460752303423488, 0]"), HasSubstr("expected 0 bytes"));
  EXPECT_THAT(shape("[3]", "F4"), StrEq("f: tensor 't'.shape: expected whole bytes of F4, found an array of 1"));
}

TEST(SafetensorsFault, Ranges) {
  EXPECT_THAT(fault(safetensors_entry("t", "U8", "[1]", 1, 0), 1),
              StrEq("f: tensor 't'.data_offsets: expected begin <= end, found [1, 0]"));
  EXPECT_THAT(fault(safetensors_entry("t", "U8", "[2]", 0, 2), 1),
              StrEq("f: tensor 't'.data_offsets: expected an end within the 1 bytes of data, found [0, 2]"));
  EXPECT_THAT(fault(safetensors_entry("t", "U8", "[1]", 18446744073709551615u, 18446744073709551615u), 1),
              HasSubstr("expected an end within"));
  EXPECT_THAT(fault(safetensors_entry("t", "F16", "[2]", 0, 5), 5),
              StrEq("f: tensor 't'.data_offsets: expected 4 bytes, as shape and dtype F16 say, found [0, 5]"));
  EXPECT_THAT(fault(safetensors_entry("t", "F16", "[2]", 0, 3), 3), HasSubstr("expected 4 bytes"));
}

TEST(SafetensorsFault, OverlapsAndHoles) {
  const auto two = [](std::uint64_t begin, std::size_t data_bytes) {
    return fault(
        safetensors_entry("b", "U8", "[4]", begin, begin + 4) + "," + safetensors_entry("a", "U8", "[4]", 0, 4),
        data_bytes);
  };
  EXPECT_THAT(two(4, 8), StrEq(""));
  EXPECT_THAT(two(3, 7), StrEq("f: tensor 'b': data_offsets: expected data right behind tensor 'a', which ends at 4, "
                               "found an overlap at 3"));
  EXPECT_THAT(two(0, 4), HasSubstr("found an overlap at 0"));
  EXPECT_THAT(two(5, 9), HasSubstr("right behind tensor 'a', which ends at 4, found a hole before it at 5"));
  EXPECT_THAT(fault(safetensors_entry("a", "U8", "[1]", 1, 2), 2),
              HasSubstr("right behind the header, which ends at 0, found a hole before it at 1"));
  EXPECT_THAT(two(4, 9), HasSubstr("expected the file to end at offset"));
  EXPECT_THAT(fault("", 1), StrEq("f: expected the file to end at offset 10, where the header ends, found it to end at "
                                  "11"));
}

TEST(SafetensorsFault, EveryCutIsRefused) {
  const std::string file = good_file();
  ASSERT_THAT(fault(file), StrEq(""));
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_THAT(fault(file.substr(0, size)), Not(StrEq(""))) << size;
  }
}

TEST(SafetensorsFault, EveryChangedByteIsTakenOrRefused) {
  const std::string file = good_file();
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (const int change : {0x01, 0x02, 0x80, 0xff}) {
      std::string changed = file;
      changed[i] = static_cast<char>(changed[i] ^ change);
      EXPECT_THAT(fault(changed), Not(HasSubstr("\n"))) << i;  // any exception but InputError fails the test
    }
  }
}

TEST(SafetensorsIndex, RefusesPathsAndWrongTypes) {
  const auto index_fault = [](const std::string& text) {
    return fault_of([&] { (void)parse_safetensors_index("i", text); });
  };
  EXPECT_THAT(index_fault(R"({"metadata":{"total_size":3},"weight_map":{"a":"m-1.safetensors"}})"), StrEq(""));
  for (const std::string file :
       {"../x.safetensors", "/etc/passwd", "a/b.safetensors", "..", ".", "", "a\\\\b", "a\\u0000b"}) {
    EXPECT_THAT(index_fault("{\"weight_map\":{\"a\":\"" + file + "\"}}"),
                HasSubstr("i: weight_map.a: expected the plain name of a file beside it, found the string"))
        << file;
  }
  EXPECT_THAT(index_fault("{}"), StrEq("i: weight_map: expected it to be there, found none"));
  EXPECT_THAT(index_fault("{\"weight_map\":[]}"), HasSubstr("expected an object, found an array"));
  EXPECT_THAT(index_fault("{\"weight_map\":{\"a.b\":1}}"),
              StrEq("i: weight_map.'a.b': expected a string, found the number 1"));
}

class SafetensorsFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "headrace_safetensors_" +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(directory_ + "/" + name, std::ios::binary) << bytes;
  }
  [[nodiscard]] std::string open_fault() const {
    return fault_of([&] { (void)SafetensorsFolder::open(directory_); });
  }
  std::string directory_;
};

TEST_F(SafetensorsFolderTest, OneFile) {
  EXPECT_THAT(open_fault(), HasSubstr("expected model.safetensors or model.safetensors.index.json, found neither"));
  write("pytorch_model.bin", "");
  EXPECT_THAT(open_fault(), HasSubstr("found neither (pytorch_model.bin is not read)"));
  write("model.safetensors", good_file());
  const SafetensorsFolder folder = SafetensorsFolder::open(directory_);
  EXPECT_EQ(folder.tensors().size(), 4u);
  EXPECT_EQ(folder.file_bytes(), good_file().size());
}

TEST_F(SafetensorsFolderTest, Shards) {
  write("m-1.safetensors", safetensors_file("{" + safetensors_entry("a", "U8", "[2]", 0, 2) + "}", "xy"));
  write("m-2.safetensors", safetensors_file("{" + safetensors_entry("b", "U8", "[1]", 0, 1) + "}", "z"));
  write("model.safetensors.index.json", R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})");
  SafetensorsFolder first = SafetensorsFolder::open(directory_);
  const SafetensorsFolder folder = std::move(first);
  ASSERT_NE(folder.find("a").tensor, nullptr);
  EXPECT_EQ(folder.find("c").tensor, nullptr);
  const auto [tensor, file] = folder.find("b");
  EXPECT_EQ(file->path(), directory_ + "/m-2.safetensors");
  std::byte byte{};
  file->read(tensor->offset, std::span(&byte, 1));
  EXPECT_EQ(byte, std::byte{'z'});
}

TEST_F(SafetensorsFolderTest, ShardsThatAreMissingOrWrong) {
  write("m-1.safetensors", safetensors_file("{" + safetensors_entry("a", "U8", "[1]", 0, 1) + "}", "x"));
  write("model.safetensors.index.json", R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})");
  EXPECT_THAT(open_fault(), HasSubstr("model.safetensors.index.json: weight_map: expected the file 'm-2.safetensors' "
                                      "beside it, which holds tensor 'b', found none"));
  write("model.safetensors.index.json", R"({"weight_map":{"b":"m-1.safetensors"}})");
  EXPECT_THAT(open_fault(), HasSubstr("m-1.safetensors: expected tensor 'b', as"));
  write("model.safetensors.index.json", R"({"weight_map":{"a":"../m-1.safetensors"}})");
  EXPECT_THAT(open_fault(), HasSubstr("expected the plain name of a file"));
}

}  // namespace
}  // namespace headrace::formats::testing
