// The functions behind the table: each is declared with the type that its entry in FolioApi has.
//
// Flow:    *_api.cc define them, api_table.cc puts them into the table. FOLIO_ENTRIES is the
// table's
//          order, which is the ABI: new entries go to its end.
// Threads, errors: as folio_c_api.h says beside each entry.
#pragma once

#include <type_traits>

#include "folio/folio_c_api.h"

// clang-format never settles on a layout of this list.
// clang-format off
#define FOLIO_ENTRIES(X) \
  X(GetVersionString) X(GetBuildInfo) X(GetCpuInfo) X(GetErrorName) X(GetElementTypeName) \
  X(GetElementTypeBits) X(ReleaseString) X(GetErrorCode) X(GetErrorMessage) X(ReleaseStatus) \
  X(CreateEnv) X(EnvTrim) X(EnvGetMetrics) X(EnvGetMetricsText) X(EnvGetMemoryReport) \
  X(ReleaseEnv) X(CreateCancel) X(CancelRequest) X(CancelIsRequested) X(ReleaseCancel) \
  X(CreateModelOptions) X(AddModelConfigEntry) X(ModelOptionsSetProgress) \
  X(ModelOptionsSetCancel) X(AddExternalFileFromMemory) X(ReleaseModelOptions) X(OpenModel) \
  X(OpenModelFromMemory) X(ModelGetInfo) X(ModelGetInputCount) X(ModelGetInput) \
  X(ModelGetOutputCount) X(ModelGetOutput) X(ModelGetOverridableInitializerCount) \
  X(ModelGetOverridableInitializer) X(ModelGetMetadataCount) X(ModelGetMetadataEntry) \
  X(ModelLookupMetadata) X(ModelGetUnsupportedOperatorCount) X(ModelGetUnsupportedOperator) \
  X(ModelGetOpsetCount) X(ModelGetOpset) X(ModelGetOperatorCount) X(ModelGetOperator) \
  X(ModelGetMemoryReport) X(ReleaseModel) X(ValueInfoGetName) X(ValueInfoGetKind) \
  X(ValueInfoGetElementType) X(ValueInfoHasShape) X(ValueInfoGetDims) \
  X(ValueInfoGetSymbolicDim) X(ValueInfoGetElement) X(CreatePackCache) X(PackCacheGetStats) \
  X(ReleasePackCache) X(CreateSessionOptions) X(AddSessionConfigEntry) \
  X(AddFreeDimensionOverrideByName) X(AddInitializer) X(SessionOptionsSetPackCache) \
  X(SessionOptionsSetProgress) X(SessionOptionsSetCancel) X(ReleaseSessionOptions) \
  X(CreateSession) X(CreateSessionFromArray) X(CreateSessionFromModel) X(SessionGetModel) \
  X(SessionGetInputCount) X(SessionGetInput) X(SessionGetOutputCount) X(SessionGetOutput) \
  X(SessionGetOverridableInitializerCount) X(SessionGetOverridableInitializer) \
  X(SessionPrepareShapes) X(Run) X(RunWithBinding) X(SessionGetMetrics) \
  X(SessionGetMetricsText) X(SessionGetMemoryReport) X(SessionClose) X(ReleaseSession) \
  X(CreateRunOptions) X(AddRunConfigEntry) X(RunOptionsSetCancel) X(RunOptionsSetTimeout) \
  X(RunOptionsSetRunTag) X(ReleaseRunOptions) X(CreateTensor) X(CreateTensorWithData) \
  X(CreateTensorWithConstData) X(CreateStringTensor) X(CreateSequence) X(CreateMap) \
  X(GetValueKind) X(GetElementType) X(GetTensorDims) X(GetTensorElementCount) X(GetTensorBytes) \
  X(GetTensorData) X(GetTensorMutableData) X(GetStringTensorElement) X(GetValueCount) \
  X(GetValue) X(ReleaseValue) X(CreateIoBinding) X(BindInput) X(BindOutput) \
  X(BindOutputWithCapacity) X(ClearBoundInputs) X(ClearBoundOutputs) X(GetBoundOutputCount) \
  X(GetBoundOutputName) X(GetBoundOutputValue) X(ReleaseIoBinding) X(MemoryReportGetEntryCount) \
  X(MemoryReportGetEntry) X(MemoryReportGetJson) X(MemoryReportGetText) X(ReleaseMemoryReport) \
  X(ModelPack) X(PackFileGetJson) X(PackStoreGetJson) \
  X(ModelReload) X(ModelSave) X(SessionWaitPacked) \
  X(PackCacheWrite) X(PackCacheCollect) X(MemoryReportGetSummary) \
  X(SessionOptionsAddExternalFileFromMemory) X(SessionEndProfiling) \
  X(SessionGetProfilingStartTime) X(ResizeStringTensorElement)
// clang-format on

namespace folio::entry {

#define FOLIO_DECLARE(name) std::remove_pointer_t<decltype(FolioApi::name)> name;
FOLIO_ENTRIES(FOLIO_DECLARE)
#undef FOLIO_DECLARE

}  // namespace folio::entry
