namespace FolioRuntime
{
    /// <summary>What a save wrote.</summary>
    public sealed class SaveResult
    {
        internal SaveResult(long[] n)
        {
            FileBytes = n[0];
            DataBytes = n[1];
            NodeCount = n[2];
            InitializerCount = n[3];
            InitializerBytes = n[4];
        }

        /// <summary>Of the model file.</summary>
        public long FileBytes { get; }

        /// <summary>Of the file beside it; 0: there is none.</summary>
        public long DataBytes { get; }

        /// <summary>Nodes of the main graph.</summary>
        public long NodeCount { get; }

        /// <summary>Constants.</summary>
        public long InitializerCount { get; }

        /// <summary>Their bytes, shared ones once.</summary>
        public long InitializerBytes { get; }
    }
}
