#include "core/examples/example.h"

#include "core/examples/varints.h"

namespace recordkit {

bool is_utf8(Bytes text) {
  const uint8_t* p = text.data();
  const uint8_t* const end = p + text.size();
  while (p != end) {
    while (end - p >= 8 && (load<uint64_t>(p) & kContinuation) == 0) p += 8;
    if (p == end) break;
    const uint8_t lead = *p++;
    if (lead < 0x80) continue;
    // The second byte's range excludes overlong forms, surrogates and code points beyond U+10FFFF.
    uint8_t low = 0x80, high = 0xbf;
    int more;
    if (lead >= 0xc2 && lead <= 0xdf) {
      more = 1;
    } else if (lead >= 0xe0 && lead <= 0xef) {
      more = 2;
      if (lead == 0xe0) low = 0xa0;
      if (lead == 0xed) high = 0x9f;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
      more = 3;
      if (lead == 0xf0) low = 0x90;
      if (lead == 0xf4) high = 0x8f;
    } else {
      return false;
    }
    for (; more > 0; --more, low = 0x80, high = 0xbf)
      if (p == end || *p < low || *p++ > high) return false;
  }
  return true;
}

bool read_entry(Cursor& cursor, Entry& entry) {
  entry.name = {};
  entry.value.clear();
  while (!cursor.done()) {
    uint32_t field;
    WireType type;
    if (!cursor.tag(field, type)) return false;
    if (type == WireType::bytes && (field == 1 || field == 2)) {
      Bytes body;
      if (!cursor.bytes(body)) return false;
      if (field == 2) {
        entry.value.push_back(body);
      } else if (is_utf8(body)) {
        entry.name = body;
      } else {
        cursor.at = body.data();
        return cursor.fail(WireFault::bad_name);
      }
    } else if (!cursor.skip(field, type)) {
      return false;
    }
  }
  return true;
}

namespace {

// Walks one list of numbers. on_packed(Bytes) and on_single() return false on a fault they have set.
template <typename Packed, typename Single>
bool walk_numbers(Cursor& list, WireType single_type, Packed&& on_packed, Single&& on_single) {
  uint32_t field;
  WireType type;
  while (!list.done()) {
    if (!list.tag(field, type)) return false;
    if (field == 1 && type == WireType::bytes) {
      Bytes packed;
      if (!list.bytes(packed) || !on_packed(packed)) return false;
    } else if (field == 1 && type == single_type) {
      if (!on_single()) return false;
    } else if (!list.skip(field, type)) {
      return false;
    }
  }
  return true;
}

bool check_list(Kind kind, Cursor& list) {
  switch (kind) {
    case Kind::bytes:
      return read_bytes(list, [](Bytes) {});
    case Kind::floats:
      return walk_numbers(
          list, WireType::fixed32,
          [&](Bytes packed) {
            if (packed.size() % 4 == 0) return true;
            list.at = packed.data();
            return list.fail(WireFault::partial_list);
          },
          [&] { return list.skip(1, WireType::fixed32); });
    default:
      return walk_numbers(
          list, WireType::varint,
          [&](Bytes packed) {
            Cursor values(packed);
            uint64_t value;
            while (!values.done()) {
              if (values.varint(value)) continue;
              list.at = values.at;
              return list.fail(values.fault);
            }
            return true;
          },
          [&] { return list.skip(1, WireType::varint); });
  }
}

}  // namespace

bool read_feature(const Pieces& pieces, Feature& feature, Cursor& failed, int depth) {
  feature.kind = Kind::none;
  feature.lists.clear();
  for (const Bytes piece : pieces) {
    Cursor cursor(piece, depth);
    while (!cursor.done()) {
      uint32_t field;
      WireType type;
      Bytes body;
      bool ok = cursor.tag(field, type);
      if (ok && type == WireType::bytes && field >= 1 && field <= 3) {
        ok = cursor.bytes(body);
        if (ok) {
          const Kind kind = static_cast<Kind>(field);
          Cursor list(body, depth - 1);
          if (!check_list(kind, list)) {
            failed = list;
            return false;
          }
          if (kind != feature.kind) feature.lists.clear();
          feature.kind = kind;
          feature.lists.push_back(body);
        }
      } else if (ok) {
        ok = cursor.skip(field, type);
      }
      if (!ok) {
        failed = cursor;
        return false;
      }
    }
  }
  return true;
}

bool read_int64s(Cursor& list, Array<int64_t>& values) {
  return walk_numbers(
      list, WireType::varint,
      [&](Bytes packed) {
        return read_packed_int64s(packed, packed.data() + packed.size(), values, list.at) ||
               list.fail(WireFault::bad_varint);
      },
      [&] {
        uint64_t value;
        if (!list.varint(value)) return false;
        values.push(static_cast<int64_t>(value));
        return true;
      });
}

bool read_floats(Cursor& list, Array<float>& values) {
  return walk_numbers(
      list, WireType::fixed32,
      [&](Bytes packed) {
        if (packed.size() % 4 != 0) return list.fail(WireFault::partial_list);
        const size_t count = packed.size() / 4;
        float* to = values.grow(count);
        if (count != 0) std::memcpy(to, packed.data(), packed.size());
        values.set_size(values.size() + count);
        return true;
      },
      [&] {
        if (list.left() < 4) return list.fail(WireFault::past_end);
        values.push(load<float>(list.at));
        list.at += 4;
        return true;
      });
}

bool read_packed_int64s(Bytes packed, const uint8_t* readable_end, Array<int64_t>& values,
                        const uint8_t*& at) {
  const uint8_t* p = packed.data();
  const uint8_t* const end = p + packed.size();
  int64_t* to = values.grow(packed.size() + kMoreStored);  // a value takes at least a byte
  int64_t* const first = to;
  const bool quick_pext = has_quick_pext(), wide = has_wide_varints();
  bool ok = true;
  while (p < end) {
    if (wide && (p = read_varints_wide(p, end, readable_end, to)) == end) break;
    if (readable_end - p >= kVarintsLoaded) {
      const uint8_t* const before = p;
      const size_t size = static_cast<size_t>(end - p);
      p = quick_pext ? read_varints<true>(p, size, to) : read_varints<false>(p, size, to);
      if (p != before) continue;
    }
    Cursor cursor({p, static_cast<size_t>(end - p)});
    uint64_t value;
    if (!cursor.varint(value)) {
      ok = false;
      break;
    }
    *to++ = static_cast<int64_t>(value);
    p = cursor.at;
  }
  if (!ok) at = p;
  values.set_size(values.size() + static_cast<size_t>(to - first));
  return ok;
}

}  // namespace recordkit
