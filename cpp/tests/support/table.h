// Tables of plain values, to compare with decoded columns and to encode.
#pragma once

#include <functional>
#include <optional>

#include "core/examples/decode.h"
#include "core/examples/encode.h"
#include "support/reference.h"

namespace recordkit {

// What one record says about one field. Has values only if the state is `present`, or in steps; one step
// unless the field is a feature list. The kind is the column's, so values have none.
struct Cell {
  State state = State::missing;
  std::vector<Value> steps;

  bool operator==(const Cell&) const = default;
};

using CellColumn = std::vector<Cell>;  // one cell a record

struct Decoded {
  DecodeFault fault;
  std::vector<CellColumn> columns;  // empty on a fault
};

// What `decode` has put into columns of `rows` rows, if it succeeded. Checks that their offsets are
// consistent.
std::optional<std::vector<CellColumn>> table_of(const Decoder& decoder, size_t rows,
                                                const std::function<bool(std::vector<Column>&)>& decode);

// Decodes every record of the chunk.
Decoded decode_table(const Decoder& decoder, const Chunk& chunk);

// The cell for what the reference parser found.
Cell cell_of(const Value& value);
Cell cell_of(const std::vector<Value>& steps);

// One field's cells, in the layout of encode.
class PackedColumn {
 public:
  PackedColumn(const FieldSpec& spec, const CellColumn& cells);
  SourceColumn source() const;

 private:
  void pack(const Value& value);

  FieldSpec spec_;
  std::vector<int64_t> ints_, byte_offsets_{0}, value_offsets_{0}, step_offsets_{0};
  std::vector<float> floats_;
  std::vector<uint8_t> bytes_;
  std::vector<State> states_;
};

// Encodes a table with one column of cells per field.
EncodeResult encode_table(const std::vector<FieldSpec>& specs, const std::vector<CellColumn>& table,
                          size_t rows, bool sequence);

}  // namespace recordkit
