// Laws that hold for any bytes. The tests call them with what was chosen and what is random, the fuzzers with
// what they come up with. Each throws where it does not hold.
#pragma once

#include "core/memory/bytes.h"

namespace recordkit {

// A file's bytes: hopping, checking and reading in pieces of any size agree, and agree with a plain walk.
void records_law(Bytes file);

// A file's bytes: what salvage finds is sound and all there is, and with what it calls lost makes up the
// file; seen through windows of any size it is the same.
void salvage_law(Bytes file);

// A payload: survey and decode say what the reference parser says, by every way through the decoder.
void decode_law(Bytes payload);

// A payload, and choices of an edit: rewriting is the same as changing the parsed maps.
void rewrite_law(Bytes payload, Bytes choices);

// Choices of a table: encoding and decoding gives it back.
void encode_law(Bytes choices);

// A JPEG's bytes: whether it is decoded depends on the size alone, and both ways of decoding give the same.
void jpeg_law(Bytes file);

}  // namespace recordkit
