using System;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    /// <summary>Numbers of 16 bits; sequences and maps made by hand; messages of the loader.</summary>
    [TestFixture]
    public class NumbersTests
    {
        private static ushort Half(double value)
        {
            return ((Float16)(float)value).Bits;
        }

        [Test]
        public void EveryFloat16GoesToFloatAndBack()
        {
            for (int bits = 0; bits < 1 << 16; ++bits)
            {
                var value = (float)new Float16((ushort)bits);
                var back = (Float16)value;
                Assert.IsTrue(float.IsNaN(value) ? float.IsNaN((float)back) : back.Bits == bits);
            }
            Assert.AreEqual(1f, (float)new Float16(0x3c00));
            Assert.AreEqual(65504f, (float)new Float16(0x7bff));
            Assert.AreEqual(Math.Pow(2, -24), (float)new Float16(1));
        }

        [Test]
        public void FloatsAreRoundedToTheNearestFloat16()
        {
            double step = Math.Pow(2, -11);
            Assert.AreEqual(0x3c00, Half(1 + step)); // half way: to the even one
            Assert.AreEqual(0x3c02, Half(1 + 3 * step));
            Assert.AreEqual(0x3c01, Half(1 + step + Math.Pow(2, -20)));
            Assert.AreEqual(0x7bff, Half(65519));
            Assert.AreEqual(0x7c00, Half(65520));
            Assert.AreEqual(0xfc00, Half(double.NegativeInfinity));
            Assert.AreEqual(0x8000, Half(-Math.Pow(2, -25)));
            Assert.AreEqual(0x0002, Half(1.5 * Math.Pow(2, -24))); // half way: to the even one
            Assert.AreEqual(0x0400, Half(Math.Pow(2, -14) - Math.Pow(2, -26)));
        }

        [Test]
        public void EveryBFloat16GoesToFloatAndBack()
        {
            for (int bits = 0; bits < 1 << 16; ++bits)
            {
                var value = (float)new BFloat16((ushort)bits);
                var back = (BFloat16)value;
                Assert.IsTrue(float.IsNaN(value) ? float.IsNaN((float)back) : back.Bits == bits);
            }
            Assert.AreEqual(0x3f80, ((BFloat16)(float)(1 + Math.Pow(2, -8))).Bits); // half way: to the even one
            Assert.AreEqual(0x3f82, ((BFloat16)(float)(1 + 3 * Math.Pow(2, -8))).Bits);
            Assert.AreEqual(0x7f80, ((BFloat16)float.MaxValue).Bits);
        }

        [Test]
        public void TensorsOf16Bits()
        {
            var elements = new[] { (Float16)0.5f, (Float16)(-2f) };
            using (Tensor half = Tensor.Wrap(elements, 2))
            using (Tensor brain = Tensor.Wrap(new[] { (BFloat16)3f }.AsMemory(), 1))
            {
                Assert.AreEqual(ElementType.Float16, half.Type);
                Assert.AreEqual(-2f, (float)half.AsSpan<Float16>()[1]);
                Assert.AreEqual("-2", half.AsSpan<Float16>()[1].ToString());
                Assert.AreEqual(elements[1], half.ToArray<Float16>()[1]);
                Assert.AreEqual(elements[1].GetHashCode(), half.ToArray<Float16>()[1].GetHashCode());
                Assert.AreEqual(ElementType.BFloat16, brain.Type);
                Assert.IsTrue(brain.ToArray<BFloat16>()[0].Equals((BFloat16)3f) && !elements[0].Equals(elements[1]));
                Models.AssertFails(ErrorCode.InvalidArgument, "Float16", () => half.ToArray<float>());
            }
        }

        [Test]
        public void SequencesAndMapsAreMadeOfTensors()
        {
            using (Tensor a = Tensor.CopyOf(new float[] { 1, 2 }, 2))
            using (Tensor b = Tensor.CopyOf(new float[] { 3 }, 1))
            using (Value sequence = Value.Sequence(ElementType.Float, new[] { a, b }))
            using (Tensor keys = Tensor.CopyOf(new[] { "日本", "😀" }, 2))
            using (Value map = Value.Map(keys, a))
            {
                b.Dispose(); // the sequence holds it
                Assert.AreEqual(ValueKind.Sequence, sequence.Kind);
                using (Value part = sequence.Part(1)) Assert.AreEqual(3f, ((Tensor)part).ToArray<float>()[0]);
                Assert.AreEqual(ValueKind.Map, map.Kind);
                Assert.AreEqual(ElementType.String, map.Type);
                using (Value mapKeys = map.Part(0))
                {
                    CollectionAssert.AreEqual(new[] { "日本", "😀" }, ((Tensor)mapKeys).ToStrings());
                }
                Models.AssertFails(ErrorCode.InvalidArgument, "", () => Value.Map(a, keys));
                Models.AssertFails(ErrorCode.InvalidArgument, "", () => Value.Sequence(ElementType.Int64, new[] { a }));
            }
        }

        [Test]
        public void TheLoaderExplainsWhatTheLinkerMeans()
        {
            Func<string, string, string> explain = (message, mappings) => (string)typeof(Model).Assembly
                .GetType("FolioRuntime.NativeLibrary")
                .GetMethod("Explain", System.Reflection.BindingFlags.Static | System.Reflection.BindingFlags.NonPublic)
                .Invoke(null, new object[] { message, mappings });
            StringAssert.Contains("musl", explain("x", "7f /lib/ld-musl-x86_64.so.1"));
            const string old = "/lib/libc.so.6: version `GLIBC_2.36' not found (required by libfolio.so.1)";
            StringAssert.Contains("too old", explain(old, ""));
            StringAssert.Contains("noexec", explain("a.so: failed to map segment from shared object", ""));
            Assert.AreEqual("no such file", explain("no such file", "7f /lib/ld-linux-x86-64.so.2"));
        }
    }
}
