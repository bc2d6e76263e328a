#include "laws/laws.h"
#include "support/frames.h"

// The input as a file, and as the plan of one whose checksums are right.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  recordkit::Choices choices({data, size});
  recordkit::records_law({data, size});
  recordkit::records_law(recordkit::Exact(recordkit::hostile_file(choices)));
  return 0;
}
