// The items that answers of the Responses format handed out, by tenant and id: within a byte
// budget, in memory or in the memory's folder. Thread-safe. keep() writes to disk: it is not for
// the thread that runs the model.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "chat/issued_items.h"
#include "service/kept_records.h"

namespace locket::service {

class IssuedItemsStore {
 public:
  // Errors as KeptRecords::open().
  [[nodiscard]] static Result<IssuedItemsStore> open(const KeptOptions& options);

  void keep(std::string_view tenant, std::string_view id, const chat::IssuedItem& item);
  std::optional<chat::IssuedItem> find(std::string_view tenant, std::string_view id);

  KeptUse use() const { return records_.use(); }

 private:
  explicit IssuedItemsStore(KeptRecords records) : records_(std::move(records)) {}

  KeptRecords records_;
};

// What one tenant has of them. `store` must outlive it. Thread-safe.
class TenantItems final : public chat::IssuedItems {
 public:
  TenantItems(IssuedItemsStore& store, std::string tenant)
      : store_(store), tenant_(std::move(tenant)) {}

  std::optional<chat::IssuedItem> find(std::string_view id) const override {
    return store_.find(tenant_, id);
  }

 private:
  IssuedItemsStore& store_;
  const std::string tenant_;
};

}  // namespace locket::service
