package dev.foliort;

import java.util.List;

/**
 * What Folio found of the CPU.
 *
 * @param level the newest kernels in use: "ref", "x86_avx2" ...
 * @param features what Folio uses of the CPU's features
 * @param brand as the CPU calls itself; "" if it does not
 * @param logicalCpuCount CPUs that this process may use
 * @param defaultThreadCount threads of a session that does not say
 */
public record CpuInfo(String level, List<String> features, String brand, int logicalCpuCount, int defaultThreadCount) {
    static CpuInfo of(List<String> texts) {
        return new CpuInfo(texts.get(0), List.of(texts.get(1).split(" ")), texts.get(2),
                Integer.parseInt(texts.get(3)), Integer.parseInt(texts.get(4)));
    }
}
