using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;
using Microsoft.ML.OnnxRuntime;
using Microsoft.ML.OnnxRuntime.Tensors;

// A program made for Microsoft.ML.OnnxRuntime: prints one line for each check.
static class Program
{
    static int Main(string[] args)
    {
        string folder = args[0] + "/";
        Console.WriteLine("providers " + OrtEnv.Instance().GetAvailableProviders().Last());
        var options = new SessionOptions { IntraOpNumThreads = 2, LogId = "client",
            GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_ALL, EnableMemoryPattern = false };
        options.AddSessionConfigEntry("session.set_denormal_as_zero", "1");
        options.AddFreeDimensionOverrideByName("other", 2);
        using (var session = new InferenceSession(folder + "two.onnx", options))
        {
            foreach (var input in session.InputMetadata)
                Console.WriteLine($"input {input.Key} {input.Value.ElementType} [{string.Join(",", input.Value.Dimensions)}] {string.Join(",", input.Value.SymbolicDimensions)}");
            foreach (var output in session.OutputNames) Console.WriteLine("output " + output);
            Console.WriteLine("producer " + session.ModelMetadata.ProducerName + " " + session.ModelMetadata.CustomMetadataMap.Count);

            // The old way: NamedOnnxValue.
            var tensor = new DenseTensor<float>(new float[] { 1, 2, 3 }, new[] { 1, 3 });
            using (var results = session.Run(new[] { NamedOnnxValue.CreateFromTensor("x", tensor) }))
                foreach (var result in results)
                    Console.WriteLine($"{result.Name} {string.Join(",", result.AsTensor<float>())}");

            // The new way: OrtValue over an array, outputs of the program's.
            var data = new float[] { 4, 5, 6 };
            var written = new float[3];
            using (var x = OrtValue.CreateTensorValueFromMemory(data, new long[] { 1, 3 }))
            using (var y = OrtValue.CreateTensorValueFromMemory(written, new long[] { 1, 3 }))
            using (var run = new RunOptions { LogId = "run" })
            {
                session.Run(run, new[] { "x" }, new[] { x }, new[] { "y" }, new[] { y });
                Console.WriteLine("written " + string.Join(",", written));
                using (var results = session.Run(run, new[] { "x" }, new[] { x }, new[] { "z" }))
                    Console.WriteLine("span " + string.Join(",", results[0].GetTensorDataAsSpan<float>().ToArray()));
                using (var binding = session.CreateIoBinding())
                {
                    binding.BindInput("x", x);
                    binding.BindOutputToDevice("z", OrtMemoryInfo.DefaultInstance);
                    session.RunWithBinding(run, binding);
                    using (var bound = binding.GetOutputValues())
                        Console.WriteLine("bound " + string.Join(",", bound[0].GetTensorDataAsSpan<float>().ToArray()));
                }
#if !MONO // cannot call the binding's callback: an array without [MarshalAs]
                using (var z = OrtValue.CreateAllocatedTensorValue(OrtAllocator.DefaultInstance, TensorElementType.Float, new long[] { 1, 3 }))
                {
                    session.RunAsync(run, new[] { "x" }, new[] { x }, new[] { "z" }, new[] { z }).Wait();
                    Console.WriteLine("async " + string.Join(",", z.GetTensorDataAsSpan<float>().ToArray()));
                }
#endif
            }
            try { session.Run(new[] { NamedOnnxValue.CreateFromTensor("x", new DenseTensor<float>(new[] { 1, 4 })) }); }
            catch (OnnxRuntimeException error) { Console.WriteLine("refused " + (error.Message.Contains("InvalidArgument"))); }
        }
        try { new InferenceSession(folder + "nowhere.onnx"); }
        catch (OnnxRuntimeException error) { Console.WriteLine("refused " + error.Message.Contains("NoSuchFile")); }
        using (var session = new InferenceSession(System.IO.File.ReadAllBytes(folder + "identity_string.onnx")))
        using (var strings = OrtValue.CreateTensorWithEmptyStrings(OrtAllocator.DefaultInstance, new long[] { 2 }))
        {
            strings.StringTensorSetElementAt("日本".AsSpan(), 0);
            strings.StringTensorSetElementAt("two".AsSpan(), 1);
            using (var run = new RunOptions())
            using (var results = session.Run(run, new[] { "x" }, new[] { strings }, new[] { "y" }))
                Console.WriteLine("strings " + string.Join("|", results[0].GetStringTensorAsArray()));
        }
        using (var container = new PrePackedWeightsContainer())
        using (var first = new InferenceSession(folder + "two.onnx", options, container))
        using (var second = new InferenceSession(folder + "two.onnx", options, container))
            Console.WriteLine("container " + first.OutputNames.Count + second.OutputNames.Count);
        return 0;
    }
}
