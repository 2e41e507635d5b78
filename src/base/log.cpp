// The log's spdlog side, kept out of the header: spdlog takes seconds to compile.
#include "base/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace headrace {

namespace {

constexpr std::size_t kWarningsLimit = 1000;  // a server must not grow with the warnings that its clients cause

std::shared_ptr<spdlog::sinks::sink> make_sink(std::ostream* out) {
  if (out == nullptr) return std::make_shared<spdlog::sinks::stderr_sink_mt>();
  return std::make_shared<spdlog::sinks::ostream_sink_mt>(*out, /*force_flush=*/true);
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

}  // namespace

// A logger of our own, in no registry: nothing global.
class Log::Sink {
 public:
  explicit Sink(std::ostream* out) : logger("headrace", make_sink(out)) {
    logger.set_level(spdlog::level::debug);
    logger.set_pattern("%l: %v");
    logger.flush_on(spdlog::level::debug);
  }
  spdlog::logger logger;
};

Log::Log(LogLevel level, std::ostream* out) : level_(level), sink_(std::make_unique<Sink>(out)) {}
Log::~Log() = default;

void Log::write(LogLevel level, std::string_view message) {
  sink_->logger.log(spdlog_level(level), spdlog::string_view_t(message.data(), message.size()));
}

void Log::write_once(std::string message) {
  {
    const std::lock_guard lock(mutex_);
    if (said_.size() >= kWarningsLimit || !said_.insert(message).second) return;
    if (said_.size() == kWarningsLimit) message += " (further new warnings are not shown)";
  }
  write(LogLevel::warning, message);
}

}  // namespace headrace
