// The numeric contract (docs/numerics.md): a row of logits depends on its own sequence, the Weights, its class and the
// numerics id, and on nothing else. Every comparison here is of bits.
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/context.hpp"
#include "run/engine.hpp"
#include "run/tiny_model.hpp"

namespace headrace::run {
namespace {

using headrace::testing::TinyModel;
using headrace::testing::TinyShape;
using kernels::KvEncoding;
using Row = std::vector<float>;

constexpr std::int64_t max_rows = 64;

struct Fixture {
  std::unique_ptr<Context> context;
  std::unique_ptr<Engine> engine;
};

Fixture make(const TinyModel& tiny, kernels::Isa isa, int threads, std::int64_t sequences = 4,
             KvEncoding kv = KvEncoding::f16) {
  Fixture setup;
  ContextOptions options;
  options.threads = threads;
  setup.context = Context::create(options);
  EngineOptions engine;
  engine.rows = max_rows;
  engine.wanted = max_rows;
  engine.sequences = sequences;
  engine.context = 1200;
  engine.isa = isa;
  engine.kv = kv;
  const models::Model model = tiny.model({engine.rows, engine.wanted, engine.sequences, engine.context});
  setup.engine = Engine::create(model.program, tiny.store, engine, *setup.context);
  return setup;
}

std::vector<TokenId> random_tokens(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 100);
  return tokens;
}

std::vector<std::int64_t> all_rows(std::size_t count) {
  std::vector<std::int64_t> rows(count);
  for (std::size_t i = 0; i < count; ++i) rows[i] = static_cast<std::int64_t>(i);
  return rows;
}

/// Logits of every token, in chunks of `chunk` rows.
std::vector<Row> feed(Engine& engine, Session& session, std::span<const TokenId> tokens, std::int64_t chunk,
                      TokenClass token_class) {
  std::vector<Row> rows;
  for (std::size_t begin = 0; begin < tokens.size(); begin += static_cast<std::size_t>(chunk)) {
    const auto part = tokens.subspan(begin, std::min(static_cast<std::size_t>(chunk), tokens.size() - begin));
    const auto wanted = all_rows(part.size());
    const StepEntry entry{&session, part, token_class, wanted};
    engine.step(std::span(&entry, 1));
    for (std::size_t i = 0; i < part.size(); ++i) {
      const auto row = engine.logits(static_cast<std::int64_t>(i));
      rows.emplace_back(row.begin(), row.end());
    }
    session.commit();
  }
  return rows;
}

void expect_equal(const std::vector<Row>& a, const std::vector<Row>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)), 0)
        << what << ": row " << i << " of " << a.size() << " differs";
  }
}

std::vector<Row> slice(const std::vector<Row>& rows, std::size_t begin) {
  return {rows.begin() + static_cast<std::ptrdiff_t>(begin), rows.end()};
}

/// A model, and how State holds keys and values.
struct ModelCase {
  std::string name;
  std::string format;
  TinyShape shape;
  KvEncoding kv = KvEncoding::f16;
};

/// Heads of 32, a block of q8_0.
const TinyShape wide_heads = {.heads = 2, .kv_heads = 1};

class Contract : public ::testing::TestWithParam<ModelCase> {
 protected:
  [[nodiscard]] static Fixture fixture(const TinyModel& tiny, kernels::Isa isa, int threads) {
    return make(tiny, isa, threads, 4, GetParam().kv);
  }
};

TEST_P(Contract, HoldsForEveryIsaThreadCountAndChunk) {
  const TinyModel tiny(GetParam().format, GetParam().shape, 1);
  const std::vector<TokenId> tokens = random_tokens(150, 2);
  for (const TokenClass token_class : {TokenClass::generated, TokenClass::prompt}) {
    std::vector<Row> expected;
    for (const kernels::Isa isa : kernels::available_isas()) {
      for (const int threads : {1, 2}) {
        Fixture setup = fixture(tiny, isa, threads);
        // The ids of the prompt class may differ by ISA, those of the generated class may not.
        if (threads == 1 && (expected.empty() || token_class == TokenClass::prompt)) {
          Session session = setup.engine->open();
          expected = feed(*setup.engine, session, tokens, 1, token_class);
        }
        for (const std::int64_t chunk : {1, 7, 16, 64}) {
          Session session = setup.engine->open();
          expect_equal(feed(*setup.engine, session, tokens, chunk, token_class), expected,
                       std::string(kernels::isa_name(isa)) + ", " + std::to_string(threads) + " threads, chunks of " +
                           std::to_string(chunk));
        }
      }
    }
  }
}

TEST_P(Contract, HoldsInABatchOfUnequalSequences) {
  const TinyModel tiny(GetParam().format, GetParam().shape, 3);
  Fixture setup = fixture(tiny, kernels::available_isas().back(), 2);
  Engine& engine = *setup.engine;
  const std::vector<std::size_t> pasts = {3, 65, 0, 130};
  const std::vector<std::size_t> news = {1, 20, 33, 1};
  std::vector<std::vector<TokenId>> texts;
  std::vector<std::vector<Row>> alone;
  std::vector<Session> sessions;
  for (unsigned i = 0; i < 4; ++i) {
    texts.push_back(random_tokens(static_cast<std::int64_t>(pasts[i] + news[i]), 10 + i));
    Session session = engine.open();
    alone.push_back(slice(feed(engine, session, texts[i], 16, TokenClass::generated), pasts[i]));
    sessions.push_back(engine.open());
    if (pasts[i] > 0) feed(engine, sessions[i], std::span(texts[i]).first(pasts[i]), 64, TokenClass::generated);
  }
  std::vector<std::vector<std::int64_t>> wanted;
  std::vector<StepEntry> entries;
  for (std::size_t i = 0; i < 4; ++i) wanted.push_back(all_rows(news[i]));
  for (std::size_t i = 0; i < 4; ++i) {
    entries.push_back({&sessions[i], std::span(texts[i]).subspan(pasts[i]), TokenClass::generated, wanted[i]});
  }
  engine.step(entries);
  std::int64_t row = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<Row> together;
    for (std::size_t t = 0; t < news[i]; ++t, ++row) {
      together.emplace_back(engine.logits(row).begin(), engine.logits(row).end());
    }
    expect_equal(together, alone[i], "sequence " + std::to_string(i));
    sessions[i].commit();
  }
}

TEST_P(Contract, HoldsAfterAbortTruncationForkAndPrefixSharing) {
  const TinyModel tiny(GetParam().format, GetParam().shape, 5);
  Fixture setup = fixture(tiny, kernels::available_isas().back(), 2);
  Engine& engine = *setup.engine;
  const std::vector<TokenId> tokens = random_tokens(200, 6);
  const std::vector<TokenId> others = random_tokens(40, 7);
  Session whole = engine.open();
  const std::vector<Row> expected = feed(engine, whole, tokens, 64, TokenClass::prompt);

  Session session = engine.open();
  EXPECT_EQ(session.share_prefix(tokens, TokenClass::generated), 0) << "another class is another chain";
  EXPECT_EQ(session.share_prefix(tokens, TokenClass::prompt), 192);
  expect_equal(feed(engine, session, std::span(tokens).subspan(192), 5, TokenClass::prompt), slice(expected, 192),
               "after prefix sharing");

  // Writing behind a truncated, shared page must leave the other session's page alone.
  session.truncate(100);
  const StepEntry stray{&session, others, TokenClass::prompt, {}};
  engine.step(std::span(&stray, 1));
  session.abort();
  EXPECT_EQ(session.length(), 100);
  Session fork = session.fork();
  expect_equal(feed(engine, session, std::span(tokens).subspan(100), 9, TokenClass::prompt), slice(expected, 100),
               "after truncation and abort");
  expect_equal(feed(engine, fork, std::span(tokens).subspan(100), 31, TokenClass::prompt), slice(expected, 100),
               "of a fork");

  Session partial = engine.open();
  const std::vector<TokenId> start(tokens.begin(), tokens.begin() + 60);
  feed(engine, partial, start, 60, TokenClass::prompt);
  const StepEntry draft{&partial, std::span(tokens).subspan(60, 10), TokenClass::prompt, {}};
  engine.step(std::span(&draft, 1));
  partial.commit(4);
  EXPECT_EQ(partial.length(), 64);
  expect_equal(feed(engine, partial, std::span(tokens).subspan(64), 64, TokenClass::prompt), slice(expected, 64),
               "after a partly accepted step");
  expect_equal(
      feed(engine, whole, others, 3, TokenClass::generated),
      [&] {
        Session again = engine.open();
        feed(engine, again, tokens, 11, TokenClass::prompt);
        return feed(engine, again, others, 8, TokenClass::generated);
      }(),
      "of the session whose pages were shared");
}

/// All Formats, in a llama, in a mixture and in gpt-oss. Of 7 experts each row uses 3: in a step of many rows most
/// experts have several, in one of few rows one or none.
std::vector<ModelCase> model_cases() {
  std::vector<ModelCase> cases;
  for (const formats::Format& format : formats::format_table()) {
    const std::string name(format.name);
    cases.push_back({name, name, headrace::testing::tiny_shape(name)});
  }
  for (const std::string name : {"f32", "q8_0", "q4_1", "q4_k"}) {
    TinyShape shape = headrace::testing::tiny_shape(name);
    shape.experts = 7;
    shape.experts_used = 3;
    cases.push_back({"mixture_" + name, name, shape});
  }
  for (const std::string name : {"f32", "mxfp4"}) {
    TinyShape shape = headrace::testing::tiny_shape(name);
    shape.experts = 5;
    shape.experts_used = 2;
    shape.gpt_oss = true;
    cases.push_back({"gpt_oss_" + name, name, shape});
  }
  TinyShape gpt_oss = wide_heads;
  gpt_oss.gpt_oss = true;
  gpt_oss.experts = 4;
  gpt_oss.experts_used = 2;
  cases.push_back({"q4_1_kv_bf16", "q4_1", {}, KvEncoding::bf16});
  cases.push_back({"q4_1_kv_q8_0", "q4_1", wide_heads, KvEncoding::q8_0});
  cases.push_back({"gpt_oss_kv_q8_0", "q8_0", gpt_oss, KvEncoding::q8_0});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, Contract, ::testing::ValuesIn(model_cases()),
                         [](const auto& instance) { return instance.param.name; });

TEST(Engine, LongPastsCrossSpans) {
  const TinyModel tiny("q4_1", wide_heads, 8);
  const std::vector<TokenId> tokens = random_tokens(1100, 9);
  std::vector<Row> of_f16;
  for (const KvEncoding kv : {KvEncoding::f16, KvEncoding::bf16, KvEncoding::q8_0}) {
    std::vector<Row> expected;
    for (const kernels::Isa isa : kernels::available_isas()) {
      for (const int threads : {1, 2}) {
        Fixture setup = make(tiny, isa, threads, 4, kv);
        Session session = setup.engine->open();
        feed(*setup.engine, session, std::span(tokens).first(1000), threads == 1 ? 64 : 33, TokenClass::generated);
        const auto rows =
            feed(*setup.engine, session, std::span(tokens).subspan(1000), threads == 1 ? 1 : 50, TokenClass::generated);
        if (expected.empty()) expected = rows;
        expect_equal(rows, expected, std::string(kernels::isa_name(isa)));
      }
    }
    if (kv == KvEncoding::f16) {
      of_f16 = expected;
    } else {
      EXPECT_NE(expected, of_f16) << "the option does nothing";
    }
  }
}

TEST(Engine, RefusesWhatDoesNotFitAndStaysUsable) {
  const TinyModel tiny("f32", {}, 11);
  Fixture setup = make(tiny, kernels::Isa::portable, 1, 1);
  Engine& engine = *setup.engine;
  Session session = engine.open();
  const std::vector<TokenId> tokens = random_tokens(64, 12);
  const auto expected = feed(engine, session, tokens, 64, TokenClass::prompt);
  for (const TokenId bad : {-1, 100}) {
    const StepEntry entry{&session, std::span(&bad, 1), TokenClass::prompt, {}};
    EXPECT_THROW(engine.step(std::span(&entry, 1)), InputError);
  }
  while (session.length() + 64 <= 1200) feed(engine, session, tokens, 64, TokenClass::prompt);
  const StepEntry entry{&session, tokens, TokenClass::prompt, {}};
  EXPECT_THROW(engine.step(std::span(&entry, 1)), InputError);
  // Pages of a closed session are found again or reused; the pool holds 1200 positions and a page more.
  session = engine.open();
  EXPECT_EQ(session.share_prefix(tokens, TokenClass::prompt), 0);
  expect_equal(feed(engine, session, tokens, 64, TokenClass::prompt), expected, "after the pages were used up");
  Session second = engine.open();
  Session third = engine.open();
  for (int i = 0; i < 10; ++i)
    feed(engine, second, random_tokens(64, 100u + static_cast<unsigned>(i)), 64, TokenClass::prompt);
  EXPECT_THROW(
      {
        for (int i = 0; i < 10; ++i)
          feed(engine, third, random_tokens(64, 200u + static_cast<unsigned>(i)), 64, TokenClass::prompt);
      },
      ResourceError);
}

TEST(Engine, NamesWhatMemoryIsNeeded) {
  const TinyModel tiny("f32", wide_heads, 11);
  ContextOptions options;
  options.threads = 1;
  options.memory_limit_bytes = 1 << 20;
  const auto context = Context::create(options);
  const auto create = [&](KvEncoding kv, std::int64_t sequences, std::int64_t positions) {
    EngineOptions engine;
    engine.isa = kernels::Isa::portable;
    engine.kv = kv;
    engine.rows = engine.wanted = 16;
    engine.sequences = sequences;
    engine.context = positions;
    const models::Model model = tiny.model({engine.rows, engine.wanted, engine.sequences, engine.context});
    return Engine::create(model.program, tiny.store, engine, *context);
  };
  std::int64_t of_f16 = 0;
  for (const KvEncoding kv : {KvEncoding::f16, KvEncoding::bf16, KvEncoding::q8_0}) {
    for (const std::int64_t sequences : {1, 3}) {
      std::int64_t fits = 0;
      try {
        create(kv, sequences, 1 << 20);
        FAIL() << "accepted";
      } catch (const ResourceError& error) {
        const std::string message = error.what();
        EXPECT_NE(message.find("KV"), std::string::npos) << message;
        const std::string before = "a context of ";
        const auto place = message.find(before);
        ASSERT_NE(place, std::string::npos) << message;
        fits = std::stoll(message.substr(place + before.size()));
      }
      // What is named does fit, and hardly more would.
      ASSERT_GT(fits, 64);
      EXPECT_NO_THROW(create(kv, sequences, fits));
      EXPECT_THROW(create(kv, sequences, fits + 128), ResourceError);
      if (sequences > 1) continue;
      if (kv == KvEncoding::f16) of_f16 = fits;
      if (kv == KvEncoding::bf16) {
        EXPECT_EQ(fits, of_f16);
      }
      if (kv == KvEncoding::q8_0) {
        EXPECT_GT(fits, of_f16 * 8 / 5);
      }
    }
  }
}

TEST(Engine, RefusesHeadsThatAreNotInBlocks) {
  const TinyModel tiny("f32", {}, 11);
  try {
    make(tiny, kernels::Isa::portable, 1, 1, KvEncoding::q8_0);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("multiple of 32"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace headrace::run
