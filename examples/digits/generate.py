"""Writes images and labels as IDX files into the folder given: made-up handwriting of 8 x 8 pixels, the same at every run."""
import random, struct, sys

draw = random.Random(5)
SHAPES = """
.###. ..#.. .###. ####. #..#. ##### .###. ##### .###. .###.
#...# .##.. #...# ....# #..#. #.... #.... ....# #...# #...#
#...# ..#.. ...#. .###. ##### ####. ####. ...#. .###. .####
#...# ..#.. ..#.. ....# ...#. ....# #...# ..#.. #...# ....#
.###. .###. ##### ####. ...#. ####. .###. ..#.. .###. .###.
"""
ROWS = [line.split() for line in SHAPES.strip().splitlines()]


def image(digit):
    pixels = [[max(0, int(draw.gauss(20, 25))) for _ in range(8)] for _ in range(8)]
    down, right, ink = 1, draw.randint(1, 2), draw.randint(120, 235)
    for y in range(5):
        for x in range(5):
            if ROWS[y][digit][x] == "#" and draw.random() < 0.92:  # the pen skips
                pixels[y + down][x + right] = min(255, max(0, int(draw.gauss(ink, 30))))
    return bytes(min(p, 255) for row in pixels for p in row)


for name, count in [("train", 12000), ("test", 2000)]:
    labels = bytes(draw.randrange(10) for _ in range(count))
    with open(f"{sys.argv[1]}/{name}-images.idx", "wb") as out:
        out.write(struct.pack(">4B3I", 0, 0, 8, 3, count, 8, 8))
        out.write(b"".join(image(digit) for digit in labels))
    with open(f"{sys.argv[1]}/{name}-labels.idx", "wb") as out:
        out.write(struct.pack(">4BI", 0, 0, 8, 1, count) + labels)
