using System;
using System.IO;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace FolioRuntime
{
    /// <summary>
    /// Loads libfolio_csharp.so, which brings libfolio.so from its own folder. Looks in the folder that the AppDomain
    /// data folio.library.path or the environment variable FOLIO_LIBRARY_PATH names; beside this assembly and the
    /// program; where the system looks. Once it is loaded, DllImport finds it by its name.
    /// </summary>
    internal static class NativeLibrary
    {
        internal const string Name = "libfolio_csharp";
        private const string File = Name + ".so";
        private const int Now = 2;

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate void ErrorFunction(int code, IntPtr message, long bytes);

        // In a field: the native side keeps it.
        private static readonly ErrorFunction onError = OnError;
        private static readonly Lazy<bool> loaded = new Lazy<bool>(Load, LazyThreadSafetyMode.ExecutionAndPublication);

        /// <summary>Returns with the library loaded, or throws DllNotFoundException.</summary>
        internal static void Require()
        {
            if (!loaded.Value) throw new DllNotFoundException(File);
        }

        private static bool Load()
        {
            string folder = AppDomain.CurrentDomain.GetData("folio.library.path") as string
                ?? Environment.GetEnvironmentVariable("FOLIO_LIBRARY_PATH");
            if (!string.IsNullOrEmpty(folder))
            {
                LoadFile(Path.GetFullPath(Path.Combine(folder, File)));
            }
            else
            {
                string assembly = typeof(NativeLibrary).Assembly.Location; // "" in a single-file program
                string beside = string.IsNullOrEmpty(assembly) ? null : Path.GetDirectoryName(assembly);
                if (!TryBeside(beside)) TryBeside(AppDomain.CurrentDomain.BaseDirectory);
            }
            Register();
            return true;
        }

        // Apart from Load: mono looks for the library when it compiles a method that calls it.
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Register()
        {
            FolioCsharpOnError(onError);
        }

        private static bool TryBeside(string folder)
        {
            if (folder == null) return false;
            string path = Path.Combine(folder, File);
            if (!System.IO.File.Exists(path)) return false;
            LoadFile(path);
            return true;
        }

        private static void LoadFile(string path)
        {
            dlerror(); // binds the function itself: doing so after a failure would lose the message
            if (dlopen(Utf8.Of(path + "\0"), Now) != IntPtr.Zero) return;
            throw new DllNotFoundException(Marshal.PtrToStringAnsi(dlerror()) ?? path);
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
        private static extern void FolioCsharpOnError(ErrorFunction function);

        [DllImport(Name)]
        internal static extern void FolioCsharpFree(IntPtr block);
    }
}
