using System;
using System.IO;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    /// <summary>Model files that change while they are open.</summary>
    [TestFixture]
    public class FilesTests
    {
        private const int Width = Models.Width;

        private string path;

        [SetUp]
        public void Copy()
        {
            path = Path.Combine(Path.GetTempPath(), "folio-" + Guid.NewGuid() + ".onnx");
            File.Copy(Models.PathOf("mlp"), path);
        }

        [TearDown]
        public void Delete()
        {
            File.Delete(path);
        }

        /// <summary>Weights stay where they are in the file, so that every run reads them there.</summary>
        private static Session InPlace(Model model)
        {
            return model.Session(new SessionOptions { Config = { { "session.disable_prepacking", "1" } } });
        }

        private static float[] Run(Session session)
        {
            using (Tensor x = Tensor.CopyOf(Models.Row(1, Width), 1, Width))
            using (Outputs outputs = session.Run(Models.Named("x", x)))
            {
                return outputs["y"].ToArray<float>();
            }
        }

        private void Truncate()
        {
            using (var file = new FileStream(path, FileMode.Open, FileAccess.Write, FileShare.ReadWrite))
            {
                file.SetLength(0);
            }
        }

        [Test]
        public void ATruncatedModelIsAnErrorOfTheRun()
        {
            using (Model model = Model.Open(path))
            using (Session session = InPlace(model))
            {
                Run(session);
                Truncate();
                for (int i = 0; i < 3; ++i)
                {
                    Models.AssertFails(ErrorCode.ModelChanged, Path.GetFileName(path), () => Run(session));
                }
            }
        }

        [Test]
        public void FaultsOfTheHostAreStillTheHosts()
        {
            using (Model.Open(path)) // the guard is on
            {
                string nothing = null;
                Assert.Throws<NullReferenceException>(() => nothing.ToString());
            }
        }

        [Test]
        public void ReloadGivesTheFileThatIsThereNow()
        {
            using (Model model = Model.Open(path))
            using (Session session = InPlace(model))
            {
                float[] before = Run(session);
                using (Model same = model.Reload())
                using (Session again = InPlace(same))
                {
                    CollectionAssert.AreEqual(before, Run(again));
                }
                byte[] other = File.ReadAllBytes(path);
                for (int i = other.Length / 2; i < other.Length / 2 + 64; i += 4) other[i] ^= 1;
                File.Delete(path); // what is mapped stays
                File.WriteAllBytes(path, other);
                using (Model changed = model.Reload())
                using (Session newer = InPlace(changed))
                {
                    CollectionAssert.AreNotEqual(before, Run(newer));
                }
                CollectionAssert.AreEqual(before, Run(session));
            }
        }

        [Test]
        public void AModelFromBytesCannotBeReloaded()
        {
            using (Model model = Model.CopyOf(File.ReadAllBytes(path)))
            {
                Models.AssertFails(ErrorCode.InvalidArgument, "memory", () => model.Reload());
            }
        }
    }
}
