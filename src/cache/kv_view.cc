#include "cache/kv_view.h"

#include <utility>

#include "base/check.h"

namespace locket::cache {

KvView::KvView(const KvLayout& layout, std::vector<std::byte*> pages, std::byte* rings,
               RowGate* gate)
    : layout_(&layout), pages_(std::move(pages)), rings_(rings), gate_(gate) {
  for (std::size_t i = 0; i < layout.streams.size(); ++i) {
    stream_offsets_.push_back(layout.stream_offset(i));
  }
  for (std::size_t i = 0; i < layout.rings.size(); ++i) {
    ring_offsets_.push_back(layout.ring_offset(i));
  }
}

Status KvView::wait_for_rows() const { return gate_ == nullptr ? Status() : gate_->wait(); }

std::int64_t KvView::row_capacity(std::size_t stream) const {
  return static_cast<std::int64_t>(pages_.size()) * layout_->streams[stream].rows_per_page();
}

std::span<std::byte> KvView::row(std::size_t stream, std::int64_t row) const {
  LOCKET_DCHECK(row >= 0 && row < row_capacity(stream));
  const RowStream& info = layout_->streams[stream];
  const std::int64_t per_page = info.rows_per_page();
  std::byte* page = pages_[static_cast<std::size_t>(row / per_page)];
  const auto in_page = static_cast<std::size_t>(row % per_page);
  return {page + stream_offsets_[stream] + in_page * info.row_bytes, info.row_bytes};
}

std::span<std::byte> KvView::ring_slot(std::size_t ring, std::int64_t position) const {
  LOCKET_DCHECK(position >= 0);
  const RingStream& info = layout_->rings[ring];
  const auto slot = static_cast<std::size_t>(position % info.slots);
  return {rings_ + ring_offsets_[ring] + slot * info.row_bytes, info.row_bytes};
}

}  // namespace locket::cache
