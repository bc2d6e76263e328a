#include "support/examples.h"

#include "core/examples/wire.h"
#include "support/frames.h"
#include "support/reference.h"

namespace recordkit {
namespace {

std::string varint(uint64_t value, bool longer = false) {
  uint8_t bytes[kMaxVarint];
  std::string text(as_text({bytes, static_cast<size_t>(store_varint(bytes, value) - bytes)}));
  if (longer && text.size() < kMaxVarint) {
    text.back() = static_cast<char>(text.back() | 0x80);
    text.push_back('\0');
  }
  return text;
}

std::string unknown_field(Choices& choices) {
  switch (choices.below(6)) {
    case 0:
      return unhex("20") + varint(choices.number(), true);
    case 1:
      return unhex("29 01 02 03 04 05 06 07 08");
    case 2:
      return bytes_field(1000, choices.bytes(20));
    case 3:
      return unhex("3b 3b 3c 08 01 3c");  // a group in a group
    case 4:
      return unhex("0d 01 02 03 04");  // a number where a message or text is expected
    default:
      return choices.bytes(6);
  }
}

std::string some_list(Choices& choices, uint64_t kind) {
  std::string list;
  for (uint64_t chunks = choices.below(4) == 0 ? choices.below(4) : 1; chunks > 0; --chunks) {
    const bool packed = choices.below(4) != 0;
    const uint64_t many = choices.below(8) == 0 ? choices.below(60) : choices.below(4);
    std::string values;
    for (uint64_t i = 0; i < many; ++i) {
      std::string value;
      if (kind == 1) {
        list += bytes_field(1, choices.bytes(choices.below(8) == 0 ? 200 : 10));
        continue;
      }
      if (kind == 2) value.append("\x01\x02\xc0\x7f", 4);
      if (kind == 3) value = varint(choices.number(), choices.below(16) == 0);
      if (packed)
        values += value;
      else
        list += unhex(kind == 2 ? "0d" : "08") + value;
    }
    if (kind != 1 && packed) list += bytes_field(1, values);
    if (choices.below(24) == 1) list += unknown_field(choices);
  }
  return list;
}

std::string some_feature(Choices& choices) {
  std::string feature;
  for (uint64_t lists = choices.below(8) == 0 ? choices.below(4) : 1; lists > 0; --lists) {
    const uint64_t kind = 1 + choices.below(3);
    feature += bytes_field(static_cast<uint32_t>(kind), some_list(choices, kind));
    if (choices.below(24) == 1) feature += unknown_field(choices);
  }
  return feature;
}

std::string some_name(Choices& choices) {
  switch (choices.below(16)) {
    case 0:
      return "";
    case 1:
      return std::string(90 + choices.below(60), 'x');
    case 2:
      return choices.bytes(12);  // seldom UTF-8
    case 3:
      return "image/encoded";
    case 4:
      return "image/a/quite/long/name";
    default:
      return std::string(1 + choices.below(9), static_cast<char>('a' + choices.below(3)));
  }
}

// The entries of a Features message, or of FeatureLists.
std::string some_entries(Choices& choices, bool lists) {
  std::string message;
  for (int entries = 0; entries < 10 && !choices.done() && choices.below(8) != 7; ++entries) {
    std::string value;
    for (uint64_t steps = lists ? choices.below(4) : 1; steps > 0; --steps)
      value += lists ? bytes_field(1, some_feature(choices)) : some_feature(choices);
    if (lists && choices.below(24) == 1) value += unknown_field(choices);
    const std::string name = bytes_field(1, some_name(choices));
    value = bytes_field(2, value);
    constexpr uint64_t kOdd = 24;
    switch (choices.below(kOdd)) {
      case 0:
        message += bytes_field(1, value + name);
        break;
      case 1:
        message += bytes_field(1, name + value + name);
        break;
      case 2:
        message += bytes_field(1, name + value + value);
        break;
      case 3:
        message += bytes_field(1, choices.below(2) ? name : value);
        break;
      case 4:
        message += bytes_field(1, name + unknown_field(choices) + value);
        break;
      case 5:
        message += unknown_field(choices);
        break;
      default:
        message += bytes_field(1, name + value);
    }
  }
  return message;
}

}  // namespace

std::string hostile_example(Choices& choices) {
  std::string payload;
  for (int pieces = 0; pieces < 4 && !choices.done(); ++pieces) {
    const uint64_t what = choices.below(8);
    if (what == 7) payload += unknown_field(choices);
    if (what == 6 || what == 5) payload += bytes_field(2, some_entries(choices, true));
    if (what < 5) payload += bytes_field(1, some_entries(choices, false));
  }
  return payload;
}

}  // namespace recordkit
