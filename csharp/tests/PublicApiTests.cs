using System;
using System.Collections.Generic;
using System.Linq;
using System.Reflection;
using System.Reflection.Emit;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    /// <summary>The public API as a whole: every member is called by some test, and none shows what is internal.</summary>
    [TestFixture]
    public class PublicApiTests
    {
        private const BindingFlags All = BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.Instance |
            BindingFlags.Static | BindingFlags.DeclaredOnly;

        private static readonly Dictionary<short, OpCode> opCodes = typeof(OpCodes)
            .GetFields(BindingFlags.Public | BindingFlags.Static).Select(field => (OpCode)field.GetValue(null))
            .ToDictionary(code => code.Value);

        [Test]
        public void EveryPublicMemberIsCalledByATest()
        {
            var called = new HashSet<string>();
            foreach (Type type in typeof(PublicApiTests).Assembly.GetTypes())
            {
                foreach (MethodBase method in MethodsOf(type)) AddCalled(method, called);
            }
            var missing = PublicMembers().Select(NameOf).Where(name => !called.Contains(name)).OrderBy(name => name);
            CollectionAssert.IsEmpty(missing.ToList());
        }

        [Test]
        public void NoSignatureShowsWhatIsInternal()
        {
            int count = 0;
            foreach (MethodBase member in PublicMembers())
            {
                List<Type> types = member.GetParameters().Select(parameter => parameter.ParameterType).ToList();
                var method = member as MethodInfo;
                if (method != null) types.Add(method.ReturnType);
                foreach (Type type in types)
                {
                    Assert.IsFalse(type.IsPointer || type == typeof(IntPtr), NameOf(member));
                    Assert.IsFalse(type.Name.StartsWith("Native") || type.Name.Contains("SWIG"), NameOf(member));
                }
                ++count;
            }
            Assert.Greater(count, 150);
        }

        private static IEnumerable<MethodBase> MethodsOf(Type type)
        {
            return type.GetMethods(All).Cast<MethodBase>().Concat(type.GetConstructors(All));
        }

        private static IEnumerable<MethodBase> PublicMembers()
        {
            var ofEveryObject = new HashSet<string> { "Equals", "GetHashCode", "ToString" };
            return typeof(Model).Assembly.GetExportedTypes().Where(type => !type.IsEnum)
                .SelectMany(MethodsOf).Where(member => member.IsPublic && !ofEveryObject.Contains(member.Name));
        }

        private static string NameOf(MethodBase member)
        {
            string type = member.DeclaringType.FullName + ".";
            // A property is one member, read or written.
            if (member.IsSpecialName && member.Name.Substring(1).StartsWith("et_")) return type + member.Name.Substring(4);
            return type + member.Name + "(" +
                string.Join(", ", member.GetParameters().Select(parameter => parameter.ParameterType.ToString())) + ")";
        }

        // Reads the instructions of the method, and resolves what they call.
        private static void AddCalled(MethodBase method, HashSet<string> called)
        {
            byte[] il = method.GetMethodBody()?.GetILAsByteArray();
            if (il == null) return;
            Type[] typeArguments = method.DeclaringType.IsGenericType ? method.DeclaringType.GetGenericArguments() : null;
            Type[] methodArguments = method.IsGenericMethod ? method.GetGenericArguments() : null;
            int at = 0;
            while (at < il.Length)
            {
                short value = il[at++];
                if (value == 0xfe) value = (short)(0xfe00 | il[at++]);
                OpCode code = opCodes[value];
                if (code.OperandType == OperandType.InlineMethod)
                {
                    MethodBase found = method.Module.ResolveMethod(BitConverter.ToInt32(il, at), typeArguments,
                        methodArguments);
                    var generic = found as MethodInfo;
                    if (generic != null && generic.IsGenericMethod) found = generic.GetGenericMethodDefinition();
                    if (found.DeclaringType != null) called.Add(NameOf(found));
                }
                at += BytesOf(code.OperandType, il, at);
            }
        }

        private static int BytesOf(OperandType type, byte[] il, int at)
        {
            switch (type)
            {
                case OperandType.InlineNone:
                    return 0;
                case OperandType.ShortInlineBrTarget:
                case OperandType.ShortInlineI:
                case OperandType.ShortInlineVar:
                    return 1;
                case OperandType.InlineVar:
                    return 2;
                case OperandType.InlineI8:
                case OperandType.InlineR:
                    return 8;
                case OperandType.InlineSwitch:
                    return 4 + 4 * BitConverter.ToInt32(il, at);
                default:
                    return 4;
            }
        }
    }
}
