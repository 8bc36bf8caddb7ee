"""Writes customers.csv and public.csv into the folder given: made-up customers of a shop, the same rows at every run."""
import math, random, sys

draw = random.Random(17)


def customer():
    age, years, orders = draw.randint(18, 90), draw.randint(0, 20), int(draw.expovariate(0.08))
    channel = draw.choice(["shop", "web", "phone"])
    spent = max(0, 40 + 9 * orders + 1.5 * age + {"shop": 30, "web": 0, "phone": -20}[channel] + draw.gauss(0, 40))
    score = 1.5 - 0.2 * years - 0.08 * orders + (0.8 if channel == "web" else 0)
    left = "yes" if draw.random() < 1 / (1 + math.exp(-1.5 * score)) else "no"
    return f"{age},{years},{min(orders, 100)},{channel},{min(spent, 1000):.0f},{left}"


for name, rows in [("customers.csv", 20000), ("public.csv", 3000)]:
    with open(f"{sys.argv[1]}/{name}", "w") as out:
        print("age,years,orders,channel,spent,left", file=out)
        for _ in range(rows):
            print(customer(), file=out)
