"""Writes pictures.zip into the folder given: drawings of 28 x 28 pixels as PNG files, train/CLASS/NUMBER.png and test/CLASS/NUMBER.png, the same at every run."""
import math, random, struct, sys, zipfile, zlib

SIDE = 28
CLASSES = ["circle", "cross", "square", "triangle"]
GRAIN = random.Random(4)
NOISE = [GRAIN.gauss(0, 25) for _ in range(20000)]  # each row of a picture takes its own piece: drawing all of it would take longer than training


def strokes(shape, x, y, radius, turn):
    """Lines from point to point; a circle is a polygon of many."""
    count = {"circle": 14, "cross": 4, "square": 4, "triangle": 3}[shape]
    angles = [turn + 2 * math.pi * k / count for k in range(count)]
    corners = [(x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in angles]
    if shape == "cross":
        return [(corners[0], corners[2]), (corners[1], corners[3])]
    return list(zip(corners, corners[1:] + corners[:1]))


def drawing(shape, draw):
    """Rows of grey pixels: a pen of random width and ink draws the shape somewhere, in some size and turned a little, on paper with noise."""
    radius, pen, ink, paper = draw.uniform(6, 11), draw.uniform(0.7, 1.5), draw.uniform(110, 220), draw.uniform(10, 50)
    x, y = draw.uniform(radius + 2, SIDE - 3 - radius), draw.uniform(radius + 2, SIDE - 3 - radius)
    pixels = [[paper] * SIDE for _ in range(SIDE)]
    reach = pen + 0.5
    for (ax, ay), (bx, by) in strokes(shape, x, y, radius, draw.uniform(-0.4, 0.4)):
        steps = math.ceil(math.hypot(bx - ax, by - ay))
        for step in range(steps):  # the pen stops at every pixel of its way
            px, py = ax + (bx - ax) * step / steps, ay + (by - ay) * step / steps
            columns = range(math.ceil(px - reach), math.floor(px + reach) + 1)
            for row in range(math.ceil(py - reach), math.floor(py + reach) + 1):
                for column in columns:
                    shade = paper + ink * min(1.0, reach - math.hypot(column - px, row - py))
                    if shade > pixels[row][column]:
                        pixels[row][column] = shade
    rows = []
    for row in pixels:
        start = draw.randrange(len(NOISE) - SIDE)
        rows.append(bytes(min(255, max(0, int(pixel + noise))) for pixel, noise in zip(row, NOISE[start:start + SIDE])))
    return rows


def png(rows):
    """The bytes of a PNG file with 8 bits of grey: a signature and three chunks, each with its length and a checksum."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">2I5B", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows), 1)) + chunk(b"IEND", b"")


def pictures(count, seed):
    """Classes in turn, so that there are equally many of each."""
    draw = random.Random(seed)
    for number in range(count):
        shape = CLASSES[number % len(CLASSES)]
        yield number, shape, drawing(shape, draw)


def main(folder):
    with zipfile.ZipFile(f"{folder}/pictures.zip", "w") as out:
        for part, count, seed in [("train", 6000, 5), ("test", 1000, 6)]:
            for number, shape, rows in pictures(count, seed):
                out.writestr(zipfile.ZipInfo(f"{part}/{shape}/{number:04}.png"), png(rows))


if __name__ == "__main__":
    main(sys.argv[1])
