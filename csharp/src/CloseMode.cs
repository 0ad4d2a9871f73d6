namespace FolioRuntime
{
    /// <summary>What Session.Close does with runs in flight; it returns after the last of them either way.</summary>
    public enum CloseMode
    {
        /// <summary>Lets them finish.</summary>
        Wait = 0,
        /// <summary>Makes them throw ErrorCode.Cancelled at their next step.</summary>
        Cancel = 1,
    }
}
