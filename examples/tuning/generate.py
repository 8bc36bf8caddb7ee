"""Applicants of a bank that never existed: tr.csv is private, public.csv is what another bank published. The same rows at every run."""
import random
import sys

random.seed(20)


def rows(count):
    yield "income,debt,years,cards,repaid\n"
    for _ in range(count):
        income = min(200, random.lognormvariate(3.6, 0.5))
        debt = min(100, random.expovariate(1 / 15))
        years = random.uniform(0, 40)
        cards = random.randrange(8)
        good = 0.05 * income - 0.09 * debt + 0.04 * years - 0.2 * cards + random.gauss(0, 1)
        yield f"{income:.1f},{debt:.1f},{years:.1f},{cards},{'yes' if good > 0 else 'no'}\n"


for name, count in (("private.csv", 12000), ("public.csv", 3000)):
    with open(f"{sys.argv[1]}/{name}", "w") as out:
        out.writelines(rows(count))
