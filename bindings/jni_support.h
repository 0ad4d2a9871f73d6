// What the Java wrappers need from JNI: exceptions with a code, arrays, and buffers that stay
// alive.
//
// Flow:    java.i's typemaps and the exception handler call these.
// Owns:    a global reference to FolioException, for as long as the library is loaded; one per
//          wrapped buffer, until the library gives the memory back (drop_buffer).
// Threads: any. drop_buffer may come in a thread that Java does not know.
// Errors:  where a Java exception is pending, the functions return false, null or nothing; the
//          wrapper then returns at once.
#ifndef FOLIO_BINDINGS_JNI_SUPPORT_H_
#define FOLIO_BINDINGS_JNI_SUPPORT_H_

#include <jni.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "bindings/bridge.h"

namespace folio::bridge {

inline JavaVM* java_vm = nullptr;
inline jclass exception_class = nullptr;
inline jmethodID exception_factory = nullptr;

// FolioException is looked up here because only here the class loader is surely the right one.
inline jint on_load(JavaVM* vm) {
  JNIEnv* env = nullptr;
  if (vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_8) != JNI_OK) return JNI_ERR;
  jclass found = env->FindClass("dev/foliort/FolioException");
  if (found == nullptr) return JNI_ERR;
  exception_factory = env->GetStaticMethodID(found, "of", "(I[B)Ldev/foliort/FolioException;");
  if (exception_factory == nullptr) return JNI_ERR;
  exception_class = static_cast<jclass>(env->NewGlobalRef(found));
  java_vm = vm;
  return exception_class == nullptr ? JNI_ERR : JNI_VERSION_1_8;
}

inline jbyteArray to_java(JNIEnv* env, const std::string& text) {
  const auto bytes = static_cast<jsize>(text.size());
  jbyteArray result = env->NewByteArray(bytes);
  if (result != nullptr) {
    env->SetByteArrayRegion(result, 0, bytes, reinterpret_cast<const jbyte*>(text.data()));
  }
  return result;
}

inline jlongArray to_java(JNIEnv* env, const Dims& dims) {
  const std::vector<jlong> values(dims.begin(), dims.end());
  const auto count = static_cast<jsize>(values.size());
  jlongArray result = env->NewLongArray(count);
  if (result != nullptr) env->SetLongArrayRegion(result, 0, count, values.data());
  return result;
}

inline void throw_java(JNIEnv* env, int code, const char* message) {
  jbyteArray bytes = to_java(env, std::string(message));
  if (bytes == nullptr) return;
  jobject exception = env->CallStaticObjectMethod(exception_class, exception_factory,
                                                  static_cast<jint>(code), bytes);
  if (env->ExceptionCheck() == JNI_FALSE) env->Throw(static_cast<jthrowable>(exception));
}

inline bool require(JNIEnv* env, const void* argument) {
  if (argument == nullptr) throw_java(env, FOLIO_INVALID_ARGUMENT, "an argument is null");
  return argument != nullptr;
}

inline bool from_java(JNIEnv* env, jbyteArray array, std::string& out) {
  if (!require(env, array)) return false;
  out.resize(static_cast<size_t>(env->GetArrayLength(array)));
  env->GetByteArrayRegion(array, 0, static_cast<jsize>(out.size()),
                          reinterpret_cast<jbyte*>(out.data()));
  return true;
}

inline bool from_java(JNIEnv* env, jlongArray array, std::vector<long long>& out) {
  if (!require(env, array)) return false;
  std::vector<jlong> values(static_cast<size_t>(env->GetArrayLength(array)));
  env->GetLongArrayRegion(array, 0, static_cast<jsize>(values.size()), values.data());
  out.assign(values.begin(), values.end());
  return true;
}

// Addresses of values, as the proxies carry them.
inline bool from_java(JNIEnv* env, jlongArray array, std::vector<Value*>& out) {
  std::vector<long long> addresses;
  if (!from_java(env, array, addresses)) return false;
  for (const long long address : addresses) {
    out.push_back(reinterpret_cast<Value*>(static_cast<std::uintptr_t>(address)));
    if (!require(env, out.back())) return false;
  }
  return true;
}

// A FolioReleaseFunction: `user` is a global reference to a buffer.
inline void drop_buffer(void* user) {
  JNIEnv* env = nullptr;
  const bool is_known = java_vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_8) == JNI_OK;
  if (!is_known &&
      java_vm->AttachCurrentThreadAsDaemon(reinterpret_cast<void**>(&env), nullptr) != JNI_OK) {
    return;  // the virtual machine is going down
  }
  env->DeleteGlobalRef(static_cast<jobject>(user));
  if (!is_known) java_vm->DetachCurrentThread();
}

// A tensor over a direct buffer from its first element on, whatever its position.
inline Value* wrap_buffer(JNIEnv* env, jobject buffer, std::int64_t bytes, bool is_writable,
                          const Dims& dims, int type) {
  void* data = buffer == nullptr ? nullptr : env->GetDirectBufferAddress(buffer);
  if (data == nullptr) throw Error(FOLIO_INVALID_ARGUMENT, "the buffer is not direct");
  jobject kept = env->NewGlobalRef(buffer);
  if (kept == nullptr) throw Error(FOLIO_OUT_OF_MEMORY, "no room for a reference to the buffer");
  try {
    return wrap(data, bytes, dims, type, is_writable, &drop_buffer, kept);
  } catch (...) {
    env->DeleteGlobalRef(kept);
    throw;
  }
}

// A direct ByteBuffer over the elements. Its owner must hold the value as long as the buffer lives.
inline jobject view(JNIEnv* env, Value& value) {
  const size_t bytes = value.bytes();
  if (bytes > static_cast<size_t>(std::numeric_limits<jint>::max())) {
    throw Error(FOLIO_INVALID_ARGUMENT,
                "a tensor of " + std::to_string(bytes) + " bytes is too large for one ByteBuffer");
  }
  bool is_writable = false;
  return env->NewDirectByteBuffer(data_of(value, &is_writable), static_cast<jlong>(bytes));
}

}  // namespace folio::bridge

#endif  // FOLIO_BINDINGS_JNI_SUPPORT_H_
