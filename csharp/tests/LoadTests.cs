using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    /// <summary>Opening and compiling: progress, cancelling, what a model says of itself and is made with.</summary>
    [TestFixture]
    public class LoadTests
    {
        private const int Width = Models.Width;

        [Test]
        public void ProgressIsHeardToItsEnd()
        {
            var stages = new List<string>();
            double last = 0;
            Func<string, double, bool> listener = (stage, fraction) =>
            {
                stages.Add(stage);
                Assert.IsTrue(fraction >= last && fraction <= 1, stage + " " + fraction);
                last = fraction;
                return true;
            };
            using (Model model = Model.Open(Models.PathOf("mlp"), new ModelOptions { Progress = listener }))
            {
                CollectionAssert.IsNotEmpty(stages);
                Assert.AreEqual(1.0, last);
                stages.Clear();
                last = 0;
                model.Session(new SessionOptions { Progress = listener }).Dispose();
                CollectionAssert.IsNotEmpty(stages);
            }
        }

        [Test]
        public void ProgressCanCancel()
        {
            Models.AssertFails(ErrorCode.ModelLoadCanceled, "",
                () => Model.Open(Models.PathOf("mlp"), new ModelOptions { Progress = (stage, fraction) => false }));
        }

        [Test]
        public void WhatAListenerThrowsComesOutOfTheCall()
        {
            Func<string, double, bool> broken = (stage, fraction) => { throw new InvalidDataException("mine 😀"); };
            var e = Assert.Throws<InvalidDataException>(
                () => Model.Open(Models.PathOf("mlp"), new ModelOptions { Progress = broken }));
            Assert.AreEqual("mine 😀", e.Message);
            using (Model model = Model.Open(Models.PathOf("mlp")))
            {
                Assert.Throws<InvalidDataException>(() => model.Session(new SessionOptions { Progress = broken }));
                model.Session().Dispose(); // nothing is left of it
            }
        }

        [Test]
        public void LoadsCanBeCancelledFromOutside()
        {
            using (var source = new CancellationTokenSource())
            using (Model model = Model.Open(Models.PathOf("mlp"), new ModelOptions { CancellationToken = source.Token }))
            {
                source.Cancel();
                Models.AssertFails(ErrorCode.ModelLoadCanceled, "", () => Model.Open(Models.PathOf("mlp"),
                    new ModelOptions { CancellationToken = source.Token }));
                Models.AssertFails(ErrorCode.ModelLoadCanceled, "",
                    () => model.Session(new SessionOptions { CancellationToken = source.Token }));
            }
        }

        [Test]
        public void AModelTellsOfItself()
        {
            using (Model model = Model.Open(Models.PathOf("decoder")))
            using (Session session = model.Session())
            {
                ModelInfo info = model.Info;
                Assert.AreEqual("onnx", info.Format);
                StringAssert.EndsWith("decoder.onnx", info.Path);
                Assert.AreEqual("folio make_model", info.ProducerName);
                Assert.AreEqual("1", info.ProducerVersion);
                Assert.AreEqual("decoder", info.GraphName);
                Assert.AreEqual("", info.Domain + info.Description);
                Assert.AreEqual(8, info.IrVersion);
                Assert.AreEqual(0, info.ModelVersion);
                Assert.AreEqual(31, info.NodeCount);
                Assert.IsTrue(info.InitializerCount > 0 && info.InitializerBytes < info.FileBytes);
                Assert.AreEqual(1, model.Opsets["com.microsoft"]);
                Assert.AreEqual(2, model.Operators["com.microsoft.GroupQueryAttention"]);
                CollectionAssert.IsEmpty(model.UnsupportedOperators);
                CollectionAssert.IsEmpty(model.OverridableInitializers);
                CollectionAssert.IsEmpty(session.OverridableInitializers);
                StringAssert.Contains("decoder.onnx", model.MemoryReport().Text);
                using (Model again = session.Model()) Assert.AreEqual(info.Path, again.Info.Path);
            }
        }

        [Test]
        public void NodesThatFolioLacksAreListed()
        {
            byte[] bytes = File.ReadAllBytes(Models.PathOf("mlp"));
            Models.ReplaceAll(bytes, "MatMul", "MadMul");
            using (Model model = Model.CopyOf(bytes))
            {
                UnsupportedOperator op = model.UnsupportedOperators[0];
                Assert.AreEqual("MadMul", op.OpType);
                Assert.AreEqual("", op.Domain);
                Assert.IsTrue(op.OpsetVersion > 0);
                Assert.IsTrue(op.Reason.Length > 0 && op.NodeName != null);
                Models.AssertFails(ErrorCode.UnsupportedOperator, "MadMul", () => model.Session());
            }
        }

        [Test]
        public void ExternalDataCanComeFromMemory()
        {
            string folder = Directory.CreateDirectory(Path.Combine(Path.GetTempPath(), "folio-" + Guid.NewGuid())).FullName;
            try
            {
                string path = Path.Combine(folder, "model.onnx"); // without its data
                File.Copy(Models.PathOf("external"), path);
                byte[] weights = File.ReadAllBytes(Models.PathOf("external").Replace(".onnx", ".bin"));
                Models.AssertFails(ErrorCode.NoSuchFile, "external.bin", () => Model.Open(path));
                var options = new ModelOptions { CopiedExternalFiles = { { "external.bin", weights } } };
                using (Model opened = Model.Open(path, options))
                using (Session session = opened.Session())
                using (Session expected = Models.Session("external"))
                {
                    CollectionAssert.AreEqual(Run(expected), Run(session));
                }
            }
            finally
            {
                Directory.Delete(folder, true);
            }
        }

        [Test]
        public void ExternalDataInMemoryOfTheCallersIsReadInPlace()
        {
            string folder = Directory.CreateDirectory(Path.Combine(Path.GetTempPath(), "folio-" + Guid.NewGuid())).FullName;
            try
            {
                string path = Path.Combine(folder, "model.onnx"); // without its data
                File.Copy(Models.PathOf("external"), path);
                var weights = new CountedMemory<byte>(File.ReadAllBytes(Models.PathOf("external").Replace(".onnx", ".bin")));
                var options = new ModelOptions { ExternalFiles = { { "external.bin", weights.Memory } } };
                using (Model model = Model.Open(path, options)) AssertReadInPlace(model, "external", weights);
                options.ExternalFiles.Add("null.bin", default(ReadOnlyMemory<byte>));
                Model.Open(path, options).Dispose();
                Assert.AreEqual(0, weights.Pins);
                options.CopiedExternalFiles.Add("null.bin", null);
                Models.AssertFails(ErrorCode.InvalidArgument, "null.bin", () => Model.Open(path, options));
                Assert.AreEqual(0, weights.Pins, "an open that failed holds the memory");
            }
            finally
            {
                Directory.Delete(folder, true);
            }
        }

        [Test]
        public void AModelInMemoryOfTheCallersIsReadInPlace()
        {
            var bytes = new CountedMemory<byte>(File.ReadAllBytes(Models.PathOf("mlp")));
            using (Model model = Model.Wrap(bytes.Memory)) AssertReadInPlace(model, "mlp", bytes);
            var refused = new CountedMemory<byte>(64);
            Assert.Throws<FolioException>(() => Model.Wrap(refused.Memory));
            Assert.AreEqual(0, refused.Pins);
        }

        /// <summary>Disposes the model before the session, which then alone holds the memory.</summary>
        private static void AssertReadInPlace(Model model, string name, CountedMemory<byte> memory)
        {
            var options = new SessionOptions { Config = { { "session.disable_prepacking", "1" } } };
            using (Session session = model.Session(options))
            using (Session expected = Models.Session(name))
            {
                model.Dispose();
                Assert.AreEqual(1, memory.Pins, "the memory was let go under the session: its bytes were copied, or are lost");
                CollectionAssert.AreEqual(Run(expected), Run(session));
            }
            Assert.AreEqual(0, memory.Pins, "the memory was not given back");
        }

        [Test]
        public void InitializersCanBeReplaced()
        {
            using (Model model = Model.Open(Models.PathOf("mlp")))
            using (Session session = model.Session())
            using (Tensor zeros = Tensor.Allocate(ElementType.Float, Width, Width))
            {
                var options = new SessionOptions { Initializers = { { "layer0.weight", zeros } } };
                using (Session replaced = model.Session(options))
                {
                    CollectionAssert.AreNotEqual(Run(session), Run(replaced));
                }
                Models.AssertFails(ErrorCode.InvalidArgument, "nobody",
                    () => model.Session(new SessionOptions { Initializers = { { "nobody", zeros } } }));
            }
        }

        [Test]
        public void RunsMayOverrideInputsThatHaveADefault()
        {
            var one = new float[Width];
            for (int i = 0; i < Width; ++i) one[i] = 1;
            using (Model model = Model.Open(Models.PathOf("defaults")))
            using (Session session = model.Session())
            using (Tensor x = Tensor.CopyOf(Models.Row(1, Width), 1, Width))
            using (Tensor zeros = Tensor.Allocate(ElementType.Float, Width))
            using (Tensor ones = Tensor.Wrap(one, Width))
            {
                Assert.AreEqual(1, model.Inputs.Count);
                Assert.AreEqual(4, model.OverridableInitializers.Count);
                Assert.AreEqual("layer0.bias Float[32]", model.OverridableInitializers[0].ToString());
                Assert.AreEqual(1, session.OverridableInitializers.Count(info => info.Name == "layer3.bias"));
                Dictionary<string, Tensor> inputs = Models.Named("x", x);
                float[] usual = Run(session, inputs);
                inputs["layer3.bias"] = zeros;
                float[] without = Run(session, inputs);
                inputs["layer3.bias"] = ones;
                float[] with = Run(session, inputs);
                CollectionAssert.AreNotEqual(usual, without);
                for (int i = 0; i < Width; ++i) Assert.AreEqual(1f, with[i] - without[i], 1e-5f);
            }
        }

        [Test]
        public void ShapesCanBePlannedBeforehand()
        {
            using (Session session = Models.Session("mlp"))
            {
                session.PrepareShapes(new Dictionary<string, long[]> { { "x", new long[] { 3, Width } } });
                Models.AssertFails(ErrorCode.InvalidArgument, "5", () => session.PrepareShapes(
                    new Dictionary<string, long[]> { { "x", new long[] { 3, 5 } } }));
            }
        }

        private static float[] Run(Session session)
        {
            using (Tensor x = Tensor.CopyOf(Models.Row(1, Width), 1, Width)) return Run(session, Models.Named("x", x));
        }

        private static float[] Run(Session session, Dictionary<string, Tensor> inputs)
        {
            using (Outputs outputs = session.Run(inputs)) return outputs["y"].ToArray<float>();
        }
    }
}
