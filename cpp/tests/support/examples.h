// Payloads: Examples that are well formed and yet seldom written so.
#pragma once

#include <string>

#include "support/choices.h"

namespace recordkit {

// An Example or SequenceExample out of everything protobuf allows: names again, out of order, missing or
// twice in an entry; lists packed, not packed and both; several kinds; unknown fields; long forms of varints.
// And now and then something it does not allow.
std::string hostile_example(Choices& choices);

}  // namespace recordkit
