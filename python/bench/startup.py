"""Processor time that `import privfit` costs after `import numpy`: ten fresh interpreters, least and median."""

import statistics
import subprocess
import sys

PROGRAM = "import numpy, time; b = time.process_time(); import privfit; print(time.process_time() - b)"
call = [sys.executable, "-c", PROGRAM]
times = [1e3 * float(subprocess.run(call, capture_output=True, text=True, check=True).stdout) for _ in range(10)]
print(f"import privfit after numpy: least {min(times):.1f} ms, median {statistics.median(times):.1f} ms, most {max(times):.1f} ms")
