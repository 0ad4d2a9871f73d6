namespace FolioRuntime
{
    /// <summary>One thing that takes memory.</summary>
    public sealed class MemoryEntry
    {
        internal MemoryEntry(string name, string kind, long[] n, int at)
        {
            Name = name;
            Kind = kind;
            Bytes = n[at];
            ResidentBytes = n[at + 1];
            PssBytes = n[at + 2];
            IsPrivate = n[at + 3] != 0;
        }

        /// <summary>The file's path, "packed weights", "constants" ...</summary>
        public string Name { get; }

        /// <summary>"mapping", "memory", "packed", "constant", "arena" or "buffer".</summary>
        public string Kind { get; }

        /// <summary>Address space that it takes.</summary>
        public long Bytes { get; }

        /// <summary>Of pages of files: touched by this process and in memory.</summary>
        public long ResidentBytes { get; }

        /// <summary>Of these, this process's share.</summary>
        public long PssBytes { get; }

        /// <summary>Memory that Folio allocated; else the page cache's, or the caller's.</summary>
        public bool IsPrivate { get; }
    }
}
