using System;
using System.IO;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    /// <summary>Each test has an empty folder of its own.</summary>
    public abstract class TestFolder
    {
        /// <summary>Its path.</summary>
        protected string folder;

        [SetUp]
        public void MakeFolder()
        {
            folder = Directory.CreateDirectory(Path.Combine(Path.GetTempPath(), "folio-" + Guid.NewGuid())).FullName;
        }

        [TearDown]
        public void DeleteFolder()
        {
            Directory.Delete(folder, true);
        }
    }
}
