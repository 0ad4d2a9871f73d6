// What the Java wrappers need from JNI: exceptions with a code, arrays, and buffers that stay
// alive.
//
// Flow:    java.i's typemaps and the exception handler call these.
// Owns:    global references to FolioException and Callbacks, for as long as the library is loaded;
//          one per wrapped buffer, until the library gives the memory back (drop_reference); one
//          per callback, until the options or the log that have it are gone.
// Threads: any. drop_reference and log lines may come in a thread that Java does not know.
// Errors:  where a Java exception is pending, the functions return false, null or nothing; the
//          wrapper then returns at once.
#ifndef FOLIO_BINDINGS_JNI_SUPPORT_H_
#define FOLIO_BINDINGS_JNI_SUPPORT_H_

#include <jni.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "bindings/bridge.h"

namespace folio::bridge {

inline JavaVM* java_vm = nullptr;
inline jclass exception_class = nullptr;
inline jmethodID exception_factory = nullptr;
inline jclass callbacks_class = nullptr;
inline jmethodID progress_method = nullptr;
inline jmethodID log_method = nullptr;

inline jclass find_class(JNIEnv* env, const char* name) {
  jclass found = env->FindClass(name);
  return found == nullptr ? nullptr : static_cast<jclass>(env->NewGlobalRef(found));
}

// Classes are looked up here because only here the class loader is surely the right one.
inline jint on_load(JavaVM* vm) {
  JNIEnv* env = nullptr;
  if (vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_8) != JNI_OK) return JNI_ERR;
  exception_class = find_class(env, "dev/foliort/FolioException");
  callbacks_class = find_class(env, "dev/foliort/Callbacks");
  if (exception_class == nullptr || callbacks_class == nullptr) return JNI_ERR;
  exception_factory =
      env->GetStaticMethodID(exception_class, "of", "(I[B)Ldev/foliort/FolioException;");
  progress_method = env->GetStaticMethodID(callbacks_class, "progress", "(Ljava/lang/Object;[BD)Z");
  log_method = env->GetStaticMethodID(callbacks_class, "log", "(Ljava/lang/Object;I[B)V");
  java_vm = vm;
  const bool has_all =
      exception_factory != nullptr && progress_method != nullptr && log_method != nullptr;
  return has_all ? JNI_VERSION_1_8 : JNI_ERR;
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
  if (env->ExceptionCheck() == JNI_TRUE) return;  // out of memory, while an argument was read
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

// The JNIEnv of this thread, which is made known to Java for as long as this object lives.
class Attached {
 public:
  Attached() {
    is_known_ = java_vm->GetEnv(reinterpret_cast<void**>(&env_), JNI_VERSION_1_8) == JNI_OK;
    if (!is_known_ &&
        java_vm->AttachCurrentThreadAsDaemon(reinterpret_cast<void**>(&env_), nullptr) != JNI_OK) {
      env_ = nullptr;
    }
  }
  ~Attached() {
    if (!is_known_ && env_ != nullptr) java_vm->DetachCurrentThread();
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  JNIEnv* env() const { return env_; }  // null: the virtual machine is going down

 private:
  JNIEnv* env_ = nullptr;
  bool is_known_ = false;
};

// A FolioReleaseFunction: `user` is a global reference.
inline void drop_reference(void* user) {
  const Attached thread;
  if (thread.env() != nullptr) thread.env()->DeleteGlobalRef(static_cast<jobject>(user));
}

inline std::shared_ptr<void> hold(JNIEnv* env, jobject object) {
  jobject kept = env->NewGlobalRef(object);
  if (kept == nullptr) throw Error(FOLIO_OUT_OF_MEMORY, "no room for a reference");
  return std::shared_ptr<void>(kept, &drop_reference);
}

// Callbacks.progress and Callbacks.log catch what the user's code throws: nothing of it comes here.
// What the virtual machine itself throws, for want of memory, ends here.
inline std::function<bool(const std::string&, double)> progress_of(JNIEnv* env, jobject holder) {
  return [kept = hold(env, holder)](const std::string& stage, double fraction) {
    const Attached thread;
    JNIEnv* here = thread.env();
    if (here == nullptr) return false;
    jbyteArray text = to_java(here, stage);
    const bool goes_on =
        text != nullptr &&
        here->CallStaticBooleanMethod(callbacks_class, progress_method,
                                      static_cast<jobject>(kept.get()), text, fraction) == JNI_TRUE;
    const bool failed = here->ExceptionCheck() == JNI_TRUE;
    if (failed) here->ExceptionClear();
    if (text != nullptr) here->DeleteLocalRef(text);
    return goes_on && !failed;
  };
}

inline std::function<void(LogLevel, const std::string&)> log_of(JNIEnv* env, jobject holder) {
  if (holder == nullptr) return nullptr;
  return [kept = hold(env, holder)](LogLevel level, const std::string& message) {
    const Attached thread;
    JNIEnv* here = thread.env();
    if (here == nullptr || here->ExceptionCheck() == JNI_TRUE) return;
    jbyteArray text = to_java(here, message);
    if (text != nullptr) {
      here->CallStaticVoidMethod(callbacks_class, log_method, static_cast<jobject>(kept.get()),
                                 static_cast<jint>(level), text);
      here->DeleteLocalRef(text);
    }
    if (here->ExceptionCheck() == JNI_TRUE) here->ExceptionClear();
  };
}

// Gives take(data, release, user) the memory of a direct buffer from its first element on, whatever
// its position. `release` is called if and only if `take` succeeds.
template <typename Take>
auto with_buffer(JNIEnv* env, jobject buffer, Take take) {
  void* data = buffer == nullptr ? nullptr : env->GetDirectBufferAddress(buffer);
  if (data == nullptr) throw Error(FOLIO_INVALID_ARGUMENT, "the buffer is not direct");
  jobject kept = env->NewGlobalRef(buffer);
  if (kept == nullptr) throw Error(FOLIO_OUT_OF_MEMORY, "no room for a reference to the buffer");
  try {
    return take(data, &drop_reference, kept);
  } catch (...) {
    env->DeleteGlobalRef(kept);
    throw;
  }
}

inline Value* wrap_buffer(JNIEnv* env, jobject buffer, std::int64_t bytes, bool is_writable,
                          const Dims& dims, int type) {
  return with_buffer(env, buffer, [&](void* data, FolioReleaseFunction release, void* user) {
    return wrap(data, bytes, dims, type, is_writable, release, user);
  });
}

inline void bind_capacity(JNIEnv* env, IoBinding& binding, const std::string& name, jobject buffer,
                          std::int64_t bytes) {
  with_buffer(env, buffer, [&](void* data, FolioReleaseFunction release, void* user) {
    bind_capacity(binding, name, data, bytes, release, user);
  });
}

inline void external_file(JNIEnv* env, ModelOptions& options, const std::string& name,
                          jobject buffer, std::int64_t bytes) {
  with_buffer(env, buffer, [&](void* data, FolioReleaseFunction release, void* user) {
    external_file(options, name, data, bytes, release, user);
  });
}

inline Model* open_wrapped(JNIEnv* jni, const Env& env, jobject buffer, std::int64_t bytes,
                           const ModelOptions& options) {
  return with_buffer(jni, buffer, [&](void* data, FolioReleaseFunction release, void* user) {
    return open_wrapped(env, data, bytes, options, release, user);
  });
}

// A direct ByteBuffer over the elements. Its owner must hold the value as long as the buffer lives.
inline jobject view(JNIEnv* env, Value& value) {
  bool is_writable = false;
  void* data = data_of(value, &is_writable);
  const size_t bytes = value.bytes();
  if (bytes > static_cast<size_t>(std::numeric_limits<jint>::max())) {
    throw Error(FOLIO_INVALID_ARGUMENT,
                "a tensor of " + std::to_string(bytes) + " bytes is too large for one ByteBuffer");
  }
  return env->NewDirectByteBuffer(data, static_cast<jlong>(bytes));
}

}  // namespace folio::bridge

#endif  // FOLIO_BINDINGS_JNI_SUPPORT_H_
