using System;
using System.Collections.Generic;
using System.IO;
using System.Text;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    /// <summary>What the tests share: the models that the build wrote, and a few short cuts.</summary>
    internal static class Models
    {
        /// <summary>Rows of so many floats: x to y.</summary>
        internal const int Width = 32;

        internal static string PathOf(string name)
        {
            return Path.Combine(Environment.GetEnvironmentVariable("FOLIO_TEST_MODELS"), name + ".onnx");
        }

        internal static Session Session(string name)
        {
            using (Model model = Model.Open(PathOf(name))) return model.Session();
        }

        /// <summary>Rows that differ with `seed`.</summary>
        internal static float[] Row(int seed, int count)
        {
            var result = new float[count];
            for (int i = 0; i < count; ++i) result[i] = (float)Math.Sin(seed * 31 + i);
            return result;
        }

        internal static Dictionary<string, Tensor> Named(string name, Tensor tensor)
        {
            return new Dictionary<string, Tensor> { { name, tensor } };
        }

        /// <summary>Writes `to` over each `from` of the same length.</summary>
        internal static void ReplaceAll(byte[] bytes, string from, string to)
        {
            byte[] old = Encoding.ASCII.GetBytes(from);
            byte[] with = Encoding.ASCII.GetBytes(to);
            for (int i = 0; i + old.Length <= bytes.Length; ++i)
            {
                if (bytes.AsSpan(i, old.Length).SequenceEqual(old)) with.CopyTo(bytes, i);
            }
        }

        internal static void AssertFails(ErrorCode code, string text, TestDelegate action)
        {
            var e = Assert.Throws<FolioException>(action);
            Assert.AreEqual(code, e.Code, e.Message);
            StringAssert.Contains(text, e.Message);
        }
    }
}
