using System;
using System.Buffers;
using System.Collections.Generic;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    [TestFixture]
    public unsafe class TensorTests
    {
        [Test]
        public void WrapSharesTheMemoryBothWays()
        {
            var array = new float[6];
            using (Tensor tensor = Tensor.Wrap(array, 2, 3))
            {
                array[5] = 1.5f;
                Assert.AreEqual(1.5f, tensor.AsSpan<float>()[5]);
                Span<float> view = tensor.AsSpan<float>();
                view[0] = -2f;
                Assert.AreEqual(-2f, array[0]);
            }
        }

        [Test]
        public void WrapTakesAPartOfTheMemory()
        {
            var array = new long[] { 0, 1, 2, 3, 4 };
            using (Tensor tensor = Tensor.Wrap(array.AsMemory(1, 3), 3))
            {
                CollectionAssert.AreEqual(new long[] { 1, 2, 3 }, tensor.ToArray<long>());
                Assert.AreEqual(ElementType.Int64, tensor.Type);
            }
        }

        [Test]
        public void WrapRefusesAShapeOfAnotherSize()
        {
            Models.AssertFails(ErrorCode.InvalidArgument, "24", () => Tensor.Wrap(new float[6], 2, 4));
            Models.AssertFails(ErrorCode.InvalidArgument, "-1", () => Tensor.Wrap(new float[6], -1));
            Models.AssertFails(ErrorCode.InvalidArgument, "DateTime", () => Tensor.Wrap(new DateTime[1], 1));
        }

        [Test]
        public void ReadOnlyMemoryIsNotWritten()
        {
            ReadOnlyMemory<float> memory = new float[] { 1, 2 };
            using (Tensor tensor = Tensor.Wrap(memory, 2))
            {
                Assert.AreEqual(2f, tensor.AsReadOnlySpan<float>()[1]);
                Models.AssertFails(ErrorCode.InvalidArgument, "written", () => tensor.AsMemory<float>());
            }
        }

        [Test]
        public void EmptyTensorsAndScalars()
        {
            using (Tensor empty = Tensor.Wrap(new float[0], 0, 4))
            using (Tensor scalar = Tensor.CopyOf(new long[] { 7 }))
            {
                Assert.AreEqual(0, empty.ElementCount);
                Assert.AreEqual(0, scalar.Shape.Length);
                Assert.AreEqual(7, scalar.AsReadOnlySpan<long>()[0]);
            }
        }

        [Test]
        public void AViewOfAnotherTypeFails()
        {
            using (Tensor tensor = Tensor.CopyOf(new float[] { 1 }, 1))
            {
                Models.AssertFails(ErrorCode.InvalidArgument, "Float", () => tensor.AsMemory<int>());
                Models.AssertFails(ErrorCode.InvalidArgument, "Float", () => tensor.ToStrings());
            }
        }

        [Test]
        public void CopiesOfEachTypeHaveTheElements()
        {
            using (Tensor boolean = Tensor.CopyOf(new bool[] { true, false }, 2))
            using (Tensor bytes = Tensor.CopyOf(new sbyte[] { -1 }, 1))
            using (Tensor half = Tensor.WrapAs(new ushort[] { 0x3c00 }.AsMemory(), ElementType.Float16, 1))
            {
                Assert.AreEqual(ElementType.Bool, boolean.Type);
                Assert.AreEqual(new[] { true, false }, boolean.ToArray<bool>());
                Assert.AreEqual(ElementType.Int8, bytes.Type);
                Assert.AreEqual(ElementType.Float16, half.Type);
                Assert.AreEqual(0x3c, half.AsBytes()[1]);
                Models.AssertFails(ErrorCode.InvalidArgument, "Float16", () => half.ToArray<float>());
            }
        }

        [Test]
        public void AllocateIsZeroAndAligned()
        {
            using (Tensor tensor = Tensor.Allocate(ElementType.Double, 3))
            {
                Assert.AreEqual(0.0, tensor.AsSpan<double>()[2]);
                Assert.AreEqual(ValueKind.Tensor, tensor.Kind);
                using (MemoryHandle pin = tensor.AsMemory<double>().Pin())
                {
                    Assert.AreEqual(0, (long)pin.Pointer % 64);
                }
            }
        }

        [Test]
        public void StringsKeepEmojiAndNul()
        {
            string[] texts = { "日本-😀", "a\0b", "", "\0", "é" };
            using (Tensor tensor = Tensor.CopyOf(texts, 5))
            {
                CollectionAssert.AreEqual(texts, tensor.ToStrings());
                Models.AssertFails(ErrorCode.InvalidArgument, "strings, which can only be copied", () => tensor.AsBytes());
            }
            Models.AssertFails(ErrorCode.InvalidArgument, "only copied",
                () => Tensor.WrapAs(new byte[4].AsMemory(), ElementType.String, 4));
            Models.AssertFails(ErrorCode.InvalidArgument, "strings", () => Tensor.CopyOf(texts, 4));
            Models.AssertFails(ErrorCode.InvalidArgument, "null", () => Tensor.CopyOf(new string[] { null }, 1));
        }

        [Test]
        public void StringsCanBeWritten()
        {
            using (Tensor tensor = Tensor.Allocate(ElementType.String, 2, 2))
            using (Tensor floats = Tensor.Allocate(ElementType.Float, 1))
            {
                tensor.SetString(3, "日本-😀");
                tensor.SetString(1, "a\0b");
                tensor.SetString(1, "c\0");
                tensor.SetString(3, "longer than it was: 日本-😀");
                CollectionAssert.AreEqual(new[] { "", "c\0", "", "longer than it was: 日本-😀" }, tensor.ToStrings());
                Models.AssertFails(ErrorCode.InvalidArgument, "4", () => tensor.SetString(4, "x"));
                Models.AssertFails(ErrorCode.InvalidArgument, "index -1 ", () => tensor.SetString(-1, "x"));
                Models.AssertFails(ErrorCode.InvalidArgument, "null", () => tensor.SetString(0, null));
                Models.AssertFails(ErrorCode.InvalidArgument, "", () => floats.SetString(0, "x"));
            }
        }

        [Test]
        public void NullsThatAreNotAllowedAreNamed()
        {
            long[] shape = null;
            float[] floats = null;
            string[] texts = null;
            var one = new float[1];
            AssertNull("shape", () => Tensor.Allocate(ElementType.Float, shape));
            AssertNull("shape", () => Tensor.Wrap(one, shape));
            AssertNull("shape", () => Tensor.Wrap(one.AsMemory(), shape));
            AssertNull("shape", () => Tensor.Wrap((ReadOnlyMemory<float>)one, shape));
            AssertNull("shape", () => Tensor.WrapAs(one.AsMemory(), ElementType.Int32, shape));
            AssertNull("shape", () => Tensor.CopyOf(one, shape));
            AssertNull("shape", () => Tensor.CopyOf(new[] { "a" }, shape));
            AssertNull("array", () => Tensor.Wrap(floats, 0));
            AssertNull("array", () => Tensor.CopyOf(floats, 0));
            AssertNull("array", () => Tensor.CopyOf(texts, 0));
            AssertNull("elements", () => Value.Sequence(ElementType.Float, null));
            AssertNull("element 0", () => Value.Sequence(ElementType.Float, new Tensor[1]));
            using (Tensor keys = Tensor.CopyOf(new long[] { 1 }, 1))
            {
                AssertNull("keys", () => Value.Map(null, keys));
                AssertNull("values", () => Value.Map(keys, null));
            }
            AssertNull("options", () => new Env(null));
            using (Session session = Models.Session("mlp"))
            {
                AssertNull("shapes", () => session.PrepareShapes(null));
                AssertNull("'x'", () => session.PrepareShapes(new Dictionary<string, long[]> { { "x", null } }));
                AssertNull("inputs", () => session.Run((Dictionary<string, Tensor>)null));
                AssertNull("inputs", () => session.RunAsync((Dictionary<string, Tensor>)null));
            }
        }

        private static void AssertNull(string what, TestDelegate action)
        {
            Models.AssertFails(ErrorCode.InvalidArgument, what, action);
            Models.AssertFails(ErrorCode.InvalidArgument, "null", action);
        }

        [Test]
        public void UseAfterCloseThrowsAndClosingAgainIsFine()
        {
            Tensor tensor = Tensor.Allocate(ElementType.Float, 2);
            tensor.Dispose();
            tensor.Dispose();
            Models.AssertFails(ErrorCode.Closed, "closed", () => GC.KeepAlive(tensor.Shape));
            Models.AssertFails(ErrorCode.Closed, "closed", () => tensor.AsSpan<float>());
            Models.AssertFails(ErrorCode.Closed, "closed", () => tensor.AsMemory<float>());
        }

        [Test]
        public void ViewsOutliveTheirTensor()
        {
            for (int round = 0; round < 50; ++round)
            {
                Memory<float> view;
                using (Tensor tensor = Tensor.Allocate(ElementType.Float, 100000))
                {
                    view = tensor.AsMemory<float>();
                    Span<float> written = view.Span;
                    written[99999] = round;
                }
                if (round % 10 == 0) Collect();
                using (Tensor other = Tensor.Allocate(ElementType.Float, 100000))
                {
                    Span<float> elsewhere = other.AsSpan<float>();
                    elsewhere[99999] = -1f;
                    Assert.AreEqual((float)round, view.Span[99999]);
                }
            }
        }

        [Test]
        public void WrappedMemoryLivesAsLongAsItsTensor()
        {
            var memory = new CountedMemory<float>(4);
            Tensor tensor = Tensor.Wrap(memory.Memory, 4);
            Assert.AreEqual(1, memory.Pins);
            tensor.Dispose();
            tensor.Dispose();
            Assert.AreEqual(0, memory.Pins);
            Assert.Throws<FolioException>(() => Tensor.Wrap(memory.Memory, 5));
            Assert.AreEqual(0, memory.Pins, "a tensor that was refused holds its memory");
        }

        [Test]
        public void WrappedArraysAreGivenBack()
        {
            long before = AddressSpaceKilobytes();
            for (int i = 0; i < 4000; ++i) // 4 GB in all
            {
                Tensor tensor = Tensor.Wrap(new float[250000], 250000);
                if (i % 2 == 0) tensor.Dispose();
                if (i % 100 == 99) Collect();
            }
            Assert.Less(AddressSpaceKilobytes() - before, 2000000);
        }

        [Test]
        public void TensorsThatNobodyClosesAreCollected()
        {
            long before = AddressSpaceKilobytes();
            for (int i = 0; i < 4000; ++i) // 4 GB in all
            {
                Tensor.Allocate(ElementType.Float, 250000);
                if (i % 100 == 99) Collect();
            }
            Assert.Less(AddressSpaceKilobytes() - before, 2000000);
        }

        private static void Collect()
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }

        private static long AddressSpaceKilobytes()
        {
            foreach (string line in System.IO.File.ReadAllLines("/proc/self/status"))
            {
                if (line.StartsWith("VmSize:")) return long.Parse(line.Substring(7).Replace("kB", "").Trim());
            }
            throw new InvalidOperationException("/proc/self/status has no VmSize");
        }
    }
}
