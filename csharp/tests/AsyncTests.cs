using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    [TestFixture]
    [Timeout(60000)]
    public class AsyncTests
    {
        private const int Width = Models.Width;

        private static Tensor Large()
        {
            return Tensor.Allocate(ElementType.Float, 100000, 4);
        }

        private static Exception ErrorOf(Task task)
        {
            try
            {
                task.Wait();
                return null;
            }
            catch (AggregateException e)
            {
                return e.InnerException;
            }
        }

        [Test]
        public void AsyncRunsGiveWhatRunsGive()
        {
            using (Session session = Models.Session("mlp"))
            {
                var tasks = new List<Task<Outputs>>();
                for (int i = 0; i < 20; ++i)
                {
                    using (Tensor x = Tensor.Wrap(Models.Row(i, Width), 1, Width))
                    {
                        tasks.Add(session.RunAsync(Models.Named("x", x)));
                    } // disposed at once: the run holds it
                }
                for (int i = 0; i < 20; ++i)
                {
                    using (Tensor x = Tensor.Wrap(Models.Row(i, Width), 1, Width))
                    using (Outputs expected = session.Run(Models.Named("x", x)))
                    using (Outputs found = tasks[i].Result)
                    {
                        CollectionAssert.AreEqual(expected["y"].ToArray<float>(), found["y"].ToArray<float>());
                    }
                }
            }
        }

        [Test]
        public void ErrorsOfAsyncRunsComeOutOfTheFuture()
        {
            using (Session session = Models.Session("mlp"))
            using (Tensor narrow = Tensor.Allocate(ElementType.Float, 1, 5))
            {
                var e = (FolioException)ErrorOf(session.RunAsync(Models.Named("x", narrow)));
                Assert.AreEqual(ErrorCode.InvalidArgument, e.Code);
                narrow.Dispose();
                Models.AssertFails(ErrorCode.Closed, "value", () => session.RunAsync(Models.Named("x", narrow)));
            }
        }

        [Test]
        public void CancellingStopsTheRun()
        {
            using (Session session = Models.Session("slow"))
            using (Tensor x = Large())
            using (var source = new CancellationTokenSource())
            {
                Task<Outputs> running = session.RunAsync(Models.Named("x", x), token: source.Token);
                Thread.Sleep(20);
                source.Cancel();
                Assert.IsInstanceOf<TaskCanceledException>(ErrorOf(running));
                Assert.IsTrue(running.IsCanceled);
                Task<Outputs> never = session.RunAsync(Models.Named("x", x), token: source.Token);
                Assert.IsInstanceOf<TaskCanceledException>(ErrorOf(never));
                var options = new RunOptions();
                Task<Outputs> other = session.RunAsync(Models.Named("x", x), new[] { "y" }, options);
                options.Cancel();
                Assert.AreEqual(ErrorCode.Cancelled, ((FolioException)ErrorOf(other)).Code);
            }
        }

        [Test]
        public void ARunThatEndsBeforeAllWasCancelledIsCanceledToo()
        {
            using (Session session = Models.Session("slow"))
            using (Tensor x = Large())
            using (var source = new CancellationTokenSource())
            {
                var options = new RunOptions();
                Task<Outputs> running = session.RunAsync(Models.Named("x", x), new[] { "y" }, options, source.Token);
                source.Token.Register(() => // called before what RunAsync registered
                {
                    options.Cancel();
                    ErrorOf(running);
                });
                Thread.Sleep(20);
                source.Cancel();
                Assert.IsInstanceOf<TaskCanceledException>(ErrorOf(running));
                Assert.IsTrue(running.IsCanceled);
            }
        }

        [Test]
        public void TheQueueOfPendingRunsIsBounded()
        {
            using (Model model = Model.Open(Models.PathOf("slow")))
            using (Session session = model.Session(new SessionOptions { PendingLimit = 2 }))
            using (Tensor x = Large())
            using (var source = new CancellationTokenSource())
            {
                Dictionary<string, Tensor> inputs = Models.Named("x", x);
                session.RunAsync(inputs, token: source.Token);
                session.RunAsync(inputs, token: source.Token);
                Assert.Throws<InvalidOperationException>(() => session.RunAsync(inputs));
                source.Cancel();
                Task<Outputs> later = null;
                while (later == null)
                {
                    try
                    {
                        later = session.RunAsync(inputs); // as soon as a place is free
                    }
                    catch (InvalidOperationException)
                    {
                        Thread.Sleep(1);
                    }
                }
                later.Result.Dispose();
                Models.AssertFails(ErrorCode.InvalidArgument, "less than 1",
                    () => model.Session(new SessionOptions { PendingLimit = 0 }));
            }
        }

        [Test]
        public void ClosingTheSessionEndsPendingRuns()
        {
            Session session = Models.Session("slow");
            var tasks = new List<Task<Outputs>>();
            using (Tensor x = Large())
            {
                for (int i = 0; i < 6; ++i) tasks.Add(session.RunAsync(Models.Named("x", x)));
            }
            session.Close(CloseMode.Cancel);
            foreach (Task<Outputs> task in tasks)
            {
                var e = (FolioException)ErrorOf(task);
                Assert.IsTrue(e == null || e.Code == ErrorCode.Closed || e.Code == ErrorCode.Cancelled);
            }
        }
    }
}
