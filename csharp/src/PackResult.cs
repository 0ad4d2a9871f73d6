namespace FolioRuntime
{
    /// <summary>What making a pack file did.</summary>
    public sealed class PackResult
    {
        internal PackResult(long[] n)
        {
            WrittenBlobCount = n[0];
            WrittenBlobBytes = n[1];
            FoundBlobCount = n[2];
            MissingBlobCount = n[3];
            RawBlobCount = n[4];
            RawBlobBytes = n[5];
        }

        /// <summary>Packed weights that were written.</summary>
        public long WrittenBlobCount { get; }

        /// <summary>Their bytes.</summary>
        public long WrittenBlobBytes { get; }

        /// <summary>Were there already.</summary>
        public long FoundBlobCount { get; }

        /// <summary>Of a check: a session would pack these.</summary>
        public long MissingBlobCount { get; }

        /// <summary>Of a replacement: of those written, weights that no kernel packs.</summary>
        public long RawBlobCount { get; }

        /// <summary>Their bytes.</summary>
        public long RawBlobBytes { get; }
    }
}
