#include "service/issued_items_store.h"

#include <memory>

namespace locket::service {
namespace {

// The kind as one byte, then the text.
std::string to_value(const chat::IssuedItem& item) {
  return std::string(1, static_cast<char>(item.kind)) + item.text;
}

std::optional<chat::IssuedItem> from_value(const std::string& value) {
  if (value.empty()) return std::nullopt;
  const auto kind = static_cast<unsigned char>(value.front());
  if (kind >= static_cast<unsigned char>(chat::IssuedItem::Kind::kCount)) return std::nullopt;
  return chat::IssuedItem{.kind = static_cast<chat::IssuedItem::Kind>(kind),
                          .text = value.substr(1)};
}

}  // namespace

Result<IssuedItemsStore> IssuedItemsStore::open(const KeptOptions& options) {
  LOCKET_TRY(KeptRecords records, KeptRecords::open(options, "items"));
  return IssuedItemsStore(std::move(records));
}

void IssuedItemsStore::keep(std::string_view tenant, std::string_view id,
                            const chat::IssuedItem& item) {
  records_.keep({tenant_name(tenant, id)}, to_value(item));
}

std::optional<chat::IssuedItem> IssuedItemsStore::find(std::string_view tenant,
                                                       std::string_view id) {
  const std::shared_ptr<const std::string> value = records_.find(tenant_name(tenant, id));
  if (value == nullptr) return std::nullopt;
  return from_value(*value);
}

}  // namespace locket::service
