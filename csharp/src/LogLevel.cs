namespace FolioRuntime
{
    /// <summary>How grave a line of the log is.</summary>
    public enum LogLevel
    {
        /// <summary>For those who look for a defect.</summary>
        Verbose = 0,
        /// <summary>What was done.</summary>
        Info = 1,
        /// <summary>Something is not as it should be, and work goes on.</summary>
        Warning = 2,
        /// <summary>Something failed.</summary>
        Error = 3,
    }
}
