// Text from outside inside a message: quoted, on one line, never long.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

/// 'text' in single quotes, with quotes, backslashes, control characters and bytes that are no UTF-8 as escapes, cut
/// after about `limit` bytes, so that an error stays one plain line whatever a file holds.
std::string quoted(std::string_view text, std::size_t limit = 80);

}  // namespace headrace
