using System;
using System.Collections.Generic;
using System.IO;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace FolioRuntime
{
    /// <summary>
    /// Loads libfolio_csharp.so, which brings libfolio.so.1 from its own folder. Looks in the folder that the AppDomain
    /// data folio.native.path or the environment variable FOLIO_NATIVE_PATH names; beside this assembly and the program,
    /// and in runtimes/linux-x64/native there; where the system looks. Once it is loaded, DllImport finds it by its name.
    /// </summary>
    internal static class NativeLibrary
    {
        internal const string Name = "libfolio_csharp";
        private const string FileName = Name + ".so";
        private const string Setting = "folio.native.path";
        private const string Variable = "FOLIO_NATIVE_PATH";
        private const string Glibc = "2.36"; // what the build needs; tests/c_api/exports_test.py
        private const string NameIt = "name its folder with the environment variable " + Variable +
            " (or the AppContext's data " + Setting + "), or take the NuGet package FolioRuntime or the Debian package" +
            " libfolio-cil, which have it";
        private const int Now = 2;

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate void ErrorFunction(int code, IntPtr message, long bytes);

        // In a field: the native side keeps it.
        private static readonly ErrorFunction onError = OnError;
        private static readonly Lazy<bool> loaded = new Lazy<bool>(Load, LazyThreadSafetyMode.ExecutionAndPublication);

        /// <summary>Returns with the library loaded, or throws DllNotFoundException.</summary>
        internal static void Require()
        {
            if (!loaded.Value) throw new DllNotFoundException(FileName);
        }

        /// <summary>The linker's message and, where it follows from that, what to do about it.</summary>
        internal static string Explain(string message, string mappings)
        {
            if (mappings.Contains("/ld-musl-"))
            {
                return message + "; this system's C library is musl, Folio needs glibc " + Glibc +
                    " or later: use an image that is not Alpine";
            }
            if (message.Contains("GLIBC_") && message.Contains("not found"))
            {
                return message + "; this system's glibc is too old, Folio needs " + Glibc +
                    " or later: Debian 12, Ubuntu 22.10, RHEL 10";
            }
            if (message.Contains("failed to map segment"))
            {
                return message + "; the folder is on a file system that forbids programs (noexec): name another with " +
                    Variable;
            }
            return message;
        }

        private static bool Load()
        {
            string setting = AppDomain.CurrentDomain.GetData(Setting) as string;
            string folder = setting ?? Environment.GetEnvironmentVariable(Variable);
            var tried = new List<string>();
            if (!string.IsNullOrEmpty(folder))
            {
                LoadNamed(folder, setting != null ? "the AppContext's data " + Setting : "the environment variable " + Variable);
            }
            else
            {
                string assembly = typeof(NativeLibrary).Assembly.Location; // "" in a single-file program
                string beside = string.IsNullOrEmpty(assembly) ? null : Path.GetDirectoryName(assembly);
                if (!TryBeside(beside, tried)) TryBeside(AppDomain.CurrentDomain.BaseDirectory, tried);
            }
            try
            {
                Register();
            }
            catch (DllNotFoundException e)
            {
                throw new DllNotFoundException(NotFound(e.Message, tried), e);
            }
            return true;
        }

        private static void LoadNamed(string folder, string namedBy)
        {
            string path = Path.GetFullPath(Path.Combine(folder, FileName));
            if (!File.Exists(path))
            {
                throw new DllNotFoundException(path + " does not exist; " + namedBy + " names this folder: it must be the one" +
                    " of " + FileName + " and libfolio.so.1, or not be set");
            }
            LoadFile(path);
        }

        // Of the runtime's own message mono makes no sentence: the linker is asked again.
        private static string NotFound(string message, List<string> tried)
        {
            if (!RuntimeInformation.IsOSPlatform(OSPlatform.Linux))
            {
                return message + "; Folio runs on Linux on x86-64, not on " + RuntimeInformation.OSDescription;
            }
            dlerror();
            string reason = dlopen(Utf8.Of(FileName + "\0"), Now) == IntPtr.Zero ? Marshal.PtrToStringAnsi(dlerror()) : null;
            return FileName + " is not in " + string.Join(", ", tried) + ", and the system says: " +
                Explain(reason ?? message, Mappings()) + "; " + NameIt;
        }

        // Apart from Load: mono looks for the library when it compiles a method that calls it.
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Register()
        {
            CSharp_FolioOnError(onError);
        }

        // Adds to `tried` the folders without it.
        private static bool TryBeside(string folder, List<string> tried)
        {
            if (folder == null) return false;
            foreach (string below in new[] { "", Path.Combine("runtimes", "linux-x64", "native") })
            {
                string place = Path.GetFullPath(Path.Combine(folder, below)).TrimEnd('/');
                if (File.Exists(Path.Combine(place, FileName)))
                {
                    LoadFile(Path.Combine(place, FileName));
                    return true;
                }
                if (!tried.Contains(place)) tried.Add(place);
            }
            return false;
        }

        private static void LoadFile(string path)
        {
            dlerror(); // binds the function itself: doing so after a failure would lose the message
            if (dlopen(Utf8.Of(path + "\0"), Now) != IntPtr.Zero) return;
            throw new DllNotFoundException(Explain(Marshal.PtrToStringAnsi(dlerror()) ?? path, Mappings()));
        }

        private static string Mappings()
        {
            try
            {
                return File.ReadAllText("/proc/self/maps");
            }
            catch (IOException)
            {
                return "";
            }
        }

        // Called from native code: SWIG's wrapper throws it when that has returned.
        private static void OnError(int code, IntPtr message, long bytes)
        {
            var text = new byte[bytes];
            Marshal.Copy(message, text, 0, text.Length);
            var exception = new FolioException((ErrorCode)code, Utf8.Text(text));
            FolioNativePINVOKE.SWIGPendingException.Set(exception);
        }

        [DllImport("libc.so.6")]
        private static extern IntPtr dlopen(byte[] path, int flags);

        [DllImport("libc.so.6")]
        private static extern IntPtr dlerror();

        [DllImport(Name)]
        private static extern void CSharp_FolioOnError(ErrorFunction function);

        [DllImport(Name)]
        internal static extern void CSharp_FolioFree(IntPtr block);
    }
}
