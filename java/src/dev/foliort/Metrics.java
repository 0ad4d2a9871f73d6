package dev.foliort;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Counters of a session or environment; they only grow, but for the two that say "now".
 *
 * @param runCount runs that have ended, however they ended
 * @param errorCount of these, ended in an error other than the next
 * @param cancelledCount of these, cancelled or out of time
 * @param inFlightCount running now
 * @param sessionCount sessions that exist now; 1 for a session
 * @param latencySumUs the time of all runs, in microseconds
 * @param latencyBuckets runs that took at most 10, 20, 50, 100 ... microseconds (to 10 s) and are in no bucket before;
 *     the last one has the rest
 */
public record Metrics(long runCount, long errorCount, long cancelledCount, long inFlightCount, long sessionCount,
        long latencySumUs, List<Long> latencyBuckets) {
    static Metrics of(long[] n) {
        List<Long> buckets = Arrays.stream(n, 6, n.length).boxed().collect(Collectors.toUnmodifiableList());
        return new Metrics(n[0], n[1], n[2], n[3], n[4], n[5], buckets);
    }
}
