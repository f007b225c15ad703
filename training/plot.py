"""Loss and recall over all tokens of training, as SVG."""

import json
from pathlib import Path

from stages import STAGES

WIDTH, LEFT, RIGHT, TOP, HEIGHT, GAP = 1000, 60, 20, 40, 240, 60
COLOURS = {"near": "#1b6ca8", "far": "#2a9d8f", "farthest": "#d1495b", "unknown": "#8a817c"}
LABELS = {
    "near": "fewer than 20 messages ago",
    "far": "fewer than 60",
    "farthest": "60 and more",
    "unknown": "never stated",
}


def read(log: Path) -> list[dict]:
    """Lines with `tokens`, counted over all stages; where a stage was repeated after an interruption the later line
    counts.
    """
    tokens_of = {s.name: s.tokens / s.steps for s in STAGES}
    lines: dict[tuple, dict] = {}
    for text in log.read_text().splitlines():
        line = json.loads(text)
        lines[line["stage"], line["step"]] = line
    done, out = 0.0, []
    for name in dict.fromkeys(stage for stage, _ in lines):
        part = sorted((x for x in lines.values() if x["stage"] == name), key=lambda x: x["step"])
        out += [x | {"tokens": done + x["step"] * tokens_of[name]} for x in part]
        done += part[-1]["step"] * tokens_of[name]
    return out


class Panel:
    def __init__(self, top: float, most_x: float, most_y: float, title: str):
        self.top, self.most_x, self.most_y = top, most_x, most_y
        self.out = [
            f'<text x="{LEFT}" y="{top - 10}" class="title">{title}</text>',
            f'<rect x="{LEFT}" y="{top}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT}" class="frame"/>',
        ]
        for i in range(6):
            y = self.y(most_y * i / 5)
            self.out.append(
                f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
                f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{most_y * i / 5:.1f}</text>'
            )

    def x(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / self.most_x

    def y(self, value: float) -> float:
        return self.top + HEIGHT * (1 - min(value, self.most_y) / self.most_y)

    def line(self, points: list[tuple[float, float]], colour: str):
        path = " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in points)
        self.out.append(f'<polyline points="{path}" stroke="{colour}" class="curve"/>')


def _boundaries(panel: Panel, lines: list[dict], named: bool):
    edges, last = [], 0.0
    for name in dict.fromkeys(x["stage"] for x in lines):
        end = max(x["tokens"] for x in lines if x["stage"] == name)
        edges.append((name, last, end))
        last = end
    for i, (name, start, end) in enumerate(edges):
        panel.out.append(
            f'<line x1="{panel.x(end):.1f}" x2="{panel.x(end):.1f}" y1="{panel.top}" y2="{panel.top + HEIGHT}" '
            'class="edge"/>'
        )
        if named:
            panel.out.append(
                f'<text x="{panel.x((start + end) / 2):.1f}" y="{panel.top + HEIGHT + 14 + 12 * (i % 2)}" '
                'text-anchor="middle" '
                f'class="small">{name}</text>'
            )


def draw(log: Path, target: Path):
    lines = read(log)
    most = max(x["tokens"] for x in lines)
    # The indexers learn from another loss; their stages have none of this one.
    talk = [x for x in lines if not x["stage"].startswith("indexer")]
    loss = Panel(TOP, most, 4.0, "cross entropy of the next token, nats")
    for name in dict.fromkeys(x["stage"] for x in talk):
        loss.line([(x["tokens"], x["loss"]) for x in talk if x["stage"] == name], "#333")
    _boundaries(loss, lines, True)
    recall = Panel(TOP + HEIGHT + GAP, most, 1.0, "whole answers right, training conversations, by age of the fact")
    for i, (key, colour) in enumerate(COLOURS.items()):
        for name in dict.fromkeys(x["stage"] for x in talk):
            recall.line(
                [
                    (x["tokens"], x["recall"][key][0] / x["recall"][key][1])
                    for x in talk
                    if x["stage"] == name and x["recall"].get(key, [0, 0])[1] >= 10
                ],
                colour,
            )
        recall.out.append(
            f'<text x="{LEFT + 10 + 220 * i}" y="{recall.top + HEIGHT + 36}" fill="{colour}">{LABELS[key]}</text>'
        )
    _boundaries(recall, lines, False)
    recall.out.append(
        f'<text x="{WIDTH - RIGHT}" y="{recall.top + HEIGHT + 16}" text-anchor="end">'
        f"{most / 1e6:.1f} million tokens</text>"
    )
    style = (
        "text{font:12px sans-serif}.title{font-weight:bold}.small{font-size:10px;fill:#555}"
        ".frame{fill:none;stroke:#999}"
        ".grid{stroke:#eee}.edge{stroke:#ccc;stroke-dasharray:3 3}.curve{fill:none;stroke-width:1.6}"
    )
    total = recall.top + HEIGHT + 50
    target.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" width="{WIDTH}" height="{total}">'
        f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>'
        + "\n".join(loss.out + recall.out)
        + "</svg>\n"
    )
