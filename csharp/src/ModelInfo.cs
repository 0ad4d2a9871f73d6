using System.Collections.Generic;

namespace FolioRuntime
{
    /// <summary>What a model file says of itself; "" where it does not.</summary>
    public sealed class ModelInfo
    {
        internal ModelInfo(IReadOnlyList<string> texts, long[] n)
        {
            Format = texts[0];
            Path = texts[1];
            ProducerName = texts[2];
            ProducerVersion = texts[3];
            Domain = texts[4];
            Description = texts[5];
            GraphName = texts[6];
            ModelVersion = n[0];
            IrVersion = n[1];
            NodeCount = n[2];
            InitializerCount = n[3];
            InitializerBytes = n[4];
            FileBytes = n[5];
        }

        /// <summary>"onnx" or "ort".</summary>
        public string Format { get; }

        /// <summary>As given to Open; "" for a model from memory.</summary>
        public string Path { get; }

        /// <summary>The program that made it.</summary>
        public string ProducerName { get; }

        /// <summary>Its version.</summary>
        public string ProducerVersion { get; }

        /// <summary>The model's name space.</summary>
        public string Domain { get; }

        /// <summary>For people.</summary>
        public string Description { get; }

        /// <summary>The name of the main graph.</summary>
        public string GraphName { get; }

        /// <summary>The model's own version.</summary>
        public long ModelVersion { get; }

        /// <summary>ONNX's format version.</summary>
        public long IrVersion { get; }

        /// <summary>Nodes of the graph and all its subgraphs, as the two below.</summary>
        public long NodeCount { get; }

        /// <summary>Constant tensors.</summary>
        public long InitializerCount { get; }

        /// <summary>Their bytes.</summary>
        public long InitializerBytes { get; }

        /// <summary>Of the model file, without external data.</summary>
        public long FileBytes { get; }
    }
}
