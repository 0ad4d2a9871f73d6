namespace FolioRuntime
{
    /// <summary>What a value is.</summary>
    public enum ValueKind
    {
        /// <summary>The model does not say.</summary>
        Unknown = 0,
        /// <summary>A Tensor.</summary>
        Tensor = 1,
        /// <summary>Any number of tensors.</summary>
        Sequence = 2,
        /// <summary>Keys and values, two tensors.</summary>
        Map = 3,
        /// <summary>Not supported.</summary>
        Opaque = 4,
        /// <summary>Not supported.</summary>
        SparseTensor = 5,
        /// <summary>One value, or none.</summary>
        Optional = 6,
    }
}
