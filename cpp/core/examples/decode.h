// Decoding: the payloads of a chunk to columns, for the requested fields.
//
// Real files are repetitive: entry j of a record has the same name as entry j of the record before, and
// everything before its value follows from that name and one length byte. So the decoder predicts the name,
// compares, and takes the value from its expected place. Whatever does not fit goes through the exact parser
// in example.h. Other fields are skipped by their length and not looked into.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/examples/example.h"
#include "core/records/framing.h"
#include "core/records/hot_copy.h"

namespace recordkit {

struct FieldSpec {
  std::string name;
  Kind kind;
  int64_t count;  // values per record (per step, for feature lists); -1: any number
  bool required;  // a record without it is a fault; otherwise it is marked in `states`
  bool steps;     // a feature list of a SequenceExample
};

// One field of many records. Fixed counts of numbers go to the caller's memory; everything else grows here.
struct Column {
  int64_t* fixed_ints = nullptr;
  float* fixed_floats = nullptr;
  Array<int64_t> ints;
  Array<float> floats;
  Buffer bytes;
  Array<int64_t> byte_offsets;   // value -> bytes
  Array<int64_t> value_offsets;  // record (or step) -> values; unused with a fixed count
  Array<int64_t> step_offsets;   // record -> steps; feature lists only
  std::vector<State> states;     // empty while every record has the field
};

struct DecodeFault {
  // recordkit.examples has the text for each.
  enum class What : uint8_t { none, malformed, missing, wrong_kind, wrong_count };
  What what = What::none;
  WireFault wire = WireFault::none;
  size_t record = 0;   // within the chunk
  uint64_t byte = 0;   // within the payload
  int64_t field = -1;  // of the specs
  Kind found_kind = Kind::none;
  int64_t found_count = 0;

  bool operator==(const DecodeFault&) const = default;
};

struct Learned;

class Decoder {
 public:
  Decoder(std::vector<FieldSpec> fields, bool sequence);
  ~Decoder();

  const std::vector<FieldSpec>& fields() const { return fields_; }

  // Decodes records [start, stop) of the chunk. `columns` has one element per field; fixed numeric ones have
  // memory for count * (stop - start) values. On a fault the columns are unspecified.
  //
  // Thread-safe.
  DecodeFault decode(const Chunk& chunk, size_t start, size_t stop, std::vector<Column>& columns) const;

  // Decodes `rows` records of about `bytes` bytes in all, a few at a time. False on any fault.
  bool decode_hot(const NextRecords& bring, size_t rows, size_t bytes, std::vector<Column>& columns) const;

 private:
  class Run;

  // Calls `use` with what earlier runs have learned of the records, and keeps it for the next run.
  template <typename Use>
  auto with_learned(const Use& use) const;

  std::vector<FieldSpec> fields_;
  bool sequence_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Learned>> learned_;
};

}  // namespace recordkit
