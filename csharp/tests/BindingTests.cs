using System;
using System.Collections.Generic;
using System.Threading;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    [TestFixture]
    public class BindingTests
    {
        private const int Width = Models.Width;

        private Session session;
        private float[] expected;

        [SetUp]
        public void Open()
        {
            session = Models.Session("mlp");
            using (Tensor x = Tensor.Wrap(Models.Row(1, Width), 1, Width))
            using (Outputs y = session.Run(Models.Named("x", x)))
            {
                expected = y["y"].ToArray<float>();
            }
        }

        [TearDown]
        public void Close()
        {
            session.Dispose();
        }

        private static Tensor Row()
        {
            return Tensor.Wrap(Models.Row(1, Width), 1, Width);
        }

        [Test]
        public void BoundRunsReadAndWriteTheMemoryGiven()
        {
            float[] input = Models.Row(1, Width);
            var output = new float[Width];
            using (Binding binding = session.Binding())
            {
                using (Tensor x = Tensor.Wrap(input, 1, Width))
                using (Tensor y = Tensor.Wrap(output, 1, Width))
                {
                    binding.BindInput("x", x).BindOutput("y", y);
                } // the binding holds them
                binding.Run();
                CollectionAssert.AreEqual(expected, output);
                Models.Row(2, Width).CopyTo(input, 0);
                binding.Run(new RunOptions());
                CollectionAssert.AreNotEqual(expected, output);
            }
        }

        [Test]
        public void BoundRunsMakeNewValuesWhereNoneIsGiven()
        {
            using (Binding binding = session.Binding())
            using (Tensor x = Row())
            {
                binding.BindInput("x", x).BindOutput("y");
                CollectionAssert.AreEqual(new[] { "y" }, binding.OutputNames);
                binding.Run();
                using (Tensor first = binding["y"])
                {
                    binding.Run();
                    using (Value second = binding.Value("y"))
                    {
                        CollectionAssert.AreEqual(expected, first.ToArray<float>());
                        Assert.AreNotSame(first, second);
                    }
                }
                Models.AssertFails(ErrorCode.InvalidArgument, "z", () => binding["z"].Dispose());
            }
        }

        [Test]
        public void OutputsFitIntoCapacityOrSayWhatTheyTake()
        {
            var room = new float[1024];
            using (Binding binding = session.Binding())
            using (Tensor x = Row())
            {
                binding.BindInput("x", x).BindOutputWithCapacity("y", room.AsMemory(16));
                binding.Run();
                using (Tensor y = binding["y"])
                {
                    CollectionAssert.AreEqual(new long[] { 1, Width }, y.Shape);
                    Assert.AreEqual(expected[3], room[16 + 3]);
                }
                binding.ClearOutputs().BindOutputWithCapacity("y", new byte[100].AsMemory());
                Models.AssertFails(ErrorCode.InvalidArgument, "128", binding.Run);
            }
        }

        [Test]
        public void WhatWasBoundCanBeForgotten()
        {
            using (Binding binding = session.Binding())
            using (Tensor x = Row())
            {
                binding.BindInput("x", x).BindOutput("y").ClearInputs();
                Models.AssertFails(ErrorCode.InvalidArgument, "x", binding.Run);
                Models.AssertFails(ErrorCode.InvalidArgument, "nobody", () => binding.BindInput("nobody", x));
                Models.AssertFails(ErrorCode.InvalidArgument, "null", () => binding.BindInput("x", null));
            }
        }

        [Test]
        public void ClosedBindingsAndSessionsRefuseBoundRuns()
        {
            Binding binding = session.Binding();
            Binding other = session.Binding();
            binding.Dispose();
            binding.Dispose();
            Models.AssertFails(ErrorCode.Closed, "binding", binding.Run);
            Models.AssertFails(ErrorCode.Closed, "binding", () => binding.BindOutput("y"));
            session.Dispose();
            Models.AssertFails(ErrorCode.Closed, "session", other.Run);
            Models.AssertFails(ErrorCode.Closed, "session", () => session.Binding());
            other.Dispose();
        }

        [Test]
        public void BoundRunsCanBeCancelled()
        {
            using (Session slow = Models.Session("slow"))
            using (Binding binding = slow.Binding())
            using (Tensor x = Tensor.Allocate(ElementType.Float, 100000, 4))
            {
                var cancelled = new RunOptions { Tag = "stopped" };
                cancelled.Cancel();
                binding.BindInput("x", x).BindOutput("y");
                Models.AssertFails(ErrorCode.Cancelled, "", () => binding.Run(cancelled));
                binding.Run(null); // as without
            }
        }

        /// <summary>A cache that is input and output: token by token gives what all at once gives.</summary>
        [Test]
        public void ACacheBoundAsInputAndOutputIsWrittenInPlace()
        {
            var tokens = new long[] { 1, 7, 42, 3 };
            using (Session decoder = Models.Session("decoder"))
            using (var whole = new Generation(decoder))
            using (var steps = new Generation(decoder))
            {
                float[] atOnce = whole.Step(tokens);
                float[] last = null;
                foreach (long token in tokens) last = steps.Step(token);
                for (int i = 0; i < last.Length; ++i) Assert.AreEqual(atOnce[i], last[i], 1e-3f);
                Assert.AreEqual(tokens.Length, steps.RowsWritten());
            }
        }

        [Test]
        public void BoundRunsMakeNoGarbage()
        {
            using (Binding binding = session.Binding())
            using (Tensor x = Row())
            using (Tensor y = Tensor.Allocate(ElementType.Float, 1, Width))
            {
                binding.BindInput("x", x).BindOutput("y", y);
                for (int i = 0; i < 1000; ++i) binding.Run();
                GC.Collect();
                int before = GC.CollectionCount(0);
                long bytes = GC.GetTotalMemory(false);
                for (int i = 0; i < 200000; ++i) binding.Run();
                Assert.AreEqual(before, GC.CollectionCount(0)); // one object a run would be more than a nursery
                Assert.Less(GC.GetTotalMemory(false) - bytes, 100000);
            }
        }

        [Test]
        public void OneBindingInManyThreadsRunsOneAfterTheOther()
        {
            using (Binding binding = session.Binding())
            using (Tensor x = Row())
            using (Tensor y = Tensor.Allocate(ElementType.Float, 1, Width))
            {
                binding.BindInput("x", x).BindOutput("y", y);
                var failures = new List<Exception>();
                var threads = new List<Thread>();
                for (int i = 0; i < 4; ++i)
                {
                    threads.Add(new Thread(() =>
                    {
                        try
                        {
                            for (int run = 0; run < 200; ++run)
                            {
                                if (run % 20 == 0) binding.BindInput("x", x);
                                binding.Run();
                            }
                        }
                        catch (Exception e)
                        {
                            lock (failures) failures.Add(e);
                        }
                    }));
                }
                foreach (Thread thread in threads) thread.Start();
                foreach (Thread thread in threads) thread.Join();
                CollectionAssert.IsEmpty(failures);
                CollectionAssert.AreEqual(expected, y.ToArray<float>());
            }
        }

        /// <summary>A decoder whose caches are one tensor each, as long as it will ever be.</summary>
        private sealed class Generation : IDisposable
        {
            private const int Max = 8;

            private readonly Binding binding;
            private readonly List<Tensor> caches = new List<Tensor>();
            private int length;

            internal Generation(Session decoder)
            {
                binding = decoder.Binding().BindOutput("logits");
                foreach (string cache in new[] { "0.key", "0.value", "1.key", "1.value" })
                {
                    Tensor tensor = Tensor.Allocate(ElementType.Float, 1, 2, Max, 32);
                    caches.Add(tensor);
                    binding.BindInput("past_key_values." + cache, tensor).BindOutput("present." + cache, tensor);
                }
            }

            public void Dispose()
            {
                binding.Dispose();
                foreach (Tensor cache in caches) cache.Dispose();
            }

            /// <summary>The logits of the last token.</summary>
            internal float[] Step(params long[] tokens)
            {
                length += tokens.Length;
                var ones = new long[length];
                for (int i = 0; i < length; ++i) ones[i] = 1;
                using (Tensor ids = Tensor.Wrap(tokens, 1, tokens.Length))
                using (Tensor mask = Tensor.Wrap(ones, 1, length))
                {
                    binding.BindInput("input_ids", ids).BindInput("attention_mask", mask).Run();
                }
                using (Tensor logits = binding["logits"])
                {
                    float[] all = logits.ToArray<float>();
                    int vocabulary = all.Length / tokens.Length;
                    return new ArraySegment<float>(all, all.Length - vocabulary, vocabulary).AsSpan().ToArray();
                }
            }

            /// <summary>Rows of the first cache that are not zeros.</summary>
            internal int RowsWritten()
            {
                float[] cache = caches[0].ToArray<float>();
                int count = 0;
                for (int row = 0; row < Max; ++row)
                {
                    bool isZero = true;
                    for (int i = 0; i < 32; ++i) isZero &= cache[row * 32 + i] == 0;
                    if (!isZero) ++count;
                }
                return count;
            }
        }
    }
}
