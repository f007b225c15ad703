#include "cache/disk_store.h"

#include "cache/internal/disk_store_impl.h"

namespace locket::cache {

DiskStore::DiskStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DiskStore::~DiskStore() = default;

Result<std::unique_ptr<DiskStore>> DiskStore::open(const DiskOptions& options) {
  LOCKET_TRY(auto impl, Impl::open(options));
  return std::make_unique<DiskStore>(std::move(impl));
}

bool DiskStore::is_writable() const { return impl_->is_writable(); }
std::string DiskStore::read_only_reason() const { return impl_->read_only_reason(); }
const std::filesystem::path& DiskStore::directory() const { return impl_->options().directory; }
std::span<const std::byte> DiskStore::secret() const { return impl_->secret(); }

DiskMatch DiskStore::find(const PrefixPoint& from, std::span<const std::int32_t> wanted,
                          const PageSizes& sizes) const {
  return impl_->find(from, wanted, sizes);
}

std::optional<StoredValue> DiskStore::find_snapshot(const PrefixPoint& point,
                                                    const PageSizes& sizes) const {
  return impl_->find_snapshot(point, sizes);
}

std::vector<std::size_t> DiskStore::load(std::span<const PayloadLoad> loads) const {
  return impl_->load(loads);
}

void DiskStore::drop_page(const StoredPage& page) { impl_->drop_page(page); }
void DiskStore::drop_snapshot(const PrefixPoint& point) { impl_->drop_snapshot(point); }
Status DiskStore::write_turn(const TurnWrite& turn) { return impl_->write_turn(turn); }

std::vector<bool> DiskStore::has_pages(std::span<const PrefixPoint> parents,
                                       std::span<const PrefixPoint> ends) const {
  return impl_->has_pages(parents, ends);
}

std::uint64_t DiskStore::loss_epoch() const { return impl_->loss_epoch(); }
DiskCounts DiskStore::counts() const { return impl_->counts(); }
std::uint64_t DiskStore::used_bytes() const { return impl_->used_bytes(); }
std::uint64_t DiskStore::quota_bytes() const { return impl_->options().quota_bytes; }

}  // namespace locket::cache
