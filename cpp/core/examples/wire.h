// The protobuf wire format: varints, tags, lengths, and skipping unwanted fields.
//
// Agrees with protobuf's own parser (upb) on what is well formed; the tests compare the two.
#pragma once

#include "core/memory/bytes.h"

namespace recordkit {

// What can be wrong with a message. recordkit.examples has the text for each, in this order.
enum class WireFault : uint8_t {
  none,
  bad_varint,    // more than ten bytes, or the message ends inside
  bad_tag,       // field number 0, an unknown wire type, or a group that does not match
  past_end,      // a length or a value reaches beyond the message
  bad_name,      // a feature's name is not UTF-8
  partial_list,  // packed values do not fill their length
};

enum class WireType : uint8_t { varint = 0, fixed64 = 1, bytes = 2, group = 3, end_group = 4, fixed32 = 5 };

inline constexpr int kMaxVarint = 10;

inline size_t varint_size(uint64_t value) {
  // Seven bits a byte: ceil(bits / 7) for 1 to 64 bits.
  return static_cast<size_t>((std::bit_width(value | 1) * 9 + 64) / 64);
}

inline uint8_t* store_varint(uint8_t* to, uint64_t value) {
  while (value >= 0x80) {
    *to++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<uint8_t>(value);
  return to;
}

inline constexpr uint64_t kContinuation = 0x8080808080808080;

// Joins the seven low bits of each of eight bytes into one number.
inline uint64_t join_sevens(uint64_t word) {
  word &= ~kContinuation;
  word = ((word & 0x7f007f007f007f00) >> 1) | (word & 0x007f007f007f007f);
  word = ((word & 0x3fff00003fff0000) >> 2) | (word & 0x00003fff00003fff);
  return ((word & 0x0fffffff00000000) >> 4) | (word & 0x000000000fffffff);
}

// The reverse for numbers of at most 56 bits; the continuation bits are left clear.
inline uint64_t split_sevens(uint64_t value) {
  value = ((value & 0x00fffffff0000000) << 4) | (value & 0x000000000fffffff);
  value = ((value & 0x0fffc0000fffc000) << 2) | (value & 0x00003fff00003fff);
  return ((value & 0x3f803f803f803f80) << 1) | (value & 0x007f007f007f007f);
}

// Reads one message from front to back. A call that fails sets `fault` and leaves `at` where the error
// starts.
struct Cursor {
  const uint8_t* at;
  const uint8_t* end;
  WireFault fault = WireFault::none;

  // `depth` is how deep groups may nest here: protobuf allows 100 levels, including the messages around this
  // one.
  explicit Cursor(Bytes message, int depth = 100)
      : at(message.data()), end(message.data() + message.size()), depth_(depth) {}

  bool done() const { return at == end; }
  size_t left() const { return static_cast<size_t>(end - at); }
  bool fail(WireFault what) {
    fault = what;
    return false;
  }

  bool varint(uint64_t& value) {
    if (at != end && *at < 0x80) {
      value = *at++;
      return true;
    }
    return long_varint(value);
  }

  bool tag(uint32_t& field, WireType& type) {
    const uint8_t* start = at;
    if (!any_tag(field, type)) return false;
    if (field != 0) return true;
    at = start;
    return fail(WireFault::bad_tag);
  }

  bool bytes(Bytes& value) {
    const uint8_t* start = at;
    uint64_t length;
    if (!varint(length)) return false;
    // A length takes at most five bytes; upb refuses longer ones even when the rest is zeros.
    if (length > left() || at - start > 5) {
      at = start;
      return fail(WireFault::past_end);
    }
    value = {at, length};
    at += length;
    return true;
  }

  // Skips the value of a field whose tag has been read.
  bool skip(uint32_t field, WireType type) { return skip(field, type, depth_); }

 private:
  // Like `tag`, but accepts field number 0, as upb does in groups that it skips.
  bool any_tag(uint32_t& field, WireType& type) {
    const uint8_t* start = at;
    uint64_t raw;
    if (!varint(raw)) return false;
    // A tag is 32 bits in at most five bytes; upb refuses longer ones even when the rest is zeros.
    if (raw > UINT32_MAX || at - start > 5) {
      at = start;
      return fail(WireFault::bad_tag);
    }
    field = static_cast<uint32_t>(raw >> 3);
    type = static_cast<WireType>(raw & 7);
    return true;
  }

  bool long_varint(uint64_t& value) {
    uint64_t result = 0;
    const uint8_t* p = at;
    for (int i = 0; i < kMaxVarint && p != end; ++i) {
      const uint64_t byte = *p++;
      result |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) {
        // Bits of a tenth byte beyond the 64th are dropped, as protobuf does.
        value = result;
        at = p;
        return true;
      }
    }
    return fail(WireFault::bad_varint);
  }

  bool skip(uint32_t field, WireType type, int depth) {
    uint64_t number;
    Bytes ignored;
    switch (type) {
      case WireType::varint:
        return varint(number);
      case WireType::fixed64:
        return advance(8);
      case WireType::bytes:
        return bytes(ignored);
      case WireType::fixed32:
        return advance(4);
      case WireType::group:
        return skip_group(field, depth);
      default:
        return fail(WireFault::bad_tag);
    }
  }

  bool advance(size_t size) {
    if (left() < size) return fail(WireFault::past_end);
    at += size;
    return true;
  }

  bool skip_group(uint32_t field, int depth) {
    if (depth == 0) return fail(WireFault::bad_tag);
    while (!done()) {
      uint32_t inner;
      WireType type;
      if (!any_tag(inner, type)) return false;
      if (type == WireType::end_group) return inner == field || fail(WireFault::bad_tag);
      if (!skip(inner, type, depth - 1)) return false;
    }
    return fail(WireFault::past_end);
  }

  int depth_;
};

bool is_utf8(Bytes text);

}  // namespace recordkit
