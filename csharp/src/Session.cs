using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace FolioRuntime
{
    /// <summary>A compiled model. Any number of threads may run it at once.</summary>
    public sealed class Session : IDisposable
    {
        private static readonly RunOptions defaultOptions = new RunOptions();

        private readonly NativeSession native;
        private readonly Lease lease;
        private readonly List<string> outputNames = new List<string>();
        private readonly int pendingLimit;
        private int pending;

        internal Session(NativeSession native, int pendingLimit)
        {
            this.native = native;
            this.pendingLimit = pendingLimit;
            lease = new Lease("session", native);
            Inputs = ValueInfo.ListOf(native.Inputs());
            Outputs = ValueInfo.ListOf(native.Outputs());
            OverridableInitializers = ValueInfo.ListOf(native.OverridableInitializers());
            foreach (ValueInfo output in Outputs) outputNames.Add(output.Name);
        }

        /// <summary>Inputs that a run has to be given. Also when disposed.</summary>
        public IReadOnlyList<ValueInfo> Inputs { get; }

        /// <summary>What a run can compute. Also when disposed.</summary>
        public IReadOnlyList<ValueInfo> Outputs { get; }

        /// <summary>Inputs that have a default, which a run may override. Also when disposed.</summary>
        public IReadOnlyList<ValueInfo> OverridableInitializers { get; }

        /// <summary>Counters of this session's runs.</summary>
        public Metrics Metrics
        {
            get { return new Metrics(Call(session => session.Metrics())); }
        }

        /// <summary>The same in Prometheus' text format.</summary>
        public string MetricsText
        {
            get { return Utf8.Text(Call(session => session.MetricsText())); }
        }

        /// <summary>When the times of the profile begin; null where there is none.</summary>
        public DateTimeOffset? ProfilingStart
        {
            get
            {
                long nanoseconds = Call(session => session.ProfilingStart());
                if (nanoseconds == 0) return null;
                return DateTimeOffset.FromUnixTimeSeconds(0).AddTicks(nanoseconds / 100);
            }
        }

        /// <summary>
        /// Computes the outputs named (null: all), and only what they need, as new values. `options` may be null.
        /// </summary>
        /// <typeparam name="TValue">Value, or Tensor.</typeparam>
        /// <param name="inputs">Values by the names of the inputs.</param>
        /// <param name="names">Outputs to compute; null: all.</param>
        /// <param name="options">Of the run; may be null.</param>
        /// <returns>The outputs, to be disposed.</returns>
        public Outputs Run<TValue>(IReadOnlyDictionary<string, TValue> inputs, IReadOnlyList<string> names = null,
            RunOptions options = null) where TValue : Value
        {
            List<KeyValuePair<string, Value>> given = PairsOf(inputs);
            var leases = new Leases();
            try
            {
                foreach (KeyValuePair<string, Value> input in given) leases.Enter(input.Value, input.Key);
                return RunEntered(given, names ?? outputNames, options);
            }
            finally
            {
                leases.Leave();
            }
        }

        /// <summary>Computes all outputs, as new values.</summary>
        /// <typeparam name="TValue">Value, or Tensor.</typeparam>
        /// <param name="inputs">Values by the names of the inputs.</param>
        /// <param name="options">Of the run; may be null.</param>
        /// <returns>The outputs, to be disposed.</returns>
        public Outputs Run<TValue>(IReadOnlyDictionary<string, TValue> inputs, RunOptions options) where TValue : Value
        {
            return Run(inputs, outputNames, options);
        }

        /// <summary>Computes the outputs named into tensors of their type and shape. Nothing is copied.</summary>
        /// <typeparam name="TValue">Value, or Tensor.</typeparam>
        /// <param name="inputs">Values by the names of the inputs.</param>
        /// <param name="outputs">Tensors by the names of the outputs.</param>
        /// <param name="options">Of the run; may be null.</param>
        public void Run<TValue>(IReadOnlyDictionary<string, TValue> inputs, IReadOnlyDictionary<string, Tensor> outputs,
            RunOptions options = null) where TValue : Value
        {
            List<KeyValuePair<string, Value>> given = PairsOf(inputs);
            FolioException.NotNull(outputs, "outputs are");
            var leases = new Leases();
            try
            {
                foreach (KeyValuePair<string, Value> input in given) leases.Enter(input.Value, input.Key);
                var names = new List<string>();
                var values = new List<NativeValue>();
                foreach (KeyValuePair<string, Tensor> output in outputs)
                {
                    names.Add(output.Key);
                    values.Add(leases.Enter(output.Value, output.Key));
                }
                RunInto(given, names, values, options);
            }
            finally
            {
                leases.Leave();
            }
        }

        /// <summary>
        /// Computes the outputs named (null: all) on the thread pool. The inputs may be disposed at once, but not
        /// changed. Cancelling the token cancels `options` (null: its own) and so stops the run; the task is then
        /// cancelled. InvalidOperationException: SessionOptions.PendingLimit runs are waiting or running.
        /// </summary>
        /// <typeparam name="TValue">Value, or Tensor.</typeparam>
        /// <param name="inputs">Values by the names of the inputs.</param>
        /// <param name="names">Outputs to compute; null: all.</param>
        /// <param name="options">Of the run; may be null.</param>
        /// <param name="token">Stops the run.</param>
        /// <returns>The outputs to come.</returns>
        public Task<Outputs> RunAsync<TValue>(IReadOnlyDictionary<string, TValue> inputs,
            IReadOnlyList<string> names = null, RunOptions options = null,
            CancellationToken token = default(CancellationToken)) where TValue : Value
        {
            List<KeyValuePair<string, Value>> given = PairsOf(inputs);
            var wanted = new List<string>(names ?? outputNames);
            RunOptions used = options ?? new RunOptions();
            if (Interlocked.Increment(ref pending) > pendingLimit)
            {
                EndPending();
                throw new InvalidOperationException(pendingLimit + " runs of the session are waiting or running");
            }
            AsyncRun run;
            try
            {
                run = new AsyncRun(given, used, token, () => RunEntered(given, wanted, used), EndPending);
            }
            catch
            {
                EndPending();
                throw;
            }
            return run.Start();
        }

        /// <summary>Inputs and outputs fixed beforehand, for loops.</summary>
        /// <returns>An empty binding, to be disposed.</returns>
        public Binding Binding()
        {
            return Call(session => new Binding(lease, session));
        }

        /// <summary>The session's model, for its information; to be disposed like any other.</summary>
        /// <returns>The model, to be disposed.</returns>
        public Model Model()
        {
            return Call(session => new Model(session.Model()));
        }

        /// <summary>What the session and its model hold, alone or with other sessions.</summary>
        /// <returns>A snapshot.</returns>
        public MemoryReport MemoryReport()
        {
            return Call(session => FolioRuntime.MemoryReport.Take(session.MemoryReport()));
        }

        /// <summary>Plans runs with inputs of these shapes beforehand, so that the first one need not.</summary>
        /// <param name="shapes">Dims by the names of the inputs; those left out must follow from them.</param>
        public void PrepareShapes(IReadOnlyDictionary<string, long[]> shapes)
        {
            FolioException.NotNull(shapes, "shapes are");
            byte[] names = Utf8.Join(shapes.Keys);
            var dims = new List<long>();
            var counts = new List<long>();
            foreach (KeyValuePair<string, long[]> shape in shapes)
            {
                dims.AddRange(FolioException.NotNull(shape.Value, "shape of '" + shape.Key + "' is"));
                counts.Add(shape.Value.Length);
            }
            Call(session =>
            {
                session.PrepareShapes(names, names.Length, dims.ToArray(), dims.Count, counts.ToArray(), counts.Count);
                return true;
            });
        }

        /// <summary>
        /// True when all weights are packed; packs in this thread what nobody has begun. Results do not depend on it.
        /// 0 milliseconds only ask, -1 wait as long as it takes; disposing the session ends the wait.
        /// </summary>
        /// <param name="milliseconds">The longest wait.</param>
        /// <returns>Whether all weights are packed.</returns>
        public bool WaitPacked(long milliseconds)
        {
            return Call(session => session.WaitPacked(milliseconds));
        }

        /// <summary>
        /// Ends the profile that SessionOptions.Profile began, and writes it, a Chrome trace (ui.perfetto.dev). Runs go
        /// on, without being recorded. A session that goes ends its profile itself.
        /// </summary>
        /// <returns>The file's path; null where there is no profile or it was ended before.</returns>
        public string EndProfiling()
        {
            string path = Utf8.Text(Call(session => session.EndProfiling()));
            return path.Length == 0 ? null : path;
        }

        /// <summary>Waits for the runs in flight; new ones are refused at once. Disposing again is fine.</summary>
        public void Dispose()
        {
            Close(CloseMode.Wait);
        }

        /// <summary>Disposes, and decides about the runs in flight. Returns when there are none.</summary>
        /// <param name="mode">Whether to wait for runs in flight or to cancel them.</param>
        public void Close(CloseMode mode)
        {
            if (!Enum.IsDefined(typeof(CloseMode), mode))
            {
                throw FolioException.Invalid("the close mode is " + mode + ", neither Wait nor Cancel");
            }
            if (!lease.EnterEvenIfClosed()) return;
            try
            {
                lease.Close();
                native.Close((int)mode);
            }
            finally
            {
                lease.Leave();
            }
        }

        private void EndPending()
        {
            Interlocked.Decrement(ref pending);
        }

        private T Call<T>(Func<NativeSession, T> function)
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

        // The same as Run, with inputs that the caller has entered, disposed or not.
        private Outputs RunEntered(List<KeyValuePair<string, Value>> inputs, IReadOnlyList<string> names,
            RunOptions options)
        {
            var values = new List<NativeValue>();
            try
            {
                foreach (string name in names) values.Add(new NativeValue());
                RunInto(inputs, names, values, options);
                var result = new Outputs();
                for (int i = 0; i < values.Count; ++i) result.Add(names[i], Value.Of(values[i]));
                values.Clear(); // the result has them
                return result;
            }
            finally
            {
                foreach (NativeValue value in values) value.Dispose();
            }
        }

        private void RunInto(List<KeyValuePair<string, Value>> inputs, IReadOnlyList<string> outputNames,
            List<NativeValue> outputs, RunOptions options)
        {
            var names = new List<string>();
            var values = new List<NativeValue>();
            lease.Enter();
            try
            {
                foreach (KeyValuePair<string, Value> input in inputs)
                {
                    names.Add(input.Key);
                    values.Add(input.Value.Native);
                }
                byte[] inputText = Utf8.Join(names);
                byte[] outputText = Utf8.Join(outputNames);
                native.Run(inputText, inputText.Length, AddressesOf(values), values.Count, outputText,
                    outputText.Length, AddressesOf(outputs), outputs.Count, (options ?? defaultOptions).Native);
            }
            finally
            {
                lease.Leave();
                GC.KeepAlive(values);
                GC.KeepAlive(outputs);
            }
        }

        private static IntPtr[] AddressesOf(List<NativeValue> values)
        {
            var result = new IntPtr[values.Count];
            for (int i = 0; i < result.Length; ++i) result[i] = NativeValue.getCPtr(values[i]).Handle;
            return result;
        }

        private static List<KeyValuePair<string, Value>> PairsOf<TValue>(IReadOnlyDictionary<string, TValue> values)
            where TValue : Value
        {
            FolioException.NotNull(values, "inputs are");
            var result = new List<KeyValuePair<string, Value>>(values.Count);
            foreach (KeyValuePair<string, TValue> entry in values)
            {
                result.Add(new KeyValuePair<string, Value>(entry.Key, entry.Value));
            }
            return result;
        }
    }
}
