using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace FolioRuntime
{
    /// <summary>A run on the thread pool. Its inputs stay until it has ended, also if they are disposed before.</summary>
    internal sealed class AsyncRun
    {
        private readonly TaskCompletionSource<Outputs> end =
            new TaskCompletionSource<Outputs>(TaskCreationOptions.RunContinuationsAsynchronously);

        private readonly Leases leases = new Leases();
        private readonly Func<Outputs> run;
        private readonly Action ended;
        private readonly RunOptions options;
        private readonly CancellationToken token;
        private CancellationTokenRegistration registration;

        /// <summary>`ended` is called once the run has, but not if this throws.</summary>
        internal AsyncRun(List<KeyValuePair<string, Value>> inputs, RunOptions options, CancellationToken token,
            Func<Outputs> run, Action ended)
        {
            this.options = options;
            this.token = token;
            this.run = run;
            this.ended = ended;
            try
            {
                foreach (KeyValuePair<string, Value> input in inputs) leases.Enter(input.Value, input.Key);
            }
            catch
            {
                leases.Leave();
                throw;
            }
        }

        internal Task<Outputs> Start()
        {
            registration = token.Register(Cancel);
            ThreadPool.QueueUserWorkItem(_ => Run());
            return end.Task;
        }

        private void Cancel()
        {
            options.Cancel();
            end.TrySetCanceled(token);
        }

        private void Run()
        {
            try
            {
                if (end.Task.IsCompleted) return;
                Outputs result = run();
                if (!end.TrySetResult(result)) result.Dispose(); // cancelled meanwhile
            }
            catch (FolioException e) when (e.Code == ErrorCode.Cancelled && token.IsCancellationRequested)
            {
                end.TrySetCanceled(token); // the run may end before Cancel() says so
            }
            catch (Exception e)
            {
                end.TrySetException(e);
            }
            finally
            {
                registration.Dispose();
                leases.Leave();
                ended();
            }
        }
    }
}
