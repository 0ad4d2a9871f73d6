using System;
using System.Collections.Generic;

namespace FolioRuntime
{
    /// <summary>
    /// An opened, mapped and verified model. Any number of threads may use it. Sessions made from it live on their own:
    /// it may be disposed before them.
    /// </summary>
    public sealed class Model : IDisposable
    {
        private readonly NativeModel native;
        private readonly Lease lease;

        static Model()
        {
            NativeLibrary.Require();
        }

        private Model(NativeModel native)
        {
            this.native = native;
            lease = new Lease("model", native);
        }

        /// <summary>The version of the native library.</summary>
        public static string LibraryVersion
        {
            get { return Utf8.Text(FolioNative.VersionString()); }
        }

        /// <summary>Inputs that a run has to be given.</summary>
        public IReadOnlyList<ValueInfo> Inputs
        {
            get { return Call(model => ValueInfo.ListOf(model.Inputs())); }
        }

        public IReadOnlyList<ValueInfo> Outputs
        {
            get { return Call(model => ValueInfo.ListOf(model.Outputs())); }
        }

        /// <summary>The model's own pairs of strings.</summary>
        public IReadOnlyDictionary<string, string> Metadata
        {
            get
            {
                List<string> texts = Utf8.Split(Call(model => model.Metadata()));
                var result = new Dictionary<string, string>();
                for (int i = 0; i + 1 < texts.Count; i += 2) result[texts[i]] = texts[i + 1];
                return result;
            }
        }

        /// <summary>Maps the file (.onnx or .ort), parses and verifies it. Weights are not read.</summary>
        public static Model Open(string path, ModelOptions options = null)
        {
            byte[] utf8 = Utf8.Of(path);
            using (NativeModelOptions given = (options ?? new ModelOptions()).ToNative())
            {
                return new Model(NativeModel.Open(utf8, utf8.Length, given));
            }
        }

        /// <summary>Opens a model from its bytes, which are copied.</summary>
        public static Model CopyOf(byte[] bytes, ModelOptions options = null)
        {
            if (bytes == null) throw FolioException.Invalid("the bytes are null");
            using (NativeModelOptions given = (options ?? new ModelOptions()).ToNative())
            {
                return new Model(NativeModel.OpenMemory(bytes, bytes.Length, given));
            }
        }

        /// <summary>
        /// Opens what stands at the model's path now, with the options of this model. This one
        /// and its sessions go on as they are; a file that did not change is not mapped again.
        /// </summary>
        public Model Reload()
        {
            return Call(model => new Model(model.Reload()));
        }

        /// <summary>
        /// Writes the model as .onnx or .ort, by the path's end. optimize: "none", "basic", "extended" or "all", which keep
        /// to operators that other runtimes have. A file of that name is replaced in one step, or stays when anything fails.
        /// </summary>
        public void Save(string path, string optimize = "all")
        {
            byte[] utf8 = Utf8.Of(path);
            byte[] level = Utf8.Of(optimize);
            Call(model =>
            {
                model.Save(utf8, utf8.Length, level, level.Length);
                return true;
            });
        }

        /// <summary>Compiles the model.</summary>
        public Session Session(SessionOptions options = null)
        {
            using (NativeSessionOptions given = (options ?? new SessionOptions()).ToNative())
            {
                return Call(model => new Session(new NativeSession(model, given)));
            }
        }

        /// <summary>Disposing again is fine.</summary>
        public void Dispose()
        {
            lease.Close();
        }

        private T Call<T>(Func<NativeModel, T> function)
        {
            lease.Enter();
            try
            {
                return function(native);
            }
            finally
            {
                lease.Leave();
            }
        }
    }
}
