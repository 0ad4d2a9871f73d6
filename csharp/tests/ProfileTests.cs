using System;
using System.IO;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    /// <summary>Profiles of runs: when they begin, what they hold, when they are written.</summary>
    [TestFixture]
    public class ProfileTests : TestFolder
    {
        private SessionOptions Profiled()
        {
            return new SessionOptions { Profile = Path.Combine(folder, "p 😀") };
        }

        private static void Run(Session session)
        {
            using (Tensor x = Tensor.Allocate(ElementType.Float, 1, Models.Width)) session.Run(Models.Named("x", x)).Dispose();
        }

        [Test]
        public void AProfileHasTheStepsOfTheRunsBeforeItsEnd()
        {
            DateTimeOffset before = DateTimeOffset.UtcNow;
            using (Model model = Model.Open(Models.PathOf("mlp")))
            using (Session session = model.Session(Profiled()))
            {
                TimeSpan late = session.ProfilingStart.Value - before;
                Assert.IsTrue(late > TimeSpan.FromSeconds(-1) && late < TimeSpan.FromSeconds(60), late.ToString());
                Run(session);
                string file = session.EndProfiling();
                CollectionAssert.AreEqual(new[] { file }, Directory.GetFiles(folder));
                StringAssert.StartsWith("p 😀_", Path.GetFileName(file));
                string trace = File.ReadAllText(file);
                StringAssert.Contains("session_initialization", trace);
                StringAssert.Contains("layer0/MatMul_kernel_time", trace);
                Run(session);
                Assert.IsNull(session.EndProfiling());
                Assert.AreEqual(trace, File.ReadAllText(file));
            }
            Assert.AreEqual(1, Directory.GetFiles(folder).Length);
        }

        [Test]
        public void AProfileIsWrittenWhenItsSessionCloses()
        {
            Session session;
            using (Model model = Model.Open(Models.PathOf("mlp"))) session = model.Session(Profiled());
            Run(session);
            session.Dispose();
            Assert.AreEqual(1, Directory.GetFiles(folder).Length);
            StringAssert.Contains("MatMul", File.ReadAllText(Directory.GetFiles(folder)[0]));
            Models.AssertFails(ErrorCode.Closed, "session", () => session.EndProfiling());
            Models.AssertFails(ErrorCode.Closed, "session", () => Assert.IsNull(session.ProfilingStart));
        }

        [Test]
        public void AProfileThatCannotBeWrittenFailsTheSession()
        {
            using (Model model = Model.Open(Models.PathOf("mlp")))
            {
                Models.AssertFails(ErrorCode.NoSuchFile, "no/such",
                    () => model.Session(new SessionOptions { Profile = Path.Combine(folder, "no/such/p") }));
            }
        }

        [Test]
        public void WithoutAProfileThereIsNothingToEnd()
        {
            using (Session session = Models.Session("mlp"))
            {
                Assert.IsNull(session.EndProfiling());
                Assert.IsNull(session.ProfilingStart);
            }
        }
    }
}
