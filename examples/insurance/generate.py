"""Writes train.csv and test.csv into the folder given: made-up car policies of one year, the same rows at every run."""
import math, random, sys

draw = random.Random(7)


def poisson(rate):
    count, product, floor = 0, draw.random(), math.exp(-rate)
    while product > floor:
        count, product = count + 1, product * draw.random()
    return count


def policy():
    age, power, bonus = draw.randint(18, 85), draw.randint(3, 15), draw.randint(0, 12)
    region = draw.choice(["city", "town", "country"])
    kilometres = int(min(60000, math.exp(draw.gauss(9.3, 0.6))))
    rate = 0.9 * (kilometres / 12000) ** 0.7 * (1.8 if age < 25 else 1.0) * {"city": 1.6, "town": 1.1, "country": 0.8}[region]
    rate *= math.exp(0.05 * (power - 8) - 0.09 * (bonus - 6))
    claims = min(10, poisson(rate))
    cost = sum(min(20000, int(math.exp(draw.gauss(6.4, 0.7)))) for _ in range(claims))
    return f"{age},{power},{bonus},{region},{kilometres},{claims},{min(cost, 20000)}"


for name, rows in [("train.csv", 30000), ("test.csv", 5000)]:
    with open(f"{sys.argv[1]}/{name}", "w") as out:
        print("age,power,bonus,region,kilometres,claims,cost", file=out)
        for _ in range(rows):
            print(policy(), file=out)
