// convert, constant, iota, and what the codes of an encoded tensor stand for.
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/adapter.hpp"
#include "kernels/primitives/element.hpp"

namespace headrace::kernels {
namespace {

using Run = void (*)(const KernelCall&) noexcept;

/// The integer part of a finite number, wrapped to the width of T.
template <class T>
T wrapped(double value) noexcept {
  constexpr double limit = 0x1p63;
  if (value > -limit && value < limit) return static_cast<T>(static_cast<std::int64_t>(value));
  // Beyond, doubles are whole, and their remainder by 2^64 is exact.
  const double rest = std::fmod(value, 2 * limit);
  const auto magnitude = static_cast<std::uint64_t>(std::fabs(rest));
  return static_cast<T>(rest < 0 ? 0 - magnitude : magnitude);
}

template <ElementType from, ElementType to>
void run_convert(const KernelCall& call) noexcept {
  using In = Element<from>;
  using Out = Element<to>;
  const auto* x = call.operands[0].as<const typename In::Storage>();
  auto* y = call.results[0].as<typename Out::Storage>();
  const Range range = share_elements(call, call.results[0].elements());
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const auto value = In::load(x[i]);
    if constexpr (to == ElementType::boolean) {
      y[i] = value != 0 ? 1 : 0;
    } else if constexpr (std::is_integral_v<typename In::Compute> || !std::is_integral_v<typename Out::Compute>) {
      y[i] = Out::store(static_cast<typename Out::Compute>(value));
    } else if (std::isfinite(value)) {
      y[i] = wrapped<typename Out::Storage>(static_cast<double>(value));
    } else {  // no integer is right: the step fails
      set_failed(call);
      y[i] = 0;
    }
  }
}

std::optional<Kernel> make_convert(const KernelRequest& request) {
  const ir::Type& x = request.operands[0];
  if (!is_plain(x)) return std::nullopt;
  const auto& to = request.attribute<std::string>("to");
  Kernel kernel;
  kernel.name = "convert." + std::string(ir::element_name(x.element)) + "." + to;
  kernel.numerics = kernel.name;
  kernel.run = with_element(x.element, [&](auto from_tag) {
    return with_element(ir::parse_type(to + "[]").element, [](auto to_tag) -> Run {
      return run_convert<decltype(from_tag)::value, decltype(to_tag)::value>;
    });
  });
  return kernel;
}

void run_constant(const KernelCall& call) noexcept {
  const auto& values = data_of<std::vector<float>>(call);
  const Range range = share_elements(call, static_cast<std::int64_t>(values.size()));
  if (range.size() == 0) return;
  std::memcpy(call.results[0].as<float>() + range.begin, values.data() + range.begin,
              static_cast<std::size_t>(4 * range.size()));
}

std::optional<Kernel> make_constant(const KernelRequest& request) {
  const auto& values = request.attribute<std::vector<double>>("values");
  std::vector<float> rounded;
  rounded.reserve(values.size());
  for (const double value : values) rounded.push_back(static_cast<float>(value));
  Kernel kernel;
  kernel.name = "constant";
  kernel.numerics = "exact";
  kernel.run = run_constant;
  kernel.data = share_data(std::move(rounded));
  return kernel;
}

void run_iota(const KernelCall& call) noexcept {
  const Range range = share_elements(call, call.results[0].elements());
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    call.results[0].as<std::int32_t>()[i] = static_cast<std::int32_t>(i);
  }
}

std::optional<Kernel> make_iota(const KernelRequest&) {
  Kernel kernel;
  kernel.name = "iota";
  kernel.numerics = "exact";
  kernel.run = run_iota;
  return kernel;
}

void run_decode(const KernelCall& call) noexcept {
  const View& x = call.operands[0];
  const std::int64_t width = row_width(x);
  const A16Row layout = a16_row(width);
  const Range rows = share(call, row_count(x));
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::byte* in = x.data + row * layout.bytes;
    float* out = call.results[0].as<float>() + row * width;
    for (std::int64_t block = 0; block < width / a16_block; ++block) {
      float scale = 0;
      std::memcpy(&scale, in + layout.scales + 4 * block, 4);
      for (std::int64_t i = block * a16_block; i < (block + 1) * a16_block; ++i) {
        out[i] = static_cast<float>(a16_code(in, i)) * scale;
      }
    }
  }
}

std::optional<Kernel> make_decode(const KernelRequest& request) {
  if (request.operands[0].encoding != "a16") return std::nullopt;
  Kernel kernel;
  kernel.name = "decode.a16";
  kernel.numerics = "decode.a16";
  kernel.run = run_decode;
  return kernel;
}

}  // namespace

CatalogFamily catalog_conversion() {
  return {{"convert", make_convert}, {"constant", make_constant}, {"iota", make_iota}, {"decode", make_decode}};
}

}  // namespace headrace::kernels
