using System.Collections.Generic;

namespace FolioRuntime
{
    /// <summary>What a call has entered, to be left together, once.</summary>
    internal sealed class Leases
    {
        private readonly List<Lease> entered = new List<Lease>();

        internal void Enter(Lease lease)
        {
            lease.Enter();
            entered.Add(lease);
        }

        /// <summary>Enters the value of that name.</summary>
        internal NativeValue Enter(Value value, string name)
        {
            if (value == null) throw FolioException.Invalid("the value of '" + name + "' is null");
            Enter(value.Lease);
            return value.Native;
        }

        internal void Leave()
        {
            foreach (Lease lease in entered) lease.Leave();
            entered.Clear();
        }
    }
}
