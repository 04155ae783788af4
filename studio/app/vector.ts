// A pen that writes SVG instead of painting a canvas, so that a picture is saved as it is seen.

import type { Pen } from "./picture";

const number = (value: number) => String(Math.round(value * 100) / 100);
const escaped = (text: string) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;");

/** Writes the operations of the painter as elements. */
export class VectorPen implements Pen {
  strokeStyle: string | CanvasGradient | CanvasPattern = "#000";
  fillStyle: string | CanvasGradient | CanvasPattern = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  font = "11px sans-serif";
  private path: string[] = [];
  private readonly elements: string[] = [];

  /** `measure`: a pen of a canvas, which knows the widths of texts. */
  constructor(private readonly measure: CanvasRenderingContext2D) {}

  beginPath(): void {
    this.path = [];
  }
  moveTo(x: number, y: number): void {
    this.path.push(`M${number(x)} ${number(y)}`);
  }
  lineTo(x: number, y: number): void {
    this.path.push(`L${number(x)} ${number(y)}`);
  }
  quadraticCurveTo(a: number, b: number, x: number, y: number): void {
    this.path.push(`Q${number(a)} ${number(b)} ${number(x)} ${number(y)}`);
  }
  /** Draws a whole circle, the only arc of the painter. */
  arc(x: number, y: number, radius: number): void {
    const r = number(radius);
    this.path.push(`M${number(x - radius)} ${number(y)}a${r} ${r} 0 1 1 ${number(2 * radius)} 0a${r} ${r} 0 1 1 ${number(-2 * radius)} 0`);
  }
  rect(x: number, y: number, width: number, height: number): void {
    this.path.push(`M${number(x)} ${number(y)}h${number(width)}v${number(height)}h${number(-width)}z`);
  }
  closePath(): void {
    this.path.push("z");
  }
  stroke(): void {
    this.element(`<path d="${this.path.join("")}" fill="none" stroke="${this.colour(this.strokeStyle)}" stroke-width="${number(this.lineWidth)}"`);
  }
  fill(): void {
    this.element(`<path d="${this.path.join("")}" fill="${this.colour(this.fillStyle)}"`);
  }
  fillText(text: string, x: number, y: number): void {
    this.text(text, x, y, `fill="${this.colour(this.fillStyle)}"`);
  }
  strokeText(text: string, x: number, y: number): void {
    this.text(text, x, y, `fill="none" stroke="${this.colour(this.strokeStyle)}" stroke-width="${number(this.lineWidth)}"`);
  }
  measureText(text: string): TextMetrics {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }

  /** Returns the whole picture. */
  document(title: string, width: number, height: number, ground: string): string {
    const size = `width="${width}" height="${height}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size} viewBox="0 0 ${width} ${height}"><title>${escaped(title)}</title><rect ${size} fill="${escaped(ground)}"/>\n${this.elements.join("\n")}\n</svg>\n`;
  }

  private colour(style: string | CanvasGradient | CanvasPattern): string {
    return escaped(String(style));
  }
  private text(text: string, x: number, y: number, paint: string): void {
    const [size = "", ...family] = this.font.split(" ");
    const font = `font-size="${size}" font-family="${escaped(family.join(" "))}"`;
    this.elements.push(`<text x="${number(x)}" y="${number(y)}" ${font} ${paint}>${escaped(text)}</text>`);
  }
  private element(start: string): void {
    if (this.path.length > 0) this.elements.push(`${start}${this.globalAlpha < 1 ? ` opacity="${number(this.globalAlpha)}"` : ""}/>`);
  }
}
