namespace FolioRuntime
{
    /// <summary>What went wrong. The numbers are the C interface's.</summary>
    public enum ErrorCode
    {
        /// <summary>A defect in Folio, or a failure without a better code.</summary>
        Fail = 1,
        /// <summary>The call is wrong: a name, a type, a shape, a null, a configuration key.</summary>
        InvalidArgument = 2,
        /// <summary>There is no file at that path.</summary>
        NoSuchFile = 3,
        /// <summary>The file is neither .onnx nor .ort.</summary>
        NoModel = 4,
        /// <summary>Not used.</summary>
        RuntimeException = 6,
        /// <summary>The bytes of the model are damaged.</summary>
        InvalidProtobuf = 7,
        /// <summary>Valid, but Folio does not do it.</summary>
        NotImplemented = 9,
        /// <summary>The bytes are sound, the graph is not.</summary>
        InvalidGraph = 10,
        /// <summary>An open or create was cancelled.</summary>
        ModelLoadCanceled = 12,
        /// <summary>A run was cancelled or its time ran out.</summary>
        Cancelled = 100,
        /// <summary>Memory or address space is exhausted.</summary>
        OutOfMemory = 101,
        /// <summary>The model has an operator that Folio lacks.</summary>
        UnsupportedOperator = 102,
        /// <summary>The model's file changed while it was open.</summary>
        ModelChanged = 103,
        /// <summary>The object was closed.</summary>
        Closed = 104,
        /// <summary>The operating system refused to open, read or map.</summary>
        Io = 105,
    }
}
