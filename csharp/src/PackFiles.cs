namespace FolioRuntime
{
    /// <summary>Pack files and pack stores on disk. Each answer is a JSON object (docs/packs.md).</summary>
    public static class PackFiles
    {
        static PackFiles()
        {
            NativeLibrary.Require();
        }

        /// <summary>What a pack file holds. With `verify`, every part is compared with its checksum.</summary>
        /// <param name="path">Of a pack file.</param>
        /// <param name="verify">Whether to compare every blob with its checksum.</param>
        /// <returns>A JSON object.</returns>
        public static string Describe(string path, bool verify = false)
        {
            byte[] utf8 = Utf8.Of(path);
            return Utf8.Text(FolioNative.PackFile(utf8, utf8.Length, verify));
        }

        /// <summary>The packs of a store, and their sizes.</summary>
        /// <param name="folder">Of the store.</param>
        /// <returns>A JSON object.</returns>
        public static string ListStore(string folder)
        {
            return Store(folder, 0, 0);
        }

        /// <summary>The same, with every part compared with its checksum.</summary>
        /// <param name="folder">Of the store.</param>
        /// <returns>A JSON object.</returns>
        public static string VerifyStore(string folder)
        {
            return Store(folder, 1, 0);
        }

        /// <summary>Removes leftovers and damaged packs and, above the limit (0: none), the oldest.</summary>
        /// <param name="folder">Of the store.</param>
        /// <param name="limitBytes">What the store may hold; 0: no limit.</param>
        /// <returns>A JSON object.</returns>
        public static string CollectStore(string folder, long limitBytes = 0)
        {
            return Store(folder, 2, limitBytes);
        }

        private static string Store(string folder, int action, long limitBytes)
        {
            byte[] utf8 = Utf8.Of(folder);
            return Utf8.Text(FolioNative.PackStore(utf8, utf8.Length, action, limitBytes));
        }
    }
}
