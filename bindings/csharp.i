// How types cross to C#. Texts are byte[] in UTF-8 with their length, lists are arrays with their length, memory is an
// address; texts and lists come back as one block, which the managed side copies and frees. All classes are internal.

%{
#include "bindings/csharp_support.h"

extern "C" SWIGEXPORT void SWIGSTDCALL CSharp_FolioOnError(folio::bridge::ErrorFunction function) {
  folio::bridge::on_error = function;
}
extern "C" SWIGEXPORT void SWIGSTDCALL CSharp_FolioFree(void* block) { std::free(block); }
%}

%pragma(csharp) moduleclassmodifiers="internal static class"
%pragma(csharp) imclassclassmodifiers="internal class"
%typemap(csclassmodifiers) SWIGTYPE "internal class"

%rename("%(camelcase)s", %$isfunction) "";

%typemap(check, canthrow=1) SWIGTYPE* self {
  if ($1 == nullptr) {
    folio::bridge::throw_csharp(FOLIO_CLOSED, "it is closed");
    return $null;
  }
}

%feature("except", canthrow="1") {
  try {
    $action
  } catch (...) {
    folio::bridge::report_exception(folio::bridge::throw_csharp);
    return $null;
  }
}

// Arguments.

%define FOLIO_CSHARP_ARRAY(POINTER, CTYPE, CS_TYPE)
%typemap(ctype) POINTER "CTYPE"
%typemap(imtype) POINTER "CS_TYPE"
%typemap(cstype) POINTER "CS_TYPE"
%typemap(csin) POINTER "$csinput"
%typemap(in) POINTER "$1 = ($1_ltype)$input;"
%typemap(freearg) POINTER ""
%enddef

FOLIO_CSHARP_ARRAY(const char* text, const char*, byte[])
FOLIO_CSHARP_ARRAY(const long long* dims, const long long*, long[])
FOLIO_CSHARP_ARRAY(folio::Value* const* values, void*, global::System.IntPtr[])
FOLIO_CSHARP_ARRAY(void* address, void*, global::System.IntPtr)
%apply const char* text {
  const char* path, const char* key, const char* value, const char* input_names, const char* output_names
};
%apply const long long* dims { const long long* lengths, const long long* dim_counts };
%apply folio::Value* const* values { folio::Value* const* inputs, folio::Value* const* outputs };
%apply void* address { void* release, void* user, void* function };

// Results.

%define FOLIO_CSHARP_RESULT(TYPE, CS_TYPE, TAKE)
%typemap(ctype) TYPE "void*"
%typemap(imtype) TYPE "global::System.IntPtr"
%typemap(cstype) TYPE "CS_TYPE"
%typemap(out, null="nullptr") TYPE %{ $result = folio::bridge::to_block($1); %}
%typemap(csout, excode=SWIGEXCODE) TYPE {
    global::System.IntPtr block = $imcall;$excode
    return TAKE(block);
  }
%enddef

FOLIO_CSHARP_RESULT(std::string, byte[], NativeBlock.TakeBytes)
FOLIO_CSHARP_RESULT(folio::Dims, long[], NativeBlock.TakeLongs)
%typemap(ctype) void* data "void*"
%typemap(imtype) void* data "global::System.IntPtr"
%typemap(cstype) void* data "global::System.IntPtr"
%typemap(out, null="nullptr") void* data %{ $result = $1; %}
%typemap(csout, excode=SWIGEXCODE) void* data {
    global::System.IntPtr address = $imcall;$excode
    return address;
  }

%newobject folio::Value::wrap;
%extend folio::Value {
  static Value* wrap(void* address, int64_t bytes, bool is_writable, const long long* dims, int64_t dim_count, int type,
                     void* release, void* user) {
    return folio::bridge::wrap(address, bytes, folio::bridge::dims_of(dims, dim_count), type, is_writable,
                               reinterpret_cast<FolioReleaseFunction>(release), user);
  }
  void* data() {
    bool is_writable = false;
    return folio::bridge::data_of(*$self, &is_writable);
  }
}

// Callbacks: addresses of delegates, and a handle for them.

%extend folio::ModelOptions {
  void set_progress(void* function, void* user) { $self->progress(folio::bridge::progress_of(function, user)); }
}
%extend folio::SaveOptions {
  void set_progress(void* function, void* user) { $self->progress = folio::bridge::progress_of(function, user); }
}
%extend folio::SessionOptions {
  void set_progress(void* function, void* user) { $self->progress(folio::bridge::progress_of(function, user)); }
}
%extend folio::ModelOptions {
  void external_file(const char* key, int64_t key_bytes, void* address, int64_t bytes, void* release, void* user) {
    folio::bridge::external_file(*$self, folio::bridge::text_of(key, key_bytes), address, bytes,
                                 reinterpret_cast<FolioReleaseFunction>(release), user);
  }
}
%newobject folio::Model::open_wrapped;
%extend folio::Model {
  static Model* open_wrapped(const folio::Env& environment, void* address, int64_t bytes,
                             const folio::ModelOptions& options, void* release, void* user) {
    return folio::bridge::open_wrapped(environment, address, bytes, options,
                                       reinterpret_cast<FolioReleaseFunction>(release), user);
  }
}
%newobject folio::Env::create;
%extend folio::Env {
  static Env* create(int64_t thread_count, int64_t max_arenas, int level, void* function, void* release, void* user) {
    return folio::bridge::create_env(thread_count, max_arenas, level, folio::bridge::log_of(function, release, user));
  }
}
%extend folio::IoBinding {
  void bind_output_with_capacity(const char* text, int64_t text_bytes, void* address, int64_t bytes, void* release,
                                 void* user) {
    folio::bridge::bind_capacity(*$self, folio::bridge::text_of(text, text_bytes), address, bytes,
                                 reinterpret_cast<FolioReleaseFunction>(release), user);
  }
}
