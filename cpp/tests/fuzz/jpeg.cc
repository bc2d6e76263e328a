#include "laws/laws.h"
#include "support/frames.h"
#include "support/jpegs.h"

// The input as a JPEG, and as the plan of one that is nearly sound.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  recordkit::Choices choices({data, size});
  recordkit::jpeg_law({data, size});
  recordkit::jpeg_law(recordkit::Exact(recordkit::hostile_jpeg(choices)));
  return 0;
}
