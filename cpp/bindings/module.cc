#include "bindings/bindings.h"

NB_MODULE(_core, m) {
  m.doc() =
      "The C++ core of recordkit: facts and hot loops. Its users are records, examples, schema and "
      "storage.";
  // An object in a global of the user's program lives until the interpreter is gone; that is no leak to warn
  // about.
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
