using System;
using System.Collections.Generic;

namespace FolioRuntime
{
    /// <summary>
    /// A tensor, or a sequence, map or optional of such. Many threads may use a value, but while a run writes into it,
    /// only that run. Dispose it, or leave it to the collector, which knows little of native memory.
    /// </summary>
    public class Value : IDisposable
    {
        static Value()
        {
            NativeLibrary.Require();
        }

        internal Value(NativeValue native)
        {
            Native = native;
            Lease = new Lease("value", native);
        }

        /// <summary>What it is.</summary>
        public ValueKind Kind
        {
            get { return (ValueKind)Call(value => value.Kind()); }
        }

        /// <summary>Of a tensor; of a sequence's tensors; of a map's keys.</summary>
        public ElementType Type
        {
            get { return (ElementType)Call(value => value.Type()); }
        }

        /// <summary>A sequence's length, 2 for a map (keys, values), 0 or 1 for an optional, 0 for a tensor.</summary>
        public int PartCount
        {
            get { return (int)Call(value => value.PartCount()); }
        }

        internal Lease Lease { get; }

        internal NativeValue Native { get; }

        /// <summary>A sequence that holds references to tensors, all of one type.</summary>
        /// <param name="type">Of the elements.</param>
        /// <param name="elements">Any number of tensors.</param>
        /// <returns>The sequence, to be disposed.</returns>
        public static Value Sequence(ElementType type, IReadOnlyList<Tensor> elements)
        {
            FolioException.NotNull(elements, "elements are");
            var leases = new Leases();
            try
            {
                var addresses = new IntPtr[elements.Count];
                for (int i = 0; i < addresses.Length; ++i)
                {
                    addresses[i] = NativeValue.getCPtr(leases.Enter(elements[i], "element " + i)).Handle;
                }
                return new Value(NativeValue.Sequence((int)type, addresses, addresses.Length));
            }
            finally
            {
                leases.Leave();
            }
        }

        /// <summary>
        /// A map that holds references to two tensors of one dim and equal length; keys of Int64 or String.
        /// </summary>
        /// <param name="keys">Int64 or String, of one dim.</param>
        /// <param name="values">As many as keys.</param>
        /// <returns>The map, to be disposed.</returns>
        public static Value Map(Tensor keys, Tensor values)
        {
            FolioException.NotNull(keys, "keys are");
            FolioException.NotNull(values, "values are");
            return keys.Call(k => values.Call(v => new Value(NativeValue.Map(k, v))));
        }

        /// <summary>Part number `index`, as a value of its own over the same data.</summary>
        /// <param name="index">From 0.</param>
        /// <returns>The part, to be disposed.</returns>
        public Value Part(int index)
        {
            return Call(value => Of(value.Part(index)));
        }

        /// <summary>Disposing again is fine. Memory from AsMemory stays valid until it is collected.</summary>
        public void Dispose()
        {
            Lease.Close();
        }

        /// <summary>Takes it over.</summary>
        internal static Value Of(NativeValue native)
        {
            return native.Kind() == (int)ValueKind.Tensor ? new Tensor(native) : new Value(native);
        }

        internal T Call<T>(Func<NativeValue, T> function)
        {
            Lease.Enter();
            try
            {
                return function(Native);
            }
            finally
            {
                Lease.Leave();
            }
        }
    }
}
