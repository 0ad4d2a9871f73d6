namespace FolioRuntime
{
    /// <summary>What a value is.</summary>
    public enum ValueKind
    {
        Unknown = 0,
        Tensor = 1,
        Sequence = 2,
        Map = 3,
        Opaque = 4,
        SparseTensor = 5,
        Optional = 6,
    }
}
