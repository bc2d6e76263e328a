// Laws that hold for any bytes. Tests call them with chosen and random input, fuzzers with theirs. A law that
// does not hold throws.
#pragma once

#include "core/memory/bytes.h"

namespace recordkit {

// A file's bytes: hopping, checking and reading in pieces of any size agree, and agree with a plain walk.
void records_law(Bytes file);

// A file's bytes: salvage finds every intact record and nothing else; found and lost together cover the file;
// the result is the same through windows of any size.
void salvage_law(Bytes file);

// A payload: survey and decode agree with the reference parser, on every path of the decoder.
void decode_law(Bytes payload);

// A payload and an edit: rewriting is the same as changing the parsed maps.
void rewrite_law(Bytes payload, Bytes choices);

// A table: encoding and decoding returns it.
void encode_law(Bytes choices);

// A JPEG's bytes: of all options only the size decides whether it is decoded, and both paths agree.
void jpeg_law(Bytes file);

}  // namespace recordkit
