"""The parts of the fuzzer: inputs, how they are changed, who reads them, and what is held against that."""
