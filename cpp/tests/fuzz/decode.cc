#include "laws/laws.h"
#include "support/examples.h"

// The input as a payload, and as the plan of one that is nearly always well formed.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  recordkit::Choices choices({data, size});
  recordkit::decode_law({data, size});
  recordkit::decode_law(recordkit::as_bytes(recordkit::hostile_example(choices)));
  return 0;
}
