using System;
using System.Collections.Generic;

namespace FolioRuntime
{
    /// <summary>A compiled model. Any number of threads may run it at once.</summary>
    public sealed class Session : IDisposable
    {
        private static readonly RunOptions defaultOptions = new RunOptions();

        private readonly NativeSession native;
        private readonly Lease lease;
        private readonly List<string> outputNames = new List<string>();

        internal Session(NativeSession native)
        {
            this.native = native;
            lease = new Lease("session", native);
            Inputs = ValueInfo.ListOf(native.Inputs());
            Outputs = ValueInfo.ListOf(native.Outputs());
            foreach (ValueInfo output in Outputs) outputNames.Add(output.Name);
        }

        /// <summary>Inputs that a run has to be given. Also when disposed.</summary>
        public IReadOnlyList<ValueInfo> Inputs { get; }

        /// <summary>Also when disposed.</summary>
        public IReadOnlyList<ValueInfo> Outputs { get; }

        /// <summary>
        /// Computes the outputs named (null: all), and only what they need, as new values. `options` may be null.
        /// </summary>
        public Outputs Run<TValue>(IReadOnlyDictionary<string, TValue> inputs, IReadOnlyList<string> names = null,
            RunOptions options = null) where TValue : Value
        {
            return RunNew(PairsOf(inputs), names ?? outputNames, options);
        }

        /// <summary>Computes the outputs named into tensors of their type and shape. Nothing is copied.</summary>
        public void Run<TValue>(IReadOnlyDictionary<string, TValue> inputs, IReadOnlyDictionary<string, Tensor> outputs,
            RunOptions options = null) where TValue : Value
        {
            var leases = new List<Lease>();
            try
            {
                var names = new List<string>();
                var values = new List<NativeValue>();
                foreach (KeyValuePair<string, Tensor> output in outputs)
                {
                    names.Add(output.Key);
                    values.Add(Enter(output.Value, output.Key, leases));
                }
                RunInto(PairsOf(inputs), names, values, options);
            }
            finally
            {
                foreach (Lease entered in leases) entered.Leave();
            }
        }

        /// <summary>
        /// True when all weights are packed; packs in this thread what nobody has begun. Results do not depend on it.
        /// 0 milliseconds only ask, -1 wait as long as it takes; disposing the session ends the wait.
        /// </summary>
        public bool WaitPacked(long milliseconds)
        {
            lease.Enter();
            try
            {
                return native.WaitPacked(milliseconds);
            }
            finally
            {
                lease.Leave();
            }
        }

        /// <summary>Waits for the runs in flight; new ones are refused at once. Disposing again is fine.</summary>
        public void Dispose()
        {
            Close(CloseMode.Wait);
        }

        /// <summary>Disposes, and decides about the runs in flight. Returns when there are none.</summary>
        public void Close(CloseMode mode)
        {
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

        private Outputs RunNew(List<KeyValuePair<string, Value>> inputs, IReadOnlyList<string> names,
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
            var leases = new List<Lease>();
            var names = new List<string>();
            var values = new List<NativeValue>();
            try
            {
                lease.Enter();
                leases.Add(lease);
                foreach (KeyValuePair<string, Value> input in inputs)
                {
                    names.Add(input.Key);
                    values.Add(Enter(input.Value, input.Key, leases));
                }
                byte[] inputText = Utf8.Join(names);
                byte[] outputText = Utf8.Join(outputNames);
                native.Run(inputText, inputText.Length, AddressesOf(values), values.Count, outputText,
                    outputText.Length, AddressesOf(outputs), outputs.Count, (options ?? defaultOptions).Native);
            }
            finally
            {
                foreach (Lease entered in leases) entered.Leave();
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

        private static NativeValue Enter(Value value, string name, List<Lease> leases)
        {
            if (value == null) throw FolioException.Invalid("the value of '" + name + "' is null");
            value.Lease.Enter();
            leases.Add(value.Lease);
            return value.Native;
        }

        private static List<KeyValuePair<string, Value>> PairsOf<TValue>(IReadOnlyDictionary<string, TValue> values)
            where TValue : Value
        {
            var result = new List<KeyValuePair<string, Value>>(values.Count);
            foreach (KeyValuePair<string, TValue> entry in values)
            {
                result.Add(new KeyValuePair<string, Value>(entry.Key, entry.Value));
            }
            return result;
        }
    }
}
