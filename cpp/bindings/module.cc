#include "bindings/bindings.h"

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of recordkit: facts and hot loops, without the sentences of errors.";
  // Globals of the user's program may outlive the interpreter; that is not a leak to warn about.
  nanobind::set_leak_warnings(false);
  recordkit::bind_files(m);
  recordkit::bind_records(m);
  recordkit::bind_places(m);
  recordkit::bind_examples(m);
  recordkit::bind_rows(m);
  recordkit::bind_arrow(m);
  recordkit::bind_order(m);
  recordkit::bind_pictures(m);
  recordkit::bind_columns(m);
}
