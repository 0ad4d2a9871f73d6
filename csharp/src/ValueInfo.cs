using System.Collections.Generic;

namespace FolioRuntime
{
    /// <summary>How a model declares one of its inputs or outputs.</summary>
    public sealed class ValueInfo
    {
        private readonly long[] shape;

        private ValueInfo(NativeValueInfos infos, long index)
        {
            Name = Utf8.Text(infos.Name(index));
            Kind = (ValueKind)infos.Kind(index);
            Type = (ElementType)infos.Type(index);
            shape = infos.HasShape(index) ? infos.Dims(index) : null;
            SymbolicDims = Utf8.Split(infos.SymbolicDims(index)).AsReadOnly();
            IReadOnlyList<ValueInfo> inner = ListOf(infos.Element(index));
            Element = inner.Count == 0 ? null : inner[0];
        }

        /// <summary>The name; "" for what is in a sequence or map.</summary>
        public string Name { get; }

        /// <summary>What it is.</summary>
        public ValueKind Kind { get; }

        /// <summary>The element type of a tensor; the key type of a map; else Undefined.</summary>
        public ElementType Type { get; }

        /// <summary>The dims of a tensor, -1 where one is not fixed; null where the model does not say.</summary>
        public long[] Shape
        {
            get { return shape == null ? null : (long[])shape.Clone(); }
        }

        /// <summary>For each dim its name, or "" if it is fixed or has none.</summary>
        public IReadOnlyList<string> SymbolicDims { get; }

        /// <summary>What a sequence or optional contains, a map's values; else null.</summary>
        public ValueInfo Element { get; }

        /// <summary>Name, type and shape.</summary>
        public override string ToString()
        {
            string text = Kind + "(" + (Element == null ? (object)Type : Element) + ")";
            if (Kind == ValueKind.Tensor) text = Type + (shape == null ? "" : "[" + string.Join(", ", shape) + "]");
            return Name.Length == 0 ? text : Name + " " + text;
        }

        /// <summary>Reads and deletes them.</summary>
        internal static IReadOnlyList<ValueInfo> ListOf(NativeValueInfos infos)
        {
            using (infos)
            {
                var result = new List<ValueInfo>();
                long count = infos.Size();
                for (long i = 0; i < count; ++i) result.Add(new ValueInfo(infos, i));
                return result.AsReadOnly();
            }
        }
    }
}
