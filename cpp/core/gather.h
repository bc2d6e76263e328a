// Records at known places of maps, decoded from there.
#pragma once

#include <span>

#include "core/decode.h"
#include "core/file_map.h"
#include "core/places.h"

namespace recordkit {

// Decodes the records at these places, in this order, as decoding what `fetch` gives would: each is copied
// and checked, a few at a time, and decoded while the copies are in the nearest cache. False, with nothing of
// use in the columns, where not all of them are in a map, or one of them is not sound or not what the fields
// want: whoever fetches and decodes them finds out which.
//
// REQUIRES: every place.file is less than maps.size()
bool gather(const Decoder& decoder, std::span<const Place> places, std::span<const FileMap* const> maps,
            std::vector<Column>& columns);

}  // namespace recordkit
