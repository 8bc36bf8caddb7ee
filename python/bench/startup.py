"""Processor time that `import privfit` costs beyond `import numpy`: ten fresh interpreters of each, least and median."""

import statistics
import subprocess
import sys

# Ticks of os.times are coarse; this clock is not.
PROGRAM = "import time; b = time.process_time(); import {}; print(time.process_time() - b)"


def measure(what: str) -> list[float]:
    call = [sys.executable, "-c", PROGRAM.format(what)]
    return [1e3 * float(subprocess.run(call, capture_output=True, text=True, check=True).stdout) for _ in range(10)]


numpy, both = measure("numpy"), measure("numpy, privfit")
for name, times in (("numpy", numpy), ("numpy and privfit", both)):
    print(f"{name:<18} least {min(times):6.1f} ms  median {statistics.median(times):6.1f} ms")
print(f"privfit beyond it  least {min(both) - min(numpy):6.1f} ms  median {statistics.median(both) - statistics.median(numpy):6.1f} ms")
