// Attempts: the cases that a property test tries with one operator.
//
// Flow:    wholly random cases take turns with those of samples.cc, half of which (all but the
//          tame ones) are bent in one place. Which attributes the operator reads, and of which
//          type, it tells while it is tried (set_attribute_hook), for the attempts that follow.
// Threads: one; one Attempts at a time.
#pragma once

#include "core/ops/op_registry.h"
#include "tests/properties/draw.h"

namespace folio::properties {

std::string name_of(std::string_view domain, std::string_view type);
// Of an environment variable.
int env_number(const char* name, int fallback);

// Those of the operator, with the versions that both have.
std::vector<Sample> samples_of(const OpDef& def);

struct Attempt {
  Case drawn;
  bool must_run = false;  // a setting of samples.cc as it is
  Draw draw;              // for more to draw
};

class Attempts {
 public:
  // Tame: nothing is bent, no number is hostile.
  Attempts(const OpDef& def, Numbers numbers);
  ~Attempts();
  Attempts(const Attempts&) = delete;
  Attempts& operator=(const Attempts&) = delete;

  Attempt next();

 private:
  const OpDef& def_;
  Numbers numbers_;
  std::vector<Sample> samples_;
  int round_ = 0;
};

}  // namespace folio::properties
