# Readable loops in plain C++: the truth that every other folder is tested against, and the
# fallback of CPUs without AVX2.
set(ISA_RANK 0)
set(ISA_FLAGS "")
set(ISA_NEEDS 0)
