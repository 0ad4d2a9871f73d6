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

        /// <summary>The argument itself; throws where it is null, and says what is.</summary>
        internal static T NotNull<T>(T argument, string what) where T : class
        {
            if (argument == null) throw Invalid("the " + what + " null");
            return argument;
        }

        internal static FolioException Closed(string what)
        {
            return new FolioException(ErrorCode.Closed, "the " + what + " is closed");
        }
    }
}
