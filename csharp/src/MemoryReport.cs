using System.Collections.Generic;

namespace FolioRuntime
{
    /// <summary>Where the bytes were at one moment. What several sessions share stands in it once.</summary>
    public sealed class MemoryReport
    {
        internal MemoryReport(NativeMemoryReport native)
        {
            List<string> texts = Utf8.Split(native.EntryTexts());
            long[] numbers = native.EntryNumbers();
            var entries = new List<MemoryEntry>();
            for (int i = 0; 2 * i + 1 < texts.Count; ++i)
            {
                entries.Add(new MemoryEntry(texts[2 * i], texts[2 * i + 1], numbers, 4 * i));
            }
            Entries = entries.AsReadOnly();
            long[] n = native.Summary();
            MappedBytes = n[0];
            ResidentBytes = n[1];
            PssBytes = n[2];
            PrivateBytes = n[3];
            PackedSidecarBytes = n[4];
            PackedStoreBytes = n[5];
            PackedHeapBytes = n[6];
            ConstantBytes = n[7];
            SavedFileBytes = n[8];
            SavedPackedBytes = n[9];
            ArenaBytes = n[10];
            ProcessRssBytes = n[11];
            ProcessPssBytes = n[12];
            ProcessAnonymousBytes = n[13];
            ProcessPageTableBytes = n[14];
            Json = Utf8.Text(native.Json());
            Text = Utf8.Text(native.Text());
        }

        /// <summary>One for each mapping, buffer and so on.</summary>
        public IReadOnlyList<MemoryEntry> Entries { get; }

        /// <summary>Files, pack files too: address space, not memory.</summary>
        public long MappedBytes { get; }

        /// <summary>Of these: touched by this process and in memory.</summary>
        public long ResidentBytes { get; }

        /// <summary>Of these: this process's share of what others have touched too.</summary>
        public long PssBytes { get; }

        /// <summary>Memory that Folio allocated.</summary>
        public long PrivateBytes { get; }

        /// <summary>Packed weights in the model's own pack file.</summary>
        public long PackedSidecarBytes { get; }

        /// <summary>Packed weights in pack stores.</summary>
        public long PackedStoreBytes { get; }

        /// <summary>Packed weights in memory of this process.</summary>
        public long PackedHeapBytes { get; }

        /// <summary>Constants that were computed or copied.</summary>
        public long ConstantBytes { get; }

        /// <summary>Model files that the second and every later session did not need again.</summary>
        public long SavedFileBytes { get; }

        /// <summary>The same of packed weights and constants.</summary>
        public long SavedPackedBytes { get; }

        /// <summary>Scratch memory of runs; this and the next four only in the report of an Env.</summary>
        public long ArenaBytes { get; }

        /// <summary>What the process has in memory.</summary>
        public long ProcessRssBytes { get; }

        /// <summary>What the process takes of the machine.</summary>
        public long ProcessPssBytes { get; }

        /// <summary>Pages that no file stands behind.</summary>
        public long ProcessAnonymousBytes { get; }

        /// <summary>The kernel's tables for the process.</summary>
        public long ProcessPageTableBytes { get; }

        /// <summary>The whole report as one JSON object.</summary>
        public string Json { get; }

        /// <summary>The whole report as a table for people.</summary>
        public string Text { get; }

        /// <summary>The table.</summary>
        public override string ToString()
        {
            return Text;
        }

        /// <summary>Reads and deletes it.</summary>
        internal static MemoryReport Take(NativeMemoryReport native)
        {
            using (native) return new MemoryReport(native);
        }
    }
}
