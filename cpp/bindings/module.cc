#include "bindings/bindings.h"

NB_MODULE(_core, m) {
  m.doc() =
      "The C++ core of recordkit: facts and hot loops. Its users are records.py, examples.py and schema.";
  recordkit::bind_records(m);
  recordkit::bind_examples(m);
  recordkit::bind_rows(m);
  recordkit::bind_arrow(m);
}
