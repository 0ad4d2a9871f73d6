using System;
using System.Collections.Generic;
using System.IO;
using System.Text;

namespace FolioRuntime
{
    /// <summary>Text as it crosses to the native library: UTF-8, and many as one, each with a NUL at its end.</summary>
    internal static class Utf8
    {
        internal static byte[] Of(string text)
        {
            if (text == null) throw FolioException.Invalid("a name, key or path is null");
            return Encoding.UTF8.GetBytes(text);
        }

        internal static string Text(byte[] utf8)
        {
            return Encoding.UTF8.GetString(utf8);
        }

        /// <summary>Of a text that ends with a NUL.</summary>
        internal static unsafe string Text(IntPtr text)
        {
            var bytes = (byte*)text;
            int count = 0;
            while (bytes[count] != 0) ++count;
            return Encoding.UTF8.GetString(bytes, count);
        }

        internal static byte[] Join(IEnumerable<string> texts)
        {
            var result = new MemoryStream();
            foreach (string text in texts)
            {
                byte[] bytes = Of(text);
                if (text.IndexOf('\0') >= 0) throw FolioException.Invalid("a name contains a NUL: '" + text + "'");
                result.Write(bytes, 0, bytes.Length);
                result.WriteByte(0);
            }
            return result.ToArray();
        }

        internal static List<string> Split(byte[] joined)
        {
            var result = new List<string>();
            int begin = 0;
            for (int at = 0; at < joined.Length; ++at)
            {
                if (joined[at] != 0) continue;
                result.Add(Encoding.UTF8.GetString(joined, begin, at - begin));
                begin = at + 1;
            }
            return result;
        }
    }
}
