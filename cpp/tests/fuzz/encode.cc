#include "laws/laws.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  recordkit::encode_law({data, size});
  return 0;
}
