using System;

namespace FolioRuntime
{
    /// <summary>What every failure throws: a code to branch on, and a line for people.</summary>
    public sealed class FolioException : Exception
    {
        internal FolioException(ErrorCode code, string message) : base(message)
        {
            Code = code;
        }

        /// <summary>What went wrong.</summary>
        public ErrorCode Code { get; }

        internal static FolioException Invalid(string message)
        {
            return new FolioException(ErrorCode.InvalidArgument, message);
        }

        internal static FolioException Closed(string what)
        {
            return new FolioException(ErrorCode.Closed, "the " + what + " is closed");
        }
    }
}
