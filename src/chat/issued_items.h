// Items that answers of the Responses format handed out, found again by their id: clients may send
// a reference in place of an item, as if the server kept conversations. Who implements it keeps the
// items of one tenant only, and a bounded number of them. Thread safety is the implementation's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace locket::chat {

// One item of an assistant's turn.
struct IssuedItem {
  enum class Kind { kReasoning, kMessage, kCount };
  Kind kind = Kind::kMessage;
  std::string text;
};

class IssuedItems {
 public:
  IssuedItems() = default;
  IssuedItems(const IssuedItems&) = delete;
  IssuedItems& operator=(const IssuedItems&) = delete;
  virtual ~IssuedItems() = default;

  // None: no such item was handed out, or it is forgotten.
  virtual std::optional<IssuedItem> find(std::string_view id) const = 0;
};

// Knows no item.
class NoIssuedItems final : public IssuedItems {
 public:
  std::optional<IssuedItem> find(std::string_view /*id*/) const override { return std::nullopt; }
};

}  // namespace locket::chat
