using System.Collections.Generic;
using System.Globalization;

namespace FolioRuntime
{
    /// <summary>A node that keeps a model from becoming a session.</summary>
    public sealed class UnsupportedOperator
    {
        internal UnsupportedOperator(IReadOnlyList<string> texts, int at)
        {
            Domain = texts[at];
            OpType = texts[at + 1];
            OpsetVersion = long.Parse(texts[at + 2], CultureInfo.InvariantCulture);
            NodeName = texts[at + 3];
            Reason = texts[at + 4];
        }

        /// <summary>"" is ONNX's own.</summary>
        public string Domain { get; }

        /// <summary>The operator.</summary>
        public string OpType { get; }

        /// <summary>That the model imports for this domain.</summary>
        public long OpsetVersion { get; }

        /// <summary>"" where the node has none.</summary>
        public string NodeName { get; }

        /// <summary>"unknown operator", "opset 30 is newer than 28" ...</summary>
        public string Reason { get; }
    }
}
