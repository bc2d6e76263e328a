// Payloads: Examples that are well formed, but unusual.
#pragma once

#include <string>

#include "support/choices.h"

namespace recordkit {

// An Example or SequenceExample out of everything protobuf allows: names repeated, out of order, missing or
// twice in an entry; lists packed, not packed and both; several kinds; unknown fields; long forms of varints.
// Now and then also what it does not allow.
std::string hostile_example(Choices& choices);

}  // namespace recordkit
