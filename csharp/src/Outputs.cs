using System;
using System.Collections.Generic;

namespace FolioRuntime
{
    /// <summary>The results of a run by name. Disposing disposes them all; memory views of them stay valid.</summary>
    public sealed class Outputs : IDisposable
    {
        private readonly Dictionary<string, Value> values = new Dictionary<string, Value>();
        private volatile bool isDisposed;

        internal Outputs()
        {
        }

        /// <summary>Their names. Also when disposed.</summary>
        public IReadOnlyCollection<string> Names
        {
            get { return values.Keys; }
        }

        /// <summary>The tensor of that name.</summary>
        public Tensor this[string name]
        {
            get
            {
                Value value = Value(name);
                var tensor = value as Tensor;
                if (tensor != null) return tensor;
                throw FolioException.Invalid("output '" + name + "' is no tensor but a " + value.Kind);
            }
        }

        /// <summary>The value of that name: a tensor, sequence, map or optional.</summary>
        /// <param name="name">Of an output.</param>
        /// <returns>The value, which is disposed with the outputs.</returns>
        public Value Value(string name)
        {
            if (isDisposed) throw new FolioException(ErrorCode.Closed, "the outputs are closed");
            if (name != null && values.TryGetValue(name, out Value value)) return value;
            throw FolioException.Invalid("there is no output '" + name + "' among " + string.Join(", ", values.Keys));
        }

        /// <summary>Disposing again is fine.</summary>
        public void Dispose()
        {
            isDisposed = true;
            foreach (Value value in values.Values) value.Dispose();
        }

        internal void Add(string name, Value value)
        {
            values[name] = value;
        }
    }
}
