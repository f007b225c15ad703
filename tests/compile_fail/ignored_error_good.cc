#include "base/result.h"

locket::Status use() { return locket::fail(locket::ErrorCode::kIo, "the reason"); }
