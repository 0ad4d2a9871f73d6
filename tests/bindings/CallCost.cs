using System;
using System.Diagnostics;
using System.Globalization;
using FolioRuntime;

/// <summary>Nanoseconds of one bound run of a tiny model: the median of rounds. See call_cost.py.</summary>
public static class CallCost
{
    private const int Runs = 200000;
    private const int Rounds = 11;

    public static void Main(string[] arguments)
    {
        var rounds = new double[Rounds];
        using (Model model = Model.Open(arguments[0]))
        using (Session session = model.Session())
        using (Binding binding = session.Binding())
        using (Tensor x = Tensor.Allocate(ElementType.Float, 1, 4))
        using (Tensor y = Tensor.Allocate(ElementType.Float, 1, 4))
        {
            binding.BindInput("x", x).BindOutput("y", y);
            for (int round = 0; round < Rounds; ++round)
            {
                Stopwatch watch = Stopwatch.StartNew();
                for (int i = 0; i < Runs; ++i) binding.Run();
                rounds[round] = watch.Elapsed.TotalMilliseconds * 1e6 / Runs;
            }
        }
        Array.Sort(rounds);
        Console.WriteLine(rounds[Rounds / 2].ToString(CultureInfo.InvariantCulture));
    }
}
