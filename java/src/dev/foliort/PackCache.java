package dev.foliort;

import java.nio.file.Path;
import java.util.function.Function;

/**
 * Packed weights of the sessions that name it ({@link SessionOptions#packCache}). All others share the process's cache;
 * an own one is for those who want to hold weights between sessions, to measure, or to write a pack file.
 */
public final class PackCache implements AutoCloseable {
    private final NativePackCache handle;
    private final Lease lease;

    static {
        NativeLibrary.require();
    }

    private PackCache(NativePackCache handle) {
        this.handle = handle;
        lease = new Lease("pack cache", handle::delete);
        lease.closeWith(this);
    }

    /** {@return a cache that keeps all it has until it is closed} */
    public static PackCache holding() {
        return new PackCache(NativePackCache.create(true, false));
    }

    /** {@return a cache that keeps a weight as long as a session uses it} */
    public static PackCache sharing() {
        return new PackCache(NativePackCache.create(false, false));
    }

    /** {@return a cache that holds, and knows what it holds, for {@link #write}} */
    public static PackCache recording() {
        return new PackCache(NativePackCache.create(true, true));
    }

    /** {@return what the cache has and did that all sessions share which name no other} */
    public static PackCacheStats sharedStats() {
        return PackCacheStats.of(NativePackCache.sharedStats());
    }

    /** {@return what it has and did} */
    public PackCacheStats stats() {
        return PackCacheStats.of(call(NativePackCache::stats));
    }

    /**
     * Writes all that a recording cache has as one pack file, whole or not at all.
     *
     * @param file to be written
     * @return what was written
     */
    public PackResult write(Path file) {
        return PackResult.of(call(cache -> cache.write(Text.utf8(file.toString()))));
    }

    /**
     * Lets go of what no session uses; returns the bytes.
     *
     * @return bytes that were freed
     */
    public long collect() {
        return call(NativePackCache::collect)[1];
    }

    /** Sessions keep what they use. Closing again is fine. */
    @Override
    public void close() {
        lease.close();
    }

    <T> T call(Function<NativePackCache, T> function) {
        lease.enter();
        try {
            return function.apply(handle);
        } finally {
            lease.leave();
        }
    }
}
