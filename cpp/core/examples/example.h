// tf.train.Example and tf.train.SequenceExample, read the way protobuf reads them.
//
// clang-format off
//     Example           { Features features = 1; }
//     SequenceExample   { Features context = 1; FeatureLists feature_lists = 2; }
//     Features          { map<string, Feature> feature = 1; }
//     FeatureLists      { map<string, FeatureList> feature_list = 1; }
//     FeatureList       { repeated Feature feature = 1; }
//     Feature           { oneof { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
//     every list        { repeated T value = 1; }      numbers packed
// clang-format on
//
// A message may come in several pieces, which merge. If two entries have one name, or one feature two kinds,
// the last counts. TensorFlow differs in places, and drops data there (docs/format/examples.md).
#pragma once

#include <vector>

#include "core/examples/wire.h"
#include "core/memory/array.h"

namespace recordkit {

// The numbers are the field numbers in Feature.
enum class Kind : uint8_t { none = 0, bytes = 1, floats = 2, int64s = 3 };

// What a record says about a feature. The numbers are part of the Python interface.
enum class State : uint8_t { missing = 0, no_kind = 1, empty = 2, present = 3 };

// Bodies of messages of one type that merge into one.
using Pieces = std::vector<Bytes>;

// One entry of a map: a name, and the pieces of its value. Views into the payload.
struct Entry {
  Bytes name;
  Pieces value;
};

// Reads one map entry. On failure the cursor says where and why.
bool read_entry(Cursor& cursor, Entry& entry);

// A feature's kind, and the bodies of its lists, to be concatenated.
struct Feature {
  Kind kind = Kind::none;
  Pieces lists;
};

// How deep groups may nest in each message: 100 levels, less the messages around it.
inline constexpr int kMapDepth = 99, kEntryDepth = 98, kFeatureDepth = 97, kStepDepth = 96;

// Reads a Feature from the pieces of its message and checks its lists completely.
bool read_feature(const Pieces& pieces, Feature& feature, Cursor& failed, int depth = kFeatureDepth);

// Appends the values of one list body. If read_feature has not checked it, this does; on a fault, the values
// before it have been appended.
bool read_int64s(Cursor& list, Array<int64_t>& values);
bool read_floats(Cursor& list, Array<float>& values);
// Calls on_value(Bytes) for each value.
template <typename F>
bool read_bytes(Cursor& list, F&& on_value) {
  uint32_t field;
  WireType type;
  Bytes value;
  while (!list.done()) {
    if (!list.tag(field, type)) return false;
    if (field == 1 && type == WireType::bytes) {
      if (!list.bytes(value)) return false;
      on_value(value);
    } else if (!list.skip(field, type)) {
      return false;
    }
  }
  return true;
}

// Appends packed varints. False if one is malformed or the last one is incomplete; `at` points to it then.
bool read_packed_int64s(Bytes packed, const uint8_t* readable_end, Array<int64_t>& values,
                        const uint8_t*& at);

}  // namespace recordkit
