"""Writes train.libsvm and test.libsvm into the folder given: made-up messages about two topics, the same at every run.

Word i of 5,000 is used in proportion to 1/(i + 10). Every fortieth of the first 2,000 words belongs to a topic.
"""
import itertools, random, sys

draw = random.Random(11)
WORDS = 5000
common = list(itertools.accumulate(1 / (i + 10) for i in range(WORDS)))
telling = {topic: [i for i in range(2000) if i % 40 == 7 + 20 * topic] for topic in (0, 1)}


def message():
    topic = draw.randrange(2)
    words = set(draw.choices(range(WORDS), cum_weights=common, k=30))
    words |= {draw.choice(telling[topic if draw.random() < 0.85 else 1 - topic]) for _ in range(4)}
    return f"{topic} " + " ".join(f"{w + 1}:1" for w in sorted(words))


for name, rows in [("train.libsvm", 10000), ("test.libsvm", 2000)]:
    with open(f"{sys.argv[1]}/{name}", "w") as out:
        for _ in range(rows):
            print(message(), file=out)
