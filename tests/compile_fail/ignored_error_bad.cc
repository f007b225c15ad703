// expect: ignoring return value of .*fail
#include "base/result.h"

locket::Status use() {
  locket::fail(locket::ErrorCode::kIo, "the reason");
  return {};
}
