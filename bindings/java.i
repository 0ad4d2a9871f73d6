// How types cross to Java. Texts are byte[] in UTF-8 (JNI's own strings are another code), lists are arrays, memory is
// a direct ByteBuffer. All generated classes are package-private; nothing has a finalizer.

%{
#include "bindings/jni_support.h"

extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) { return folio::bridge::on_load(vm); }
%}

%pragma(java) moduleclassmodifiers="final class"
%pragma(java) jniclassclassmodifiers="final class"
%typemap(javaclassmodifiers) SWIGTYPE "final class"
%typemap(javafinalize) SWIGTYPE ""
// A proxy that was deleted, or none, has no address to give.
%typemap(javabody) SWIGTYPE %{
  private transient long swigCPtr;
  private transient boolean swigCMemOwn;

  $javaclassname(long cPtr, boolean cMemoryOwn) {
    swigCMemOwn = cMemoryOwn;
    swigCPtr = cPtr;
  }

  static long getCPtr($javaclassname object) {
    if (object == null || object.swigCPtr == 0) throw FolioException.closed("$javaclassname");
    return object.swigCPtr;
  }
%}
%typemap(javadestruct, methodname="delete", methodmodifiers="synchronized") SWIGTYPE {
    if (swigCPtr != 0) {
      if (swigCMemOwn) {
        swigCMemOwn = false;
        $jnicall;
      }
      swigCPtr = 0;
    }
  }
%typemap(check) SWIGTYPE* self {
  if ($1 == nullptr) {
    folio::bridge::throw_java(jenv, FOLIO_CLOSED, "it is closed");
    return $null;
  }
}

%rename("%(lowercamelcase)s", %$isfunction) "";

%exception {
  try {
    $action
  } catch (...) {
    folio::bridge::report_exception(
        [&](int code, const char* message) { folio::bridge::throw_java(jenv, code, message); });
    return $null;
  }
}

// Arguments.

%define FOLIO_JAVA_ARRAY(POINTER, COUNT, JNI_TYPE, JAVA_TYPE, COPY_TYPE)
%typemap(jni) (POINTER, COUNT) "JNI_TYPE"
%typemap(jtype) (POINTER, COUNT) "JAVA_TYPE"
%typemap(jstype) (POINTER, COUNT) "JAVA_TYPE"
%typemap(javain) (POINTER, COUNT) "$javainput"
%typemap(freearg) (POINTER, COUNT) ""
%typemap(in) (POINTER, COUNT) (COPY_TYPE copy) {
  if (!folio::bridge::from_java(jenv, $input, copy)) return $null;
  $1 = copy.data();
  $2 = static_cast<int64_t>(copy.size());
}
%enddef

FOLIO_JAVA_ARRAY(const char* text, int64_t text_bytes, jbyteArray, byte[], std::string)
FOLIO_JAVA_ARRAY(const long long* dims, int64_t dim_count, jlongArray, long[], std::vector<long long>)
FOLIO_JAVA_ARRAY(folio::Value* const* values, int64_t value_count, jlongArray, long[], std::vector<folio::Value*>)
%apply (const char* text, int64_t text_bytes) {
  (const char* path, int64_t path_bytes), (const char* key, int64_t key_bytes),
  (const char* value, int64_t value_bytes), (const char* input_names, int64_t input_names_bytes),
  (const char* output_names, int64_t output_names_bytes)
};
%apply (const long long* dims, int64_t dim_count) {
  (const long long* lengths, int64_t length_count), (const long long* dim_counts, int64_t shape_count)
};
%apply (folio::Value* const* values, int64_t value_count) {
  (folio::Value* const* inputs, int64_t input_count), (folio::Value* const* outputs, int64_t output_count)
};

%typemap(in, numinputs=0) JNIEnv* env "$1 = jenv;"
%typemap(jstype) jobject buffer "java.nio.Buffer"
%typemap(jtype) jobject buffer "java.nio.Buffer"
%typemap(jstype) jobject holder "Object"
%typemap(jtype) jobject holder "Object"

// Results.

%define FOLIO_JAVA_RESULT(TYPE, JNI_TYPE, JAVA_TYPE)
%typemap(jni) TYPE "JNI_TYPE"
%typemap(jtype) TYPE "JAVA_TYPE"
%typemap(jstype) TYPE "JAVA_TYPE"
%typemap(javaout) TYPE { return $jnicall; }
%typemap(out) TYPE %{ $result = folio::bridge::to_java(jenv, $1); %}
%enddef

FOLIO_JAVA_RESULT(std::string, jbyteArray, byte[])
FOLIO_JAVA_RESULT(folio::Dims, jlongArray, long[])
%typemap(jstype) jobject view "java.nio.ByteBuffer"
%typemap(jtype) jobject view "java.nio.ByteBuffer"

%newobject folio::Value::wrap;
%extend folio::Value {
  static Value* wrap(JNIEnv* env, jobject buffer, int64_t bytes, bool is_writable, const long long* dims,
                     int64_t dim_count, int type) {
    return folio::bridge::wrap_buffer(env, buffer, bytes, is_writable, folio::bridge::dims_of(dims, dim_count), type);
  }
  jobject view(JNIEnv* env) { return folio::bridge::view(env, *$self); }
}

// Callbacks: the holder is what Callbacks' static methods get back.

%extend folio::ModelOptions {
  void set_progress(JNIEnv* env, jobject holder) { $self->progress(folio::bridge::progress_of(env, holder)); }
}
%extend folio::SaveOptions {
  void set_progress(JNIEnv* env, jobject holder) { $self->progress = folio::bridge::progress_of(env, holder); }
}
%extend folio::SessionOptions {
  void set_progress(JNIEnv* env, jobject holder) { $self->progress(folio::bridge::progress_of(env, holder)); }
}
%extend folio::ModelOptions {
  void external_file(JNIEnv* env, const char* key, int64_t key_bytes, jobject buffer, int64_t bytes) {
    folio::bridge::external_file(env, *$self, folio::bridge::text_of(key, key_bytes), buffer, bytes);
  }
}
%newobject folio::Model::open_wrapped;
%extend folio::Model {
  static Model* open_wrapped(JNIEnv* env, const folio::Env& environment, jobject buffer, int64_t bytes,
                             const folio::ModelOptions& options) {
    return folio::bridge::open_wrapped(env, environment, buffer, bytes, options);
  }
}
%newobject folio::Env::create;
%extend folio::Env {
  static Env* create(JNIEnv* env, int64_t thread_count, int64_t max_arenas, int level, jobject holder) {
    return folio::bridge::create_env(thread_count, max_arenas, level, folio::bridge::log_of(env, holder));
  }
}
%extend folio::IoBinding {
  void bind_output_with_capacity(JNIEnv* env, const char* text, int64_t text_bytes, jobject buffer, int64_t bytes) {
    folio::bridge::bind_capacity(env, *$self, folio::bridge::text_of(text, text_bytes), buffer, bytes);
  }
}
