// Encodes the tensors of a GGUF file anew and writes the result beside, whole or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/context.hpp"
#include "base/file.hpp"
#include "formats/gguf.hpp"
#include "models/recipe.hpp"

namespace headrace::models {

/// How far encoded numbers y are from the numbers x that they stand for.
struct EncodeError {
  double relative_rms = 0;  ///< sqrt(sum((y - x)^2) / sum(x^2)); 0 if all x are 0
  double max = 0;           ///< max |y - x|
};

struct QuantizedTensor {
  std::string name;
  std::int64_t elements = 0;
  const formats::Format* from = nullptr;
  const formats::Format* to = nullptr;
  const formats::Format* wanted = nullptr;  ///< by the recipe, if rows could not have it
  std::uint64_t bytes = 0;                  ///< in the new file
  std::optional<EncodeError> error;         ///< nothing if the bytes were copied
};

struct QuantizeReport {
  std::uint64_t in_bytes = 0;
  std::uint64_t out_bytes = 0;
  std::vector<QuantizedTensor> tensors;  ///< in the file's order
};

struct QuantizeOptions {
  const Recipe* recipe = nullptr;
  bool pure = false;  ///< see choose_format
  /// Called from time to time with bytes of the input that are done; false ends the work, and no file is left.
  std::function<bool(std::uint64_t done, std::uint64_t total)> progress;
};

/// Writes `in` to `out` by a recipe. All threads encode; memory is bounded by a chunk of some million numbers, whatever
/// the tensors' sizes. Metadata is copied, with general.file_type and general.quantization_version set. Warns if
/// numbers of fewer than 8 bits are encoded again. Nothing if the work was ended. Throws
/// - InputError: `in` is one of several parts; a Format is none of ours; a number to be encoded is NaN or infinite, or
///   beyond what its new Format holds, naming tensor and element;
/// - ResourceError: `out` cannot be written, or memory is lacking.
std::optional<QuantizeReport> quantize(const File& in, const formats::Gguf& gguf, const std::string& out,
                                       const QuantizeOptions& options, Context& context);

}  // namespace headrace::models
