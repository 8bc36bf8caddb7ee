"""Writes train.csv and test.csv into the folder given: made-up visits of patients, one to eight each, the same rows at every run."""
import math, random, sys

draw = random.Random(13)


def visits(patient):
    age, smoker = draw.randint(1, 95), draw.choice(["no", "yes"])
    frailty = draw.gauss(0, 0.5)
    for _ in range(min(8, 1 + int(draw.expovariate(0.7)))):
        pressure, days = draw.gauss(125 + age / 5, 15), 1 + int(draw.expovariate(0.2))
        score = -5.2 + 0.045 * age + (1.2 if smoker == "yes" else 0) + 0.03 * (pressure - 130) + 0.15 * days + frailty
        back = "yes" if draw.random() < 1 / (1 + math.exp(-1.5 * score)) else "no"
        yield f"{patient},{age},{smoker},{pressure:.0f},{min(days, 60)},{back}"


for name, patients in [("train.csv", 20000), ("test.csv", 3000)]:
    with open(f"{sys.argv[1]}/{name}", "w") as out:
        print("patient,age,smoker,pressure,days,back", file=out)
        for patient in range(patients):
            for line in visits(f"p{patient}"):
                print(line, file=out)
