"""Writes a picture of the result: some of the test drawings with what the model calls them, and how many of each class are right.

    python3 picture.py made/pictures.zip made/predictions.csv result.svg
"""
import base64, csv, sys, zipfile

SIZE, GAP, LEFT, TOP, SHOWN = 56, 8, 150, 40, 10


def main(pictures, predictions, out):
    with zipfile.ZipFile(pictures) as files, open(predictions) as table:
        # Records have the order of their paths, and so have predictions.
        names = sorted(name for name in files.namelist() if name.startswith("test/"))
        answers = [row["prediction"] for row in csv.DictReader(table)]
        assert len(names) == len(answers)
        classes = {}
        for name, answer in zip(names, answers):
            classes.setdefault(name.split("/")[1], []).append((name, answer))
        width, height = LEFT + SHOWN * (SIZE + GAP) + GAP, TOP + len(classes) * (SIZE + 30)
        right = sum(name.split("/")[1] == answer for name, answer in zip(names, answers))
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            f'<text x="12" y="22" font-size="14">{right} of {len(answers)} test drawings are called by their name; the rest is red</text>',
        ]
        for at, (label, drawings) in enumerate(sorted(classes.items())):
            y = TOP + at * (SIZE + 30)
            share = sum(answer == label for _, answer in drawings) / len(drawings)
            lines.append(f'<text x="12" y="{y + 22}" font-weight="bold">{label}</text><text x="12" y="{y + 40}">{100 * share:.0f} % right</text>')
            lines.append(f'<rect x="12" y="{y + 47}" width="{LEFT - 40}" height="6" fill="#ddd"/><rect x="12" y="{y + 47}" width="{share * (LEFT - 40):.0f}" height="6" fill="#2a6"/>')
            for place, (name, answer) in enumerate(drawings[:SHOWN]):
                x, colour = LEFT + place * (SIZE + GAP), "#222" if answer == label else "#c22"
                image = base64.b64encode(files.read(name)).decode()
                lines.append(f'<image x="{x}" y="{y}" width="{SIZE}" height="{SIZE}" href="data:image/png;base64,{image}"/>')
                lines.append(f'<text x="{x + SIZE // 2}" y="{y + SIZE + 14}" text-anchor="middle" fill="{colour}">{answer}</text>')
    with open(out, "w") as svg:
        svg.write("\n".join(lines + ["</svg>", ""]))


if __name__ == "__main__":
    main(*sys.argv[1:])
