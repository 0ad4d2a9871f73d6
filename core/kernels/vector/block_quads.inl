/* dot_block of block_rows.inl with products of four bytes: dot4(sum, codes, x), which the including
 * file defines before. */

template <int kRows, int kPanels>
VFN void dot_quad(const uint8_t* const* codes, int64_t at, const Thirds<kRows>& a, int64_t offset,
                  int64_t row, VI (*sum)[kPanels]) {
  VI w[kPanels];
#pragma GCC unroll 2
  for (int c = 0; c < kPanels; ++c) w[c] = vi_load(codes[c] + at);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    const VI x = vi_broadcast(a.row_at(i, row) + offset);
#pragma GCC unroll 2
    for (int c = 0; c < kPanels; ++c) dot4(&sum[i][c], w[c], x);
  }
}

template <int kBits, int kRows, int kPanels>
VFN void dot_block(int64_t blob, int64_t row, const int8_t* const* planes,
                   const uint8_t* const* first, VI (*sum)[kPanels]) {
  constexpr int64_t kQuad = 4 * kLanes * (8 / kBits);
  const uint8_t* codes[kPanels];
#pragma GCC unroll 2
  for (int c = 0; c < kPanels; ++c) codes[c] = first[c];
  Thirds<kRows> low, high;
  low.set(planes[0], row);
  high.set(planes[1], row);
  for (int64_t left = blob; left > 0; left -= 8) {
#pragma GCC unroll 2
    for (int64_t q = 0; q < 2; ++q) {
      dot_quad<kRows, kPanels>(codes, q * kQuad, low, 4 * q, row, sum);
      if (kBits == 4)
        dot_quad<kRows, kPanels>(codes, q * kQuad + 4 * kLanes, high, 4 * q, row, sum);
    }
    low.add(8);
    if (kBits == 4) high.add(8);
#pragma GCC unroll 2
    for (int c = 0; c < kPanels; ++c) codes[c] += 2 * kQuad;
  }
}
