// Saves a picture of the page as SVG or PNG. The style of the page is written into the elements, so
// that the file looks the same elsewhere.

import { h, saveFile } from "./dom";

/** Properties of the style that pictures use. */
const PROPERTIES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-style", "font-weight", "paint-order", "stroke-linejoin", "display"];
/** Pixels of a PNG for each unit of the picture. */
const DENSITY = 2;

/** Returns the text of a picture with its style. */
function vector(picture: SVGSVGElement): string {
  const copy = picture.cloneNode(true) as SVGSVGElement;
  const [originals, copies] = [picture.querySelectorAll("*"), copy.querySelectorAll("*")];
  originals.forEach((original, i) => {
    const style = getComputedStyle(original);
    for (const name of PROPERTIES) copies[i]?.setAttribute(name, style.getPropertyValue(name));
  });
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", getComputedStyle(picture).getPropertyValue("--ground").trim() || "white");
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

/** Paints the text of a picture. */
async function pixels(text: string, width: number, height: number): Promise<Blob | null> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = h("canvas", { width: width * DENSITY, height: height * DENSITY });
  canvas.getContext("2d")?.drawImage(image, 0, 0, width * DENSITY, height * DENSITY);
  return new Promise((done) => canvas.toBlob(done));
}

/** Buttons that save a picture. `title`: name of the files. */
export function saveButtons(picture: SVGSVGElement, title: string): HTMLElement[] {
  const name = title.replace(/[^\p{L}\p{N}.=-]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "picture";
  const button = (kind: string, click: () => void) => h("button", { type: "button", title: `Save the picture as ${kind}`, click }, kind);
  const size = () => [Number(picture.getAttribute("width")), Number(picture.getAttribute("height"))] as const;
  return [
    button("SVG", () => saveFile(new Blob([vector(picture)], { type: "image/svg+xml" }), `${name}.svg`)),
    button("PNG", () => void pixels(vector(picture), ...size()).then((blob) => blob && saveFile(blob, `${name}.png`))),
  ];
}
