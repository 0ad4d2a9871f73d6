using System;
using System.Collections.Generic;
using System.IO;
using System.Net;
using System.Net.Sockets;
using System.Text;
using System.Threading;
using FolioRuntime;

/// <summary>
/// Serves a model of one float input over HTTP, on this machine only. Start as many as there are workers wanted: the
/// model's file is mapped once for all of them.
///
///   mono ModelServer.exe MODEL [PORT]
///   curl --data-binary @input.f32 http://127.0.0.1:PORT/run >output.f32
///
/// POST /run takes and gives the raw bytes of floats; a dim that the model leaves open is what the bytes make it. GET
/// /memory shows what this worker holds, GET /metrics is for Prometheus. Prints READY and the port when it listens.
/// </summary>
public static class ModelServer
{
    private const int MaxRequestBytes = 64 << 20;

    public static int Main(string[] arguments)
    {
        if (arguments.Length < 1 || arguments.Length > 2)
        {
            Console.Error.WriteLine("usage: ModelServer MODEL [PORT]");
            return 2;
        }
        int port = arguments.Length == 2 ? int.Parse(arguments[1]) : FreePort();
        using (Model model = Model.Open(arguments[0]))
        using (Session session = model.Session(new SessionOptions { Threads = 1 })) // one thread for each request
        using (var listener = new HttpListener())
        {
            listener.Prefixes.Add("http://127.0.0.1:" + port + "/");
            listener.Start();
            Console.WriteLine("READY " + port);
            while (true)
            {
                HttpListenerContext context = listener.GetContext();
                ThreadPool.QueueUserWorkItem(_ => Serve(session, context));
            }
        }
    }

    private static void Serve(Session session, HttpListenerContext context)
    {
        try
        {
            switch (context.Request.Url.AbsolutePath)
            {
                case "/run":
                    Run(session, context);
                    break;
                case "/memory":
                    Answer(context, 200, Text(session.MemoryReport().Text));
                    break;
                case "/metrics":
                    Answer(context, 200, Text(Env.Shared.MetricsText));
                    break;
                default:
                    Answer(context, 404, Text("there are /run, /memory and /metrics\n"));
                    break;
            }
        }
        catch (Exception e) when (e is IOException || e is HttpListenerException)
        {
            Console.Error.WriteLine("a client went away: " + e.Message);
        }
    }

    private static void Run(Session session, HttpListenerContext context)
    {
        if (context.Request.ContentLength64 > MaxRequestBytes)
        {
            Answer(context, 413, Text("at most " + MaxRequestBytes + " bytes\n"));
            return;
        }
        var body = new MemoryStream();
        context.Request.InputStream.CopyTo(body);
        ValueInfo input = session.Inputs[0];
        string output = session.Outputs[0].Name;
        Memory<byte> floats = body.ToArray();
        try
        {
            using (Tensor x = Tensor.WrapAs(floats, ElementType.Float, ShapeOf(input, floats.Length / sizeof(float))))
            using (Outputs outputs = session.Run(new Dictionary<string, Tensor> { { input.Name, x } },
                new[] { output }, new RunOptions { Timeout = TimeSpan.FromSeconds(10) }))
            {
                Answer(context, 200, outputs[output].AsBytes().ToArray());
            }
        }
        catch (FolioException e)
        {
            Answer(context, 400, Text(e.Code + ": " + e.Message + "\n"));
        }
    }

    /// <summary>The input's shape; its first open dim takes what the others leave.</summary>
    private static long[] ShapeOf(ValueInfo input, long count)
    {
        long[] shape = input.Shape;
        foreach (long dim in shape)
        {
            if (dim > 0) count /= dim;
        }
        for (int i = 0; i < shape.Length; ++i)
        {
            if (shape[i] >= 0) continue;
            shape[i] = count;
            count = 1;
        }
        return shape;
    }

    private static int FreePort()
    {
        var probe = new TcpListener(IPAddress.Loopback, 0);
        probe.Start();
        int port = ((IPEndPoint)probe.LocalEndpoint).Port;
        probe.Stop();
        return port;
    }

    private static byte[] Text(string text)
    {
        return Encoding.UTF8.GetBytes(text);
    }

    private static void Answer(HttpListenerContext context, int status, byte[] body)
    {
        context.Response.StatusCode = status;
        context.Response.ContentLength64 = body.Length;
        context.Response.OutputStream.Write(body, 0, body.Length);
        context.Response.Close();
    }
}
