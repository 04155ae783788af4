// Lines of pictures: straight, or a curve with one control point.

export type Point = [x: number, y: number];

export interface Curve {
  from: Point;
  /** `null`: the line is straight. */
  control: Point | null;
  to: Point;
}

/** Returns the point of a line at a part of it, and its direction there. */
export function along({ from, control, to }: Curve, t: number): [x: number, y: number, dx: number, dy: number] {
  const [[x, y], [u, v]] = [from, to];
  const [a, b] = control ?? [(x + u) / 2, (y + v) / 2];
  const of = (p: number, q: number, r: number) => (1 - t) * (1 - t) * p + 2 * t * (1 - t) * q + t * t * r;
  const slope = (p: number, q: number, r: number) => 2 * (1 - t) * (q - p) + 2 * t * (r - q);
  return [of(x, a, u), of(y, b, v), slope(x, a, u), slope(y, b, v)];
}
