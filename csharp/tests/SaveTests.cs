using System;
using System.Collections.Generic;
using System.IO;
using System.Threading;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    /// <summary>Models written as files.</summary>
    [TestFixture]
    public class SaveTests : TestFolder
    {
        private string In(string name)
        {
            return Path.Combine(folder, name);
        }

        private static SaveResult Save(string path, SaveOptions options)
        {
            using (Model model = Model.Open(Models.PathOf("mlp"))) return model.Save(path, options);
        }

        private void AssertRefused(string part, SaveOptions options, string name)
        {
            Models.AssertFails(ErrorCode.InvalidArgument, part, () => Save(In(name), options));
            Assert.IsFalse(File.Exists(In(name)));
        }

        [Test]
        public void ASavedModelOpensAgain()
        {
            string saved = In("saved 😀.ort");
            using (Model model = Model.Open(Models.PathOf("mlp")))
            {
                SaveResult written = model.Save(saved);
                Assert.AreEqual(new FileInfo(saved).Length, written.FileBytes);
                Assert.AreEqual(0, written.DataBytes);
            }
            using (Model model = Model.Open(saved))
            {
                Assert.AreEqual("mlp", model.Metadata["make_model.kind"]);
                Assert.AreEqual("ort", model.Info.Format);
            }
        }

        [Test]
        public void TheFormatIsChosenByItsName()
        {
            foreach (string format in new[] { "ORT", "ONNX" })
            {
                SaveResult written = Save(In("saved.bin"), new SaveOptions { Format = format, Optimize = "none" });
                using (Model model = Model.Open(In("saved.bin")))
                {
                    Assert.AreEqual(format.ToLowerInvariant(), model.Info.Format);
                    Assert.AreEqual(written.NodeCount, model.Info.NodeCount);
                    Assert.AreEqual(written.InitializerCount, model.Info.InitializerCount);
                    Assert.AreEqual(written.InitializerBytes, model.Info.InitializerBytes);
                }
            }
        }

        private long Nodes(string name, SaveOptions options)
        {
            using (Model model = Model.Open(Models.PathOf(name))) return model.Save(In("saved.onnx"), options).NodeCount;
        }

        [Test]
        public void LevelsOptimizeMoreAndMore()
        {
            Assert.Less(Nodes("types", new SaveOptions { Optimize = "basic" }),
                Nodes("types", new SaveOptions { Optimize = "none" }));
            long all = Nodes("decoder", new SaveOptions { Optimize = "all" });
            Assert.Less(all, Nodes("decoder", new SaveOptions { Optimize = "basic" }));
            Assert.AreEqual(all, Nodes("decoder", null));
            Assert.AreEqual(all, Nodes("decoder", new SaveOptions { Optimize = "extended" }));
        }

        [Test]
        public void LargeInitializersGoIntoAFileBesideTheModel()
        {
            string saved = In("saved.onnx");
            string data = In("weights 😀.bin");
            var options = new SaveOptions { ExternalFile = "weights 😀.bin", ExternalMinBytes = 1 << 30 };
            Assert.AreEqual(0, Save(saved, options).DataBytes);
            Assert.IsFalse(File.Exists(data));
            options.ExternalMinBytes = 0;
            SaveResult large = Save(saved, options);
            Assert.AreEqual(new FileInfo(data).Length, large.DataBytes);
            Assert.Greater(large.DataBytes, large.FileBytes);
            using (Model model = Model.Open(saved)) model.Session().Dispose();
            options.ExternalMinBytes = 128;
            SaveResult small = Save(saved, options);
            Assert.IsTrue(small.DataBytes > large.DataBytes && small.FileBytes < large.FileBytes);
        }

        [Test]
        public void WhatMakesNoSenseIsRefused()
        {
            AssertRefused("most", new SaveOptions { Optimize = "most" }, "a.onnx");
            AssertRefused("TXT", new SaveOptions { Format = "TXT" }, "a.onnx");
            AssertRefused("-1", new SaveOptions { ExternalMinBytes = -1 }, "a.onnx");
            AssertRefused("b/c", new SaveOptions { ExternalFile = "b/c" }, "a.onnx");
            AssertRefused("a.ort", new SaveOptions { ExternalFile = "b" }, "a.ort");
            AssertRefused("null", new SaveOptions { Format = null }, "a.ort");
            AssertRefused("NUL", new SaveOptions { Format = "ORT\0" }, "a.ort");
            Models.AssertFails(ErrorCode.NoSuchFile, "none",
                () => Save(Path.Combine(folder, "none", "a.onnx"), new SaveOptions()));
        }

        [Test]
        public void SavesTellHowFarTheyAreAndCanBeStopped()
        {
            var stages = new List<string>();
            double last = 0;
            var heard = new SaveOptions
            {
                Progress = (stage, fraction) =>
                {
                    stages.Add(stage);
                    Assert.IsTrue(fraction >= last && fraction <= 1, stage + " " + fraction);
                    last = fraction;
                    return true;
                },
            };
            Save(In("saved.onnx"), heard);
            Assert.IsTrue(stages.Count > 0 && last == 1.0, string.Join(" ", stages) + " " + last);

            string never = In("never.onnx");
            Models.AssertFails(ErrorCode.Cancelled, "",
                () => Save(never, new SaveOptions { Progress = (stage, fraction) => false }));
            var broken = new SaveOptions { Progress = (stage, fraction) => { throw new InvalidDataException("mine 😀"); } };
            Assert.AreEqual("mine 😀", Assert.Throws<InvalidDataException>(() => Save(never, broken)).Message);
            using (var source = new CancellationTokenSource())
            {
                Save(never, new SaveOptions { CancellationToken = source.Token });
                File.Delete(never);
                source.Cancel();
                Models.AssertFails(ErrorCode.Cancelled, "",
                    () => Save(never, new SaveOptions { CancellationToken = source.Token }));
            }
            Assert.IsFalse(File.Exists(never));
        }
    }
}
