// Decodes records from maps: copies a few at a time, checks them, and decodes the copies while they are in
// the L1 cache.
#pragma once

#include <span>

#include "core/examples/decode.h"
#include "core/files/file_map.h"
#include "core/records/header_scan.h"
#include "core/records/reader.h"

namespace recordkit {

// Decodes the records at these places, in this order, with the same result as fetch() and decode(). False,
// with the columns unspecified, if one of them is in no map, is damaged or does not match the fields: fetch
// and decode them to find out which.
//
// REQUIRES: every place.file is less than maps.size()
bool decode_mapped(const Decoder& decoder, std::span<const Place> places,
                   std::span<const FileMap* const> maps, std::vector<Column>& columns);

// Decodes the next `rows` records of a reader while they are in the L1 cache, and returns the number of the
// first. Returns nothing, with the columns unspecified and the reader unmoved, if the reader cannot do that,
// or if a record is damaged or does not match the fields: read and decode them to find out. Faster for few
// fields of small records only; with many, the columns drive the copies out of the cache.
std::optional<uint64_t> decode_next(const Decoder& decoder, RecordReader& reader, size_t rows,
                                    std::vector<Column>& columns);

}  // namespace recordkit
