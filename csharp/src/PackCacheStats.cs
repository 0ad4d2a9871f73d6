namespace FolioRuntime
{
    /// <summary>What a pack cache has and did. Counts are of packed weights, since the cache was made.</summary>
    public sealed class PackCacheStats
    {
        internal PackCacheStats(long[] n)
        {
            BlobCount = n[0];
            BlobBytes = n[1];
            HitCount = n[2];
            MissCount = n[3];
            FoundCount = n[4];
            FoundBytes = n[5];
            PackedCount = n[6];
            PackedBytes = n[7];
            WrittenCount = n[8];
            WrittenBytes = n[9];
            AbsentCount = n[10];
            MisfitCount = n[11];
            DamagedCount = n[12];
            IgnoredFileCount = n[13];
            HashedBytes = n[14];
            MemoBytes = n[15];
            DeclaredBytes = n[16];
            CachedBytes = n[17];
            HeapBlobCount = n[18];
            HeapBlobBytes = n[19];
            SidecarBlobCount = n[20];
            SidecarBlobBytes = n[21];
            StoreBlobCount = n[22];
            StoreBlobBytes = n[23];
            RecordedCount = n[24];
            RecordedBytes = n[25];
        }

        /// <summary>Alive now.</summary>
        public long BlobCount { get; }

        /// <summary>Their bytes.</summary>
        public long BlobBytes { get; }

        /// <summary>Asked for and found in memory.</summary>
        public long HitCount { get; }

        /// <summary>Asked for and not found in memory.</summary>
        public long MissCount { get; }

        /// <summary>Of the misses: a pack file had it.</summary>
        public long FoundCount { get; }

        /// <summary>Their bytes.</summary>
        public long FoundBytes { get; }

        /// <summary>Of the misses: packed in memory of this process.</summary>
        public long PackedCount { get; }

        /// <summary>Their bytes.</summary>
        public long PackedBytes { get; }

        /// <summary>Of the misses: packed into a pack file and mapped from there.</summary>
        public long WrittenCount { get; }

        /// <summary>Their bytes.</summary>
        public long WrittenBytes { get; }

        /// <summary>No pack file had it.</summary>
        public long AbsentCount { get; }

        /// <summary>A pack file had it with another size.</summary>
        public long MisfitCount { get; }

        /// <summary>A pack file had it, but not the bytes that were written.</summary>
        public long DamagedCount { get; }

        /// <summary>Pack files and stores that could not be used or trusted.</summary>
        public long IgnoredFileCount { get; }

        /// <summary>Bytes of model files that had to be read to know them by content.</summary>
        public long HashedBytes { get; }

        /// <summary>Bytes that a pack file, a store or this cache knew.</summary>
        public long MemoBytes { get; }

        /// <summary>Bytes that the model file declared.</summary>
        public long DeclaredBytes { get; }

        /// <summary>Bytes that the user's digest cache knew.</summary>
        public long CachedBytes { get; }

        /// <summary>Of those alive: in memory of this process.</summary>
        public long HeapBlobCount { get; }

        /// <summary>Their bytes.</summary>
        public long HeapBlobBytes { get; }

        /// <summary>Of those alive: in a pack file beside the model.</summary>
        public long SidecarBlobCount { get; }

        /// <summary>Their bytes.</summary>
        public long SidecarBlobBytes { get; }

        /// <summary>Of those alive: in a pack store.</summary>
        public long StoreBlobCount { get; }

        /// <summary>Their bytes.</summary>
        public long StoreBlobBytes { get; }

        /// <summary>What PackCache.Write would write.</summary>
        public long RecordedCount { get; }

        /// <summary>Their bytes.</summary>
        public long RecordedBytes { get; }
    }
}
