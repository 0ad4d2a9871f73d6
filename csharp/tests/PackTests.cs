using System;
using System.IO;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    /// <summary>Packed weights: caches, pack files, stores.</summary>
    [TestFixture]
    public class PackTests : TestFolder
    {
        private Model OpenCopy(string name)
        {
            File.Copy(Models.PathOf(name), Path.Combine(folder, "model.onnx"));
            return Model.Open(Path.Combine(folder, "model.onnx"));
        }

        private static void Pack(Model model, SessionOptions options)
        {
            using (Session session = model.Session(options)) Assert.IsTrue(session.WaitPacked(-1));
        }

        private static void AddsUp(PackCacheStats s)
        {
            Assert.AreEqual(s.MissCount, s.FoundCount + s.PackedCount + s.WrittenCount);
            Assert.AreEqual(s.BlobCount, s.HeapBlobCount + s.SidecarBlobCount + s.StoreBlobCount);
            Assert.AreEqual(s.BlobBytes, s.HeapBlobBytes + s.SidecarBlobBytes + s.StoreBlobBytes);
            Assert.IsTrue(s.FoundBytes + s.PackedBytes + s.WrittenBytes > 0);
            Assert.AreEqual(0, s.MisfitCount + s.DamagedCount + s.IgnoredFileCount);
            Assert.IsTrue(s.AbsentCount <= s.MissCount);
            Assert.IsTrue(s.HashedBytes + s.MemoBytes + s.DeclaredBytes + s.CachedBytes >= 0);
        }

        [Test]
        public void AHoldingCacheServesTheNextSession()
        {
            using (Model model = Model.Open(Models.PathOf("mlp")))
            using (PackCache cache = PackCache.Holding())
            {
                var options = new SessionOptions { PackCache = cache };
                Pack(model, options);
                PackCacheStats first = cache.Stats;
                Assert.IsTrue(first.MissCount > 0 && first.BlobCount == first.MissCount);
                Assert.AreEqual(first.BlobBytes, first.HeapBlobBytes);
                AddsUp(first);
                Pack(model, options);
                Assert.AreEqual(first.MissCount, cache.Stats.MissCount);
                Assert.IsTrue(cache.Stats.HitCount > first.HitCount);
                Assert.AreEqual(first.BlobBytes, cache.Collect());
                Assert.AreEqual(0, cache.Stats.BlobCount);
            }
        }

        [Test]
        public void ASharingCacheKeepsNothing()
        {
            using (Model model = Model.Open(Models.PathOf("mlp")))
            using (PackCache cache = PackCache.Sharing())
            {
                Pack(model, new SessionOptions { PackCache = cache });
                Assert.IsTrue(cache.Stats.PackedCount > 0);
                Assert.AreEqual(0, cache.Stats.BlobCount);
                Assert.IsTrue(PackCache.SharedStats.MissCount >= 0);
            }
        }

        [Test]
        public void WhatACacheRecordedServesLaterSessions()
        {
            string file = Path.Combine(folder, "recorded.fpack");
            using (Model model = OpenCopy("mlp"))
            using (PackCache cache = PackCache.Recording())
            using (PackCache other = PackCache.Holding())
            {
                Pack(model, new SessionOptions { PackCache = cache });
                PackCacheStats stats = cache.Stats;
                Assert.IsTrue(stats.RecordedCount > 0 && stats.RecordedBytes > 0);
                PackResult written = cache.Write(file);
                Assert.AreEqual(stats.RecordedCount, written.WrittenBlobCount);
                Assert.IsTrue(written.WrittenBlobBytes > 0);
                Pack(model, new SessionOptions { PackCache = other, Config = { { "folio.pack_sidecar", file } } });
                Assert.AreEqual(written.WrittenBlobCount, other.Stats.FoundCount);
                Assert.AreEqual(0, other.Stats.PackedCount);
                AddsUp(other.Stats);
                cache.Dispose();
                Models.AssertFails(ErrorCode.Closed, "pack cache", () => Assert.IsNull(cache.Stats));
            }
        }

        [Test]
        public void PackFilesAreMadeCheckedAndDescribed()
        {
            using (Model model = OpenCopy("mlp"))
            {
                PackResult missing = model.Pack(new PackOptions { Check = true });
                Assert.IsTrue(missing.MissingBlobCount > 0);
                PackResult written = model.Pack(new PackOptions { Levels = Env.Cpu.Level }, new SessionOptions());
                Assert.AreEqual(missing.MissingBlobCount, written.WrittenBlobCount);
                Assert.AreEqual(0, written.RawBlobCount + written.RawBlobBytes);
                PackResult found = model.Pack(new PackOptions { Check = true });
                Assert.AreEqual(0, found.MissingBlobCount);
                Assert.AreEqual(written.WrittenBlobCount, found.FoundBlobCount);
                StringAssert.Contains("\"blobs\"", PackFiles.Describe(Path.Combine(folder, "model.onnx.fpack"), true));
                string elsewhere = Path.Combine(folder, "elsewhere.fpack");
                model.Pack(new PackOptions { Path = elsewhere });
                Assert.IsTrue(File.Exists(elsewhere));
            }
        }

        [Test]
        public void AModelCanHaveItsWeightsInThePackFileAlone()
        {
            string replaced = Path.Combine(folder, "replaced.onnx");
            using (Model model = Model.Open(Models.PathOf("wide")))
            {
                model.Pack(new PackOptions { Path = replaced, Replace = true });
            }
            Assert.Less(new FileInfo(replaced).Length, new FileInfo(Models.PathOf("wide")).Length / 2);
            using (Model model = Model.Open(replaced)) model.Session().Dispose();
        }

        [Test]
        public void StoresAreListedVerifiedAndCollected()
        {
            string store = Directory.CreateDirectory(Path.Combine(folder, "store")).FullName;
            using (Model model = OpenCopy("mlp"))
            {
                Assert.IsTrue(model.Pack(new PackOptions { Store = store }).WrittenBlobCount > 0);
            }
            StringAssert.StartsWith("{", PackFiles.ListStore(store));
            StringAssert.StartsWith("{", PackFiles.VerifyStore(store));
            StringAssert.StartsWith("{", PackFiles.CollectStore(store, 1 << 30));
            Models.AssertFails(ErrorCode.InvalidArgument, "negative", () => PackFiles.CollectStore(store, -1));
            Models.AssertFails(ErrorCode.NoSuchFile, "nothing",
                () => PackFiles.Describe(Path.Combine(folder, "nothing.fpack")));
        }
    }
}
