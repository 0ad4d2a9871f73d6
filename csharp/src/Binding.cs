using System;
using System.Buffers;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace FolioRuntime
{
    /// <summary>
    /// Inputs and outputs fixed beforehand, for loops: Run makes no garbage and copies nothing. It holds what is bound to
    /// it, so tensors may be disposed once they are bound. A cache of keys and values may be bound as input and as
    /// output, and is then written in place. Calls on one binding wait for each other.
    /// </summary>
    public sealed class Binding : IDisposable
    {
        private readonly object gate = new object();
        private readonly Lease sessionLease;
        private readonly NativeSession session;
        private readonly NativeBinding native;
        private readonly Lease lease;

        /// <summary>Inside of the session's lease.</summary>
        internal Binding(Lease sessionLease, NativeSession session)
        {
            this.sessionLease = sessionLease;
            this.session = session;
            native = new NativeBinding(session);
            lease = new Lease("binding", native);
        }

        /// <summary>Outputs, in the order in which they were bound.</summary>
        public IReadOnlyList<string> OutputNames
        {
            get
            {
                var result = new List<string>();
                Call(() =>
                {
                    long count = native.OutputCount();
                    for (long i = 0; i < count; ++i) result.Add(Utf8.Text(native.OutputName(i)));
                });
                return result;
            }
        }

        /// <summary>The tensor that the last run gave for the name: the caller's own, over the same data.</summary>
        public Tensor this[string name]
        {
            get
            {
                Value value = Value(name);
                var tensor = value as Tensor;
                if (tensor != null) return tensor;
                ValueKind kind = value.Kind;
                value.Dispose();
                throw FolioException.Invalid("output '" + name + "' is no tensor but a " + kind);
            }
        }

        /// <summary>Binds, or replaces what was bound to the name.</summary>
        /// <param name="name">Of the input or output.</param>
        /// <param name="value">A tensor, sequence, map or optional.</param>
        /// <returns>This.</returns>
        public Binding BindInput(string name, Value value)
        {
            byte[] utf8 = Utf8.Of(name);
            return WithValue(value, name, input => native.BindInput(utf8, utf8.Length, input));
        }

        /// <summary>Asks for an output; each run makes a new value.</summary>
        /// <param name="name">Of the input or output.</param>
        /// <returns>This.</returns>
        public Binding BindOutput(string name)
        {
            byte[] utf8 = Utf8.Of(name);
            return Call(() => native.BindOutput(utf8, utf8.Length));
        }

        /// <summary>Asks for an output; each run writes into the tensor, which must be of its type and shape.</summary>
        /// <param name="name">Of the input or output.</param>
        /// <param name="tensor">Memory for the result.</param>
        /// <returns>This.</returns>
        public Binding BindOutput(string name, Tensor tensor)
        {
            byte[] utf8 = Utf8.Of(name);
            return WithValue(tensor, name, output => native.BindOutputTo(utf8, utf8.Length, output));
        }

        /// <summary>
        /// Asks for an output in memory that has room for it, which is pinned as long as the library uses it: each run
        /// makes a tensor over the front of it, or fails and says how many bytes it takes.
        /// </summary>
        /// <typeparam name="T">The type of an element.</typeparam>
        /// <param name="name">Of the input or output.</param>
        /// <param name="memory">Room for the result.</param>
        /// <returns>This.</returns>
        public unsafe Binding BindOutputWithCapacity<T>(string name, Memory<T> memory) where T : struct
        {
            byte[] utf8 = Utf8.Of(name);
            long bytes = MemoryMarshal.AsBytes(memory.Span).Length;
            return Call(() =>
            {
                using (var pin = new Pin(memory.Pin()))
                {
                    native.BindOutputWithCapacity(utf8, utf8.Length, pin.Address, bytes, Callbacks.ReleaseAddress,
                        pin.User);
                    pin.Keep();
                }
            });
        }

        /// <summary>Forgets all inputs.</summary>
        /// <returns>This.</returns>
        public Binding ClearInputs()
        {
            return Call(native.ClearInputs);
        }

        /// <summary>Forgets all outputs.</summary>
        /// <returns>This.</returns>
        public Binding ClearOutputs()
        {
            return Call(native.ClearOutputs);
        }

        /// <summary>Runs with what is bound.</summary>
        public void Run()
        {
            lock (gate)
            {
                sessionLease.Enter();
                try
                {
                    lease.Enter();
                    try
                    {
                        session.RunBound(native);
                    }
                    finally
                    {
                        lease.Leave();
                    }
                }
                finally
                {
                    sessionLease.Leave();
                }
            }
        }

        /// <summary>Runs with what is bound.</summary>
        /// <param name="options">Of this run; may be null.</param>
        public void Run(RunOptions options)
        {
            if (options == null)
            {
                Run();
                return;
            }
            lock (gate)
            {
                var leases = new Leases();
                try
                {
                    leases.Enter(sessionLease);
                    leases.Enter(lease);
                    session.RunBoundWith(native, options.Native);
                }
                finally
                {
                    leases.Leave();
                }
            }
        }

        /// <summary>The value that the last run gave for the name: the caller's own, over the same data.</summary>
        /// <param name="name">Of an output.</param>
        /// <returns>The value, to be disposed.</returns>
        public Value Value(string name)
        {
            lock (gate)
            {
                var names = (List<string>)OutputNames;
                int index = names.IndexOf(name);
                if (index < 0)
                {
                    throw FolioException.Invalid("there is no output '" + name + "' among " + string.Join(", ", names));
                }
                Value result = null;
                Call(() => result = FolioRuntime.Value.Of(native.Output(index)));
                return result;
            }
        }

        /// <summary>What was bound stays as long as others use it. Disposing again is fine.</summary>
        public void Dispose()
        {
            lease.Close();
        }

        private Binding Call(Action action)
        {
            lock (gate)
            {
                lease.Enter();
                try
                {
                    action();
                }
                finally
                {
                    lease.Leave();
                }
                return this;
            }
        }

        private Binding WithValue(Value value, string name, Action<NativeValue> action)
        {
            if (value == null) throw FolioException.Invalid("the value of '" + name + "' is null");
            return Call(() => value.Call(given =>
            {
                action(given);
                return true;
            }));
        }
    }
}
