// Peers are programs of others: whatever they do, the answer is a time, "no such test" or one plain error, and none of
// them is left behind.
#include "measure/peer.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace headrace::measure {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ChildProcess, TalksLineByLine) {
  ChildProcess cat({"/bin/cat"}, false);
  cat.write_line("one");
  cat.write_line("two");
  EXPECT_EQ(cat.read_line(60), "one");
  EXPECT_EQ(cat.read_line(60), "two");
}

TEST(ChildProcess, NamesWhatIsNotThere) {
  EXPECT_THAT([] { ChildProcess({"/missing/program"}, false); },
              ThrowsMessage<ResourceError>(AllOf(HasSubstr("/missing/program"), HasSubstr("No such file"))));
}

TEST(ChildProcess, TellsHowItEnded) {
  ChildProcess left({"/bin/sh", "-c", "exit 5"}, false);
  EXPECT_THAT([&] { left.read_line(60); }, ThrowsMessage<ResourceError>(HasSubstr("exit status 5")));
  ChildProcess killed({"/bin/sh", "-c", "kill -9 $$"}, false);
  EXPECT_THAT([&] { killed.read_line(60); }, ThrowsMessage<ResourceError>(HasSubstr("signal 9")));
}

TEST(ChildProcess, WaitsNoLongerThanItIsTold) {
  ChildProcess silent({"/bin/cat"}, false);
  EXPECT_THAT([&] { silent.read_line(0.01); }, ThrowsMessage<ResourceError>(HasSubstr("expected an answer within")));
}

TEST(ChildProcess, RefusesALineWithoutEnd) {
  ChildProcess endless({"/bin/cat", "/dev/zero"}, false);
  EXPECT_THAT([&] { endless.read_line(60); }, ThrowsMessage<ResourceError>(HasSubstr("at most 65536 bytes")));
}

/// A peer that is a shell script.
class PeerTest : public ::testing::Test {
 protected:
  PeerTest() {
    std::string name = fs::temp_directory_path() / "headrace-peer-XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  ~PeerTest() override { fs::remove_all(folder); }

  Peer start(const std::string& script) {
    const fs::path program = folder / "peers" / "llama.cpp" / "peer";
    fs::create_directories(program.parent_path());
    std::ofstream(program) << "#!/bin/sh\n" << script;
    fs::permissions(program, fs::perms::owner_all);
    return {"llama.cpp", folder.string(), {.model = "the model", .threads = 3, .sizes = {40, 2, 80}}};
  }
  fs::path folder;
};

TEST_F(PeerTest, AsksForTestsAndReadsSeconds) {
  Peer peer = start(
      "echo \"ready version 1 $*\"\n"
      "read line; [ \"$line\" = 'decode 5 30 2' ] && echo seconds 0.25\n"
      "read line; [ \"$line\" = 'prefill 7 0 1' ] && echo unsupported by this\n");
  EXPECT_EQ(peer.name(), "llama.cpp");
  EXPECT_EQ(peer.version(), "version 1 --model the model --threads 3 --context 40 --sequences 2");
  EXPECT_EQ(peer.run({TestKind::decode, 5, 30, 2}), 0.25);
  EXPECT_EQ(peer.run({TestKind::prefill, 7, 0, 1}), std::nullopt);
}

TEST_F(PeerTest, NamesTheScriptThatBuildsWhatIsMissing) {
  EXPECT_THAT(
      [&] { Peer("openvino", folder.string(), {}); },
      ThrowsMessage<InputError>(AllOf(HasSubstr("scripts/bench_peers.sh openvino"), HasSubstr("peers/openvino"))));
}

TEST_F(PeerTest, PassesItsReasonOn) {
  EXPECT_THAT([&] { start("echo error no such model\n"); },
              ThrowsMessage<ResourceError>(HasSubstr("llama.cpp: no such model")));
  EXPECT_THAT([&] { start("exit 1\n"); }, ThrowsMessage<ResourceError>(HasSubstr("exit status 1")));
  Peer failing = start("echo ready 1\nread line; echo error out of memory\n");
  EXPECT_THAT([&] { failing.run({}); }, ThrowsMessage<ResourceError>(HasSubstr("llama.cpp: out of memory")));
}

TEST_F(PeerTest, BelievesNoTimeThatIsNone) {
  for (const char* answer :
       {"seconds -1", "seconds 0", "seconds nan", "seconds inf", "seconds 1x", "seconds", "hello"}) {
    Peer peer = start("echo ready 1\nread line; echo " + std::string(answer) + "\n");
    EXPECT_THROW(peer.run({}), ResourceError) << answer;
  }
}

}  // namespace
}  // namespace headrace::measure
