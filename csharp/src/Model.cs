using System;
using System.Collections.Generic;
using System.Globalization;

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

        internal Model(NativeModel native)
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

        /// <summary>What a run can compute.</summary>
        public IReadOnlyList<ValueInfo> Outputs
        {
            get { return Call(model => ValueInfo.ListOf(model.Outputs())); }
        }

        /// <summary>Inputs that have a default in the model, which a run may override.</summary>
        public IReadOnlyList<ValueInfo> OverridableInitializers
        {
            get { return Call(model => ValueInfo.ListOf(model.OverridableInitializers())); }
        }

        /// <summary>What the file says of itself.</summary>
        public ModelInfo Info
        {
            get { return Call(model => new ModelInfo(Utf8.Split(model.InfoTexts()), model.InfoNumbers())); }
        }

        /// <summary>
        /// Nodes that keep the model from becoming a session; none: none that can be told without compiling.
        /// </summary>
        public IReadOnlyList<UnsupportedOperator> UnsupportedOperators
        {
            get
            {
                List<string> texts = Utf8.Split(Call(model => model.UnsupportedOperators()));
                var result = new List<UnsupportedOperator>();
                for (int i = 0; i + 4 < texts.Count; i += 5) result.Add(new UnsupportedOperator(texts, i));
                return result.AsReadOnly();
            }
        }

        /// <summary>Operator sets that the model imports: domain ("" is ONNX's own) and version.</summary>
        public IReadOnlyDictionary<string, long> Opsets
        {
            get { return NumbersOf(Call(model => model.Opsets())); }
        }

        /// <summary>Operators ("Conv", "com.microsoft.Gelu"), and how many nodes are of them, in subgraphs too.</summary>
        public IReadOnlyDictionary<string, long> Operators
        {
            get { return NumbersOf(Call(model => model.Operators())); }
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

        /// <summary>
        /// Maps the file (.onnx or .ort), parses and verifies it. Weights are not read. `options` and `env` may be null.
        /// </summary>
        /// <param name="path">Of a .onnx or .ort file.</param>
        /// <param name="options">How to open it; may be null.</param>
        /// <param name="env">Whose threads and log it has; null: the process's.</param>
        /// <returns>The model, to be disposed.</returns>
        public static Model Open(string path, ModelOptions options = null, Env env = null)
        {
            byte[] utf8 = Utf8.Of(path);
            return (options ?? new ModelOptions()).Use(given => (env ?? Env.Shared).Call(
                own => new Model(NativeModel.Open(own, utf8, utf8.Length, given))));
        }

        /// <summary>Opens a model from its bytes, which are copied.</summary>
        /// <param name="bytes">Of a .onnx or .ort file.</param>
        /// <param name="options">How to open it; may be null.</param>
        /// <returns>The model, to be disposed.</returns>
        public static Model CopyOf(byte[] bytes, ModelOptions options = null)
        {
            FolioException.NotNull(bytes, "bytes are");
            return (options ?? new ModelOptions()).Use(given => Env.Shared.Call(
                own => new Model(NativeModel.OpenMemory(own, bytes, bytes.Length, given))));
        }

        /// <summary>
        /// Opens a model over its bytes, which are not copied and must not change as long as the model and its sessions
        /// live. The memory stays pinned as long as that.
        /// </summary>
        /// <param name="bytes">Of a .onnx or .ort file.</param>
        /// <param name="options">How to open it; may be null.</param>
        /// <returns>The model, to be disposed.</returns>
        public static Model Wrap(ReadOnlyMemory<byte> bytes, ModelOptions options = null)
        {
            return (options ?? new ModelOptions()).Use(given => Env.Shared.Call(own =>
            {
                using (var pin = new Pin(bytes.Pin()))
                {
                    NativeModel native = NativeModel.OpenWrapped(own, pin.Address, bytes.Length, given,
                        Callbacks.ReleaseAddress, pin.User);
                    pin.Keep();
                    return new Model(native);
                }
            }));
        }

        /// <summary>What the model holds.</summary>
        /// <returns>A snapshot.</returns>
        public MemoryReport MemoryReport()
        {
            return Call(model => FolioRuntime.MemoryReport.Take(model.MemoryReport()));
        }

        /// <summary>
        /// Opens what stands at the model's path now, with the options of this model. This one
        /// and its sessions go on as they are; a file that did not change is not mapped again.
        /// </summary>
        /// <returns>Another model, to be disposed.</returns>
        public Model Reload()
        {
            return Call(model => new Model(model.Reload()));
        }

        /// <summary>
        /// Writes the model (docs/saving.md): optimized with "all", as .onnx or .ort by the path's end, if the options do
        /// not say otherwise. A file of that name is replaced in one step, or stays when anything fails.
        /// </summary>
        /// <param name="path">Of the file to write.</param>
        /// <param name="options">How; may be null.</param>
        /// <returns>What was written.</returns>
        public SaveResult Save(string path, SaveOptions options = null)
        {
            byte[] utf8 = Utf8.Of(path);
            return Call(model => (options ?? new SaveOptions()).Save(model, utf8));
        }

        /// <summary>
        /// Makes, or checks, the pack file for sessions with these options (docs/packs.md). Both may be null.
        /// </summary>
        /// <param name="options">What to write, and where; may be null.</param>
        /// <param name="session">Options of the sessions to come; may be null.</param>
        /// <returns>What was written or found.</returns>
        public PackResult Pack(PackOptions options = null, SessionOptions session = null)
        {
            return (session ?? new SessionOptions()).Use(given => Call(
                model => (options ?? new PackOptions()).Pack(model, given)));
        }

        /// <summary>Compiles the model. `options` may be null.</summary>
        /// <param name="options">How to compile it; may be null.</param>
        /// <returns>The session, to be disposed.</returns>
        public Session Session(SessionOptions options = null)
        {
            SessionOptions used = options ?? new SessionOptions();
            return used.Use(given => Call(model => new Session(new NativeSession(model, given), used.PendingLimit)));
        }

        /// <summary>Disposing again is fine.</summary>
        public void Dispose()
        {
            lease.Close();
        }

        private static Dictionary<string, long> NumbersOf(byte[] joined)
        {
            List<string> texts = Utf8.Split(joined);
            var result = new Dictionary<string, long>();
            for (int i = 0; i + 1 < texts.Count; i += 2)
            {
                result[texts[i]] = long.Parse(texts[i + 1], CultureInfo.InvariantCulture);
            }
            return result;
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
