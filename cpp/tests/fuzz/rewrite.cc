#include "laws/laws.h"
#include "support/examples.h"

// The input as a payload, and as the plan of one; its last bytes choose the edit both times.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const recordkit::Bytes input(data, size);
  recordkit::Choices choices(input);
  recordkit::rewrite_law(input, input);
  recordkit::rewrite_law(recordkit::as_bytes(recordkit::hostile_example(choices)), input);
  return 0;
}
