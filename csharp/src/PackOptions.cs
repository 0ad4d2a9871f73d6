namespace FolioRuntime
{
    /// <summary>Where Model.Pack writes, and what. Not for several threads at once.</summary>
    public sealed class PackOptions
    {
        /// <summary>The file to write; "": beside the model.</summary>
        public string Path { get; set; } = "";

        /// <summary>A pack store to add to instead of writing a file; "": none.</summary>
        public string Store { get; set; } = "";

        /// <summary>For these kernels too: names as CpuInfo.Level has them, separated by commas.</summary>
        public string Levels { get; set; } = "";

        /// <summary>Writes nothing, counts what is missing.</summary>
        public bool Check { get; set; }

        /// <summary>
        /// Writes the model anew, with its large weights in the pack file and nowhere else; see docs/packs.md.
        /// </summary>
        public bool Replace { get; set; }

        internal PackResult Pack(NativeModel model, NativeSessionOptions session)
        {
            byte[] path = Utf8.Of(Path);
            byte[] store = Utf8.Of(Store);
            byte[] levels = Utf8.Of(Levels);
            return new PackResult(FolioNative.PackModel(model, session, path, path.Length, store, store.Length, levels,
                levels.Length, Check, Replace));
        }
    }
}
