"""Writes loans.csv into the folder given: made-up loans, the same rows at every run."""
import math, random, sys

draw = random.Random(23)
with open(f"{sys.argv[1]}/loans.csv", "w") as out:
    print("income,amount,months,house,late", file=out)
    for _ in range(10000):
        income, amount = math.exp(draw.gauss(10.3, 0.4)), math.exp(draw.gauss(9, 0.7))
        months, house = draw.randint(6, 120), draw.choice(["owns", "rents"])
        score = 3 * amount / income + (0.5 if house == "rents" else -0.5) + (months - 60) / 60 - 1.2
        late = "yes" if draw.random() < 1 / (1 + math.exp(-2 * score)) else "no"
        print(f"{income:.0f},{amount:.0f},{months},{house},{late}", file=out)
