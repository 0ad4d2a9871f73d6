// Fills every slot. kernel_check_test holds this table to be complete.
#include "core/kernels/ref/ref.h"

extern "C" void folio_fill_ref(FolioKernels* table);

void folio_fill_ref(FolioKernels* table) {
  fill_pack__ref(table);
  table->gemm_f32 = gemm_f32__ref;
  table->dots_f32 = dots_f32__ref;
  table->gemm_plain_f32 = gemm_plain_f32__ref;
  table->gemv_b16 = gemv_b16__ref;
  table->gemm_f64 = gemm_f64__ref;
  fill_elementwise__ref(table);
  fill_rows__ref(table);
  fill_convert__ref(table);
  fill_bytes__ref(table);
  fill_window__ref(table);
  fill_winograd__ref(table);
  fill_winograd_bytes__ref(table);
  fill_blocks__ref(table);
  table->precision = kFolioHighest;
  table->plain_rows = 4;
  table->sum_depth = FOLIO_GEMM_ONE_SUM;
}
