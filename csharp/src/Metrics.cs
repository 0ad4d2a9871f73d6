using System;
using System.Collections.Generic;

namespace FolioRuntime
{
    /// <summary>Counters of a session or environment; they only grow, but for the two that say "now".</summary>
    public sealed class Metrics
    {
        internal Metrics(long[] n)
        {
            RunCount = n[0];
            ErrorCount = n[1];
            CancelledCount = n[2];
            InFlightCount = n[3];
            SessionCount = n[4];
            LatencySumUs = n[5];
            LatencyBuckets = new ArraySegment<long>(n, 6, n.Length - 6);
        }

        /// <summary>Runs that have ended, however they ended.</summary>
        public long RunCount { get; }

        /// <summary>Of these, ended in an error other than the next.</summary>
        public long ErrorCount { get; }

        /// <summary>Of these, cancelled or out of time.</summary>
        public long CancelledCount { get; }

        /// <summary>Running now.</summary>
        public long InFlightCount { get; }

        /// <summary>Sessions that exist now; 1 for a session.</summary>
        public long SessionCount { get; }

        /// <summary>The time of all runs, in microseconds.</summary>
        public long LatencySumUs { get; }

        /// <summary>Runs of at most 10, 20, 50, 100 ... us (to 10 s) that are in no bucket before; last, the rest.</summary>
        public IReadOnlyList<long> LatencyBuckets { get; }
    }
}
