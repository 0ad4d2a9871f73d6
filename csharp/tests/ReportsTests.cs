using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    /// <summary>The log, metrics and memory, and that nothing leaks.</summary>
    [TestFixture]
    public class ReportsTests
    {
        private const int Width = Models.Width;

        /// <summary>Each key is warned of once.</summary>
        private static void Warn(Env env, string key)
        {
            Model.Open(Models.PathOf("mlp"), new ModelOptions { Config = { { key, "1" } } }, env).Dispose();
        }

        [Test]
        public void TheLogGoesToTheHost()
        {
            var lines = new List<string>();
            var options = new EnvOptions
            {
                Log = (level, message) => lines.Add(level + " " + message),
                LogLevel = LogLevel.Warning,
                Threads = 1,
                MaxArenas = 4,
            };
            Assert.AreEqual(4, options.MaxArenas);
            using (var env = new Env(options))
            {
                Warn(env, "session.reports_test_😀");
                Assert.AreEqual(1, lines.Count);
                StringAssert.StartsWith("Warning", lines[0]);
                StringAssert.Contains("session.reports_test_😀", lines[0]);
            }
            Warn(Env.Shared, "session.reports_test_a"); // to standard error now
            Assert.AreEqual(1, lines.Count);
        }

        [Test]
        public void ALogThatThrowsHarmsNobody()
        {
            int lines = 0;
            using (var env = new Env(new EnvOptions
            {
                Log = (level, message) =>
                {
                    ++lines;
                    throw new InvalidOperationException("the log is broken");
                },
            }))
            {
                Warn(env, "session.reports_test_b");
                Assert.AreEqual(1, lines);
            }
            Models.AssertFails(ErrorCode.InvalidArgument, "threads", () => new Env(new EnvOptions { Threads = -1 }).Dispose());
        }

        [Test]
        public void EnvironmentsCloseAndTheSharedOneDoesNot()
        {
            var env = new Env(new EnvOptions());
            env.Dispose();
            env.Dispose();
            Models.AssertFails(ErrorCode.Closed, "env", () => Assert.IsNull(env.Metrics));
            Env.Shared.Dispose();
            Env.Shared.Trim();
            StringAssert.Contains("folio_", Env.Shared.MetricsText);
            StringAssert.Contains(Model.LibraryVersion, Env.BuildInfo);
            CpuInfo cpu = Env.Cpu;
            Assert.IsTrue(cpu.LogicalCpuCount > 0 && cpu.DefaultThreadCount > 0);
            Assert.IsFalse(cpu.Level.Length == 0 || cpu.Features == null || cpu.Brand == null);
        }

        [Test]
        public void MetricsCountRuns()
        {
            using (Session session = Models.Session("mlp"))
            using (Tensor x = Tensor.Allocate(ElementType.Float, 1, Width))
            {
                for (int i = 0; i < 5; ++i) session.Run(Models.Named("x", x)).Dispose();
                var cancelled = new RunOptions();
                cancelled.Cancel();
                Models.AssertFails(ErrorCode.Cancelled, "",
                    () => session.Run(Models.Named("x", x), new[] { "y" }, cancelled));
                Metrics metrics = session.Metrics;
                Assert.AreEqual(6, metrics.RunCount);
                Assert.AreEqual(1, metrics.CancelledCount);
                Assert.AreEqual(0, metrics.ErrorCount);
                Assert.AreEqual(0, metrics.InFlightCount);
                Assert.AreEqual(1, metrics.SessionCount);
                Assert.AreEqual(6, metrics.LatencyBuckets.Sum());
                Assert.IsTrue(metrics.LatencySumUs >= 0);
                StringAssert.Contains("folio_", session.MetricsText);
            }
        }

        [Test]
        public void MemoryReportsAddUp()
        {
            using (Session session = Models.Session("mlp"))
            {
                session.WaitPacked(-1);
                MemoryReport report = session.MemoryReport();
                Assert.IsTrue(report.MappedBytes > 0);
                Assert.IsTrue(report.ResidentBytes <= report.MappedBytes);
                Assert.IsTrue(report.PssBytes <= report.ResidentBytes);
                Assert.IsTrue(report.PackedHeapBytes + report.PackedSidecarBytes + report.PackedStoreBytes > 0);
                Assert.IsTrue(report.ConstantBytes >= 0 && report.PrivateBytes > 0);
                Assert.IsTrue(report.SavedFileBytes >= 0 && report.SavedPackedBytes >= 0);
                MemoryEntry file = report.Entries.First(entry => entry.Kind == "mapping");
                StringAssert.EndsWith("mlp.onnx", file.Name);
                Assert.IsTrue(file.Bytes >= file.ResidentBytes && file.ResidentBytes >= file.PssBytes);
                Assert.IsFalse(file.IsPrivate);
                StringAssert.StartsWith("{", report.Json);
                Assert.AreEqual(report.Text, report.ToString());
                MemoryReport process = Env.Shared.MemoryReport();
                Assert.IsTrue(process.ProcessRssBytes > 0 && process.ProcessPssBytes > 0);
                Assert.IsTrue(process.ProcessAnonymousBytes > 0 && process.ProcessPageTableBytes > 0);
                Assert.IsTrue(process.ArenaBytes >= 0);
            }
        }

        [Test]
        public void SessionsThatNobodyClosesAreCollected()
        {
            using (var env = new Env(new EnvOptions()))
            {
                var thread = new Thread(() => // mono looks through stacks for what may be references
                {
                    for (int i = 0; i < 50; ++i) Leak(env);
                });
                thread.Start();
                thread.Join();
                for (int i = 0; i < 200 && env.Metrics.SessionCount > 1; ++i)
                {
                    GC.Collect();
                    GC.WaitForPendingFinalizers();
                    Thread.Sleep(10);
                }
                Assert.LessOrEqual(env.Metrics.SessionCount, 1);
            }
        }

        /// <summary>A session, binding, tensors and results, all left to the collector.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Leak(Env env)
        {
            Model model = Model.Open(Models.PathOf("mlp"), null, env);
            Session session = model.Session();
            Tensor x = Tensor.Wrap(new float[Width], 1, Width);
            session.Binding().BindInput("x", x).BindOutput("y").Run();
            session.Run(Models.Named("x", x))["y"].AsMemory<float>();
        }
    }
}
