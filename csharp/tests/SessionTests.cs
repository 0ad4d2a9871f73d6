using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    [TestFixture]
    public class SessionTests
    {
        private const int Width = Models.Width;

        private Session session;

        [SetUp]
        public void Open()
        {
            session = Models.Session("mlp");
        }

        [TearDown]
        public void Close()
        {
            session.Dispose();
        }

        [Test]
        public void InputsAndOutputsAreDescribed()
        {
            ValueInfo x = session.Inputs[0];
            Assert.AreEqual("x", x.Name);
            Assert.AreEqual(ValueKind.Tensor, x.Kind);
            Assert.AreEqual(ElementType.Float, x.Type);
            CollectionAssert.AreEqual(new long[] { -1, Width }, x.Shape);
            CollectionAssert.AreEqual(new[] { "batch", "" }, x.SymbolicDims);
            Assert.AreEqual("x Float[-1, 32]", x.ToString());
            Assert.AreEqual("y", session.Outputs[0].Name);
        }

        [Test]
        public void WeightsArePackedAtLast()
        {
            Assert.IsTrue(session.WaitPacked(-1));
            Assert.IsTrue(session.WaitPacked(0));
            session.Dispose();
            Models.AssertFails(ErrorCode.Closed, "session", () => session.WaitPacked(0));
        }

        [Test]
        public void MetadataOfTheModel()
        {
            using (Model model = Model.Open(Models.PathOf("mlp")))
            {
                Assert.AreEqual("mlp", model.Metadata["make_model.kind"]);
                Assert.AreEqual("y", model.Outputs[0].Name);
                StringAssert.IsMatch("^[0-9]+\\.[0-9]+\\.[0-9]+$", Model.LibraryVersion);
            }
        }

        [Test]
        public void RunWritesIntoTheMemoryGiven()
        {
            float[] input = Models.Row(1, Width);
            var output = new float[Width];
            using (Tensor x = Tensor.Wrap(input, 1, Width))
            using (Tensor y = Tensor.Wrap(output, 1, Width))
            using (Outputs expected = session.Run(Models.Named("x", x)))
            {
                CollectionAssert.AreEqual(new[] { "y" }, expected.Names);
                session.Run(Models.Named("x", x), Models.Named("y", y));
                CollectionAssert.AreEqual(expected["y"].ToArray<float>(), output);
                float[] first = (float[])output.Clone();
                Models.Row(2, Width).CopyTo(input, 0); // the next run sees it, without another wrap
                session.Run(Models.Named("x", x), Models.Named("y", y));
                CollectionAssert.AreNotEqual(first, output);
            }
        }

        [Test]
        public void OutputsOfOneRunAreInputsOfTheNext()
        {
            using (Tensor x = Tensor.Wrap(Models.Row(1, 2 * Width), 2, Width))
            using (Outputs first = session.Run(Models.Named("x", x)))
            using (Outputs second = session.Run(Models.Named("x", first["y"])))
            {
                CollectionAssert.AreEqual(new long[] { 2, Width }, second["y"].Shape);
            }
        }

        [Test]
        public void WrongNamesTypesAndShapesAreNamed()
        {
            using (Tensor x = Tensor.Allocate(ElementType.Float, 1, Width))
            using (Tensor narrow = Tensor.Allocate(ElementType.Float, 1, 5))
            using (Tensor ints = Tensor.Allocate(ElementType.Int32, 1, Width))
            {
                Models.AssertFails(ErrorCode.InvalidArgument, "nobody", () => session.Run(Models.Named("nobody", x)));
                Models.AssertFails(ErrorCode.InvalidArgument, "x", () => session.Run(new Dictionary<string, Tensor>()));
                Models.AssertFails(ErrorCode.InvalidArgument, "int32", () => session.Run(Models.Named("x", ints)));
                Models.AssertFails(ErrorCode.InvalidArgument, "5", () => session.Run(Models.Named("x", narrow)));
                Models.AssertFails(ErrorCode.InvalidArgument, "5",
                    () => session.Run(Models.Named("x", x), Models.Named("y", narrow)));
                Models.AssertFails(ErrorCode.InvalidArgument, "😀",
                    () => session.Run(new Dictionary<string, Tensor> { { "x", x }, { "😀", x } }));
                Models.AssertFails(ErrorCode.InvalidArgument, "NUL", () => session.Run(Models.Named("x\0", x)));
                Models.AssertFails(ErrorCode.InvalidArgument, "null", () => session.Run(Models.Named("x", null)));
                using (Outputs outputs = session.Run(Models.Named("x", x)))
                {
                    Models.AssertFails(ErrorCode.InvalidArgument, "z", () => GC.KeepAlive(outputs["z"]));
                }
            }
        }

        [Test]
        public void OpenErrorsHaveCodeAndPath()
        {
            Models.AssertFails(ErrorCode.NoSuchFile, "nothing-😀.onnx", () => Model.Open("/nothing-😀.onnx"));
            Models.AssertFails(ErrorCode.NoModel, "not an ONNX", () => Model.CopyOf(new byte[100]));
            var options = new ModelOptions { Config = { { "folio.nonsense", "1" } } };
            Models.AssertFails(ErrorCode.InvalidArgument, "folio.nonsense",
                () => Model.Open(Models.PathOf("mlp"), options));
            using (Model model = Model.Open(Models.PathOf("mlp")))
            {
                var wrong = new SessionOptions { Config = { { "folio.threads", "many" } } };
                Models.AssertFails(ErrorCode.InvalidArgument, "folio.threads", () => model.Session(wrong));
            }
        }

        [Test]
        public void PathsMayHaveEmoji()
        {
            string copy = Path.Combine(Path.GetTempPath(), "模型-😀-" + Guid.NewGuid() + ".onnx");
            File.Copy(Models.PathOf("mlp"), copy);
            try
            {
                using (Model model = Model.Open(copy))
                using (Session copied = model.Session(new SessionOptions { Threads = 1 }))
                {
                    Assert.AreEqual("x", copied.Inputs[0].Name);
                }
            }
            finally
            {
                File.Delete(copy);
            }
        }

        [Test]
        public void AModelFromBytesRuns()
        {
            using (Model model = Model.CopyOf(File.ReadAllBytes(Models.PathOf("mlp"))))
            using (Session fix = model.Session(new SessionOptions { FreeDimensions = { { "batch", 3 } } }))
            {
                CollectionAssert.AreEqual(new long[] { 3, Width }, fix.Inputs[0].Shape);
            }
        }

        [Test]
        public void UseAfterCloseThrows()
        {
            Model model = Model.Open(Models.PathOf("mlp"));
            model.Dispose();
            model.Dispose();
            Models.AssertFails(ErrorCode.Closed, "model", () => model.Session());
            Models.AssertFails(ErrorCode.Closed, "model", () => GC.KeepAlive(model.Inputs));
            using (Tensor x = Tensor.Allocate(ElementType.Float, 1, Width))
            {
                Tensor closed = Tensor.Allocate(ElementType.Float, 1, Width);
                closed.Dispose();
                Models.AssertFails(ErrorCode.Closed, "closed", () => session.Run(Models.Named("x", closed)));
                Models.AssertFails(ErrorCode.Closed, "closed",
                    () => session.Run(Models.Named("x", x), Models.Named("y", closed)));
                session.Dispose();
                session.Close(CloseMode.Cancel);
                Models.AssertFails(ErrorCode.Closed, "session", () => session.Run(Models.Named("x", x)));
                Assert.AreEqual("x", session.Inputs[0].Name);
            }
        }

        [Test]
        public void ACloseModeThatIsNoneClosesNothing()
        {
            Models.AssertFails(ErrorCode.InvalidArgument, "7", () => session.Close((CloseMode)7));
            Assert.IsTrue(session.WaitPacked(-1));
        }

        [Test]
        public void OutputsThatAreClosedGiveNothing()
        {
            using (Tensor x = Tensor.Allocate(ElementType.Float, 1, Width))
            {
                Outputs outputs = session.Run(Models.Named("x", x));
                outputs.Dispose();
                outputs.Dispose();
                Models.AssertFails(ErrorCode.Closed, "outputs", () => GC.KeepAlive(outputs["y"]));
                Models.AssertFails(ErrorCode.Closed, "outputs", () => outputs.Value("nobody"));
                CollectionAssert.AreEqual(new[] { "y" }, outputs.Names);
            }
        }

        [Test]
        public void SequencesAndOptionalsHaveParts()
        {
            using (Session sequences = Models.Session("sequences"))
            using (Tensor x = Tensor.Wrap(Models.Row(1, 8), 2, 4))
            using (Outputs outputs = sequences.Run(Models.Named("x", x), new[] { "three", "maybe" }))
            {
                Value three = outputs.Value("three");
                Assert.AreEqual(ValueKind.Sequence, three.Kind);
                Assert.AreEqual(3, three.PartCount);
                using (Value part = three.Part(0)) Assert.AreEqual(ElementType.Float, part.Type);
                Models.AssertFails(ErrorCode.InvalidArgument, "Sequence", () => GC.KeepAlive(outputs["three"]));
                Models.AssertFails(ErrorCode.InvalidArgument, "index 3 ", () => three.Part(3));
                Models.AssertFails(ErrorCode.InvalidArgument, "index -1 ", () => three.Part(-1));
                Assert.AreEqual(ElementType.Float, sequences.Outputs[8].Element.Type);
            }
        }

        [Test]
        public void ReadOnlyTensorIsNoOutput()
        {
            ReadOnlyMemory<float> memory = new float[Width];
            using (Tensor x = Tensor.Allocate(ElementType.Float, 1, Width))
            using (Tensor y = Tensor.Wrap(memory, 1, Width))
            {
                Models.AssertFails(ErrorCode.InvalidArgument, "y",
                    () => session.Run(Models.Named("x", x), Models.Named("y", y)));
            }
        }

        [Test]
        public void AllOutputsAreComputedWhereNoneIsNamed()
        {
            using (Session sequences = Models.Session("sequences"))
            using (Tensor x = Tensor.Wrap(Models.Row(1, 8), 2, 4))
            {
                var options = new RunOptions { Timeout = TimeSpan.FromMinutes(10) };
                IReadOnlyList<string> names = null;
                using (Outputs given = sequences.Run(Models.Named("x", x), options))
                using (Outputs named = sequences.Run(Models.Named("x", x), names, options))
                using (Outputs later = sequences.RunAsync(Models.Named("x", x), null, options).Result)
                {
                    foreach (Outputs outputs in new[] { given, named, later })
                    {
                        CollectionAssert.AreEquivalent(sequences.Outputs.Select(info => info.Name), outputs.Names);
                    }
                }
                options.Cancel();
                Models.AssertFails(ErrorCode.Cancelled, "", () => sequences.Run(Models.Named("x", x), options));
            }
        }

        [Test]
        public void RunOptionsAreChecked()
        {
            using (Tensor x = Tensor.CopyOf(new ReadOnlySpan<float>(new float[Width]), 1, Width))
            using (Tensor y = Tensor.Allocate(ElementType.Float, 1, Width))
            {
                session.Run(Models.Named("x", x), Models.Named("y", y), new RunOptions { Tag = "one" });
                Models.AssertFails(ErrorCode.InvalidArgument, "folio.nonsense",
                    () => new RunOptions().Config("folio.nonsense", "1"));
            }
        }

        [Test]
        public void ATimeLimitCancels()
        {
            using (Session slow = Models.Session("slow"))
            using (Tensor x = Tensor.Allocate(ElementType.Float, 400000, 4))
            {
                string[] y = { "y" };
                var limited = new RunOptions { Timeout = TimeSpan.FromMilliseconds(1) };
                Models.AssertFails(ErrorCode.Cancelled, "", () => slow.Run(Models.Named("x", x), y, limited));
                var cancelled = new RunOptions();
                cancelled.Cancel();
                Models.AssertFails(ErrorCode.Cancelled, "", () => slow.Run(Models.Named("x", x), y, cancelled));
            }
        }

        [Test]
        public void ATimeLimitBelowAMillisecondIsOneMillisecond()
        {
            using (Session slow = Models.Session("slow"))
            using (Tensor x = Tensor.Allocate(ElementType.Float, 400000, 4))
            {
                foreach (long ticks in new[] { 1, TimeSpan.TicksPerMillisecond - 1 })
                {
                    var limited = new RunOptions { Timeout = TimeSpan.FromTicks(ticks) };
                    Models.AssertFails(ErrorCode.Cancelled, "",
                        () => slow.Run(Models.Named("x", x), new[] { "y" }, limited));
                }
            }
        }

        [Test]
        public void WhatMeansNoTimeLimitAndWhatIsRefused()
        {
            using (Tensor x = Tensor.Allocate(ElementType.Float, 1, Width))
            {
                foreach (TimeSpan none in new[] { TimeSpan.Zero, Timeout.InfiniteTimeSpan, TimeSpan.MaxValue })
                {
                    session.Run(Models.Named("x", x), new[] { "y" }, new RunOptions { Timeout = none }).Dispose();
                }
            }
            foreach (TimeSpan passed in new[] { TimeSpan.FromTicks(-1), TimeSpan.FromMilliseconds(-2), TimeSpan.MinValue })
            {
                Models.AssertFails(ErrorCode.InvalidArgument, "negative", () => new RunOptions().Timeout = passed);
            }
        }
    }
}
