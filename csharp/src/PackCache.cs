using System;

namespace FolioRuntime
{
    /// <summary>
    /// Packed weights of the sessions that name it (SessionOptions.PackCache). All others share the process's cache; an
    /// own one is for those who want to hold weights between sessions, to measure, or to write a pack file.
    /// </summary>
    public sealed class PackCache : IDisposable
    {
        private readonly NativePackCache native;
        private readonly Lease lease;

        static PackCache()
        {
            NativeLibrary.Require();
        }

        private PackCache(NativePackCache native)
        {
            this.native = native;
            lease = new Lease("pack cache", native);
        }

        /// <summary>Of the cache that all sessions share which name no other.</summary>
        public static PackCacheStats SharedStats
        {
            get { return new PackCacheStats(NativePackCache.SharedStats()); }
        }

        /// <summary>What it has and did.</summary>
        public PackCacheStats Stats
        {
            get { return new PackCacheStats(Call(cache => cache.Stats())); }
        }

        /// <summary>A cache that keeps all it has until it is disposed.</summary>
        /// <returns>The cache, to be disposed.</returns>
        public static PackCache Holding()
        {
            return new PackCache(NativePackCache.Create(true, false));
        }

        /// <summary>A cache that keeps a weight as long as a session uses it.</summary>
        /// <returns>The cache, to be disposed.</returns>
        public static PackCache Sharing()
        {
            return new PackCache(NativePackCache.Create(false, false));
        }

        /// <summary>A cache that holds, and knows what it holds, for Write.</summary>
        /// <returns>The cache, to be disposed.</returns>
        public static PackCache Recording()
        {
            return new PackCache(NativePackCache.Create(true, true));
        }

        /// <summary>Writes all that a recording cache has as one pack file, whole or not at all.</summary>
        /// <param name="path">Of the file to write.</param>
        /// <returns>What was written.</returns>
        public PackResult Write(string path)
        {
            byte[] utf8 = Utf8.Of(path);
            return new PackResult(Call(cache => cache.Write(utf8, utf8.Length)));
        }

        /// <summary>Lets go of what no session uses; returns the bytes.</summary>
        /// <returns>Bytes that were freed.</returns>
        public long Collect()
        {
            return Call(cache => cache.Collect())[1];
        }

        /// <summary>Sessions keep what they use. Disposing again is fine.</summary>
        public void Dispose()
        {
            lease.Close();
        }

        internal T Call<T>(Func<NativePackCache, T> function)
        {
            lease.Enter();
            try
            {
                return function(native);
            }
            finally
            {
                lease.Leave();
            }
        }
    }
}
