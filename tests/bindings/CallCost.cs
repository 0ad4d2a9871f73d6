using System;
using System.Diagnostics;
using System.Globalization;
using System.Linq;
using FolioRuntime;

/// <summary>
/// Of a bound run of a tiny model: nanoseconds (of the quickest round), bytes of garbage. Then nanoseconds to wrap 16 bytes and
/// 64 MiB as a tensor, and to dispose it. See call_cost.py.
/// </summary>
public static class CallCost
{
    private const int Runs = 20000;
    private const int Wraps = 2000;
    private const int Rounds = 101;

    public static void Main(string[] arguments)
    {
        var rounds = new double[Rounds];
        double garbage = 0;
        using (Model model = Model.Open(arguments[0]))
        using (Session session = model.Session())
        using (Binding binding = session.Binding())
        using (Tensor x = Tensor.Allocate(ElementType.Float, 1, 4))
        using (Tensor y = Tensor.Allocate(ElementType.Float, 1, 4))
        {
            binding.BindInput("x", x).BindOutput("y", y);
            for (int round = 0; round < Rounds; ++round)
            {
                GC.Collect();
                long before = GC.GetTotalMemory(false);
                int collections = GC.CollectionCount(0);
                Stopwatch watch = Stopwatch.StartNew();
                for (int i = 0; i < Runs; ++i) binding.Run();
                rounds[round] = watch.Elapsed.TotalMilliseconds * 1e6 / Runs;
                garbage = (double)(GC.GetTotalMemory(false) - before) / Runs;
                if (GC.CollectionCount(0) != collections) garbage = double.PositiveInfinity; // more than a nursery
            }
        }
        Wrap(16); // warms up
        Console.WriteLine(string.Format(CultureInfo.InvariantCulture, "{0} {1} {2} {3}", rounds.Min(), garbage, Wrap(16),
            Wrap(64 << 20)));
    }

    private static double Wrap(int bytes)
    {
        var memory = new byte[bytes];
        var rounds = new double[Rounds];
        for (int round = 0; round < Rounds; ++round)
        {
            Stopwatch watch = Stopwatch.StartNew();
            for (int i = 0; i < Wraps; ++i) Tensor.Wrap(memory, bytes).Dispose();
            rounds[round] = watch.Elapsed.TotalMilliseconds * 1e6 / Wraps;
        }
        return rounds.Min();
    }
}
