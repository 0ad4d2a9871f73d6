using System.Collections.Generic;
using System.Globalization;

namespace FolioRuntime
{
    /// <summary>What Folio found of the CPU.</summary>
    public sealed class CpuInfo
    {
        internal CpuInfo(IReadOnlyList<string> texts)
        {
            Level = texts[0];
            Features = texts[1].Split(' ');
            Brand = texts[2];
            LogicalCpuCount = int.Parse(texts[3], CultureInfo.InvariantCulture);
            DefaultThreadCount = int.Parse(texts[4], CultureInfo.InvariantCulture);
        }

        /// <summary>The newest kernels in use: "ref", "x86_avx2" ...</summary>
        public string Level { get; }

        /// <summary>What Folio uses of the CPU's features.</summary>
        public IReadOnlyList<string> Features { get; }

        /// <summary>As the CPU calls itself; "" if it does not.</summary>
        public string Brand { get; }

        /// <summary>CPUs that this process may use.</summary>
        public int LogicalCpuCount { get; }

        /// <summary>Threads of a session that does not say.</summary>
        public int DefaultThreadCount { get; }
    }
}
