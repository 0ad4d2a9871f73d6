using System;
using System.Linq;
using System.Reflection;
using NUnit.Framework;

namespace FolioRuntime.Tests
{
    /// <summary>
    /// Runs the NUnit tests of its own assembly, on mono and on CoreCLR. (nunit-console runs on mono only, and the server
    /// that it starts sometimes keeps it from ending.) Prints a line for each; arguments: names of fixtures, none for all.
    /// </summary>
    internal static class TestRunner
    {
        public static int Main(string[] arguments)
        {
            int failed = 0, passed = 0;
            foreach (Type type in typeof(TestRunner).Assembly.GetTypes().Where(Has<TestFixtureAttribute>).OrderBy(t => t.Name))
            {
                if (arguments.Length != 0 && !arguments.Contains(type.Name)) continue;
                foreach (MethodInfo test in type.GetMethods().Where(Has<TestAttribute>))
                {
                    string error = Run(type, test);
                    Console.WriteLine((error == null ? "ok " : "FAILED ") + type.Name + "." + test.Name + " " + error);
                    if (error == null) ++passed;
                    else ++failed;
                }
            }
            Console.WriteLine(passed + " passed, " + failed + " failed");
            return failed == 0 && passed != 0 ? 0 : 1;
        }

        private static bool Has<T>(MemberInfo member) where T : Attribute
        {
            return member.GetCustomAttributes(typeof(T), false).Length != 0;
        }

        /// <summary>What went wrong; null: nothing.</summary>
        private static string Run(Type type, MethodInfo test)
        {
            object fixture = Activator.CreateInstance(type);
            try
            {
                try
                {
                    Call<SetUpAttribute>(fixture);
                    test.Invoke(fixture, null);
                }
                finally
                {
                    Call<TearDownAttribute>(fixture);
                }
                return null;
            }
            catch (TargetInvocationException e)
            {
                return e.InnerException.ToString();
            }
        }

        private static void Call<T>(object fixture) where T : Attribute
        {
            foreach (MethodInfo method in fixture.GetType().GetMethods().Where(Has<T>)) method.Invoke(fixture, null);
        }
    }
}
