using System;
using System.Collections.Generic;
using System.Threading;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    [TestFixture]
    public class ThreadsTests
    {
        private const int Threads = 8;
        private const int Width = Models.Width;

        [Test]
        public void ManyThreadsOnOneSessionGetTheirOwnResults()
        {
            using (Session session = Models.Session("mlp"))
            {
                var expected = new List<float[]>();
                for (int i = 0; i < Threads; ++i) expected.Add(Run(session, i));
                Together(mine =>
                {
                    var output = new float[Width];
                    using (Tensor x = Tensor.Wrap(Models.Row(mine, Width), 1, Width))
                    using (Tensor y = Tensor.Wrap(output, 1, Width))
                    {
                        for (int round = 0; round < 300; ++round)
                        {
                            session.Run(Models.Named("x", x), Models.Named("y", y));
                            CollectionAssert.AreEqual(expected[mine], output);
                        }
                    }
                });
            }
        }

        [Test]
        public void CollectionsDuringRunsDoNoHarm()
        {
            using (Session session = Models.Session("mlp"))
            {
                float[] expected = Run(session, 3);
                Together(mine =>
                {
                    for (int round = 0; round < 200; ++round)
                    {
                        // Nothing is disposed, and nothing but the run holds the array.
                        Tensor x = Tensor.Wrap(Models.Row(3, Width), 1, Width);
                        Memory<float> y = session.Run(Models.Named("x", x))["y"].AsMemory<float>();
                        if (mine == 0 && round % 10 == 0) GC.Collect();
                        CollectionAssert.AreEqual(expected, y.ToArray());
                    }
                });
            }
        }

        [Test]
        public void CloseWaitsForRunsInFlight()
        {
            CloseDuringRuns(CloseMode.Wait);
        }

        [Test]
        public void CloseCancelsRunsInFlight()
        {
            CloseDuringRuns(CloseMode.Cancel);
        }

        [Test]
        public void ClosingEverythingFromEverywhereNeverCrashes()
        {
            for (int round = 0; round < 30; ++round)
            {
                Session session = Models.Session("mlp");
                Tensor x = Tensor.Allocate(ElementType.Float, 1, Width);
                Together(mine =>
                {
                    try
                    {
                        for (int i = 0; i < 200; ++i)
                        {
                            if (i == 20 * mine) session.Close(mine % 2 == 0 ? CloseMode.Cancel : CloseMode.Wait);
                            if (mine == 7 && i == 10) x.Dispose();
                            session.Run(Models.Named("x", x)).Dispose();
                        }
                    }
                    catch (FolioException e)
                    {
                        Assert.IsTrue(e.Code == ErrorCode.Closed || e.Code == ErrorCode.Cancelled, e.Message);
                    }
                });
                session.Dispose();
                x.Dispose();
            }
        }

        private static void CloseDuringRuns(CloseMode mode)
        {
            const int runs = 2;
            Session session = Models.Session("slow");
            var running = new CountdownEvent(runs);
            var ends = new ErrorCode?[runs];
            var threads = new List<Thread>();
            for (int i = 0; i < runs; ++i)
            {
                int mine = i;
                threads.Add(new Thread(() =>
                {
                    using (Tensor x = Tensor.Allocate(ElementType.Float, 100000, 4))
                    {
                        running.Signal();
                        try
                        {
                            session.Run(Models.Named("x", x)).Dispose();
                        }
                        catch (FolioException e)
                        {
                            ends[mine] = e.Code;
                        }
                    }
                }));
            }
            foreach (Thread thread in threads) thread.Start();
            running.Wait();
            Thread.Sleep(30);
            session.Close(mode);
            foreach (Thread thread in threads) thread.Join();
            ErrorCode? expected = null;
            if (mode == CloseMode.Cancel) expected = ErrorCode.Cancelled;
            foreach (ErrorCode? end in ends) Assert.AreEqual(expected, end);
        }

        private static float[] Run(Session session, int seed)
        {
            using (Tensor x = Tensor.Wrap(Models.Row(seed, Width), 1, Width))
            using (Outputs y = session.Run(Models.Named("x", x)))
            {
                return y["y"].ToArray<float>();
            }
        }

        private static void Together(Action<int> work)
        {
            var failures = new List<Exception>();
            var threads = new List<Thread>();
            for (int i = 0; i < Threads; ++i)
            {
                int mine = i;
                threads.Add(new Thread(() =>
                {
                    try
                    {
                        work(mine);
                    }
                    catch (Exception e)
                    {
                        lock (failures) failures.Add(e);
                    }
                }));
            }
            foreach (Thread thread in threads) thread.Start();
            foreach (Thread thread in threads) thread.Join();
            if (failures.Count != 0) throw new AggregateException(failures);
        }
    }
}
