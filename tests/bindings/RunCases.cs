using System;
using System.Collections.Generic;
using System.IO;
using System.Security.Cryptography;
using System.Text;
using FolioRuntime;

/// <summary>Runs the models of a list and prints a digest of each output: see models_test.py.</summary>
public static class RunCases
{
    public static void Main(string[] arguments)
    {
        Model model = null;
        var inputs = new Dictionary<string, Tensor>();
        foreach (string line in File.ReadAllLines(arguments[0]))
        {
            string[] words = line.Split('\t');
            if (words[0] == "model")
            {
                model = Model.Open(words[1]);
                Console.WriteLine(line);
            }
            else if (words[0] == "input")
            {
                byte[] bytes = File.ReadAllBytes(words[4]);
                long[] shape = words[3].Length == 0 ? new long[0] : Array.ConvertAll(words[3].Split(','), long.Parse);
                inputs[words[1]] = Tensor.WrapAs(bytes.AsMemory(), (ElementType)int.Parse(words[2]), shape);
            }
            else
            {
                Run(model, inputs);
                foreach (Tensor input in inputs.Values) input.Dispose();
                inputs.Clear();
                model.Dispose();
            }
        }
    }

    private static void Run(Model model, Dictionary<string, Tensor> inputs)
    {
        using (Session session = model.Session())
        using (Outputs outputs = session.Run(inputs))
        using (SHA256 digest = SHA256.Create())
        {
            foreach (string name in outputs.Names) Print(name, outputs.Value(name), digest);
        }
    }

    /// <summary>Parts have the names that `folio run` gives their files.</summary>
    private static void Print(string name, Value value, SHA256 digest)
    {
        for (int i = 0; i < value.PartCount; ++i)
        {
            string part = value.Kind == ValueKind.Map ? (i == 0 ? "keys" : "values") : i.ToString();
            Print(name + "_" + part, value.Part(i), digest);
        }
        var tensor = value as Tensor;
        if (tensor == null) return;
        bool isText = value.Type == ElementType.String;
        byte[] hash = digest.ComputeHash(isText
            ? Encoding.UTF8.GetBytes(string.Concat(Array.ConvertAll(tensor.ToStrings(), text => text + "\0")))
            : tensor.AsBytes().ToArray());
        Console.WriteLine("output\t" + name + "\t" + BitConverter.ToString(hash).Replace("-", "").ToLowerInvariant());
    }
}
